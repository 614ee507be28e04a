"""Regularised least squares with a bias, one row at a time: the half-step of explicit matrix factorisation.

Objective of row r, with x its vector, b its bias, and for each of its n entries p the value y_p and, of the other
side, the vector v_p and bias c_p:

    sum_p (y_p - mean - c_p - b - x.v_p)^2 + reg_r |x|^2 + reg_bias b^2

The bias is the weight of a constant 1 beside the vector, so (x, b) solve one system of d + 1 normal equations (Zhou
et al. 2008 for the alternation). Cost per row: n d^2 / 2 + d^3 / 6 multiply-adds.

Arrays: indptr int64[rows + 1], index int32[n], value float32[n]; reg float32[rows]; V float32[m, d] and c float32[m]
of the other side; X float32[rows, d] and bias float32[rows] are overwritten; loss float64[rows].
"""

from __future__ import annotations

import numpy as np

from .normal import ONE, ROWS, add_outer, add_scaled, gather, rounded, solve
from .threads import inline, kernel

TINY = 1e-15  # negligible beside any rating


@inline
def settle(
    r: int,
    reg: float,
    reg_bias: float,
    A: np.ndarray,
    floor: np.ndarray,
    y: np.ndarray,
    X: np.ndarray,
    bias: np.ndarray,
) -> None:
    """Add the regularisation to the normal equations A, y of row r and solve them; A and y are destroyed."""
    d = X.shape[1]
    for t in range(d):
        A[t, t] += reg
    A[d, d] += reg_bias
    solve(A, d + 1, floor, y)
    for t in range(d):
        # Under strong regularisation vectors shrink in every epoch: denormal numbers would be ten times as slow.
        X[r, t] = y[t] if abs(y[t]) > TINY else np.float32(0)
    bias[r] = y[d]


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
    width = rounded(size)
    A = np.empty((width, width), np.float32)
    y = np.empty(width, np.float32)
    floor = np.empty(size, np.float32)
    rows = np.zeros((ROWS, width), np.float32)
    target = np.zeros(ROWS, np.float32)
    for r in range(start, stop):
        A[:] = 0
        y[:] = 0
        last = indptr[r + 1]
        for p in range(indptr[r], last, ROWS):
            n = gather(0, index, p, last, V, ONE, ONE, rows)
            target[n:] = 0
            for q in range(n):
                target[q] = value[p + q] - mean - c[index[p + q]]
            add_outer(rows, rows, size, A)
            add_scaled(rows, target, y)
        if indptr[r] == last:
            X[r] = 0
            bias[r] = 0
            continue
        settle(r, reg[r], reg_bias, A, floor, y, X, bias)


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
