"""One least-squares problem over all rows, each with its own normal equations, coupled by a graph.

The system is (N + mu Lap) X = Y: N has one small positive definite matrix per row (see `grmf`, `grwmf`), and Lap is the
Laplacian D - W of a weighted graph over the rows, acting on the first `width` coordinates. It is solved by conjugate
gradient with the exact inverse of the diagonal blocks M_r = N_r + mu D_r I as preconditioner. Rows are independent in
every kernel here, so results do not depend on the number of threads, and a step never raises the objective.

Nodes beyond the rows ("bits": nodes without ratings, with edges to rows only) are eliminated: the minimum of their
vector is the weighted mean of their neighbours.

Arrays: indptr int64[rows + 1], index int32[n], value float32[n], the weights of the edges of each row; X, Y, out
float32[., >= width]; L float32[rows, s (s + 1) / 2], the factor of each M_r, packed row by row; R, Z float32[rows, s];
product, energy float64[rows].
"""

from __future__ import annotations

import numpy as np

from .threads import inline, kernel


@kernel
def sums(
    start: int, stop: int, indptr: np.ndarray, index: np.ndarray, value: np.ndarray, X: np.ndarray, out: np.ndarray
) -> None:
    """out[r] = sum of value_p * X[p's node]; 0 for a row without neighbours."""
    width = out.shape[1]
    total = np.empty(width, np.float32)
    for r in range(start, stop):
        total[:] = 0
        for p in range(indptr[r], indptr[r + 1]):
            w = value[p]
            x = X[index[p]]
            for t in range(width):
                total[t] += w * x[t]
        for t in range(width):
            out[r, t] = total[t]


@kernel
def add_differences(
    start: int,
    stop: int,
    indptr: np.ndarray,
    index: np.ndarray,
    value: np.ndarray,
    scale: float,
    width: int,
    X: np.ndarray,
    Y: np.ndarray,
    out: np.ndarray,
) -> None:
    """out[r] += scale * sum of value_p (X[r] - Y[p's node]): differences, since sums of large equal vectors cancel."""
    total = np.empty(width, np.float32)
    for r in range(start, stop):
        total[:] = 0
        x = X[r]
        for p in range(indptr[r], indptr[r + 1]):
            w = value[p]
            y = Y[index[p]]
            for t in range(width):
                total[t] += w * (x[t] - y[t])
        for t in range(width):
            out[r, t] += np.float32(scale) * total[t]


@kernel
def next_power(
    start: int,
    stop: int,
    indptr: np.ndarray,
    index: np.ndarray,
    value: np.ndarray,
    count: np.ndarray,
    X: np.ndarray,
    old: np.ndarray,
    new: np.ndarray,
) -> None:
    """new[r] = sum of value_p (count_p (X[r] - X[p's node]) + old[p's node]): Laplacian of a power from the one below.

    count float32[rows]: the row sums of the power below.
    """
    width = new.shape[1]
    total = np.empty(width, np.float32)
    for r in range(start, stop):
        total[:] = 0
        x = X[r]
        for p in range(indptr[r], indptr[r + 1]):
            w = value[p]
            j = index[p]
            walks = count[j]
            y = X[j]
            below = old[j]
            for t in range(width):
                total[t] += w * (walks * (x[t] - y[t]) + below[t])
        for t in range(width):
            new[r, t] = total[t]


@kernel
def energies(
    start: int,
    stop: int,
    indptr: np.ndarray,
    index: np.ndarray,
    value: np.ndarray,
    X: np.ndarray,
    Y: np.ndarray,
    energy: np.ndarray,
) -> None:
    """energy[r] = sum of value_p |X[r] - Y[p's node]|^2."""
    width = X.shape[1]
    for r in range(start, stop):
        total = 0.0
        x = X[r]
        for p in range(indptr[r], indptr[r + 1]):
            y = Y[index[p]]
            square = np.float32(0)
            for t in range(width):
                difference = x[t] - y[t]
                square += difference * difference
            total += value[p] * square
        energy[r] = total


@inline
def pack(A: np.ndarray, size: int, row: np.ndarray) -> None:
    """Keep the factor that `normal.solve` leaves in the lower triangle of A."""
    at = 0
    for k in range(size):
        for t in range(k + 1):
            row[at + t] = A[k, t]
        at += k + 1


@kernel
def solve_rows(start: int, stop: int, L: np.ndarray, R: np.ndarray, Z: np.ndarray, product: np.ndarray) -> None:
    """Z[r] = M_r^-1 R[r], product[r] = R[r].Z[r]; M = L'L as in `normal.solve`, the diagonal of L inverted."""
    size = R.shape[1]
    for r in range(start, stop):
        z = Z[r]
        factor = L[r]
        for t in range(size):
            z[t] = R[r, t]
        at = size * (size + 1) // 2
        for k in range(size - 1, -1, -1):
            at -= k + 1
            z[k] *= factor[at + k]
            s = z[k]
            for t in range(k):
                z[t] -= s * factor[at + t]
        at = 0
        for k in range(size):
            total = z[k]
            for t in range(k):
                total -= factor[at + t] * z[t]
            z[k] = total * factor[at + k]
            at += k + 1
        inner = 0.0
        for t in range(size):
            inner += np.float64(R[r, t]) * z[t]
        product[r] = inner
