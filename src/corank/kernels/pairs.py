"""Ranking loss over explicit pairs, and the pairs that a list of ratings contains.

    sum over pairs of phi(m_high - m_low);   squared hinge: max(0, 1 - z)^2,   logistic: log(1 + exp(-z))

Primal-CR needs it where the input is comparisons, or where the loss is not the squared hinge. Of one list: score
float32[n]; high, low int32[pairs], positions in the list; gradient float32[n], d loss / d m; curvature float32[pairs],
phi''. Time and memory are linear in the number of pairs, so O(n^2) for a list of ratings.
"""

from __future__ import annotations

import numpy as np

from .threads import inline, kernel

SQUARED_HINGE = 1
LOGISTIC = 2


@inline
def evaluate(
    score: np.ndarray, high: np.ndarray, low: np.ndarray, kind: int, gradient: np.ndarray, curvature: np.ndarray
) -> float:
    """Gradient and second derivatives at these scores; returns the loss."""
    loss = 0.0
    for p in range(gradient.size):
        gradient[p] = 0
    for t in range(high.size):
        z = score[high[t]] - score[low[t]]
        pull = np.float32(0)
        curvature[t] = 0
        if kind == SQUARED_HINGE:
            if z < np.float32(1):
                short = np.float32(1) - z
                loss += np.float64(short) * np.float64(short)
                pull = np.float32(2) * short
                curvature[t] = 2
        else:
            decay = np.exp(-abs(z))  # never overflows
            loss += np.log1p(np.float64(decay)) + max(0.0, -np.float64(z))
            pull = (decay if z > 0 else np.float32(1)) / (np.float32(1) + decay)
            curvature[t] = pull * (np.float32(1) - pull)
        gradient[high[t]] -= pull
        gradient[low[t]] += pull
    return loss


@inline
def hessian_product(b: np.ndarray, high: np.ndarray, low: np.ndarray, curvature: np.ndarray, out: np.ndarray) -> None:
    """out = H b, with H the Hessian of the loss with respect to m."""
    for p in range(out.size):
        out[p] = 0
    for t in range(high.size):
        change = curvature[t] * (b[high[t]] - b[low[t]])
        out[high[t]] += change
        out[low[t]] -= change


@kernel
def enumerate_pairs(
    start: int,
    stop: int,
    indptr: np.ndarray,
    level: np.ndarray,
    pair_indptr: np.ndarray,
    high: np.ndarray,
    low: np.ndarray,
) -> None:
    """All pairs of different level of each list; pair_indptr says where those of each list go."""
    for i in range(start, stop):
        first = indptr[i]
        n = indptr[i + 1] - first
        at = pair_indptr[i]
        for j in range(n):
            for k in range(j):
                if level[first + j] != level[first + k]:
                    up = level[first + j] > level[first + k]
                    high[at] = j if up else k
                    low[at] = k if up else j
                    at += 1


@kernel
def comparable(
    start: int, stop: int, indptr: np.ndarray, level: np.ndarray, width: np.ndarray, out: np.ndarray
) -> None:
    """out[i]: number of pairs of different level in list i, in O(n + levels)."""
    for i in range(start, stop):
        counts = np.zeros(width[i], np.int64)
        for p in range(indptr[i], indptr[i + 1]):
            counts[level[p]] += 1
        seen = 0
        total = 0
        for r in range(width[i]):
            total += seen * counts[r]
            seen += counts[r]
        out[i] = total
