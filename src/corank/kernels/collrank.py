"""Dual coordinate descent of CollRank (AltSVM): a ranking SVM over given pairs, for one user or for all items.

Primal, of a weight vector w:   reg / 2 |w|^2 + sum over pairs of max(0, 1 - w.x_p)^2
Dual, of alpha >= 0:            sum of (alpha_p - alpha_p^2 / 4) - reg / 2 |w|^2   with   w = sum alpha_p x_p / reg

One pair at a time has the closed form alpha += max(-alpha, (1 - w.x - alpha / 2) / (|x|^2 / reg + 1 / 2)). For a user,
w is u_i and x = v_high - v_low: dim multiply-adds a pair. For the items, w is all of V and x is u_i at the row of the
high item and -u_i at that of the low one. As long as the pairs of one user are visited, every v_j moves along u_i only,
so the user's scores say all, and a pair costs a few additions instead of dim: a sweep takes pairs + 4 n dim.

Of n entries of lists: indptr int64[users + 1], index int32[n]; pair_indptr int64[users + 1]; high, low int32[pairs],
positions in the list; alpha float32[pairs]; score float32[n]; U float32[users, dim], V float32[items, dim].
"""

from __future__ import annotations

import numpy as np

from .random import seek, uniform
from .threads import kernel


@kernel
def shuffle(
    start: int, stop: int, pair_indptr: np.ndarray, stream: np.ndarray, seed: int, high: np.ndarray, low: np.ndarray
) -> None:
    """Put the pairs of each list into random order; stream int64[users] names the random numbers of each list."""
    state = np.empty(1, np.uint64)
    for i in range(start, stop):
        seek(state, seed, stream[i])
        first = pair_indptr[i]
        for t in range(pair_indptr[i + 1] - first - 1, 0, -1):
            other = first + min(t, int(uniform(state) * (t + 1)))
            here = first + t
            high[here], high[other] = high[other], high[here]
            low[here], low[other] = low[other], low[here]


@kernel
def _hinges(score: np.ndarray, high: np.ndarray, low: np.ndarray) -> float:
    """The loss of one list."""
    total = 0.0
    for t in range(high.size):
        short = max(np.float32(0), np.float32(1) - score[high[t]] + score[low[t]])
        total += np.float64(short) * np.float64(short)
    return total


@kernel
def losses(
    start: int,
    stop: int,
    indptr: np.ndarray,
    pair_indptr: np.ndarray,
    high: np.ndarray,
    low: np.ndarray,
    score: np.ndarray,
    out: np.ndarray,
) -> None:
    """out float64[users] = the loss of each list at these scores."""
    for i in range(start, stop):
        mine = slice(pair_indptr[i], pair_indptr[i + 1])
        out[i] = _hinges(score[indptr[i] : indptr[i + 1]], high[mine], low[mine])


@kernel
def weights(
    start: int,
    stop: int,
    indptr: np.ndarray,
    pair_indptr: np.ndarray,
    high: np.ndarray,
    low: np.ndarray,
    alpha: np.ndarray,
    reg: float,
    out: np.ndarray,
) -> None:
    """out float32[n]: what the duals say of each entry, (sum of alpha where it is high - where it is low) / reg."""
    for i in range(start, stop):
        first = indptr[i]
        total = np.zeros(indptr[i + 1] - first, np.float64)
        for t in range(pair_indptr[i], pair_indptr[i + 1]):
            total[high[t]] += alpha[t]
            total[low[t]] -= alpha[t]
        for p in range(total.size):
            out[first + p] = total[p] / reg


