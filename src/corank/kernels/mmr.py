"""Maximal marginal relevance: a list is re-ranked so that similar items do not follow each other.

From the n candidates of a list, in order of relevance, k are chosen one after the other. Each time it is the candidate
with the largest

    (1 - dial) * relevance - dial * (largest similarity to the items chosen so far)

with the relevance scaled to 0..1 within the list; ties go to the earlier candidate, and the first item stays the first
(Carbonell and Goldstein, SIGIR 1998). Cost per list: k * n.

Arrays: scores float32[b, n]; real int64[b], the number of candidates of each list; similar float32[b, n, n]; order
int32[b, k], the chosen positions, -1 padded.
"""

from __future__ import annotations

import numpy as np

from .threads import kernel


@kernel
def choose(
    start: int, stop: int, scores: np.ndarray, real: np.ndarray, similar: np.ndarray, dial: float, order: np.ndarray
) -> None:
    """Fill order int32[b, k] for the lists start..stop."""
    for b in range(start, stop):
        n = real[b]
        low = np.inf
        high = -np.inf
        for i in range(n):
            low = min(low, np.float64(scores[b, i]))
            high = max(high, np.float64(scores[b, i]))
        scale = 1.0 / (high - low) if high > low else 0.0
        nearest = np.full(n, -np.inf)  # of each candidate, to the items chosen so far
        free = np.ones(n, np.bool_)
        for t in range(order.shape[1]):
            best = -1
            top = -np.inf
            for i in range(n):
                if free[i]:
                    value = (1.0 - dial) * (np.float64(scores[b, i]) - low) * scale
                    if t > 0:
                        value -= dial * nearest[i]
                    if value > top:
                        top = value
                        best = i
            order[b, t] = best
            if best < 0:
                continue
            free[best] = False
            for i in range(n):
                nearest[i] = max(nearest[i], np.float64(similar[b, i, best]))
