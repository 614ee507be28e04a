"""Ratings with a graph over the rows: the part of the half-step that is separate for each row.

`graph_block` has the part that couples the rows. Objective of all rows, with x_r, b_r the vector and bias of row r, and
for each of its entries p the value y_p and, of the other side, the vector v_p and bias c_p:

    sum_r [ sum_p (y_p - mean - c_p - b_r - x_r.v_p)^2 + reg_r |x_r|^2 + reg_bias b_r^2 ] + mu tr(X' Lap X)

Cost per row with n entries: n d^2 / 2 + d^3 / 6 multiply-adds, as in `als`, and 2 d^2 per conjugate-gradient step.

Arrays: indptr int64[rows + 1], index int32[n], value float32[n]; reg, pull float32[rows], pull being mu times the
degree of the row in the graph; V float32[m, d] and c float32[m] of the other side; X float32[rows, d] and bias
float32[rows], read only; L and R as in `graph_block`, with s = d + 1.
"""

from __future__ import annotations

import numpy as np

from .graph_block import pack
from .normal import ONE, ROWS, add_outer, add_scaled, gather, rounded, solve
from .threads import kernel
from .vectors import dot


@kernel
def prepare(
    start: int,
    stop: int,
    indptr: np.ndarray,
    index: np.ndarray,
    value: np.ndarray,
    mean: float,
    reg: np.ndarray,
    reg_bias: float,
    pull: np.ndarray,
    V: np.ndarray,
    c: np.ndarray,
    X: np.ndarray,
    bias: np.ndarray,
    L: np.ndarray,
    R: np.ndarray,
) -> None:
    """L[r] = factor of the normal equations of row r; R[r] = minus half the gradient, without the graph."""
    d = V.shape[1]
    size = d + 1
    width = rounded(size)
    A = np.empty((width, width), np.float32)
    y = np.empty(width, np.float32)
    floor = np.empty(size, np.float32)
    rows = np.zeros((ROWS, width), np.float32)
    error = np.zeros(ROWS, np.float32)
    for r in range(start, stop):
        A[:] = 0
        y[:] = 0
        x = X[r]
        last = indptr[r + 1]
        for p in range(indptr[r], last, ROWS):
            n = gather(0, index, p, last, V, ONE, ONE, rows)
            error[n:] = 0
            for q in range(n):
                error[q] = value[p + q] - mean - c[index[p + q]] - bias[r] - dot(V[index[p + q]], x)
            add_outer(rows, rows, size, A)
            add_scaled(rows, error, y)
        for t in range(d):
            A[t, t] += reg[r] + pull[r]
            R[r, t] = y[t] - reg[r] * x[t]
        # An infinite penalty keeps the bias at 0.
        R[r, d] = y[d] - reg_bias * bias[r] if reg_bias < np.inf else 0
        A[d, d] += reg_bias
        solve(A, size, floor, y)
        pack(A, size, L[r])
