"""Stochastic queues and their Plackett-Luce likelihood, the loss of SQL-Rank (Wu, Hsieh and Sharpnack, ICML 2018).

A queue is an order of the entries of a list. With scores x_t = u.v of the entry at position t, h = sigmoid(x) and
T_t = sum of exp(h_l) over l >= t, the negative log likelihood is the sum over t of -h_t + log T_t. Its gradient,

    d / d x_t = h_t (1 - h_t) (-1 + exp(h_t) Q_t),    Q_t = sum of 1 / T_q over q <= t,

takes two scans of the queue (the gradient printed in the dissertation's appendix is wrong: the tests compare with
finite differences). `top` truncates the likelihood: only the first `top` positions are terms of the sum, and -1 and Q
stop there. Cost: two exponentials and one division per entry, beside the inner products.

Shapes: n entries of R lists. indptr int64[R + 1]; index int32[n], item of each entry; order int32[n], the entry at each
position, counted from the first entry of its list; score, gradient, curvature float32[n]; loss float64[R].
"""

from __future__ import annotations

import math

import numpy as np

from .random import seek, uniform
from .threads import inline, kernel
from .vectors import longest_row, sigmoids

_ZERO, _QUARTER, _ONE, _TWO = np.float32(0), np.float32(0.25), np.float32(1), np.float32(2)


@inline
def _shuffle(state: np.ndarray, low: int, high: int, order: np.ndarray) -> None:
    """Shuffle order[low:high] (Fisher and Yates)."""
    for p in range(high - 1, low, -1):
        q = low + np.int64(uniform(state) * (p + 1 - low))
        order[p], order[q] = order[q], order[p]


@kernel
def queue(
    start: int,
    stop: int,
    seed: int,
    stream: np.ndarray,
    own_indptr: np.ndarray,
    own_index: np.ndarray,
    level: np.ndarray,
    columns: int,
    indptr: np.ndarray,
    index: np.ndarray,
    order: np.ndarray,
) -> None:
    """Draw a new queue for each list: its own entries, ties in random order, then random columns that it does not have.

    level int32[own entries]; `order` has the own entries by decreasing level, before and after. The room that indptr
    leaves after them is filled with distinct other columns, drawn uniformly; there must be enough of them. stream
    int64[R]: number of the random stream of each list.
    """
    used = np.zeros(columns, np.uint8)
    free = np.empty(columns, np.int32)
    state = np.empty(1, np.uint64)
    for r in range(start, stop):
        seek(state, seed, stream[r])
        own = own_indptr[r]
        mine = own_indptr[r + 1] - own
        first = indptr[r]
        size = indptr[r + 1] - first
        low = 0
        while low < mine:
            high = low + 1
            while high < mine and level[own + order[first + high]] == level[own + order[first + low]]:
                high += 1
            _shuffle(state, first + low, first + high, order)
            low = high
        if size == mine:
            continue
        for p in range(mine):
            used[own_index[own + p]] = 1
        if 2 * size <= columns:  # at most half of the draws are rejected
            for p in range(first + mine, first + size):
                pick = np.int64(uniform(state) * columns)
                while used[pick]:
                    pick = np.int64(uniform(state) * columns)
                used[pick] = 1
                index[p] = pick
        else:
            remaining = 0
            for j in range(columns):
                if not used[j]:
                    free[remaining] = j
                    remaining += 1
            for p in range(first + mine, first + size):
                q = np.int64(uniform(state) * remaining)
                remaining -= 1
                index[p] = free[q]
                free[q] = free[remaining]
        for p in range(first, first + size):
            used[index[p]] = 0


@kernel
def evaluate(
    start: int,
    stop: int,
    indptr: np.ndarray,
    order: np.ndarray,
    top: int,
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
    inverse = np.empty(longest, np.float64)  # 1 / T by position
    counted = np.empty(longest, np.float32)  # 1 where the entry is a term of the likelihood
    Q = np.empty(longest, np.float32)
    for r in range(start, stop):
        first = indptr[r]
        n = indptr[r + 1] - first
        sigmoids(n, score[first : first + n], bits, power, h, growth)
        terms = min(n, top)
        total = 0.0
        for t in range(n - 1, terms - 1, -1):
            total += growth[order[first + t]]
        total_loss = 0.0
        product = 1.0  # of the T, so that one logarithm serves many of them
        for t in range(terms - 1, -1, -1):
            p = order[first + t]
            total += growth[p]
            inverse[t] = 1.0 / total
            total_loss -= h[p]
            product *= total
            if product > 1e250:
                total_loss += math.log(product)
                product = 1.0
        loss[r] = total_loss + math.log(product)
        running = 0.0
        for t in range(terms):
            p = order[first + t]
            running += inverse[t]
            Q[p] = running
            counted[p] = 1
        for t in range(terms, n):
            p = order[first + t]
            Q[p] = running
            counted[p] = 0
        for p in range(n):
            rise = h[p] * (_ONE - h[p])
            expected = growth[p] * Q[p]
            gap = expected - counted[p]
            gradient[first + p] = rise * gap
            # With (h')^2 bounded by h' / 4, which keeps steps short where the sigmoid is flat.
            curvature[first + p] = rise * (_QUARTER * expected + max(_ZERO, (_ONE - _TWO * h[p]) * gap))
