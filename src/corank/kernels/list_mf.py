"""Cross entropy of top-one probabilities, the loss of ListRank-MF (Shi, Larson and Hanjalic, RecSys 2010).

Of a list whose entries have the probabilities p_t (softmax of the ratings) to be the first, and the scores x_t = u.v
with h = sigmoid(x), the loss is -sum_t p_t log softmax(h)_t. With s = softmax(h) its slope is h_t (1 - h_t)(s_t - p_t).

Shapes: n entries of R lists. indptr int64[R + 1]; rating, target, score, slope, curve float32[n]; loss float64[R].
"""

from __future__ import annotations

import math

import numpy as np

from .sigmoid import sigmoids
from .threads import kernel

_NONE, _QUARTER, _ONE, _TWO = np.float32(0), np.float32(0.25), np.float32(1), np.float32(2)


@kernel
def targets(start: int, stop: int, indptr: np.ndarray, rating: np.ndarray, target: np.ndarray) -> None:
    """target = softmax of the ratings of each list."""
    for r in range(start, stop):
        first = indptr[r]
        last = indptr[r + 1]
        top = -np.inf
        for p in range(first, last):
            top = max(top, np.float64(rating[p]))
        total = 0.0
        for p in range(first, last):
            total += math.exp(rating[p] - top)
        for p in range(first, last):
            target[p] = math.exp(rating[p] - top) / total


@kernel
def slopes(
    start: int,
    stop: int,
    indptr: np.ndarray,
    target: np.ndarray,
    score: np.ndarray,
    slope: np.ndarray,
    curve: np.ndarray,
    loss: np.ndarray,
) -> None:
    """slope = d loss / d score of each entry, curve >= 0 a bound of its curvature, and the loss of each list."""
    longest = 0
    for r in range(start, stop):
        longest = max(longest, indptr[r + 1] - indptr[r])
    bits = np.empty(longest, np.int32)
    power = bits.view(np.float32)
    h = np.empty(longest, np.float32)
    growth = np.empty(longest, np.float32)  # exp(h)
    for r in range(start, stop):
        first = indptr[r]
        n = indptr[r + 1] - first
        sigmoids(n, score[first : first + n], bits, power, h, growth)
        total = 0.0
        mean = 0.0
        for t in range(n):
            total += growth[t]
            mean += np.float64(target[first + t]) * h[t]
        loss[r] = math.log(total) - mean if n > 0 else 0.0
        scale = np.float32(1.0 / total)
        for t in range(n):
            p = first + t
            rise = h[t] * (_ONE - h[t])
            share = growth[t] * scale
            gap = share - target[p]
            slope[p] = rise * gap
            # (h')^2 <= h' / 4, which keeps steps short where the sigmoid is flat.
            curve[p] = rise * (_QUARTER * share + max(_NONE, (_ONE - _TWO * h[t]) * gap))
