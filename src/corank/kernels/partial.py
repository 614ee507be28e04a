"""Half-steps of items whose users are divided among workers: each worker adds up what its own users contribute.

Row r is an item, and its entries are those of its users that this worker has. With z_p the vector of the user of entry
p (followed by a 1 where there are biases), w_p and c_p weights, the kernels compute for all items

    products    sum_p c_p (z_p . x_r) z_p            the share of a matrix-vector product A x, for conjugate gradient
    sums        sum_p w_p z_p                        the share of a right-hand side
    equations   sum_p c_p z_p z_p', sum_p w_p z_p    the share of the normal equations, for exact solutions

The shares of all workers are added up elsewhere; `solutions` then solves the equations. A product is one vector per
item, the equations are size / 2 of them: methods with conjugate gradient send less.

Arrays: indptr int64[rows + 1], index int32[n], c, w float32[n]; U float32[users, d]; X, out float32[rows, d].
"""

from __future__ import annotations

import numpy as np

from .als import TINY
from .normal import ROWS, add_outer, rounded, solve
from .threads import inline, kernel
from .wmf import gather_rows, sum_rows, times_rows

CHUNK = 256  # vectors that are copied side by side at a time


@kernel
def products(
    start: int,
    stop: int,
    indptr: np.ndarray,
    index: np.ndarray,
    c: np.ndarray,
    U: np.ndarray,
    X: np.ndarray,
    out: np.ndarray,
) -> None:
    """out_r = sum_p c_p (u_p . x_r) u_p."""
    d = U.shape[1]
    rows = np.empty((CHUNK, d), np.float32)
    for r in range(start, stop):
        for f in range(d):
            out[r, f] = 0
        for lo in range(indptr[r], indptr[r + 1], CHUNK):
            hi = min(lo + CHUNK, indptr[r + 1])
            gather_rows(lo, hi, index, U, rows)
            times_rows(hi - lo, rows, c[lo:hi], X[r], out[r])


@kernel
def sums(
    start: int, stop: int, indptr: np.ndarray, index: np.ndarray, w: np.ndarray, U: np.ndarray, out: np.ndarray
) -> None:
    """out_r = sum_p w_p u_p."""
    d = U.shape[1]
    rows = np.empty((CHUNK, d), np.float32)
    part = np.empty(d, np.float32)
    for r in range(start, stop):
        for f in range(d):
            out[r, f] = 0
        for lo in range(indptr[r], indptr[r + 1], CHUNK):
            hi = min(lo + CHUNK, indptr[r + 1])
            gather_rows(lo, hi, index, U, rows)
            sum_rows(hi - lo, rows, w[lo:hi], part)
            for f in range(d):
                out[r, f] += part[f]


@inline
def packed_size(size: int) -> int:
    """Numbers of a packed system of `size` unknowns: the lower triangle row by row, then the right-hand side."""
    return size * (size + 1) // 2 + size


@kernel
def equations(
    start: int,
    stop: int,
    first: int,
    indptr: np.ndarray,
    index: np.ndarray,
    c: np.ndarray,
    w: np.ndarray,
    U: np.ndarray,
    biases: int,
    out: np.ndarray,
) -> None:
    """The packed equations of the rows first + start .. first + stop: out float32[rows, packed_size(d + biases)].

    biases : 1 if the vector of each user is followed by a 1, else 0.
    """
    d = U.shape[1]
    size = d + biases
    width = rounded(size)
    A = np.empty((width, width), np.float32)
    y = np.empty(width, np.float32)
    rows = np.zeros((ROWS, width), np.float32)
    scaled = np.zeros((ROWS, width), np.float32)
    for r in range(start, stop):
        A[:] = 0
        y[:] = 0
        last = indptr[first + r + 1]
        for p in range(indptr[first + r], last, ROWS):
            for q in range(ROWS):
                inside = p + q < last
                at = p + q if inside else p  # beyond the last entry, one that counts 0 times
                j = index[at]
                weight = c[at] if inside else np.float32(0)
                target = w[at] if inside else np.float32(0)
                for t in range(d):
                    rows[q, t] = U[j, t]
                    scaled[q, t] = weight * U[j, t]
                if biases:
                    rows[q, d] = 1
                    scaled[q, d] = weight
                for t in range(size):
                    y[t] += target * rows[q, t]
            add_outer(scaled, rows, size, A)
        k = 0
        for i in range(size):
            for t in range(i + 1):
                out[r, k] = A[i, t]
                k += 1
        for i in range(size):
            out[r, k + i] = y[i]


@kernel
def solutions(
    start: int,
    stop: int,
    packed: np.ndarray,
    gram: np.ndarray,
    reg: np.ndarray,
    last: np.ndarray,
    weight: np.ndarray,
    X: np.ndarray,
    loss: np.ndarray,
) -> None:
    """Solve packed systems, to whose matrix gram, float32[size, size], and the regularisation are added.

    reg, last float32[rows] : regularisation of all unknowns but the last, and of the last one.
    weight float64[rows] : sum of the weights of the row's entries; 0 where there are none, and the solution is 0.
    X float32[rows, size] : the solutions. loss float64[rows] : weight - 2 x.b + x'Ax.
    """
    size = X.shape[1]
    width = rounded(size)
    A = np.zeros((width, width), np.float32)
    y = np.zeros(width, np.float32)
    floor = np.empty(size, np.float32)
    for r in range(start, stop):
        loss[r] = 0.0
        X[r] = 0
        if weight[r] == 0.0:
            continue
        k = 0
        for i in range(size):
            for t in range(i + 1):
                A[i, t] = packed[r, k] + gram[i, t]
                k += 1
            A[i, i] += reg[r] if i < size - 1 else last[r]
        for i in range(size):
            y[i] = packed[r, k + i]
        solve(A, size, floor, y)
        for i in range(size):
            X[r, i] = y[i] if abs(y[i]) > TINY else np.float32(0)
        total = weight[r]
        k = 0
        for i in range(size):
            x = np.float64(X[r, i])
            part = 0.0
            for t in range(i):
                part += np.float64(packed[r, k + t] + gram[i, t]) * X[r, t]
            ridge = reg[r] if i < size - 1 else last[r]
            if x != 0.0:  # where a bias is kept at 0, its regularisation is infinite
                total += x * (2.0 * part + (np.float64(packed[r, k + i] + gram[i, i]) + ridge) * x)
            k += i + 1
        for i in range(size):
            total -= 2.0 * np.float64(X[r, i]) * packed[r, k + i]
        loss[r] = total
