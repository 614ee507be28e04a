"""Vector arithmetic that several kernels share.

Inner products and weighted sums of factor vectors at the entries of a sparse matrix, and sigmoids of many scores.

Shapes: indptr int64[rows + 1] and index int32[n], a sparse matrix; U float32[rows, d], V float32[columns, d].
"""

from __future__ import annotations

import numpy as np

from .threads import inline, kernel

CACHE = 4_000_000  # bytes of vectors and weights that `weighted_sums` works on at a time
_LOG2E = np.float32(1.4426950408889634)
_HALF = np.float32(0.5)
_ONE = np.float32(1)
# Taylor coefficients of 2^f for |f| <= 1/2.
_C1, _C2, _C3 = np.float32(0.6931471805599453), np.float32(0.2402265069591007), np.float32(0.05550410866482158)
_C4, _C5, _C6 = np.float32(0.009618129107628477), np.float32(0.0013333558146428441), np.float32(0.00015403530393381608)
# Taylor coefficients of exp(1/2 + f) = sqrt(e) exp(f).
_E0 = np.float32(1.6487212707001282)
_E2, _E3, _E4 = np.float32(0.8243606353500641), np.float32(0.2747868784500214), np.float32(0.06869671961250534)
_E5, _E6, _E7 = np.float32(0.01373934392250107), np.float32(0.002289890653750178), np.float32(0.0003271272362500254)


@inline
def dot(x: np.ndarray, y: np.ndarray) -> float:
    """Inner product in single precision."""
    total = np.float32(0)
    for f in range(x.size):
        total += x[f] * y[f]
    return total  # type: ignore[return-value]


@inline
def longest_row(start: int, stop: int, indptr: np.ndarray) -> int:
    """The largest number of entries of the rows start..stop."""
    longest = 0
    for r in range(start, stop):
        longest = max(longest, indptr[r + 1] - indptr[r])
    return longest


@inline
def inner_products(
    start: int, stop: int, indptr: np.ndarray, index: np.ndarray, U: np.ndarray, V: np.ndarray, out: np.ndarray
) -> None:
    """out float32[n] = u_i . v_j for each entry (i, j); four entries at a time, so that each load of u serves four."""
    d = U.shape[1]
    for i in range(start, stop):
        p = indptr[i]
        z = indptr[i + 1]
        while p + 4 <= z:
            a = np.float32(0)
            b = np.float32(0)
            c = np.float32(0)
            e = np.float32(0)
            j0 = index[p]
            j1 = index[p + 1]
            j2 = index[p + 2]
            j3 = index[p + 3]
            for f in range(d):
                x = U[i, f]
                a += V[j0, f] * x
                b += V[j1, f] * x
                c += V[j2, f] * x
                e += V[j3, f] * x
            out[p] = a
            out[p + 1] = b
            out[p + 2] = c
            out[p + 3] = e
            p += 4
        while p < z:
            a = np.float32(0)
            j0 = index[p]
            for f in range(d):
                a += V[j0, f] * U[i, f]
            out[p] = a
            p += 1


@kernel
def weighted_sums(
    start: int,
    stop: int,
    indptr: np.ndarray,
    owner: np.ndarray,
    place: np.ndarray,
    weight: np.ndarray,
    U: np.ndarray,
    reg: float,
    A: np.ndarray,
    out: np.ndarray,
) -> None:
    """out_j = reg a_j + sum over the entries of column j of weight * u_owner.

    indptr int64[columns + 1] groups the entries by column; owner int32[n] is the row of each entry, increasing within
    a column; place int64[n] is the position of its weight, float32[n]. Threads work on different columns, so no two
    write to the same row of `out`. Rows of U are visited in blocks whose vectors and weights fit into the cache:
    the owners of a column are far apart in memory.
    """
    d = U.shape[1]
    users = U.shape[0]
    block = max(256, CACHE // (4 * (d + place.size // max(1, users))))
    at = np.empty(stop - start, np.int64)
    for j in range(start, stop):
        at[j - start] = indptr[j]
        for f in range(d):
            out[j, f] = reg * A[j, f]
    for first in range(0, users, block):
        end = first + block
        for j in range(start, stop):
            p = at[j - start]
            z = indptr[j + 1]
            while p + 4 <= z and owner[p + 3] < end:
                a = weight[place[p]]
                b = weight[place[p + 1]]
                c = weight[place[p + 2]]
                e = weight[place[p + 3]]
                i0 = owner[p]
                i1 = owner[p + 1]
                i2 = owner[p + 2]
                i3 = owner[p + 3]
                for f in range(d):
                    out[j, f] += a * U[i0, f] + b * U[i1, f] + c * U[i2, f] + e * U[i3, f]
                p += 4
            while p < z and owner[p] < end:
                a = weight[place[p]]
                i0 = owner[p]
                for f in range(d):
                    out[j, f] += a * U[i0, f]
                p += 1
            at[j - start] = p


@inline
def weighted_sum(n: int, rows: np.ndarray, weight: np.ndarray, reg: float, x: np.ndarray, out: np.ndarray) -> None:
    """out = reg x + sum_p weight_p rows_p over the first n rows, four at a time."""
    d = x.size
    for f in range(d):
        out[f] = reg * x[f]
    p = 0
    while p + 4 <= n:
        a = weight[p]
        b = weight[p + 1]
        c = weight[p + 2]
        e = weight[p + 3]
        for f in range(d):
            out[f] += a * rows[p, f] + b * rows[p + 1, f] + c * rows[p + 2, f] + e * rows[p + 3, f]
        p += 4
    while p < n:
        a = weight[p]
        for f in range(d):
            out[f] += a * rows[p, f]
        p += 1


@inline
def sigmoids(n: int, score: np.ndarray, bits: np.ndarray, power: np.ndarray, h: np.ndarray, growth: np.ndarray) -> None:
    """h = sigmoid(score) and growth = exp(h), float32[n]; bits int32[n] and power, its view as float32, are scratch.

    One call of the math library per entry would cost more than the rest of a listwise loss, so both exponentials are
    polynomials that the compiler vectorises, accurate to about 1e-7.
    """
    for t in range(n):
        # exp(-x) = 2^k 2^f; beyond 87 the sigmoid is 0 or 1 in float32, and a NaN must remain a NaN.
        y = -_LOG2E * min(max(score[t], np.float32(-87)), np.float32(87))
        whole = np.floor(y + _HALF)
        f = y - whole
        bits[t] = (np.int32(whole) + np.int32(127)) << np.int32(23)
        h[t] = _ONE + f * (_C1 + f * (_C2 + f * (_C3 + f * (_C4 + f * (_C5 + f * _C6)))))
    for t in range(n):
        s = _ONE / (_ONE + h[t] * power[t])
        f = s - _HALF
        h[t] = s
        growth[t] = _E0 + f * (_E0 + f * (_E2 + f * (_E3 + f * (_E4 + f * (_E5 + f * (_E6 + f * _E7))))))


@inline
def insertion_point(values: np.ndarray, low: int, high: int, x: float) -> int:
    """The first position in low..high, where `values` rises, whose value is at least x; high if there is none."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low
