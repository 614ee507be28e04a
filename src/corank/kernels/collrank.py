"""Dual coordinate descent of CollRank (AltSVM): a ranking SVM over explicit pairs, for one user or for all items.

Primal, for a weight vector w:  reg / 2 |w|^2 + sum over pairs of max(0, 1 - w.x_p)^2
Dual, for alpha >= 0:           sum of (alpha_p - alpha_p^2 / 4) - reg / 2 |w|^2   with   w = sum alpha_p x_p / reg

The optimum along one coordinate is alpha += max(-alpha, (1 - w.x - alpha / 2) / (|x|^2 / reg + 1 / 2)). For a user, w
is u_i and x = v_high - v_low: dim multiply-adds per pair. For the items, w is all of V and x is u_i in the row of the
high item and -u_i in that of the low one. While the pairs of one user are visited, every v_j moves along u_i only, so
it is enough to follow the user's scores: a few additions per pair instead of dim, and pairs + 4 n dim per sweep.

Shapes, for n entries: indptr int64[users + 1], index int32[n]; pair_indptr int64[users + 1]; high, low int32[pairs],
positions in the list; alpha float32[pairs]; score float32[n]; U float32[users, dim], V float32[items, dim].
"""

from __future__ import annotations

import numpy as np

from .random import seek, uniform
from .threads import inline, kernel
from .vectors import longest_row


@kernel
def shuffle(
    start: int, stop: int, pair_indptr: np.ndarray, stream: np.ndarray, seed: int, high: np.ndarray, low: np.ndarray
) -> None:
    """Shuffle the pairs of each list; stream int64[users]: number of the random stream of each list."""
    state = np.empty(1, np.uint64)
    for i in range(start, stop):
        seek(state, seed, stream[i])
        first = pair_indptr[i]
        for t in range(pair_indptr[i + 1] - first - 1, 0, -1):
            other = first + min(t, int(uniform(state) * (t + 1)))
            here = first + t
            high[here], high[other] = high[other], high[here]
            low[here], low[other] = low[other], low[here]


@inline
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
    """out float32[n]: the weight of each entry in w, (sum of alpha where it is high - where it is low) / reg."""
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
    """Visit every pair once, for all items jointly: users in `order`, the pairs of user i cyclically from begin[i] on.

    V must be the weight vector of alpha, and remains so. Users share items, so this runs sequentially.
    """
    d = U.shape[1]
    longest = longest_row(0, indptr.size - 1, indptr)
    # Double precision: near the solution the many small changes of a score would be lost in float32.
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
    max_passes: int,
    tolerance: float,
    ceiling: np.ndarray,
    alpha: np.ndarray,
    U: np.ndarray,
    score: np.ndarray,
    loss: np.ndarray,
) -> None:
    """Each user's own ranking SVM: at least `passes` and at most `max_passes` sweeps over the pairs.

    Sweeps stop when the objective of the user (loss + reg / 2 |u|^2) is below ceiling[i] float64[users] and the duality
    gap is at most `tolerance` times the objective. After `max_passes` sweeps the ceiling alone decides; if the
    objective is not below it, u, score and loss are left unchanged, and alpha keeps its progress.
    """
    d = V.shape[1]
    longest = longest_row(start, stop, indptr)
    rows = np.empty((longest, d), np.float32)
    trial = np.empty(longest, np.float32)
    weight = np.empty(longest, np.float64)
    w = np.empty(d, np.float32)
    for i in range(start, stop):
        head = indptr[i]
        n = indptr[i + 1] - head
        first = pair_indptr[i]
        end = pair_indptr[i + 1]
        if first == end:
            continue
        for p in range(n):
            weight[p] = 0
            for f in range(d):
                rows[p, f] = V[index[head + p], f]
        for t in range(first, end):
            weight[high[t]] += alpha[t]
            weight[low[t]] -= alpha[t]
        for f in range(d):
            w[f] = 0
        for p in range(n):
            scale = np.float32(weight[p] / reg)
            for f in range(d):
                w[f] += scale * rows[p, f]
        inverse = np.float32(1) / np.float32(reg)
        at = first + begin[i]
        for sweep in range(1, max_passes + 1):
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
            if primal - dual <= tolerance * primal or sweep == max_passes:
                for f in range(d):
                    U[i, f] = w[f]
                for p in range(n):
                    score[head + p] = trial[p]
                loss[i] = hinges
                break
