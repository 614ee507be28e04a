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
    """A new queue for each list: what the row has, ties in random order, then columns that it has not.

    level int32[own entries]; `order` has the row's own entries by falling level and keeps them so. The room that indptr
    leaves after them is filled with distinct other columns, uniformly drawn; there must be as many. stream int64[R]
    names the random stream of each list.
    """
    used = np.zeros(columns, np.uint8)
    free = np.empty(columns, np.int32)
    state = np.empty(1, np.uint64)
    for r in range(start, stop):
        _start(state, seed, stream[r])
        own = own_indptr[r]
        mine = own_indptr[r + 1] - own
        head = indptr[r]
        size = indptr[r + 1] - head
        low = 0
        while low < mine:
            high = low + 1
            while high < mine and level[own + order[head + high]] == level[own + order[head + low]]:
                high += 1
            _shuffle(state, head + low, head + high, order)
            low = high
        if size == mine:
            continue
        for p in range(mine):
            used[own_index[own + p]] = 1
        if 2 * size <= columns:  # at most half of the throws are lost
            for p in range(head + mine, head + size):
                j = np.int64(_uniform(state) * columns)
                while used[j]:
                    j = np.int64(_uniform(state) * columns)
                used[j] = 1
                index[p] = j
        else:
            left = 0
            for j in range(columns):
                if not used[j]:
                    free[left] = j
                    left += 1
            for p in range(head + mine, head + size):
                q = np.int64(_uniform(state) * left)
                left -= 1
                index[p] = free[q]
                free[q] = free[left]
        for p in range(head, head + size):
            used[index[p]] = 0


@kernel
def slopes(
    start: int,
    stop: int,
    indptr: np.ndarray,
    order: np.ndarray,
    top: int,
    score: np.ndarray,
    slope: np.ndarray,
    curve: np.ndarray,
    loss: np.ndarray,
) -> None:
    """slope = d loss / d score of each entry, curve = a bound of the second derivative, and the loss of each list."""
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
            rise = h * (1.0 - h)
            expected = growth[t] * below
            slope[p] = rise * (expected - lift)
            curve[p] = rise * rise * expected + max(0.0, rise * (1.0 - 2.0 * h) * (expected - lift))
