"""Two least-squares problems with the same unknowns: the half-step of a side that explains ratings and edges.

Objective of row r, with x its vector and b its bias, entries p as in `als`, and edges q, each with a target g_q (0 for
a sampled negative) and the vector w_q of the other end:

    sum_p (y_p - mean - c_p - b - x.v_p)^2 + mu sum_q (g_q - x.w_q)^2 + reg_r |x|^2 + reg_bias b^2

Cost per row with n entries and m edges: (n + m) d^2 / 2 + d^3 / 6 multiply-adds.

Arrays: indptr, index, value of the entries and of the edges: int64[rows + 1], int32, float32; reg float32[rows]; V
float32[., d] and c float32[.] of the other side; W float32[., d] of the other ends of the edges; X float32[rows, d] and
bias float32[rows] are overwritten.
"""

from __future__ import annotations

import numpy as np

from .als import settle
from .normal import ONE, ROWS, add_outer, add_scaled, gather, rounded
from .random import seek, uniform
from .threads import kernel

ZERO = np.float32(0)


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
    edge_indptr: np.ndarray,
    edge_index: np.ndarray,
    edge_value: np.ndarray,
    mu: float,
    W: np.ndarray,
    V: np.ndarray,
    c: np.ndarray,
    X: np.ndarray,
    bias: np.ndarray,
) -> None:
    """The exact minimum of each row start..stop; a row without entries and edges becomes 0."""
    d = V.shape[1]
    size = d + 1
    width = rounded(size)
    A = np.empty((width, width), np.float32)
    y = np.empty(width, np.float32)
    floor = np.empty(size, np.float32)
    rows = np.zeros((ROWS, width), np.float32)
    target = np.zeros(ROWS, np.float32)
    root = np.float32(np.sqrt(mu))  # an edge is an entry whose vector and target are scaled by this
    for r in range(start, stop):
        A[:] = 0
        y[:] = 0
        p, last = indptr[r], indptr[r + 1]
        e, last_edge = edge_indptr[r], edge_indptr[r + 1]
        empty = p == last and e == last_edge
        while p < last or e < last_edge:
            n = gather(0, index, p, last, V, ONE, ONE, rows)
            for q in range(n):
                target[q] = value[p + q] - mean - c[index[p + q]]
            both = gather(n, edge_index, e, last_edge, W, root, ZERO, rows)
            for q in range(n, both):
                target[q] = root * edge_value[e + q - n]
            target[both:] = 0
            add_outer(rows, rows, size, A)
            add_scaled(rows, target, y)
            p += n
            e += both - n
        if empty:
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
    """out[zeros[r] : zeros[r + 1]] = distinct columns that row r does not have, drawn uniformly.

    zeros int64[rows + 1]; a row should have at least twice as many free columns as it draws, or rejection takes long.
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
