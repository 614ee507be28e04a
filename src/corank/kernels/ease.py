"""The linear algebra of EASE: co-occurrence counts, weights from an inverse, and sums of dense rows (Steck 2019).

`counts`: the lower triangle of X^T X + reg I for a binary matrix X, from each item through its users; it costs the sum
over users of half their squared length. `weights`: B = I - P diag(P)^-1 in place of the symmetric P, of which only the
lower triangle is given. `add_rows`: sums of the rows of B that belong to a history, one strip of columns at a time, so
that the strip stays in the cache while all histories read it; faster than a dense product, since a history has few of
the rows, and independent of the batch.

Shapes: item_* are the CSR parts of X^T, user_* those of X, rows sorted; matrices are [n, n], row-major.
"""

from __future__ import annotations

import numpy as np

from .threads import kernel

STRIP = 64  # columns added at a time
TILE = 64  # rows and columns of the square that is transposed at a time


@kernel
def counts(
    start: int,
    stop: int,
    item_indptr: np.ndarray,
    item_index: np.ndarray,
    user_indptr: np.ndarray,
    user_index: np.ndarray,
    reg: float,
    out: np.ndarray,
) -> None:
    """out[i, :i + 1] = number of shared users, plus reg on the diagonal, for i in start..stop; 0 right of it."""
    for i in range(start, stop):
        row = out[i]
        row[:] = 0
        for p in range(item_indptr[i], item_indptr[i + 1]):
            u = item_index[p]
            for q in range(user_indptr[u], user_indptr[u + 1]):
                j = user_index[q]
                if j > i:
                    break
                row[j] += 1
        row[i] += reg


@kernel
def weights(start: int, stop: int, P: np.ndarray, diagonal: np.ndarray, B: np.ndarray) -> None:
    """B[i, j] = -P[i, j] / diagonal[j], 0 on the diagonal, for the tile rows start..stop; B may be P itself.

    Only the lower triangle of P is read. A pair (i, j) belongs to the tile of its larger index: tiles share no output.
    """
    n = diagonal.size
    for tile in range(start, stop):
        low, high = tile * TILE, min(tile * TILE + TILE, n)
        for column in range(0, high, TILE):
            for i in range(low, high):
                for j in range(column, min(column + TILE, i)):
                    p = P[i, j]
                    B[i, j] = -p / diagonal[j]
                    B[j, i] = -p / diagonal[i]
        for i in range(low, high):
            B[i, i] = 0


@kernel
def add_rows(start: int, stop: int, indptr: np.ndarray, index: np.ndarray, B: np.ndarray, out: np.ndarray) -> None:
    """out[b, strip] = sum of B[j, strip] over the entries j of row b, for the strips start..stop: float32[rows, n]."""
    n = B.shape[1]
    for strip in range(start, stop):
        low, high = strip * STRIP, min(strip * STRIP + STRIP, n)
        for b in range(indptr.size - 1):
            row = out[b, low:high]
            row[:] = 0
            last = indptr[b + 1]
            p = indptr[b]
            while p + 4 <= last:
                b0, b1 = B[index[p], low:high], B[index[p + 1], low:high]
                b2, b3 = B[index[p + 2], low:high], B[index[p + 3], low:high]
                for t in range(high - low):
                    row[t] += (b0[t] + b1[t]) + (b2[t] + b3[t])
                p += 4
            while p < last:
                b0 = B[index[p], low:high]
                for t in range(high - low):
                    row[t] += b0[t]
                p += 1
