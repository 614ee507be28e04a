"""The NDCG surrogate of CofiRank and its dual steps, for one user or for all items (Weimer et al., NIPS 2007).

Loss of a list with scores f, over all orders pi of its n items:

    max over pi of (1 - NDCG(pi) + sum_j decay[place of j in pi] f_j)  -  sum_j anchor_j f_j

decay falls with the place, and anchor_j is the decay at j's place in the ideal order, by rating and, among equal
ratings, by score: the order among equals is nobody's mistake. Sorting by f maximises sum decay f, so the loss is at
least 1 - NDCG of the order by score. With anchors held it is convex in f and nowhere below the loss, which it touches
at the f that the anchors were made for: a step that lowers it lowers the loss. Its slope is decay at the best pi minus
anchor.

That pi is an assignment of items to places, with the cost discount_i gain_j - decay_i f_j. Without the first term
sorting solves it, and known prices prove that; the first term is 0 beyond place `top` and nowhere negative, so the
prices stay valid and only the first `top` places are assigned anew: O(top n^2) instead of O(n^3).

Learning: the loss is a maximum of planes, so both half-steps are structured SVMs. Their dual state is one plane a list,
a mixture of the orders met so far: its decays `mixed` and its `height`. A step mixes in the worst order at the present
scores by the best share (block-coordinate Frank-Wolfe, Lacoste-Julien et al. 2013). The state does not hang on the
factors, so it is kept when the other side moves.

Shapes: indptr int64[users + 1], index int32[n]; value float32[n]; gain float64[n], normalised by the ideal DCG; anchor
float64[n]; some bool[users], lists with more than one level, the others do not count; discount, decay
float64[longest list], the former 0 from `top` on; mixed float64[n], height float64[users].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .threads import kernel

HALVINGS = 6  # of the way to a vector that is no better than the present one


class Lists(NamedTuple):
    """All lists and what is known of them before any score is."""

    indptr: np.ndarray
    index: np.ndarray  # type: ignore[assignment]
    value: np.ndarray
    gain: np.ndarray
    anchor: np.ndarray
    some: np.ndarray
    discount: np.ndarray
    decay: np.ndarray


class Space(NamedTuple):
    """Work space of `worst` for lists of up to n items."""

    floats: np.ndarray  # float64[5, n + 1]
    ints: np.ndarray  # int64[3, n + 1]


@kernel
def space(n: int) -> Space:
    return Space(np.empty((5, n + 1), np.float64), np.empty((3, n + 1), np.int64))


@kernel
def longest(start: int, stop: int, indptr: np.ndarray) -> int:
    most = 0
    for i in range(start, stop):
        most = max(most, indptr[i + 1] - indptr[i])
    return most


@kernel
def prepare(start: int, stop: int, lists: Lists) -> None:
    """gain = (2^value - 1) / ideal DCG of each list; scaled so that no power of two overflows."""
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


@kernel
def _anchor(i: int, score: np.ndarray, lists: Lists) -> None:
    """The anchors of list i at these scores; where rating and score are equal, the mean of theirs."""
    a = lists.indptr[i]
    value = lists.value[a : lists.indptr[i + 1]]
    by_score = np.argsort(-score, kind="mergesort")
    order = by_score[np.argsort(-value[by_score], kind="mergesort")]
    q = 0
    while q < order.size:
        end = q
        total = 0.0
        while end < order.size and value[order[end]] == value[order[q]] and score[order[end]] == score[order[q]]:
            total += lists.decay[end]
            end += 1
        for t in range(q, end):
            lists.anchor[a + order[t]] = total / (end - q)
        q = end


@kernel
def worst(
    score: np.ndarray, gain: np.ndarray, discount: np.ndarray, decay: np.ndarray, work: Space, place: np.ndarray
) -> None:
    """place int64[n] of each item in the order that maximises sum over places of decay f - discount gain."""
    n = score.size
    order = np.argsort(-score, kind="mergesort")
    # Columns are items by falling score and rows are places, both from 1; column 0 holds the row that seeks a place.
    f = work.floats[0]
    g = work.floats[1]
    u = work.floats[2]  # price of a place
    v = work.floats[3]  # price of an item
    near = work.floats[4]  # cheapest way found to each item
    owner = work.ints[0]
    came = work.ints[1]
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
            near[s] = np.inf
            done[s] = 0
        near[0] = 0.0
        owner[0] = i
        column = 0
        while column == 0 or owner[column] != 0:
            done[column] = 1
            row = owner[column]
            a = discount[row - 1]
            b = decay[row - 1]
            ahead = near[column] - u[row]
            least = np.inf
            following = 0
            for s in range(1, n + 1):
                if done[s] == 0:
                    way = ahead + a * g[s] - b * f[s] - v[s]
                    if way < near[s]:
                        near[s] = way
                        came[s] = column
                    if near[s] < least:
                        least = near[s]
                        following = s
            column = following
        for s in range(n + 1):
            if done[s]:
                lift = near[column] - near[s]
                u[owner[s]] += lift
                v[s] -= lift
        while column != 0:
            owner[column] = owner[came[column]]
            column = came[column]
    for s in range(1, n + 1):
        place[order[s - 1]] = owner[s] - 1


@kernel
def _plane(
    i: int, score: np.ndarray, lists: Lists, work: Space, place: np.ndarray, worn: np.ndarray
) -> tuple[float, float]:
    """(loss of list i at these scores and its anchors, height of the plane there); worn float64[n] = decay at the worst
    places, which is the slope but for the anchor.
    """
    a = lists.indptr[i]
    z = lists.indptr[i + 1]
    worst(score, lists.gain[a:z], lists.discount, lists.decay, work, place)
    height = 1.0
    loss = 0.0
    for p in range(z - a):
        height -= lists.discount[place[p]] * lists.gain[a + p]
        worn[p] = lists.decay[place[p]]
        loss += (worn[p] - lists.anchor[a + p]) * score[p]
    return loss + height, height


@kernel
def losses(start: int, stop: int, lists: Lists, score: np.ndarray, slope: np.ndarray, out: np.ndarray) -> None:
    """Anchors made for score float32[n], and with them out float64[users] = the loss of each list, 0 for those that do
    not count, and slope float64[n].
    """
    most = longest(start, stop, lists.indptr)
    work = space(most)
    place = np.empty(most, np.int64)
    for i in range(start, stop):
        a = lists.indptr[i]
        z = lists.indptr[i + 1]
        out[i] = 0.0
        if lists.some[i]:
            here = score[a:z].astype(np.float64)
            _anchor(i, here, lists)
            out[i], _ = _plane(i, here, lists, work, place[: z - a], slope[a:z])
            for p in range(a, z):
                slope[p] -= lists.anchor[p]


@kernel
def item_sweep(
    order: np.ndarray,
    lists: Lists,
    U: np.ndarray,
    reg: float,
    passes: int,
    mixed: np.ndarray,
    height: np.ndarray,
    V: np.ndarray,
) -> None:
    """`passes` dual steps on each user's plane, users by `order`, for the items: V = sum of (anchor - mixed) u' / reg
    before and after. Users share items, so this is a sequence and not cut into ranges.
    """
    d = U.shape[1]
    most = longest(0, lists.indptr.size - 1, lists.indptr)
    work = space(most)
    place = np.empty(most, np.int64)
    score = np.empty(most, np.float64)
    slope = np.empty(most, np.float64)
    mine = np.empty(most, np.float64)
    for i in order:
        if not lists.some[i]:
            continue
        a = lists.indptr[i]
        n = lists.indptr[i + 1] - a
        u = U[i]
        norm = 0.0
        for f in range(d):
            norm += np.float64(u[f]) * np.float64(u[f])
        for p in range(n):
            total = np.float32(0)
            for f in range(d):
                total += u[f] * V[lists.index[a + p], f]
            score[p] = total
            mine[p] = mixed[a + p]
        for _ in range(passes):
            loss, top = _plane(i, score[:n], lists, work, place[:n], slope[:n])
            gap = loss - height[i]
            size = 0.0
            for p in range(n):
                gap -= (mine[p] - lists.anchor[a + p]) * score[p]
                slope[p] -= mine[p]
                size += slope[p] * slope[p]
            if gap <= 0.0:
                break
            share = 1.0 if reg * gap >= size * norm else reg * gap / (size * norm)
            height[i] += share * (top - height[i])
            for p in range(n):
                mine[p] += share * slope[p]
                score[p] -= share * slope[p] * norm / reg
        for p in range(n):
            step = np.float32((mine[p] - mixed[a + p]) / reg)
            mixed[a + p] = mine[p]
            for f in range(d):
                V[lists.index[a + p], f] -= step * u[f]


@kernel
def _at(
    i: int,
    w: np.ndarray,
    lists: Lists,
    V: np.ndarray,
    reg: float,
    work: Space,
    place: np.ndarray,
    trial: np.ndarray,
    slope: np.ndarray,
) -> tuple[float, float, float]:
    """(objective, loss, height of the plane) of user i at the vector w float64[dim]; trial = its scores."""
    a = lists.indptr[i]
    norm = 0.0
    for f in range(w.size):
        norm += w[f] * w[f]
    for p in range(trial.size):
        total = 0.0
        for f in range(w.size):
            total += w[f] * V[lists.index[a + p], f]
        trial[p] = total
    loss, height = _plane(i, trial, lists, work, place, slope)
    return loss + 0.5 * reg * norm, loss, height


@kernel
def user_steps(
    start: int,
    stop: int,
    lists: Lists,
    V: np.ndarray,
    reg: float,
    passes: int,
    tolerance: float,
    ceiling: np.ndarray,
    mixed: np.ndarray,
    height: np.ndarray,
    U: np.ndarray,
    score: np.ndarray,
) -> None:
    """At most `passes` dual steps on each user's own problem, fewer where the duality gap is below `tolerance` times
    the objective. The best vector met is taken where its objective (loss with the anchors held + reg / 2 |u|^2) is
    below ceiling[i]; where none is, half, a quarter, ... of the way to the last one is tried. If nothing helps, the
    user stays. Anchors and losses are not made anew here.
    """
    d = V.shape[1]
    most = longest(start, stop, lists.indptr)
    work = space(most)
    place = np.empty(most, np.int64)
    trial = np.empty(most, np.float64)
    slope = np.empty(most, np.float64)
    w = np.empty(d, np.float64)
    way = np.empty(d, np.float64)
    kept = np.empty(d, np.float64)
    for i in range(start, stop):
        if not lists.some[i]:
            continue
        a = lists.indptr[i]
        n = lists.indptr[i + 1] - a
        w[:] = 0.0
        for p in range(n):
            for f in range(d):
                w[f] += (lists.anchor[a + p] - mixed[a + p]) * V[lists.index[a + p], f] / reg
        best = ceiling[i]
        for f in range(d):
            kept[f] = U[i, f]
        for step in range(passes + 1 + HALVINGS):
            if step > passes:
                # The dual has done its part; from here on only if nothing was taken, and towards where we stand.
                if best < ceiling[i]:
                    break
                for f in range(d):
                    w[f] = 0.5 * (w[f] + kept[f])
            primal, value, top = _at(i, w, lists, V, reg, work, place[:n], trial[:n], slope[:n])
            if primal < best:
                best = primal
                for f in range(d):
                    U[i, f] = w[f]
                for p in range(n):
                    score[a + p] = trial[p]
            if step >= passes:
                continue
            gap = value - height[i]
            way[:] = 0.0
            for p in range(n):
                gap -= (mixed[a + p] - lists.anchor[a + p]) * trial[p]
                slope[p] -= mixed[a + p]
                for f in range(d):
                    way[f] += slope[p] * V[lists.index[a + p], f]
            if gap <= tolerance * primal:
                break
            size = 0.0
            for f in range(d):
                size += way[f] * way[f]
            share = 1.0 if reg * gap >= size else reg * gap / size
            height[i] += share * (top - height[i])
            for p in range(n):
                mixed[a + p] += share * slope[p]
            for f in range(d):
                w[f] -= share * way[f] / reg
