"""Queues and their Plackett-Luce likelihood, the loss of SQL-Rank (Wu, Hsieh and Sharpnack, ICML 2018).

A list puts its entries into an order (the queue). With scores x_t = u.v of the entry at position t, h = sigmoid(x) and
T_t = sum of exp(h_l) over l >= t, minus its log likelihood is sum over t of -h_t + log T_t, and its slope is

    d / d x_t = h_t (1 - h_t) (-1 + exp(h_t) Q_t),    Q_t = sum of 1 / T_q over q <= t,

so two scans of the queue give it (the printed gradient of the dissertation's appendix is wrong: see the tests for a
proof by differences). `top` cuts the likelihood: only the first `top` positions are terms of the sum, and -1 and Q stop
there. Cost: two exponentials and a division an entry, beside the inner products.

Shapes: n entries of R lists. indptr int64[R + 1]; index int32[n] item of each entry; order int32[n] entry at each
position, counted from the head of its list; score, slope float32[n]; loss float64[R].
"""

from __future__ import annotations

import math

import numpy as np

from .sample import _start, _uniform
from .threads import kernel


@kernel
def _shuffle(state: np.ndarray, low: int, high: int, order: np.ndarray) -> None:
    """Put order[low:high] into random order (Fisher and Yates)."""
    for p in range(high - 1, low, -1):
        q = low + np.int64(_uniform(state) * (p + 1 - low))
        order[p], order[q] = order[q], order[p]


@kernel
def shuffle_ties(start: int, stop: int, seed: int, indptr: np.ndarray, value: np.ndarray, order: np.ndarray) -> None:
    """Shuffle positions of equal value; order is sorted by falling value (float32[n], by entry) and stays so."""
    state = np.empty(1, np.uint64)
    for r in range(start, stop):
        _start(state, seed, r)
        first = indptr[r]
        last = indptr[r + 1]
        low = first
        while low < last:
            high = low + 1
            while high < last and value[first + order[high]] == value[first + order[low]]:
                high += 1
            _shuffle(state, low, high, order)
            low = high


@kernel
def draw_zeros(
    start: int,
    stop: int,
    seed: int,
    row: np.ndarray,
    own_indptr: np.ndarray,
    own_index: np.ndarray,
    columns: int,
    indptr: np.ndarray,
    index: np.ndarray,
    order: np.ndarray,
) -> None:
    """Fill each list: what the row has, in random order, then distinct columns that it has not, drawn uniformly.

    row int64[R] names the random stream of each list; the room that indptr leaves after the row's own columns says how
    many to draw, and must not be more than there are.
    """
    used = np.zeros(columns, np.uint8)
    free = np.empty(columns, np.int32)
    state = np.empty(1, np.uint64)
    for r in range(start, stop):
        _start(state, seed, row[r])
        head = indptr[r]
        mine = own_indptr[r + 1] - own_indptr[r]
        size = indptr[r + 1] - head
        for p in range(mine):
            j = own_index[own_indptr[r] + p]
            used[j] = 1
            index[head + p] = j
        for p in range(size):
            order[head + p] = p
        _shuffle(state, head, head + mine, order)
        if 2 * size <= columns:  # at most half of the throws are lost
            for p in range(mine, size):
                j = np.int64(_uniform(state) * columns)
                while used[j]:
                    j = np.int64(_uniform(state) * columns)
                used[j] = 1
                index[head + p] = j
        else:
            left = 0
            for j in range(columns):
                if not used[j]:
                    free[left] = j
                    left += 1
            for p in range(mine, size):
                q = np.int64(_uniform(state) * left)
                left -= 1
                index[head + p] = free[q]
                free[q] = free[left]
        for p in range(size):
            used[index[head + p]] = 0


@kernel
def slopes(
    start: int,
    stop: int,
    indptr: np.ndarray,
    order: np.ndarray,
    top: int,
    score: np.ndarray,
    slope: np.ndarray,
    loss: np.ndarray,
) -> None:
    """slope = d loss / d score of each entry, and the loss of each list."""
    longest = 0
    for r in range(start, stop):
        longest = max(longest, indptr[r + 1] - indptr[r])
    growth = np.empty(longest, np.float64)  # exp(h) by position
    turned = np.empty(longest, np.float64)  # 1 / T by position
    for r in range(start, stop):
        first = indptr[r]
        n = indptr[r + 1] - first
        terms = min(n, top)
        total = 0.0
        entropy = 0.0
        product = 1.0  # of the T: one logarithm serves many of them
        for t in range(n - 1, -1, -1):
            p = first + order[first + t]
            h = 1.0 / (1.0 + math.exp(-score[p]))
            slope[p] = h
            growth[t] = math.exp(h)
            total += growth[t]
            if t < terms:
                turned[t] = 1.0 / total
                entropy -= h
                product *= total
                if product > 1e250:
                    entropy += math.log(product)
                    product = 1.0
        loss[r] = entropy + math.log(product)
        below = 0.0
        for t in range(n):
            p = first + order[first + t]
            lift = 0.0
            if t < terms:
                below += turned[t]
                lift = 1.0
            h = np.float64(slope[p])
            slope[p] = h * (1.0 - h) * (growth[t] * below - lift)
