"""Sequences of different length side by side, with next to no work on padding.

A batch is one flat run of *slots*, a token each. Sequences are sorted by length and cut into groups of like length;
within a group each has as many slots as the longest, so that attention sees plain rectangles without anything being
moved. Padding stands at the right, where a causal mask hides it from every real token; a new group is opened as soon as
the padding would cost more than another call (`SLACK` slots), so that it stays at a few percent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SLACK = 64  # slots of padding that cost about as much as working on one group more
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Packed:
    """Where each token of a batch of b sequences is, in s slots of which n are real."""

    at: Ints  # [s] place of the token in the store of sequences
    row: Ints  # [s] its sequence, 0 .. b - 1
    step: Ints  # [s] its place in the sequence, from 0; padding repeats the last one
    groups: list[tuple[int, int]]  # (sequences, slots of each), one after the other
    real: Ints | None  # [n] the slots that are no padding; None when all are real
    last: Ints  # [b] slot of the last token of each sequence


def pack(begin: Ints, length: Ints, slack: int = SLACK) -> Packed:
    """Slots for the sequences that start at `begin` [b] of a store and have `length` [b] >= 1 tokens."""
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
    """Groups of falling lengths: (how many, the longest)."""
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


def deal(length: Ints, parts: int) -> list[Ints]:
    """The sequences dealt to `parts` of about equal work and like mix of lengths."""
    order = np.argsort(-length, kind="stable")
    return [order[part::parts] for part in range(min(parts, order.size))]


def windows(rng: np.random.Generator, start: Ints, stop: Ints, most: int, chance: float) -> tuple[Ints, Ints]:
    """(begin, length) of what is learned from the rows start..stop: the last `most` + 1 items, inputs and targets.

    With probability `chance` a longer row gives, instead, that many consecutive items from a uniform earlier start
    (SSE-PT++). `length` counts the inputs: one less than the items.
    """
    whole = stop - start
    length = np.minimum(whole - 1, most)
    begin = stop - 1 - length
    if chance > 0:
        starts = whole - 1 - most  # of windows that leave out the newest item
        moved = (rng.random(whole.size) < chance) & (starts > 0)
        begin = np.where(moved, start + rng.integers(0, np.maximum(starts, 1)), begin)
    return begin, length


def replace(rng: np.random.Generator, index: Ints, chance: float, size: int) -> Ints:
    """SSE: each index becomes, with probability `chance`, a uniform one below `size`; chance 0 draws nothing."""
    if chance <= 0:
        return index
    drawn = rng.integers(0, size, index.size)
    return np.where(rng.random(index.size, np.float32) < chance, drawn, index)


def replace_coupled(
    rng: np.random.Generator, item: Ints, target: Ints, step: Ints, chance: float, size: int
) -> tuple[Ints, Ints]:
    """SSE as in the released code of SSE-PT: one coin replaces input and target, by two uniform items.

    Where the target stays, it is the input of the next token as replaced, so that neighbours agree. step : of `Packed`.
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
    """int64[n, k]: uniform items below `size` that the row of each token has not taken.

    taken : (row, item) pairs of the batch, sorted. Draws that are taken are drawn again; only who has nearly everything
    may be left with a taken one.
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
