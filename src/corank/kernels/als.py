"""Regularised least squares with a bias, one row at a time: the half-step of explicit matrix factorisation.

Objective of row r, with x its vector, b its bias, and for each of its n entries p the value y_p and, of the other
side, the vector v_p and bias c_p:

    sum_p (y_p - mean - c_p - b - x.v_p)^2 + reg_r |x|^2 + reg_bias b^2

The bias is the weight of a constant 1 beside the vector, so (x, b) solve one system of d + 1 normal equations (Zhou
et al. 2008 for the alternation). Cost of a row: n d^2 / 2 + d^3 / 6 multiply-adds.

Arrays: indptr int64[rows + 1], index int32[n], value float32[n]; reg float32[rows]; V float32[m, d] and c float32[m]
of the other side; X float32[rows, d] and bias float32[rows] are overwritten; loss float64[rows].
"""

from __future__ import annotations

import numpy as np

from .threads import kernel

# The systems are lower triangles whose rows are rounded up to a whole number of vectors: what lies right of the
# diagonal is scratch that nothing reads. Inner loops then start at 0 and end on a vector: pure vector code.
LANES = 8
ROWS = 8  # entries at a time: each load and store of the system serves this many


@kernel
def _add_outer(rows: np.ndarray, size: int, A: np.ndarray) -> None:
    """A += sum of the outer products of 8 rows, each with itself: the lower triangle, two rows of it at a time."""
    for i in range(0, size, 2):
        a, b, c, d = rows[0, i], rows[1, i], rows[2, i], rows[3, i]
        e, f, g, h = rows[4, i], rows[5, i], rows[6, i], rows[7, i]
        j = i + 1
        a2, b2, c2, d2 = rows[0, j], rows[1, j], rows[2, j], rows[3, j]
        e2, f2, g2, h2 = rows[4, j], rows[5, j], rows[6, j], rows[7, j]
        for t in range((i // LANES + 1) * LANES):
            q, r, s, u = rows[0, t], rows[1, t], rows[2, t], rows[3, t]
            v, w, x, y = rows[4, t], rows[5, t], rows[6, t], rows[7, t]
            A[i, t] += ((a * q + b * r) + (c * s + d * u)) + ((e * v + f * w) + (g * x + h * y))
            A[j, t] += ((a2 * q + b2 * r) + (c2 * s + d2 * u)) + ((e2 * v + f2 * w) + (g2 * x + h2 * y))


@kernel
def _add_scaled(rows: np.ndarray, scale: np.ndarray, y: np.ndarray) -> None:
    """y += sum of scale_p rows_p."""
    for p in range(ROWS):
        s = scale[p]
        for t in range(y.size):
            y[t] += s * rows[p, t]


@kernel
def _finish(A: np.ndarray, k: int, floor: np.ndarray, y: np.ndarray) -> None:
    """Row k of the factor, from what is left of A; the inverse of its diagonal is stored: one division a row."""
    scale = np.float32(1) / np.sqrt(max(A[k, k], floor[k]))
    for t in range(k):
        A[k, t] *= scale
    A[k, k] = scale
    y[k] *= scale
    s = y[k]
    for t in range(k):
        y[t] -= s * A[k, t]


@kernel
def _solve(A: np.ndarray, size: int, floor: np.ndarray, y: np.ndarray) -> None:
    """Solve A x = y in place (x lands in y) for the symmetric A whose lower triangle is given; A is destroyed.

    A = L'L from the last row up, so that all loops run along rows, two rows at a time. A pivot that rounding has made
    tiny is lifted in proportion to its diagonal: a nearly singular system gives a tame answer and never a NaN.
    """
    for i in range(size):
        floor[i] = A[i, i] * np.float32(1e-6)
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


@kernel
def half_step(
    start: int,
    stop: int,
    indptr: np.ndarray,
    index: np.ndarray,
    value: np.ndarray,
    mean: float,
    reg: np.ndarray,
    reg_bias: float,
    V: np.ndarray,
    c: np.ndarray,
    X: np.ndarray,
    bias: np.ndarray,
) -> None:
    """The exact minimum of each row start..stop; a row without entries becomes 0."""
    d = V.shape[1]
    size = d + 1
    width = ((size - 1) // LANES + 1) * LANES
    A = np.empty((width, width), np.float32)
    y = np.empty(width, np.float32)
    floor = np.empty(size, np.float32)
    rows = np.zeros((ROWS, width), np.float32)
    target = np.zeros(ROWS, np.float32)
    for r in range(start, stop):
        A[:] = 0
        y[:] = 0
        p = indptr[r]
        last = indptr[r + 1]
        while p < last:
            for q in range(ROWS):
                if p + q < last:
                    j = index[p + q]
                    for t in range(d):
                        rows[q, t] = V[j, t]
                    rows[q, d] = 1
                    target[q] = value[p + q] - mean - c[j]
                else:
                    for t in range(size):
                        rows[q, t] = 0
                    target[q] = 0
            _add_outer(rows, size, A)
            _add_scaled(rows, target, y)
            p += ROWS
        if indptr[r] == last:
            X[r] = 0
            bias[r] = 0
            continue
        for t in range(d):
            A[t, t] += reg[r]
        A[d, d] += reg_bias
        _solve(A, size, floor, y)
        for t in range(d):
            X[r, t] = y[t]
        bias[r] = y[d]


@kernel
def losses(
    start: int,
    stop: int,
    indptr: np.ndarray,
    index: np.ndarray,
    value: np.ndarray,
    mean: float,
    V: np.ndarray,
    c: np.ndarray,
    X: np.ndarray,
    bias: np.ndarray,
    loss: np.ndarray,
) -> None:
    """loss[r] = sum of the squared errors of row r, without regularisation."""
    d = V.shape[1]
    for r in range(start, stop):
        total = 0.0
        x = X[r]
        for p in range(indptr[r], indptr[r + 1]):
            v = V[index[p]]
            dot = np.float32(0)
            for t in range(d):
                dot += x[t] * v[t]
            error = np.float64(value[p]) - mean - c[index[p]] - bias[r] - dot
            total += error * error
        loss[r] = total
