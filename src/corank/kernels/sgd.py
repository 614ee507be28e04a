"""Stochastic gradient descent on the entries of a matrix that several threads share and none of them can change.

Users are dealt at random into B groups and items into B stripes, which cuts the entries into B x B blocks (Gemulla et
al. 2011). In turn t the block of group a and stripe (a + t) mod B is worked on for all a at once: no two of them share
a user or an item, so the result is that of one thread, whatever the number of threads. B hangs on the data alone, every
block draws from its own random stream, and each epoch deals anew, so that any two items meet in a stripe equally often.

Shapes: n entries; user, item int32[n], value float32[n] (or int32[n], a count); group int32[users] and stripe
int32[items] say where everybody was dealt; first int64[B * B + 1] cuts them into blocks, group by group;
user_place int32[users] and item_place int32[items] count within a group or stripe; members int32[items] lists the items
stripe by stripe, cut by member_first int64[B + 1].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .random import uniform
from .threads import kernel, run


class Entries(NamedTuple):
    """Who, what and how much, one entry each."""

    user: np.ndarray
    item: np.ndarray
    value: np.ndarray


class Parts(NamedTuple):
    """Users dealt into groups and items into stripes."""

    side: int
    group: np.ndarray
    user_place: np.ndarray
    stripe: np.ndarray
    item_place: np.ndarray
    members: np.ndarray
    member_first: np.ndarray


class Blocks(NamedTuple):
    """Entries, dealt into side x side blocks."""

    side: int
    first: np.ndarray
    user: np.ndarray
    item: np.ndarray
    value: np.ndarray
    user_place: np.ndarray
    item_place: np.ndarray
    members: np.ndarray
    member_first: np.ndarray


def sides(entries: int, users: int, items: int) -> int:
    """The number B of groups and stripes.

    Enough work in a turn to be worth handing out, enough items in a stripe to compare, and never so large a block that
    a bit for each of its pairs would leave the cache for good (16 MB).
    """
    wanted = max(min(16, entries // 20_000), math.isqrt(users * items // (8 * 16_000_000)))
    return max(1, min(wanted, users // 8, items // 32))


def draw(rng: np.random.Generator, users: int, items: int, side: int) -> Parts:
    """A new random deal of users into groups and of items into stripes."""
    group, user_place, _, _ = _parts(rng, users, side)
    return Parts(side, group, user_place, *_parts(rng, items, side))


def fill(parts: Parts, entries: Entries) -> Blocks:
    """The entries sorted into their blocks."""
    side = parts.side
    first = np.zeros(side * side + 1, np.int64)
    user, item, value = (np.empty_like(column) for column in entries)
    _place(*entries, parts.group, parts.stripe, side, first, user, item, value)
    places = (parts.user_place, parts.item_place, parts.members, parts.member_first)
    return Blocks(side, first, user, item, value, *places)


def deal(rng: np.random.Generator, entries: Entries, users: int, items: int) -> Blocks:
    """A new random deal, and the entries sorted into its blocks."""
    return fill(draw(rng, users, items, sides(entries.user.size, users, items)), entries)


def sweep(step: Callable[..., Any], blocks: Blocks, *args: Any) -> None:
    """One epoch: `step(start, stop, turn, blocks, *args)` works on the blocks of the groups start..stop in a turn."""
    for turn in range(blocks.side):
        run(step, blocks.side, turn, blocks, *args)


def _parts(rng: np.random.Generator, count: int, side: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(part of each, place in the part, members part by part, where each part begins) of a random deal."""
    members = rng.permutation(count).astype(np.int32)
    first = np.arange(side + 1, dtype=np.int64) * count // side
    part, place = np.empty((2, count), np.int32)
    part[members] = np.repeat(np.arange(side, dtype=np.int32), np.diff(first))
    place[members] = np.arange(count) - np.repeat(first[:-1], np.diff(first))
    return part, place, members, first


@kernel
def _place(
    user: np.ndarray,
    item: np.ndarray,
    value: np.ndarray,
    group: np.ndarray,
    stripe: np.ndarray,
    side: int,
    first: np.ndarray,
    out_user: np.ndarray,
    out_item: np.ndarray,
    out_value: np.ndarray,
) -> None:
    """Sort the entries by block: count, then put."""
    for p in range(user.size):
        first[group[user[p]] * side + stripe[item[p]] + 1] += 1
    for k in range(side * side):
        first[k + 1] += first[k]
    fill = first[:-1].copy()
    for p in range(user.size):
        k = group[user[p]] * side + stripe[item[p]]
        at = fill[k]
        fill[k] = at + 1
        out_user[at] = user[p]
        out_item[at] = item[p]
        out_value[at] = value[p]


@kernel
def below(state: np.ndarray, n: int) -> int:
    """The next whole number of the stream, uniform in 0..n."""
    return int(uniform(state) * n)


@kernel
def free(state: np.ndarray, index: np.ndarray, low: int, high: int, columns: int) -> int:
    """A column that is not among index[low:high] (rising), each of them equally likely; there must be one."""
    k: int = below(state, columns - (high - low))
    first = low
    while low < high:  # the first place with more than k free columns before it
        middle = (low + high) >> 1
        if index[middle] - (middle - first) > k:
            high = middle
        else:
            low = middle + 1
    return k + low - first


@kernel
def shuffle(state: np.ndarray, start: int, stop: int, user: np.ndarray, item: np.ndarray, value: np.ndarray) -> None:
    """Bring the entries start..stop into random order."""
    for p in range(stop - 1, start, -1):
        q = start + below(state, p - start + 1)
        user[p], user[q] = user[q], user[p]
        item[p], item[q] = item[q], item[p]
        value[p], value[q] = value[q], value[p]
