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

from .random import seek, uniform
from .sigmoid import sigmoids
from .threads import kernel

_NONE, _QUARTER, _ONE, _TWO = np.float32(0), np.float32(0.25), np.float32(1), np.float32(2)


@kernel
def _shuffle(state: np.ndarray, low: int, high: int, order: np.ndarray) -> None:
    """Put order[low:high] into random order (Fisher and Yates)."""
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
    """A new queue for each list: what the row has, ties in random order, then columns that it has not.

    level int32[own entries]; `order` has the row's own entries by falling level and keeps them so. The room that indptr
    leaves after them is filled with distinct other columns, uniformly drawn; there must be as many. stream int64[R]
    names the random stream of each list.
    """
    used = np.zeros(columns, np.uint8)
    free = np.empty(columns, np.int32)
    state = np.empty(1, np.uint64)
    for r in range(start, stop):
        seek(state, seed, stream[r])
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
                pick = np.int64(uniform(state) * columns)
                while used[pick]:
                    pick = np.int64(uniform(state) * columns)
                used[pick] = 1
                index[p] = pick
        else:
            left = 0
            for j in range(columns):
                if not used[j]:
                    free[left] = j
                    left += 1
            for p in range(head + mine, head + size):
                q = np.int64(uniform(state) * left)
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
    """slope = d loss / d score of each entry, curve >= 0 a bound of its curvature, and the loss of each list."""
    longest = 0
    for r in range(start, stop):
        longest = max(longest, indptr[r + 1] - indptr[r])
    bits = np.empty(longest, np.int32)
    power = bits.view(np.float32)
    h = np.empty(longest, np.float32)
    growth = np.empty(longest, np.float32)  # exp(h)
    turned = np.empty(longest, np.float64)  # 1 / T by position
    chosen = np.empty(longest, np.float32)  # 1 where the entry has a term of its own
    below = np.empty(longest, np.float32)  # Q
    for r in range(start, stop):
        first = indptr[r]
        n = indptr[r + 1] - first
        sigmoids(n, score[first : first + n], bits, power, h, growth)
        terms = min(n, top)
        total = 0.0
        for t in range(n - 1, terms - 1, -1):
            total += growth[order[first + t]]
        entropy = 0.0
        product = 1.0  # of the T: one logarithm serves many of them
        for t in range(terms - 1, -1, -1):
            p = order[first + t]
            total += growth[p]
            turned[t] = 1.0 / total
            entropy -= h[p]
            product *= total
            if product > 1e250:
                entropy += math.log(product)
                product = 1.0
        loss[r] = entropy + math.log(product)
        queued = 0.0
        for t in range(terms):
            p = order[first + t]
            queued += turned[t]
            below[p] = queued
            chosen[p] = 1
        for t in range(terms, n):
            p = order[first + t]
            below[p] = queued
            chosen[p] = 0
        for p in range(n):
            rise = h[p] * (_ONE - h[p])
            expected = growth[p] * below[p]
            gap = expected - chosen[p]
            slope[first + p] = rise * gap
            # (h')^2 <= h' / 4, which keeps steps short where the sigmoid is flat.
            curve[first + p] = rise * (_QUARTER * expected + max(_NONE, (_ONE - _TWO * h[p]) * gap))
