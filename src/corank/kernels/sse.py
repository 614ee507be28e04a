"""Stochastic shared embeddings: now and then a step is made with the row of somebody else (Wu et al. 2019).

Before a step, the user of an entry keeps the own row with probability 1 - p, and so, by a coin of its own, does the
item. What stands in instead:

    SSE-SE      any of the N rows that take part, equally likely, the own one among them (as in the authors' code)
    SSE-Graph   another row k than the own one j, with p(j, k) = rho q_j for neighbours of j and q_j for all others,
                q_j = p / (rho deg_j + N - 1 - deg_j), so that p(j, j) = 1 - p

rho below 1 keeps neighbours apart; where everybody is a neighbour, rho makes no difference. No N x N table is needed: a
draw chooses between the neighbours and the others, by rho deg to N - 1 - deg, and then finds the r-th of them, by a
binary search in the row's neighbours where it is one of the others.

All replacements of an epoch are drawn before its entries are dealt into blocks (see `sgd`), and the deal goes by the
rows that stand in. A step then touches rows of its own block only, whatever was drawn: the odds are exactly the stated
ones, and threads change nothing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .random import seek, uniform
from .sgd import Entries, below, free
from .threads import kernel


class Law(NamedTuple):
    """How the rows of one side are replaced; `law` makes one."""

    p: float
    rho: float
    pool: np.ndarray  # int32[N], rising: the rows that take part
    place: np.ndarray  # int32[rows]: where a row stands in the pool; empty: no graph
    indptr: np.ndarray  # int64[N + 1], by place
    near: np.ndarray  # int32[edges + N], rising within a row: the places of its neighbours and its own


def law(p: float, pool: np.ndarray, rho: float = 1.0, graph: tuple[np.ndarray, np.ndarray] | None = None) -> Law:
    """The law of one side; only rows of `pool` are replaced and stand in.

    graph : (indptr int64[rows + 1], index int32[edges]); loops and neighbours outside the pool are left out, and an
    edge given twice counts once. Without a graph, or with rho = 1, it is SSE-SE.
    """
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"p={p}: a probability must be between 0 and 1")
    if not 0.0 <= rho < np.inf:
        raise ValueError(f"rho={rho}: neighbours stand in rho times as often, so it must be a number of at least 0")
    pool = np.ascontiguousarray(pool, np.int32)
    if graph is None or rho == 1.0:
        none = np.zeros(0, np.int32)
        return Law(float(p), 1.0, pool, none, none.astype(np.int64), none)
    indptr, index = graph
    place = np.full(indptr.size - 1, -1, np.int32)
    place[pool] = np.arange(pool.size)
    owner, other = np.repeat(place, np.diff(indptr)), place[index]
    kept = (owner >= 0) & (other >= 0)
    own = np.arange(pool.size, dtype=np.int64)
    # Each row is a neighbour of its own here, as what is not drawn must be known too.
    edge = np.concatenate([owner[kept].astype(np.int64) * pool.size + other[kept], own * (pool.size + 1)])
    edge.sort(kind="stable")  # mostly in order already, and then linear
    owner, other = np.divmod(edge[np.diff(edge, prepend=-1) > 0], max(pool.size, 1))
    first = np.searchsorted(owner, np.arange(pool.size + 1)).astype(np.int64)
    return Law(float(p), float(rho), pool, place, first, other.astype(np.int32))


@kernel
def _toss(seed: int, p_user: float, p_item: float, step: np.ndarray, sides: np.ndarray) -> int:
    """The steps 0..step.size in which something is replaced, and what (1 the user, 2 the item, 3 both); their number.

    Two coins a step that fall as if tossed one by one; the steps between two successes are jumped over at once.
    """
    state = np.empty(1, np.uint64)
    seek(state, seed, 0)
    either = p_user + p_item - p_user * p_item
    missed = math.log1p(-either)  # -inf where nothing is missed: jumps of 0
    k, end = -1, 0
    while True:
        jump = math.log(1.0 - uniform(state)) / missed
        if jump >= step.size - 1 - k:
            return end
        k += 1 + int(jump)
        x = uniform(state) * either
        step[end] = k
        sides[end] = 1 if x < p_user * (1.0 - p_item) else 3 if x < p_user else 2
        end += 1


@kernel
def _stand_in(
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
    """Replace row[k] by somebody else wherever sides[k] has the bit `side`."""
    state = np.empty(1, np.uint64)
    seek(state, seed, side)
    n = pool.size
    for k in range(row.size):
        if sides[k] & side == 0:
            continue
        if place.size == 0:
            row[k] = pool[below(state, n)]
        elif n > 1:
            own = place[row[k]]
            low, high = indptr[own], indptr[own + 1]
            degree = high - low - 1
            weight = rho * degree
            if degree == n - 1 or uniform(state) * (weight + n - 1 - degree) < weight:
                at = low + below(state, degree)
                row[k] = pool[near[at + 1 if near[at] >= own else at]]
            else:
                row[k] = pool[free(state, near, low, high, n)]


@kernel
def _spread(entry: np.ndarray, user: np.ndarray, item: np.ndarray, value: np.ndarray, n: int) -> None:
    """Take a step away from each entry named (of n) and write it down as an entry of its own."""
    for k in range(entry.size):
        p = entry[k]
        value[p] -= 1
        user[n + k] = user[p]
        item[n + k] = item[p]
        value[n + k] = -1 - user[p]


def replace(rng: np.random.Generator, entries: Entries, users: Law, items: Law) -> Entries:
    """The entries of an epoch with other users and items where the coins say so; what they are worth stays."""
    if users.p == items.p == 0:
        return entries
    seed, step, sides = _tossed(rng, entries.user.size, users, items)
    user, item = entries.user.copy(), entries.item.copy()
    for side, law, column in ((1, users, user), (2, items, item)):
        row = column[step]
        _stand_in(seed, side, sides, *law[1:], row)
        column[step] = row
    return Entries(user, item, entries.value)


def split(rng: np.random.Generator, entries: Entries, each: int, users: Law, items: Law) -> Entries:
    """The steps of an epoch with `each` steps an entry, each with coins of its own.

    entries.value int32[n] is `each` everywhere. What comes out begins with the same entries, value = the number of
    their steps in which nothing is replaced; then, one entry each and in the same order, the other steps, value =
    -1 - the user whose step it really is.
    """
    if users.p == items.p == 0:
        return entries
    n = entries.user.size
    seed, step, sides = _tossed(rng, n * each, users, items)
    out = Entries(*(np.empty(n + step.size, np.int32) for _ in range(3)))
    for new, old in zip(out, entries, strict=True):
        new[:n] = old
    _spread(step // each, *out, n)
    _stand_in(seed, 1, sides, *users[1:], out.user[n:])
    _stand_in(seed, 2, sides, *items[1:], out.item[n:])
    return out


def _tossed(rng: np.random.Generator, steps: int, users: Law, items: Law) -> tuple[int, np.ndarray, np.ndarray]:
    """(seed, step, sides): the seed of the draws, the steps in which something is replaced, and what."""
    seed = int(rng.integers(2**62))
    step, sides = np.empty(steps, np.int64), np.empty(steps, np.uint8)  # what is not written takes no memory
    end = _toss(seed, users.p, items.p, step, sides)
    return seed, step[:end], sides[:end]
