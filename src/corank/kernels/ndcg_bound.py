"""The NDCG surrogate of CofiRank (Weimer et al., NIPS 2007): a convex upper bound of 1 - NDCG of a list.

Loss of a list with scores f, over all orders pi of its n items:

    max over pi of (1 - NDCG(pi) + sum_j decay[place of j in pi] f_j)  -  sum_j anchor_j f_j

decay decreases with the place; anchor_j is the decay at j's place in the ideal order (by rating, ties by score).
Sorting by f maximises sum decay f, so the loss is at least 1 - NDCG of the order by score. With the anchors held fixed
it is convex in f and an upper bound of the loss that is tight at the scores the anchors were computed for: a step that
lowers the bound lowers the loss. Its gradient is the decay at the maximising pi minus the anchor.

That pi solves an assignment of items to places with cost discount_i gain_j - decay_i f_j. Without the first term
sorting solves it, with known dual prices. The first term is never negative and is 0 beyond place `top`, so the prices
stay valid and only the first `top` places need to be assigned again: O(top n^2) instead of O(n^3).

Shapes: indptr int64[users + 1], index int32[n]; value float32[n]; gain float64[n], normalised by the ideal DCG; anchor
float64[n]; some bool[users], lists with more than one level (the others are ignored); discount, decay
float64[longest list], the former 0 from `top` on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .threads import inline, kernel
from .vectors import longest_row


class NdcgLists(NamedTuple):
    """The rated items of each user, with what NDCG needs of them; `anchor` depends on the scores."""

    indptr: np.ndarray
    index: np.ndarray  # type: ignore[assignment]
    value: np.ndarray
    gain: np.ndarray
    anchor: np.ndarray
    some: np.ndarray
    discount: np.ndarray
    decay: np.ndarray


class Workspace(NamedTuple):
    """Scratch memory of `worst_order` for lists of up to n items."""

    floats: np.ndarray  # float64[5, n + 1]
    ints: np.ndarray  # int64[3, n + 1]


@inline
def workspace(n: int) -> Workspace:
    return Workspace(np.empty((5, n + 1), np.float64), np.empty((3, n + 1), np.int64))


@kernel
def gains(start: int, stop: int, lists: NdcgLists) -> None:
    """gain = (2^value - 1) / ideal DCG of each list, scaled so that no power of two overflows."""
    for i in range(start, stop):
        if not lists.some[i]:
            continue
        a = lists.indptr[i]
        z = lists.indptr[i + 1]
        order = np.argsort(-lists.value[a:z], kind="mergesort")
        top = np.float64(lists.value[a + order[0]])
        ideal = 0.0
        for q in range(z - a):
            x = 2.0 ** (np.float64(lists.value[a + order[q]]) - top) - 2.0 ** (-top)
            lists.gain[a + order[q]] = x
            ideal += x * lists.discount[q]
        for p in range(a, z):
            lists.gain[p] /= ideal


@inline
def _anchor(i: int, score: np.ndarray, lists: NdcgLists) -> None:
    """The anchors of list i at these scores; items of equal rating and score get the mean of theirs."""
    a = lists.indptr[i]
    value = lists.value[a : lists.indptr[i + 1]]
    by_score = np.argsort(-score, kind="mergesort")
    order = by_score[np.argsort(-value[by_score], kind="mergesort")]
    q = 0
    while q < order.size:
        end = q + 1  # an entry ties with itself, even where its score is not a number
        total = lists.decay[q]
        while end < order.size and value[order[end]] == value[order[q]] and score[order[end]] == score[order[q]]:
            total += lists.decay[end]
            end += 1
        for t in range(q, end):
            lists.anchor[a + order[t]] = total / (end - q)
        q = end


@inline
def worst_order(
    score: np.ndarray, gain: np.ndarray, discount: np.ndarray, decay: np.ndarray, work: Workspace, place: np.ndarray
) -> None:
    """place int64[n] of each item in the order that maximises the sum over places of decay f - discount gain."""
    n = score.size
    order = np.argsort(-score, kind="mergesort")
    # Hungarian algorithm: columns are items by decreasing score, rows are places, both from 1; column 0 holds the row
    # that is being assigned.
    f = work.floats[0]
    g = work.floats[1]
    u = work.floats[2]  # price of a place
    v = work.floats[3]  # price of an item
    distance = work.floats[4]  # of the cheapest augmenting path found to each item
    owner = work.ints[0]
    previous = work.ints[1]
    done = work.ints[2]
    top = 0
    for s in range(1, n + 1):
        f[s] = score[order[s - 1]]
        g[s] = gain[order[s - 1]]
        if discount[s - 1] > 0:
            top = s
        v[s] = 0.0 if s == 1 else v[s - 1] - decay[s - 2] * (f[s] - f[s - 1])
        u[s] = -decay[s - 1] * f[s] - v[s]
        owner[s] = s
    for s in range(1, top + 1):
        owner[s] = 0
    v[0] = 0.0
    for i in range(1, top + 1):
        for s in range(n + 1):
            distance[s] = np.inf
            done[s] = 0
        distance[0] = 0.0
        owner[0] = i
        column = 0
        while column == 0 or owner[column] != 0:
            done[column] = 1
            row = owner[column]
            a = discount[row - 1]
            b = decay[row - 1]
            ahead = distance[column] - u[row]
            least = np.inf
            following = 0
            for s in range(1, n + 1):
                if done[s] == 0:
                    cost = ahead + a * g[s] - b * f[s] - v[s]
                    if cost < distance[s]:
                        distance[s] = cost
                        previous[s] = column
                    if distance[s] < least:
                        least = distance[s]
                        following = s
            if following == 0:  # scores that are not finite have no worst order: any will do, their loss is not finite
                for p in range(n):
                    place[p] = p
                return
            column = following
        for s in range(n + 1):
            if done[s]:
                lift = distance[column] - distance[s]
                u[owner[s]] += lift
                v[s] -= lift
        while column != 0:
            owner[column] = owner[previous[column]]
            column = previous[column]
    for s in range(1, n + 1):
        place[order[s - 1]] = owner[s] - 1


@inline
def linear_bound(
    i: int, score: np.ndarray, lists: NdcgLists, work: Workspace, place: np.ndarray, coefficient: np.ndarray
) -> tuple[float, float]:
    """(loss of list i at these scores with its anchors held, constant of the maximising linear function).

    coefficient float64[n]: the decay at the worst places, which is the gradient plus the anchor.
    """
    a = lists.indptr[i]
    z = lists.indptr[i + 1]
    worst_order(score, lists.gain[a:z], lists.discount, lists.decay, work, place)
    height = 1.0
    loss = 0.0
    for p in range(z - a):
        coefficient[p] = lists.decay[place[p]]
    for p in range(z - a):
        height -= lists.discount[place[p]] * lists.gain[a + p]
        loss += (coefficient[p] - lists.anchor[a + p]) * score[p]
    return loss + height, height


@kernel
def losses(start: int, stop: int, lists: NdcgLists, score: np.ndarray, gradient: np.ndarray, out: np.ndarray) -> None:
    """Anchors for score float32[n], and with them out float64[users], the loss of each list, and gradient float64[n].

    Lists that are ignored have loss 0.
    """
    most = longest_row(start, stop, lists.indptr)
    work = workspace(most)
    place = np.empty(most, np.int64)
    for i in range(start, stop):
        a = lists.indptr[i]
        z = lists.indptr[i + 1]
        out[i] = 0.0
        if lists.some[i]:
            here = score[a:z].astype(np.float64)
            _anchor(i, here, lists)
            out[i], _ = linear_bound(i, here, lists, work, place[: z - a], gradient[a:z])
            for p in range(a, z):
                gradient[p] -= lists.anchor[p]
