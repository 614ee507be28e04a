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
from .normal import ROWS, add_outer, add_scaled, rounded, solve
from .threads import kernel


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
    """out_r = sum_p c_p (u_p . x_r) u_p, four entries at a time: their vectors are read once, into the L1 cache."""
    d = U.shape[1]
    total = np.empty(d, np.float32)
    x = np.empty(d, np.float32)
    for r in range(start, stop):
        for f in range(d):
            total[f] = 0
            x[f] = X[r, f]
        p = indptr[r]
        last = indptr[r + 1]
        while p + 4 <= last:
            i, j, k, m = index[p], index[p + 1], index[p + 2], index[p + 3]
            a = np.float32(0)
            b = np.float32(0)
            e = np.float32(0)
            g = np.float32(0)
            for f in range(d):
                a += U[i, f] * x[f]
                b += U[j, f] * x[f]
                e += U[k, f] * x[f]
                g += U[m, f] * x[f]
            a *= c[p]
            b *= c[p + 1]
            e *= c[p + 2]
            g *= c[p + 3]
            for f in range(d):
                total[f] += (a * U[i, f] + b * U[j, f]) + (e * U[k, f] + g * U[m, f])
            p += 4
        while p < last:
            i = index[p]
            a = np.float32(0)
            for f in range(d):
                a += U[i, f] * x[f]
            a *= c[p]
            for f in range(d):
                total[f] += a * U[i, f]
            p += 1
        for f in range(d):
            out[r, f] = total[f]


@kernel
def sums(
    start: int, stop: int, indptr: np.ndarray, index: np.ndarray, w: np.ndarray, U: np.ndarray, out: np.ndarray
) -> None:
    """out_r = sum_p w_p u_p."""
    d = U.shape[1]
    total = np.empty(d, np.float32)
    for r in range(start, stop):
        for f in range(d):
            total[f] = 0
        p = indptr[r]
        last = indptr[r + 1]
        while p + 4 <= last:
            i, j, k, m = index[p], index[p + 1], index[p + 2], index[p + 3]
            a, b, e, g = w[p], w[p + 1], w[p + 2], w[p + 3]
            for f in range(d):
                total[f] += (a * U[i, f] + b * U[j, f]) + (e * U[k, f] + g * U[m, f])
            p += 4
        while p < last:
            i = index[p]
            a = w[p]
            for f in range(d):
                total[f] += a * U[i, f]
            p += 1
        for f in range(d):
            out[r, f] = total[f]


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

    c : empty where all its weights are 1.
    biases : 1 if the vector of each user is followed by a 1, else 0.
    """
    d = U.shape[1]
    size = d + biases
    width = rounded(size)
    A = np.empty((width, width), np.float32)
    y = np.empty(width, np.float32)
    rows = np.zeros((ROWS, width), np.float32)
    scaled = np.zeros((ROWS, width), np.float32)
    target = np.zeros(ROWS, np.float32)
    unit = c.size == 0
    for r in range(start, stop):
        A[:] = 0
        y[:] = 0
        last = indptr[first + r + 1]
        for p in range(indptr[first + r], last, ROWS):
            n = min(ROWS, last - p)
            target[n:] = 0
            for q in range(n):
                j = index[p + q]
                target[q] = w[p + q]
                for t in range(d):
                    rows[q, t] = U[j, t]
                if biases:
                    rows[q, d] = 1
            for q in range(n, ROWS):
                for t in range(size):
                    rows[q, t] = 0
            add_scaled(rows, target, y)
            if unit:
                add_outer(rows, rows, size, A)
                continue
            for q in range(ROWS):
                weight = c[p + q] if q < n else np.float32(0)
                for t in range(size):
                    scaled[q, t] = weight * rows[q, t]
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
