"""Stochastic shared embeddings: some steps use the embedding of another user or item (Wu et al. 2019).

Before a step, the user of an entry keeps its own row with probability 1 - p, and so, independently, does the item. The
row that replaces it is

    SSE-SE      any of the N rows that take part, uniformly, the own row included (as in the authors' code)
    SSE-Graph   a row k other than the own row j, with p(j, k) = rho q_j for neighbours of j and q_j for all others,
                q_j = p / (rho deg_j + N - 1 - deg_j), so that p(j, j) = 1 - p

With rho below 1, neighbours are less likely than others; where all rows are neighbours, rho has no effect. No N x N
table is needed: a draw chooses between the neighbours and the others with odds rho deg : N - 1 - deg, and then picks
the r-th of them, by binary search in the row's neighbours where it is one of the others.

All replacements of an epoch are drawn before its entries are sorted into blocks (see `sgd`), by the rows that replace
the own ones. A step then touches rows of its own block only, the probabilities are exactly the stated ones, and the
number of threads has no effect.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .random import seek, uniform
from .sgd import Entries, random_absent, random_below
from .threads import kernel


class Replacement(NamedTuple):
    """How the rows of one side are replaced; see `replacement`."""

    p: float
    rho: float
    pool: np.ndarray  # int32[N], increasing: the rows that take part
    place: np.ndarray  # int32[rows]: position of a row in the pool; empty: no graph
    indptr: np.ndarray  # int64[N + 1], by place
    near: np.ndarray  # int32[edges + N], increasing within a row: places of the row itself and of its neighbours


def replacement(
    p: float, pool: np.ndarray, rho: float = 1.0, graph: tuple[np.ndarray, np.ndarray] | None = None
) -> Replacement:
    """How one side is replaced; only rows of `pool` are replaced and replace others.

    graph : (indptr int64[rows + 1], index int32[edges]); loops and neighbours outside the pool are ignored, and
    repeated edges count once. Without a graph, or with rho = 1, it is SSE-SE.
    """
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"p={p}: a probability must be between 0 and 1")
    if not 0.0 <= rho < np.inf:
        raise ValueError(f"rho={rho}: neighbours are rho times as likely, so it must be a number of at least 0")
    pool = np.ascontiguousarray(pool, np.int32)
    if graph is None or rho == 1.0:
        none = np.zeros(0, np.int32)
        return Replacement(float(p), 1.0, pool, none, none.astype(np.int64), none)
    indptr, index = graph
    place = np.full(indptr.size - 1, -1, np.int32)
    place[pool] = np.arange(pool.size)
    owner, other = np.repeat(place, np.diff(indptr)), place[index]
    kept = (owner >= 0) & (other >= 0)
    own = np.arange(pool.size, dtype=np.int64)
    # Each row counts as its own neighbour here: it must be excluded from the others too.
    edge = np.concatenate([owner[kept].astype(np.int64) * pool.size + other[kept], own * (pool.size + 1)])
    edge.sort(kind="stable")  # mostly sorted already, and then linear
    owner, other = np.divmod(edge[np.diff(edge, prepend=-1) > 0], max(pool.size, 1))
    first = np.searchsorted(owner, np.arange(pool.size + 1)).astype(np.int64)
    return Replacement(float(p), float(rho), pool, place, first, other.astype(np.int32))


@kernel
def _draw_steps(seed: int, p_user: float, p_item: float, step: np.ndarray, sides: np.ndarray) -> int:
    """Which of step.size steps replace something, and what (1 the user, 2 the item, 3 both); returns their number.

    Equivalent to two independent draws per step; the gaps between successes are drawn at once (geometric).
    """
    state = np.empty(1, np.uint64)
    seek(state, seed, 0)
    either = p_user + p_item - p_user * p_item
    missed = math.log1p(-either)  # -inf where every step is drawn: gaps of 0
    k, end = -1, 0
    while True:
        gap = math.log(1.0 - uniform(state)) / missed
        if gap >= step.size - 1 - k:
            return end
        k += 1 + int(gap)
        x = uniform(state) * either
        step[end] = k
        sides[end] = 1 if x < p_user * (1.0 - p_item) else 3 if x < p_user else 2
        end += 1


@kernel
def _replace_rows(
    seed: int,
    side: int,
    sides: np.ndarray,
    rho: float,
    pool: np.ndarray,
    place: np.ndarray,
    indptr: np.ndarray,
    near: np.ndarray,
    row: np.ndarray,
) -> None:
    """Replace row[k] by a random row wherever sides[k] has the bit `side`."""
    state = np.empty(1, np.uint64)
    seek(state, seed, side)
    n = pool.size
    for k in range(row.size):
        if sides[k] & side == 0:
            continue
        if place.size == 0:
            row[k] = pool[random_below(state, n)]
        elif n > 1:
            own = place[row[k]]
            low, high = indptr[own], indptr[own + 1]
            degree = high - low - 1
            weight = rho * degree
            if degree == n - 1 or uniform(state) * (weight + n - 1 - degree) < weight:
                at = low + random_below(state, degree)
                row[k] = pool[near[at + 1 if near[at] >= own else at]]
            else:
                row[k] = pool[random_absent(state, near, low, high, n)]


@kernel
def _append_steps(entry: np.ndarray, user: np.ndarray, item: np.ndarray, value: np.ndarray, n: int) -> None:
    """Move one step of each listed entry (of the first n) to an entry of its own after them."""
    for k in range(entry.size):
        p = entry[k]
        value[p] -= 1
        user[n + k] = user[p]
        item[n + k] = item[p]
        value[n + k] = -1 - user[p]


def replace(rng: np.random.Generator, entries: Entries, users: Replacement, items: Replacement) -> Entries:
    """The entries of an epoch with users and items replaced at random; values stay."""
    if users.p == items.p == 0:
        return entries
    seed, step, sides = _replaced_steps(rng, entries.user.size, users, items)
    user, item = entries.user.copy(), entries.item.copy()
    for side, how, column in ((1, users, user), (2, items, item)):
        row = column[step]
        _replace_rows(seed, side, sides, *how[1:], row)
        column[step] = row
    return Entries(user, item, entries.value)


def split(rng: np.random.Generator, entries: Entries, each: int, users: Replacement, items: Replacement) -> Entries:
    """The steps of an epoch with `each` steps per entry, replaced independently.

    entries.value int32[n] is `each` everywhere. The result begins with the same entries, value = the number of their
    steps without replacement; the other steps follow in the same order, one entry per step, value = -1 - the user of
    the original entry.
    """
    if users.p == items.p == 0:
        return entries
    n = entries.user.size
    seed, step, sides = _replaced_steps(rng, n * each, users, items)
    out = Entries(*(np.empty(n + step.size, np.int32) for _ in range(3)))
    for new, old in zip(out, entries, strict=True):
        new[:n] = old
    _append_steps(step // each, *out, n)
    _replace_rows(seed, 1, sides, *users[1:], out.user[n:])
    _replace_rows(seed, 2, sides, *items[1:], out.item[n:])
    return out


def _replaced_steps(
    rng: np.random.Generator, steps: int, users: Replacement, items: Replacement
) -> tuple[int, np.ndarray, np.ndarray]:
    """(seed, step, sides): the seed of the draws, the steps that replace something, and what they replace."""
    seed = int(rng.integers(2**62))
    step, sides = np.empty(steps, np.int64), np.empty(steps, np.uint8)  # pages that are not written take no memory
    end = _draw_steps(seed, users.p, items.p, step, sides)
    return seed, step[:end], sides[:end]
