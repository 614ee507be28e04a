"""Cross entropy of top-one probabilities, the loss of ListRank-MF (Shi, Larson and Hanjalic, RecSys 2010).

Entry t of a list has the probability p_t (softmax of the ratings) to come first. With scores x_t = u.v and
h = sigmoid(x), the loss of the list is -sum_t p_t log softmax(h)_t. With s = softmax(h), its gradient is
h_t (1 - h_t)(s_t - p_t).

Shapes: n entries of R lists. indptr int64[R + 1]; rating, target, score, gradient, curvature float32[n];
loss float64[R].
"""

from __future__ import annotations

import math

import numpy as np

from .threads import kernel
from .vectors import longest_row, sigmoids

_ZERO, _QUARTER, _ONE, _TWO = np.float32(0), np.float32(0.25), np.float32(1), np.float32(2)


@kernel
def targets(start: int, stop: int, indptr: np.ndarray, rating: np.ndarray, target: np.ndarray) -> None:
    """target = softmax of the ratings of each list."""
    for r in range(start, stop):
        first = indptr[r]
        last = indptr[r + 1]
        largest = -np.inf
        for p in range(first, last):
            largest = max(largest, np.float64(rating[p]))
        total = 0.0
        for p in range(first, last):
            total += math.exp(rating[p] - largest)
        for p in range(first, last):
            target[p] = math.exp(rating[p] - largest) / total


@kernel
def evaluate(
    start: int,
    stop: int,
    indptr: np.ndarray,
    target: np.ndarray,
    score: np.ndarray,
    gradient: np.ndarray,
    curvature: np.ndarray,
    loss: np.ndarray,
) -> None:
    """gradient = d loss / d score, curvature >= 0 its diagonal upper bound, and the loss of each list."""
    longest = longest_row(start, stop, indptr)
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
            probability = growth[t] * scale
            gap = probability - target[p]
            gradient[p] = rise * gap
            # With (h')^2 bounded by h' / 4, which keeps steps short where the sigmoid is flat.
            curvature[p] = rise * (_QUARTER * probability + max(_ZERO, (_ONE - _TWO * h[t]) * gap))