@kernel
def item_sweep(
    order: np.ndarray,
    begin: np.ndarray,
    indptr: np.ndarray,
    index: np.ndarray,
    pair_indptr: np.ndarray,
    high: np.ndarray,
    low: np.ndarray,
    U: np.ndarray,
    reg: float,
    alpha: np.ndarray,
    V: np.ndarray,
) -> None:
    """One visit to every pair for the items: users by `order` int64, pairs of user i from begin[i] on, around the end.

    V must be what alpha says, and stays so. Users share items, so this is a sequence and not cut into ranges.
    """
    d = U.shape[1]
    longest = 0
    for i in range(indptr.size - 1):
        longest = max(longest, indptr[i + 1] - indptr[i])
    # Many small changes to few scores: in float32 they would be lost near the solution.
    score = np.empty(longest, np.float64)
    moved = np.empty(longest, np.float64)
    for i in order:
        first = pair_indptr[i]
        count = pair_indptr[i + 1] - first
        if count == 0:
            continue
        u = U[i]
        n = indptr[i + 1] - indptr[i]
        norm = np.float32(0)
        for f in range(d):
            norm += u[f] * u[f]
        for p in range(n):
            v = V[index[indptr[i] + p]]
            total = np.float32(0)
            for f in range(d):
                total += u[f] * v[f]
            score[p] = total
            moved[p] = 0
        pull = np.float64(norm) / reg
        rate = 1.0 / (2.0 * pull + 0.5)
        at = first + begin[i]
        for _ in range(count):
            j = high[at]
            k = low[at]
            old = np.float64(alpha[at])
            new = np.float64(np.float32(max(0.0, old + rate * (1.0 - score[j] + score[k] - 0.5 * old))))
            alpha[at] = new
            change = new - old
            score[j] += change * pull
            score[k] -= change * pull
            moved[j] += change
            moved[k] -= change
            at += 1
            if at == first + count:
                at = first
        for p in range(n):
            v = V[index[indptr[i] + p]]
            step = np.float32(moved[p] / reg)
            for f in range(d):
                v[f] += step * u[f]


@kernel
def user_steps(
    start: int,
    stop: int,
    indptr: np.ndarray,
    index: np.ndarray,
    pair_indptr: np.ndarray,
    high: np.ndarray,
    low: np.ndarray,
    begin: np.ndarray,
    V: np.ndarray,
    reg: float,
    passes: int,
    most: int,
    tolerance: float,
    ceiling: np.ndarray,
    alpha: np.ndarray,
    U: np.ndarray,
    score: np.ndarray,
    loss: np.ndarray,
) -> None:
    """Each user's own ranking SVM: `passes` sweeps over the pairs, and up to `most` until the result will do.

    It will do when the objective of the user (loss + reg / 2 |u|^2) is below ceiling[i] float64[users] and exceeds the
    dual value, which bounds its minimum, by at most `tolerance` times itself. After `most` sweeps the ceiling alone
    decides; where it is not met, u, score and loss stay as they were, and alpha keeps what it has learned.
    """
    d = V.shape[1]
    longest = 0
    for i in range(start, stop):
        longest = max(longest, indptr[i + 1] - indptr[i])
    rows = np.empty((longest, d), np.float32)
    trial = np.empty(longest, np.float32)
    given = np.empty(longest, np.float64)
    w = np.empty(d, np.float32)
    for i in range(start, stop):
        head = indptr[i]
        n = indptr[i + 1] - head
        first = pair_indptr[i]
        end = pair_indptr[i + 1]
        if first == end:
            continue
        for p in range(n):
            given[p] = 0
            for f in range(d):
                rows[p, f] = V[index[head + p], f]
        for t in range(first, end):
            given[high[t]] += alpha[t]
            given[low[t]] -= alpha[t]
        for f in range(d):
            w[f] = 0
        for p in range(n):
            share = np.float32(given[p] / reg)
            for f in range(d):
                w[f] += share * rows[p, f]
        inverse = np.float32(1) / np.float32(reg)
        at = first + begin[i]
        for sweep in range(1, most + 1):
            for _ in range(end - first):
                x = rows[high[at]]
                y = rows[low[at]]
                margin = np.float32(0)
                size = np.float32(0)
                for f in range(d):
                    gap = x[f] - y[f]
                    margin += gap * w[f]
                    size += gap * gap
                old = alpha[at]
                new = max(
                    np.float32(0),
                    old + (np.float32(1) - margin - np.float32(0.5) * old) / (size * inverse + np.float32(0.5)),
                )
                if new != old:
                    alpha[at] = new
                    step = (new - old) * inverse
                    for f in range(d):
                        w[f] += step * (x[f] - y[f])
                at += 1
                if at == end:
                    at = first
            if sweep < passes:
                continue
            norm = 0.0
            for f in range(d):
                norm += np.float64(w[f]) * np.float64(w[f])
            for p in range(n):
                total = np.float32(0)
                for f in range(d):
                    total += w[f] * rows[p, f]
                trial[p] = total
            hinges = _hinges(trial[:n], high[first:end], low[first:end])
            primal = hinges + 0.5 * reg * norm
            if not primal < ceiling[i]:
                continue
            dual = -0.5 * reg * norm
            for t in range(first, end):
                a = np.float64(alpha[t])
                dual += a - 0.25 * a * a
            if primal - dual <= tolerance * primal or sweep == most:
                for f in range(d):
                    U[i, f] = w[f]
                for p in range(n):
                    score[head + p] = trial[p]
                loss[i] = hinges
                break
