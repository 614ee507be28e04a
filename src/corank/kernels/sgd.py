"""Stochastic gradient descent on the entries of a matrix in parallel, with results that do not depend on the threads.

Users are assigned at random to B groups and items to B stripes, which splits the entries into B x B blocks (Gemulla et
al. 2011). In round t, block (a, (a + t) mod B) is processed for all groups a at once: no two of these blocks share a
user or an item, so any number of threads gives the same result. B depends on the data alone, every block draws from its
own random stream, and each epoch uses a new assignment, so that any two items share a stripe equally often.

Shapes: n entries; user, item int32[n], value float32[n] (or int32[n], a count); group int32[users] and stripe
int32[items], the assignment; first int64[B * B + 1], where each block begins, group by group; user_place int32[users]
and item_place int32[items], positions within a group or stripe; members int32[items], the items stripe by stripe;
member_first int64[B + 1], where each stripe begins in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .random import uniform
from .threads import inline, kernel, run


class Entries(NamedTuple):
    """User, item and value of each entry."""

    user: np.ndarray
    item: np.ndarray
    value: np.ndarray


class Partition(NamedTuple):
    """Assignment of users to groups and of items to stripes."""

    side: int
    group: np.ndarray
    user_place: np.ndarray
    stripe: np.ndarray
    item_place: np.ndarray
    members: np.ndarray
    member_first: np.ndarray


class Blocks(NamedTuple):
    """Entries, sorted into side x side blocks."""

    side: int
    first: np.ndarray
    user: np.ndarray
    item: np.ndarray
    value: np.ndarray
    user_place: np.ndarray
    item_place: np.ndarray
    members: np.ndarray
    member_first: np.ndarray


def grid_side(entries: int, users: int, items: int) -> int:
    """The number B of groups and stripes.

    Small enough for each block to be worth a task and for a stripe to have enough items to draw negatives from; large
    enough for a bit per user-item pair of a block to fit into the cache (16 MB).
    """
    wanted = max(min(16, entries // 20_000), math.isqrt(users * items // (8 * 16_000_000)))
    return max(1, min(wanted, users // 8, items // 32))


def random_partition(rng: np.random.Generator, users: int, items: int, side: int) -> Partition:
    """A new random assignment of users to groups and of items to stripes."""
    group, user_place, _, _ = _assign(rng, users, side)
    return Partition(side, group, user_place, *_assign(rng, items, side))


def sort_into_blocks(partition: Partition, entries: Entries, out: Entries | None = None) -> Blocks:
    """The entries sorted into their blocks; `out` : where they are written, arrays of their size."""
    side = partition.side
    first = np.zeros(side * side + 1, np.int64)
    user, item, value = out or (np.empty_like(column) for column in entries)
    _sort(*entries, partition.group, partition.stripe, side, first, user, item, value)
    places = (partition.user_place, partition.item_place, partition.members, partition.member_first)
    return Blocks(side, first, user, item, value, *places)


def random_blocks(rng: np.random.Generator, entries: Entries, users: int, items: int) -> Blocks:
    """The entries sorted into the blocks of a new random partition."""
    partition = random_partition(rng, users, items, grid_side(entries.user.size, users, items))
    return sort_into_blocks(partition, entries)


def sweep(step: Callable[..., Any], blocks: Blocks, *args: Any) -> None:
    """One epoch: `step(start, stop, round_, blocks, *args)` processes one block per group start..stop in each round."""
    for round_ in range(blocks.side):
        run(step, blocks.side, round_, blocks, *args)


def _assign(rng: np.random.Generator, count: int, side: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A random partition into `side` parts: (part of each, place in the part, members by part, where parts begin)."""
    members = rng.permutation(count).astype(np.int32)
    first = np.arange(side + 1, dtype=np.int64) * count // side
    part, place = np.empty((2, count), np.int32)
    part[members] = np.repeat(np.arange(side, dtype=np.int32), np.diff(first))
    place[members] = np.arange(count) - np.repeat(first[:-1], np.diff(first))
    return part, place, members, first


@kernel
def _sort(
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
    """Sort the entries by block (counting sort)."""
    for p in range(user.size):
        first[group[user[p]] * side + stripe[item[p]] + 1] += 1
    for k in range(side * side):
        first[k + 1] += first[k]
    cursor = first[:-1].copy()
    for p in range(user.size):
        k = group[user[p]] * side + stripe[item[p]]
        at = cursor[k]
        cursor[k] = at + 1
        out_user[at] = user[p]
        out_item[at] = item[p]
        out_value[at] = value[p]


@inline
def random_below(state: np.ndarray, n: int) -> int:
    """The next random integer of the stream, uniform in 0..n - 1."""
    return int(uniform(state) * n)


@inline
def random_absent(state: np.ndarray, index: np.ndarray, low: int, high: int, columns: int) -> int:
    """A uniformly random column that is not in index[low:high] (increasing); there must be one."""
    k: int = random_below(state, columns - (high - low))
    first = low
    while low < high:  # the first position with more than k absent columns before it
        middle = (low + high) >> 1
        if index[middle] - (middle - first) > k:
            high = middle
        else:
            low = middle + 1
    return k + low - first


@inline
def shuffle(state: np.ndarray, start: int, stop: int, user: np.ndarray, item: np.ndarray, value: np.ndarray) -> None:
    """Shuffle the entries start..stop."""
    for p in range(stop - 1, start, -1):
        q = start + random_below(state, p - start + 1)
        user[p], user[q] = user[q], user[p]
        item[p], item[q] = item[q], item[p]
        value[p], value[q] = value[q], value[p]
