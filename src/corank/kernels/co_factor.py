"""Two least-squares problems with the same unknowns: the half-step of a side that explains ratings and ties.

Objective of row r, with x its vector and b its bias, entries p as in `als`, and ties q, each with a target g_q and the
vector w_q of what the row is tied to:

    sum_p (y_p - mean - c_p - b - x.v_p)^2 + mu sum_q (g_q - x.w_q)^2 + reg_r |x|^2 + reg_bias b^2

Cost of a row with n entries and m ties: (n + m) d^2 / 2 + d^3 / 6 multiply-adds.

Arrays: indptr, index, value of the entries and of the ties: int64[rows + 1], int32, float32; reg float32[rows]; V
float32[., d] and c float32[.] of the other side; W float32[., d]; X float32[rows, d] and bias float32[rows] are
overwritten.
"""

from __future__ import annotations

import numpy as np

from .als import settle
from .normal import ROWS, add_outer, add_scaled, rounded
from .random import seek, uniform
from .threads import kernel


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
    tie_indptr: np.ndarray,
    tie_index: np.ndarray,
    tie_value: np.ndarray,
    mu: float,
    W: np.ndarray,
    V: np.ndarray,
    c: np.ndarray,
    X: np.ndarray,
    bias: np.ndarray,
) -> None:
    """The exact minimum of each row start..stop; a row without entries and ties becomes 0."""
    d = V.shape[1]
    size = d + 1
    width = rounded(size)
    A = np.empty((width, width), np.float32)
    y = np.empty(width, np.float32)
    floor = np.empty(size, np.float32)
    rows = np.zeros((ROWS, width), np.float32)
    target = np.zeros(ROWS, np.float32)
    root = np.float32(np.sqrt(mu))  # a tie is an entry whose vector and target are this much larger
    for r in range(start, stop):
        A[:] = 0
        y[:] = 0
        entries = indptr[r + 1] - indptr[r]
        ties = tie_indptr[r + 1] - tie_indptr[r]
        p = 0
        while p < entries + ties:
            for q in range(ROWS):
                at = p + q
                if at < entries:
                    j = index[indptr[r] + at]
                    for t in range(d):
                        rows[q, t] = V[j, t]
                    rows[q, d] = 1
                    target[q] = value[indptr[r] + at] - mean - c[j]
                elif at < entries + ties:
                    j = tie_index[tie_indptr[r] + at - entries]
                    for t in range(d):
                        rows[q, t] = root * W[j, t]
                    rows[q, d] = 0
                    target[q] = root * tie_value[tie_indptr[r] + at - entries]
                else:
                    for t in range(size):
                        rows[q, t] = 0
                    target[q] = 0
            add_outer(rows, rows, size, A)
            add_scaled(rows, target, y)
            p += ROWS
        if entries + ties == 0:
            X[r] = 0
            bias[r] = 0
            continue
        settle(r, reg[r], reg_bias, A, floor, y, X, bias)


@kernel
def draw_zeros(
    start: int,
    stop: int,
    indptr: np.ndarray,
    index: np.ndarray,
    columns: int,
    seed: int,
    zeros: np.ndarray,
    out: np.ndarray,
) -> None:
    """out[zeros[r] : zeros[r + 1]] = distinct columns that row r does not have, each set of them alike likely.

    zeros int64[rows + 1]; a row should have twice as many free columns as it asks for, or rejection takes long.
    """
    used = np.zeros(columns, np.uint8)
    state = np.empty(1, np.uint64)
    for r in range(start, stop):
        seek(state, seed, r)
        for p in range(indptr[r], indptr[r + 1]):
            used[index[p]] = 1
        p = zeros[r]
        while p < zeros[r + 1]:
            j = int(uniform(state) * columns)
            if used[j] == 0:
                used[j] = 1
                out[p] = j
                p += 1
        for p in range(indptr[r], indptr[r + 1]):
            used[index[p]] = 0
        for p in range(zeros[r], zeros[r + 1]):
            used[out[p]] = 0
