"""Dual steps of CofiRank, for one user or for all items (Weimer et al., NIPS 2007).

The loss of a list (see `ndcg_bound`) is a maximum of linear functions of its scores, so both half-steps are structured
SVMs. Their dual state is one linear function per list, a convex combination of the orders met so far: its coefficients
`mixed` and its constant `height`. A step adds the worst order at the current scores with the optimal weight
(block-coordinate Frank-Wolfe, Lacoste-Julien et al. 2013). The dual state does not depend on the factors, so it is kept
when the other side moves.

Shapes: mixed float64[n], height float64[users]; U float32[users, dim], V float32[items, dim]; score float32[n].
"""

from __future__ import annotations

import numpy as np

from .ndcg_bound import NdcgLists, Workspace, linear_bound, workspace
from .threads import inline, kernel
from .vectors import longest_row

HALVINGS = 6  # of the step to a vector that does not lower the objective


@kernel
def item_sweep(
    order: np.ndarray,
    lists: NdcgLists,
    U: np.ndarray,
    reg: float,
    passes: int,
    mixed: np.ndarray,
    height: np.ndarray,
    V: np.ndarray,
) -> None:
    """`passes` dual steps on the linear function of each user, in the given order of users, for all items jointly.

    V = sum of (anchor - mixed) u' / reg holds before and after. Users share items, so this runs sequentially.
    """
    d = U.shape[1]
    most = longest_row(0, lists.indptr.size - 1, lists.indptr)
    work = workspace(most)
    place = np.empty(most, np.int64)
    score = np.empty(most, np.float64)
    change = np.empty(most, np.float64)
    current = np.empty(most, np.float64)
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
            current[p] = mixed[a + p]
        for _ in range(passes):
            loss, constant = linear_bound(i, score[:n], lists, work, place[:n], change[:n])
            gap = loss - height[i]
            size = 0.0
            for p in range(n):
                change[p] -= current[p]
            for p in range(n):
                gap -= (current[p] - lists.anchor[a + p]) * score[p]
                size += change[p] * change[p]
            if gap <= 0.0:
                break
            weight = 1.0 if reg * gap >= size * norm else reg * gap / (size * norm)
            height[i] += weight * (constant - height[i])
            for p in range(n):
                current[p] += weight * change[p]
                score[p] -= weight * change[p] * norm / reg
        for p in range(n):
            step = np.float32((current[p] - mixed[a + p]) / reg)
            mixed[a + p] = current[p]
            for f in range(d):
                V[lists.index[a + p], f] -= step * u[f]


@inline
def _objective(
    i: int,
    w: np.ndarray,
    lists: NdcgLists,
    V: np.ndarray,
    reg: float,
    work: Workspace,
    place: np.ndarray,
    trial: np.ndarray,
    coefficient: np.ndarray,
) -> tuple[float, float, float]:
    """(objective, loss, constant of the linear function) of user i at the vector w float64[dim]; trial: its scores."""
    a = lists.indptr[i]
    norm = 0.0
    for f in range(w.size):
        norm += w[f] * w[f]
    for p in range(trial.size):
        total = 0.0
        for f in range(w.size):
            total += w[f] * V[lists.index[a + p], f]
        trial[p] = total
    loss, height = linear_bound(i, trial, lists, work, place, coefficient)
    return loss + 0.5 * reg * norm, loss, height


@kernel
def user_steps(
    start: int,
    stop: int,
    lists: NdcgLists,
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
    """At most `passes` dual steps on each user's own problem, until the duality gap is `tolerance` times the objective.

    The best vector met is accepted if its objective (loss with the anchors held + reg / 2 |u|^2) is below ceiling[i];
    otherwise half, a quarter, ... of the step to the last one is tried, and if nothing helps the user keeps the old
    vector. Anchors and losses are not recomputed here.
    """
    d = V.shape[1]
    most = longest_row(start, stop, lists.indptr)
    work = workspace(most)
    place = np.empty(most, np.int64)
    trial = np.empty(most, np.float64)
    change = np.empty(most, np.float64)
    w = np.empty(d, np.float64)
    direction = np.empty(d, np.float64)
    start_vector = np.empty(d, np.float64)
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
            start_vector[f] = U[i, f]
        for step in range(passes + 1 + HALVINGS):
            if step > passes:
                # After the dual steps: only if nothing was accepted, move back towards the old vector.
                if best < ceiling[i]:
                    break
                for f in range(d):
                    w[f] = 0.5 * (w[f] + start_vector[f])
            primal, value, constant = _objective(i, w, lists, V, reg, work, place[:n], trial[:n], change[:n])
            if primal < best:
                best = primal
                for f in range(d):
                    U[i, f] = w[f]
                for p in range(n):
                    score[a + p] = trial[p]
            if step >= passes:
                continue
            gap = value - height[i]
            direction[:] = 0.0
            for p in range(n):
                gap -= (mixed[a + p] - lists.anchor[a + p]) * trial[p]
                change[p] -= mixed[a + p]
                for f in range(d):
                    direction[f] += change[p] * V[lists.index[a + p], f]
            if gap <= tolerance * primal:
                break
            size = 0.0
            for f in range(d):
                size += direction[f] * direction[f]
            weight = 1.0 if reg * gap >= size else reg * gap / size
            height[i] += weight * (constant - height[i])
            for p in range(n):
                mixed[a + p] += weight * change[p]
            for f in range(d):
                w[f] -= weight * direction[f] / reg
