"""Negatives for sampled evaluation: distinct columns per row, none of them taken, fixed by a seed and the row number.

Every row has its own random stream (from seed and row number), so that the sample depends neither on the number of
threads nor on the other rows. Weighted sampling is without replacement: each draw is proportional to the weights of the
columns that remain. It is done by rejection; where this takes too many tries, the remaining draws are the smallest of
exponential variables with the weights as rates (Efraimidis and Spirakis 2006), which is the same distribution.

Shapes: row int32[b]; taken_indptr int64[rows + 1], taken_index int32 (distinct in a row); cumulative float64[n],
running total of the weights (empty = uniform); out int32[b, c], -1 padded where fewer columns are free.
"""

from __future__ import annotations

import numpy as np

from .random import uniform
from .threads import kernel

TRIES = 8  # per negative, before the exact but slower method takes over


@kernel
def draw(
    start: int,
    stop: int,
    row: np.ndarray,
    taken_indptr: np.ndarray,
    taken_index: np.ndarray,
    cumulative: np.ndarray,
    n: int,
    seed: int,
    out: np.ndarray,
) -> None:
    """Fill out[b] with distinct free columns in 0..n, in the order in which they were drawn."""
    used = np.zeros(n, np.uint8)
    state = np.empty(1, np.uint64)
    keys = np.empty(n, np.float64)
    c = out.shape[1]
    for b in range(start, stop):
        state[0] = np.uint64(seed) * np.uint64(0xD1342543DE82EF95) + np.uint64(row[b])
        uniform(state)
        low, high = taken_indptr[row[b]], taken_indptr[row[b] + 1]
        for p in range(low, high):
            used[taken_index[p]] = 1
        free = n - (high - low)
        want = min(c, free)
        drawn = 0
        tries = TRIES * want if 2 * want <= free else 0
        while drawn < want and tries > 0:
            tries -= 1
            u = uniform(state)
            j = int(u * n) if cumulative.size == 0 else np.searchsorted(cumulative, u * cumulative[-1], side="right")
            j = min(j, n - 1)
            if used[j] == 0:
                used[j] = 1
                out[b, drawn] = j
                drawn += 1
        if drawn < want:
            for j in range(n):
                if used[j]:
                    keys[j] = np.inf
                else:
                    weight = 1.0 if cumulative.size == 0 else cumulative[j] - (cumulative[j - 1] if j > 0 else 0.0)
                    wait = -np.log(1.0 - uniform(state))
                    # Columns of weight 0 come last, in random order: they are drawn only when no other one remains.
                    keys[j] = wait / weight if weight > 0 else 1e200 * (1.0 + wait)
            for t in range(drawn, want):
                best = 0
                for j in range(1, n):
                    if keys[j] < keys[best]:
                        best = j
                out[b, t] = best
                keys[best] = np.inf
        for t in range(want, c):
            out[b, t] = -1
        for t in range(want):
            used[out[b, t]] = 0
        for p in range(low, high):
            used[taken_index[p]] = 0
