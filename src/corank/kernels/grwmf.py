"""Implicit feedback with a graph over the rows: the part of the half-step that is separate for each row.

`graph_block` has the part that couples the rows. Objective of all rows, with the symbols of `wmf`:

    sum_r [ sum_p w_p (1 - x_r.v_p)^2 + rho sum_{j not stored} (x_r.v_j)^2 + reg_r |x_r|^2 ] + mu tr(X' Lap X)

The zeros of all rows are in gram = rho V'V, computed once per half-step. A row without entries is all zeros, and moves
towards its neighbours. Cost per row with n entries: n d^2 / 2 + d^3 / 6, and 2 d^2 per conjugate-gradient step.

Arrays: indptr int64[rows + 1], index int32[n], weight float32[n]; reg, pull float32[rows], pull being mu times the
degree of the row in the graph; gram float32[d, d]; V float32[m, d]; X float32[rows, d], read only; L and R as in
`graph_block`, with s = d; loss float64[rows].
"""

from __future__ import annotations

import numpy as np

from .graph_block import pack
from .normal import ROWS, add_outer, rounded, solve
from .threads import kernel
from .vectors import dot
from .wmf import apply


@kernel
def prepare(
    start: int,
    stop: int,
    indptr: np.ndarray,
    index: np.ndarray,
    weight: np.ndarray,
    rho: float,
    reg: np.ndarray,
    pull: np.ndarray,
    gram: np.ndarray,
    V: np.ndarray,
    X: np.ndarray,
    L: np.ndarray,
    R: np.ndarray,
) -> None:
    """L[r] = factor of the normal equations of row r; R[r] = minus half the gradient, without the graph."""
    d = V.shape[1]
    width = rounded(d)
    A = np.zeros((width, width), np.float32)
    y = np.zeros(width, np.float32)
    floor = np.empty(d, np.float32)
    rows = np.zeros((ROWS, width), np.float32)
    scaled = np.zeros((ROWS, width), np.float32)
    image = np.empty(d, np.float32)
    for r in range(start, stop):
        x = X[r]
        apply(gram, reg[r], x, image)
        for i in range(d):
            y[i] = -image[i]
            for t in range(i + 1):
                A[i, t] = gram[i, t]
            A[i, i] += reg[r] + pull[r]
        last = indptr[r + 1]
        for p in range(indptr[r], last, ROWS):
            for q in range(ROWS):
                inside = p + q < last
                at = p + q if inside else p  # beyond the last entry, another one with weight 0
                v = V[index[at]]
                inner = dot(v, x)
                extra = weight[at] - np.float32(rho) if inside else np.float32(0)
                error = weight[at] - extra * inner if inside else np.float32(0)
                for t in range(d):
                    rows[q, t] = v[t]
                    scaled[q, t] = extra * v[t]
                    y[t] += error * v[t]
            add_outer(scaled, rows, d, A)
        for t in range(d):
            R[r, t] = y[t]
        solve(A, d, floor, y)
        pack(A, d, L[r])


@kernel
def losses(
    start: int,
    stop: int,
    indptr: np.ndarray,
    index: np.ndarray,
    weight: np.ndarray,
    rho: float,
    reg: np.ndarray,
    gram: np.ndarray,
    V: np.ndarray,
    X: np.ndarray,
    loss: np.ndarray,
) -> None:
    """loss[r] = the objective of row r, its regularisation included, without the graph."""
    d = V.shape[1]
    image = np.empty(d, np.float32)
    for r in range(start, stop):
        x = X[r]
        apply(gram, reg[r], x, image)
        total = 0.0
        for i in range(d):
            total += np.float64(image[i]) * x[i]
        for p in range(indptr[r], indptr[r + 1]):
            score = np.float64(dot(x, V[index[p]]))
            total += weight[p] * (1.0 - score) ** 2 - rho * score * score
        loss[r] = total
