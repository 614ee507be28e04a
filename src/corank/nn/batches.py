"""Batches of sequences of different lengths with almost no padding, and the random draws of training.

A batch is one flat run of *slots*, one token per slot. Sequences are sorted by length and cut into groups of similar
length; within a group each sequence has as many slots as the longest one, so that attention sees plain rectangles
without moving anything. Padding stands at the right, where a causal mask hides it from every real token; a new group is
opened as soon as padding would cost more than one more call (`SLACK` slots), so that padding stays at a few percent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

SLACK = 64  # slots of padding that cost about as much as one more group
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Packed:
    """Where each token of b sequences is, in s slots of which n hold real tokens; the longest sequence is first."""

    at: Ints  # (s,) index of the token in the store of sequences
    row: Ints  # (s,) its sequence, 0 .. b - 1
    step: Ints  # (s,) its place in the sequence, from 0; padding repeats the last one
    groups: list[tuple[int, int]]  # (sequences, slots of each), one after the other
    real: Ints | None  # (n,) the slots that are not padding; None when there is no padding
    last: Ints  # (b,) slot of the last token of each sequence

    def tokens(self) -> NDArray[np.float32]:
        """float32 (s,): 1 where a slot holds a token, 0 where it is padding."""
        there = np.ones(self.row.size, np.float32)
        if self.real is not None:
            there[:] = 0
            there[self.real] = 1
        return there

    def recent(self, size: int, slots: Ints) -> tuple[Ints, NDArray[np.float32]]:
        """The `size` most recent tokens of the sequence up to each of `slots` (n,), the newest last: (at, there).

        at : (n, size) their slots, or any slot where the sequence has no such token. there : float32 (n, size), 0 in
            that case, else 1.
        """
        back = np.arange(size - 1, -1, -1)
        there = self.step[slots][:, None] >= back
        return np.where(there, slots[:, None] - back, slots[:, None]), there.astype(np.float32)


@dataclass(frozen=True, eq=False)
class Batch:
    """What a network reads: b sequences in s slots."""

    packed: Packed
    item: Tensor  # int64 (s,)
    position: Tensor  # int64 (s,), such that the last token of each sequence has the last position
    user: Tensor | None  # int64 (b,) codes of the users; None: unseen users


@dataclass(frozen=True, eq=False)
class Examples(Batch):
    """What a network learns from: a batch with the next item of n of its tokens."""

    asked: Ints | None  # (n,) slots of these tokens; None: all slots
    target: Tensor  # int64 (n,)
    negative: Tensor | None  # int64 (n, k) per token, (k,) shared by all tokens, or none
    weight: float  # of this part in the loss of the step: its fraction of the targets
    seed: tuple[int, int]  # of dropout
    log_probability: Tensor | None = None  # float32 (k,) of shared negatives in one draw; None: uniform

    def of_targets(self, x: Tensor) -> Tensor:
        """The rows of x (s, ...) that predict a target, (n, ...)."""
        from .devices import beside

        return x if self.asked is None else x[beside(x, self.asked)]


def pack(begin: Ints, length: Ints, slack: int = SLACK) -> Packed:
    """Slots for sequences that start at `begin` (b,) in a store and have `length` (b,) >= 1 tokens."""
    if length.size and length.min() < 1:
        raise ValueError("a sequence of no tokens cannot be packed: leave it out")
    order = np.argsort(-length, kind="stable")
    groups = _cut(length[order].tolist(), slack)
    width = np.empty(order.size, np.int64)  # slots of each sequence, in the order of the groups
    done = 0
    for count, slots in groups:
        width[done : done + count] = slots
        done += count
    ends = np.cumsum(width)
    starts = ends - width
    row = np.repeat(order, width)
    slot = np.arange(row.size)
    own = length[row]
    step = slot - np.repeat(starts, width)
    real = None if int(length.sum()) == row.size else np.flatnonzero(step < own)
    step = np.minimum(step, own - 1)
    last = np.empty(order.size, np.int64)
    last[order] = starts + length[order] - 1
    return Packed(begin[row] + step, row, step, groups, real, last)


def _cut(lengths: list[int], slack: int) -> list[tuple[int, int]]:
    """Groups of sequences of decreasing lengths: (how many, the longest)."""
    groups: list[tuple[int, int]] = []
    count, longest, waste = 0, 0, 0
    for length in lengths:
        if count and waste + longest - length > slack:
            groups.append((count, longest))
            count = 0
        if count == 0:
            longest, waste = length, 0
        count += 1
        waste += longest - length
    if count:
        groups.append((count, longest))
    return groups


def by_step(packed: Packed) -> tuple[Ints, Ints, Ints]:
    """A packed batch as recurrent networks read it, step by step: (slots, alive, place).

    slots : (n,) the real slots, those of step 0 first; within a step the longest sequence is first.
    alive : (steps,) number of sequences that have this step, never rising (`batch_sizes` in torch).
    place : (s,) where each slot is in `slots`; that of padding is any.
    """
    slots = np.arange(packed.at.size) if packed.real is None else packed.real
    step = packed.step[slots]
    slots = slots[np.argsort(step, kind="stable")]
    place = np.zeros(packed.at.size, np.int64)
    place[slots] = np.arange(slots.size)
    return slots, np.bincount(step), place


def targets(begin: Ints, length: Ints, every: bool) -> Ints:
    """Where in the store the targets of a step are: the token after each input, or after the last one."""
    if not every:
        return begin + length
    ends = np.cumsum(length)
    return np.arange(1, 1 + int(length.sum())) + np.repeat(begin - ends + length, length)


def deal(length: Ints, parts: int) -> list[Ints]:
    """The sequences divided into `parts` of about equal work and a similar mix of lengths."""
    order = np.argsort(-length, kind="stable")
    return [order[part::parts] for part in range(min(parts, order.size))]


def windows(rng: np.random.Generator, start: Ints, stop: Ints, most: int, chance: float) -> tuple[Ints, Ints]:
    """(begin, length) of the training window of each history start..stop: its last `most` + 1 items.

    With probability `chance` a longer history gives as many consecutive items from a uniform earlier start instead
    (SSE-PT++). `length` counts the inputs, one less than the items: the last item of a window is a target only.
    """
    whole = stop - start
    length = np.minimum(whole - 1, most)
    begin = stop - 1 - length
    if chance > 0:
        starts = whole - 1 - most  # number of windows that leave out the newest item
        moved = (rng.random(whole.size) < chance) & (starts > 0)
        begin = np.where(moved, start + rng.integers(0, np.maximum(starts, 1)), begin)
    return begin, length


def prefixes(start: Ints, stop: Ints, most: int) -> tuple[Ints, Ints, Ints]:
    """(history, begin, length) of each prefix of the histories start..stop that has a next item, its target.

    A prefix has its last `most` items as inputs, from `begin` on; its target is at begin + length.
    """
    count = stop - start - 1
    history = np.repeat(np.arange(count.size), count)
    whole = np.arange(history.size) - np.repeat(np.cumsum(count) - count, count) + 1  # items of the prefix
    length = np.minimum(whole, most)
    return history, start[history] + whole - length, length


def replace(rng: np.random.Generator, index: Ints, chance: float, size: int) -> Ints:
    """SSE: each index is replaced, with probability `chance`, by a uniform one below `size`; 0 draws nothing."""
    if chance <= 0:
        return index
    drawn = rng.integers(0, size, index.size)
    return np.where(rng.random(index.size, np.float32) < chance, drawn, index)


def replace_coupled(
    rng: np.random.Generator, item: Ints, target: Ints, step: Ints, chance: float, size: int
) -> tuple[Ints, Ints]:
    """SSE as in the released code of SSE-PT: one coin flip replaces input and target, by two uniform items.

    A target that is kept equals the (possibly replaced) input of the next token. step : of `Packed`.
    """
    if chance <= 0:
        return item, target
    hit = rng.random(item.size, np.float32) < chance
    drawn = rng.integers(0, size, (2, item.size))
    new = np.where(hit, drawn[0], item)
    target = target.copy()
    follows = np.flatnonzero(step[1:] == step[:-1] + 1)
    target[follows] = new[follows + 1]
    return new, np.where(hit, drawn[1], target)


def negatives(rng: np.random.Generator, row: Ints, taken: tuple[Ints, Ints], size: int, k: int) -> Ints:
    """int64 (n, k): uniform items below `size` that the user of each token has not interacted with.

    row : (n,) user of each token, as a row of the batch.
    taken : (row, item) pairs of all interactions of these users, sorted. Such items are drawn again, up to 64 times:
        only a user who has nearly all items may be left with one of them as a negative.
    """
    key = taken[0] * size + taken[1]
    out = rng.integers(0, size, (row.size, k))
    again = np.arange(out.size)
    flat, owner = out.reshape(-1), np.repeat(row * size, k)
    for _ in range(64):
        wanted = owner[again] + flat[again]
        at = np.searchsorted(key, wanted)
        again = again[key[np.minimum(at, key.size - 1)] == wanted] if key.size else again[:0]
        if again.size == 0:
            break
        flat[again] = rng.integers(0, size, again.size)
    return out
