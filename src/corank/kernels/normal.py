"""Normal equations of small least-squares problems: building them fast and solving them safely.

A system A x = y of `size` unknowns is stored as a lower triangle, float32[w, w] with w = `rounded(size)`: rows are
padded to a whole number of SIMD vectors, and nothing reads what lies right of the diagonal. Inner loops then start at 0
and end at the end of a SIMD vector, so that the compiler needs no scalar remainder.
"""

from __future__ import annotations

import numpy as np

from .threads import inline

LANES = 8  # floats in a SIMD vector
ONE = np.float32(1)
ROWS = 8  # entries added at a time: each load and store of the system serves this many


@inline
def rounded(size: int) -> int:
    """The number of rows and columns of a system in memory: a whole number of SIMD vectors."""
    return ((size - 1) // LANES + 1) * LANES


@inline
def gather(
    filled: int,
    index: np.ndarray,
    start: int,
    stop: int,
    V: np.ndarray,
    scale: float,
    constant: float,
    rows: np.ndarray,
) -> int:
    """Entries start..stop, as many as fit, as rows of a design matrix: rows[q] = (scale * V[j], constant).

    The first `filled` of the 8 rows are kept, those that remain free are set to 0. Returns how many rows are filled.
    """
    d = V.shape[1]
    end = min(filled + stop - start, ROWS)
    for q in range(filled, end):
        j = index[start + q - filled]
        for t in range(d):
            rows[q, t] = scale * V[j, t]
        rows[q, d] = constant
    for q in range(end, ROWS):
        for t in range(d + 1):
            rows[q, t] = 0
    return end


@inline
def add_outer(scaled: np.ndarray, rows: np.ndarray, size: int, A: np.ndarray) -> None:
    """A += sum over 8 rows p of scaled_p rows_p': the lower triangle, two rows of it at a time."""
    for i in range(0, size, 2):
        a, b, c, d = scaled[0, i], scaled[1, i], scaled[2, i], scaled[3, i]
        e, f, g, h = scaled[4, i], scaled[5, i], scaled[6, i], scaled[7, i]
        j = i + 1
        a2, b2, c2, d2 = scaled[0, j], scaled[1, j], scaled[2, j], scaled[3, j]
        e2, f2, g2, h2 = scaled[4, j], scaled[5, j], scaled[6, j], scaled[7, j]
        for t in range((i // LANES + 1) * LANES):
            q, r, s, u = rows[0, t], rows[1, t], rows[2, t], rows[3, t]
            v, w, x, y = rows[4, t], rows[5, t], rows[6, t], rows[7, t]
            A[i, t] += ((a * q + b * r) + (c * s + d * u)) + ((e * v + f * w) + (g * x + h * y))
            A[j, t] += ((a2 * q + b2 * r) + (c2 * s + d2 * u)) + ((e2 * v + f2 * w) + (g2 * x + h2 * y))


@inline
def add_scaled(rows: np.ndarray, scale: np.ndarray, y: np.ndarray) -> None:
    """y += sum over 8 rows p of scale_p rows_p; y is as wide as the rows."""
    for p in range(ROWS):
        s = scale[p]
        for t in range(y.size):
            y[t] += s * rows[p, t]


@inline
def _finish(A: np.ndarray, k: int, floor: np.ndarray, y: np.ndarray) -> None:
    """Row k of the factor, from the remainder of A; the inverse of its diagonal is stored: one division per row."""
    # A pivot below the floor is rounding error: the other coordinates express this one, and x_k = 0 is a solution.
    scale = np.float32(1) / np.sqrt(A[k, k]) if A[k, k] > floor[k] else np.float32(0)
    for t in range(k):
        A[k, t] *= scale
    A[k, k] = scale
    y[k] *= scale
    s = y[k]
    for t in range(k):
        y[t] -= s * A[k, t]


@inline
def solve(A: np.ndarray, size: int, floor: np.ndarray, y: np.ndarray) -> None:
    """Solve A x = y in place (x lands in y) for the symmetric A whose lower triangle is given; A is destroyed.

    A = L'L from the last row up, so that all loops run along rows, two rows at a time. A coordinate that the others
    express to within rounding is set to 0: a nearly singular system gives a bounded solution and never a NaN.
    """
    for i in range(size):
        floor[i] = A[i, i] * np.float32(1.2e-7 * (size + 8))
    k = size - 1
    while k > 0:
        _finish(A, k, floor, y)
        s = A[k, k - 1]
        for t in range(k):
            A[k - 1, t] -= s * A[k, t]
        _finish(A, k - 1, floor, y)
        for i in range(k - 1):
            s = A[k, i]
            u = A[k - 1, i]
            for t in range((i // LANES + 1) * LANES):
                A[i, t] -= s * A[k, t] + u * A[k - 1, t]
        k -= 2
    if k == 0:
        _finish(A, 0, floor, y)
    for k in range(size):
        total = y[k]
        for t in range(k):
            total -= A[k, t] * y[t]
        y[k] = total * A[k, k]
