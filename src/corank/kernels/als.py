"""Regularised least squares with a bias, one row at a time: the half-step of explicit matrix factorisation.

Objective of row r, with x its vector, b its bias, and for each of its n entries p the value y_p and, of the other side, the vector
v_p and bias c_p:

    sum_p (y_p - mean - c_p - b - x.v_p)^2 + reg_r |x|^2 + reg_bias b^2

The bias is the weight of a constant 1 beside the vector, so (x, b) solve one system of d + 1 normal equations (Zhou et al. 2008
for the alternation). Cost of a row: n d^2 / 2 + d^3 / 6 multiply-adds.

Arrays: indptr int64[rows + 1], index int32[n], value float32[n]; reg float32[rows]; V float32[m, d] and c float32[m] of the
other side; X float32[rows, d] and bias float32[rows] are overwritten; loss float64[rows].
"""

from __future__ import annotations

import numpy as np

from .threads import kernel

LANES = 16  # columns at a time: the width of the system is rounded up to it, and inner loops have a fixed length
ROWS = 8  # entries at a time: each load and store of the system serves this many


@kernel
def _add_outer(rows: np.ndarray, first: int, scale: np.ndarray, A: np.ndarray) -> None:
    """A[:first] += sum of the outer products of 8 rows, the upper triangle; A[first] += sum of scale_p rows_p."""
    width = A.shape[1]
    r0, r1, r2, r3, r4, r5, r6, r7 = rows[0], rows[1], rows[2], rows[3], rows[4], rows[5], rows[6], rows[7]
    for i in range(first + 1):
        s = scale if i == first else rows[:, i]
        s0, s1, s2, s3, s4, s5, s6, s7 = s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]
        into = A[i]
        for block in range(0 if i == first else i - i % LANES, width, LANES):
            for t in range(block, block + LANES):
                into[t] += (
                    ((s0 * r0[t] + s1 * r1[t]) + (s2 * r2[t] + s3 * r3[t]))
                    + ((s4 * r4[t] + s5 * r5[t]) + (s6 * r6[t] + s7 * r7[t]))
                )  # fmt: skip


@kernel
def _solve(A: np.ndarray, size: int) -> None:
    """Solve for the right-hand side in row `size` of A, in place; the upper triangle of A is replaced by its Cholesky factor.

    Row by row, A = R'R: the right-hand side rides along as one more row of the factor's transpose. A pivot that rounding has made
    tiny is lifted in proportion to its diagonal, so that a nearly singular system gives a tame answer and never a NaN.
    """
    width = A.shape[1]
    y = A[size]
    for k in range(size):
        row = A[k]
        low = k - k % LANES
        # Row k is final once all rows above have been taken off, which the loop below did.
        scale = np.float32(1) / np.sqrt(row[k])
        for t in range(low, width):
            row[t] *= scale
        y[k] *= scale
        yk = y[k]
        for i in range(k + 1, size):
            s = row[i]
            into = A[i]
            floor = np.float32(1e-6) * into[i]
            for block in range(i - i % LANES, width, LANES):
                for t in range(block, block + LANES):
                    into[t] -= s * row[t]
            into[i] = max(into[i], floor)
            y[i] -= yk * s
    for k in range(size - 1, -1, -1):
        total = y[k]
        for t in range(k + 1, size):
            total -= A[k, t] * y[t]
        y[k] = total / A[k, k]


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
    width = (size + LANES - 1) // LANES * LANES
    A = np.empty((size + 1, width), np.float32)
    rows = np.zeros((ROWS, width), np.float32)
    target = np.zeros(ROWS, np.float32)
    for r in range(start, stop):
        A[:] = 0
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
            _add_outer(rows, size, target, A)
            p += ROWS
        if indptr[r] == last:
            X[r] = 0
            bias[r] = 0
            continue
        for t in range(d):
            A[t, t] += reg[r]
        A[d, d] += reg_bias
        _solve(A, size)
        for t in range(d):
            X[r, t] = A[size, t]
        bias[r] = A[size, d]


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
