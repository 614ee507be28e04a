"""The k best of each row of a score block, in one scan per row.

Of `scores` float32[b, n], except masked entries (-inf), the k largest in decreasing order, ties by increasing index. A
row is scanned once, comparing with the smallest score kept so far; almost every element fails that comparison, so the
cost is that of reading the block. -inf is never returned: rows with fewer than k allowed items are padded with -1.
"""

from __future__ import annotations

import numpy as np

from .threads import inline, kernel

LANES = 16


@inline
def mask_rows(
    start: int, stop: int, scores: np.ndarray, rows: np.ndarray, indptr: np.ndarray, index: np.ndarray
) -> None:
    """Set scores[b, index of row rows[b]] to -inf for b in start..stop."""
    for b in range(start, stop):
        r = rows[b]
        if r >= 0:
            for p in range(indptr[r], indptr[r + 1]):
                scores[b, index[p]] = -np.inf


@inline
def _insert(item: int, score: float, kept: int, items: np.ndarray, best: np.ndarray) -> int:
    """Insert into a list of decreasing scores, after equal ones; returns the new length."""
    k = best.size
    at = kept if kept < k else k - 1
    while at > 0 and best[at - 1] < score:
        best[at] = best[at - 1]
        items[at] = items[at - 1]
        at -= 1
    best[at] = score
    items[at] = item
    return kept + 1 if kept < k else k


@kernel
def select(start: int, stop: int, scores: np.ndarray, items: np.ndarray, best: np.ndarray) -> None:
    """Fill items int32[b, k] (-1 padded) and best float32[b, k] (-inf padded)."""
    n = scores.shape[1]
    k = items.shape[1]
    for b in range(start, stop):
        row = scores[b]
        top_items = items[b]
        top = best[b]
        for t in range(k):
            top_items[t] = -1
            top[t] = -np.inf
        kept = 0
        floor = np.float32(-np.inf)
        j = 0
        while j + LANES <= n:
            # One vector comparison for 16 items; the inner loop runs only where one of them is above the floor.
            hits = 0
            for t in range(LANES):
                hits += row[j + t] > floor
            if hits > 0:
                for t in range(j, j + LANES):
                    if row[t] > floor:
                        kept = _insert(t, row[t], kept, top_items, top)
                        if kept == k:
                            floor = top[k - 1]
            j += LANES
        for t in range(j, n):
            if row[t] > floor:
                kept = _insert(t, row[t], kept, top_items, top)
                if kept == k:
                    floor = top[k - 1]
