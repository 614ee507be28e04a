"""Loss over a list of given pairs: Primal-CR when the input is comparisons, or the loss no squared hinge.

    sum over pairs of phi(m_high - m_low);   squared hinge: max(0, 1 - z)^2,   logistic: log(1 + exp(-z))

Of one list: score float32[n]; high, low int32[pairs], positions in the list; slope float32[n], d loss / d m;
bend float32[pairs], phi''. Time and memory are linear in the pairs, so O(n^2) for a list of ratings.
"""

from __future__ import annotations

import numpy as np

from .threads import kernel

SQUARED_HINGE = 1
LOGISTIC = 2


@kernel
def prepare(
    score: np.ndarray, high: np.ndarray, low: np.ndarray, kind: int, slope: np.ndarray, bend: np.ndarray
) -> float:
    """Slope and second derivatives at these scores; returns the loss."""
    loss = 0.0
    for p in range(slope.size):
        slope[p] = 0
    for t in range(high.size):
        z = score[high[t]] - score[low[t]]
        force = np.float32(0)
        bend[t] = 0
        if kind == SQUARED_HINGE:
            if z < np.float32(1):
                short = np.float32(1) - z
                loss += np.float64(short) * np.float64(short)
                force = np.float32(2) * short
                bend[t] = 2
        else:
            away = np.exp(-abs(z))  # never overflows
            loss += np.log1p(np.float64(away)) + max(0.0, -np.float64(z))
            force = (away if z > 0 else np.float32(1)) / (np.float32(1) + away)
            bend[t] = force * (np.float32(1) - force)
        slope[high[t]] -= force
        slope[low[t]] += force
    return loss


@kernel
def curve(b: np.ndarray, high: np.ndarray, low: np.ndarray, bend: np.ndarray, out: np.ndarray) -> None:
    """out = the Hessian of the loss in m, times b."""
    for p in range(out.size):
        out[p] = 0
    for t in range(high.size):
        pull = bend[t] * (b[high[t]] - b[low[t]])
        out[high[t]] += pull
        out[low[t]] -= pull


@kernel
def levels(start: int, stop: int, indptr: np.ndarray, value: np.ndarray, level: np.ndarray, width: np.ndarray) -> None:
    """Number the different values of each list from 0 upwards; width[i]: how many there are."""
    for i in range(start, stop):
        first = indptr[i]
        order = np.argsort(value[first : indptr[i + 1]])
        rank = 0
        for q in range(order.size):
            if q > 0 and value[first + order[q]] != value[first + order[q - 1]]:
                rank += 1
            level[first + order[q]] = rank
        width[i] = rank + 1 if order.size > 0 else 0


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
    """All pairs of different level of each list, in the places that pair_indptr gives."""
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
