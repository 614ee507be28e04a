"""Weighted least squares, one row at a time, with a weight on every zero, in time linear in the non-zeros.

Objective of row r, with x its vector, v_j the fixed vectors of the other side, w_p the weight of stored entry p and rho
the weight of everything that is not stored (Hu, Koren and Volinsky 2008; the dissertation's Weighted-MF):

    sum_p w_p (1 - x.v_p)^2 + rho sum_{j not stored} (x.v_j)^2 + reg_r |x|^2
  = sum_p [w_p (1 - s_p)^2 - rho s_p^2] + x'(rho V'V) x + reg_r |x|^2,        s_p = x.v_p

so the normal equations are A = rho V'V + reg_r I + sum_p (w_p - rho) v_p v_p', b = sum_p w_p v_p, and V'V is computed
once per half-step.

Arrays: indptr int64[rows + 1], index int32[n], weight float32[n]; reg float32[rows]; gram float32[d, d] = rho V'V;
V float32[m, d]; X float32[rows, d], read as the start and overwritten; loss float64[rows], the row's objective at its
new vector.
Cost per row with n entries: conjugate gradient 2 (steps + 1) n d, blocks n d (block + 2) + d block^2 / 3.
"""

from __future__ import annotations

import numpy as np

from .normal import ROWS, add_outer, rounded, solve
from .threads import inline, kernel
from .vectors import dot


@inline
def _gather(lo: int, hi: int, index: np.ndarray, V: np.ndarray, rows: np.ndarray) -> None:
    """Copy the vectors of the entries of one row side by side: they are read several times, now from the L1 cache."""
    d = V.shape[1]
    for p in range(lo, hi):
        j = index[p]
        for f in range(d):
            rows[p - lo, f] = V[j, f]


@inline
def _times_rows(n: int, rows: np.ndarray, scale: np.ndarray, x: np.ndarray, out: np.ndarray) -> None:
    """out += sum_p scale_p (rows_p . x) rows_p, four rows at a time so that each load of x and out serves four."""
    d = x.size
    p = 0
    while p + 4 <= n:
        a = np.float32(0)
        b = np.float32(0)
        c = np.float32(0)
        e = np.float32(0)
        for f in range(d):
            xf = x[f]
            a += rows[p, f] * xf
            b += rows[p + 1, f] * xf
            c += rows[p + 2, f] * xf
            e += rows[p + 3, f] * xf
        a *= scale[p]
        b *= scale[p + 1]
        c *= scale[p + 2]
        e *= scale[p + 3]
        for f in range(d):
            out[f] += a * rows[p, f] + b * rows[p + 1, f] + c * rows[p + 2, f] + e * rows[p + 3, f]
        p += 4
    while p < n:
        a = np.float32(0)
        for f in range(d):
            a += rows[p, f] * x[f]
        a *= scale[p]
        for f in range(d):
            out[f] += a * rows[p, f]
        p += 1


@inline
def _sum_rows(n: int, rows: np.ndarray, scale: np.ndarray, out: np.ndarray) -> None:
    """out = sum_p scale_p rows_p."""
    d = out.size
    for f in range(d):
        out[f] = 0
    p = 0
    while p + 4 <= n:
        for f in range(d):
            out[f] += (
                scale[p] * rows[p, f]
                + scale[p + 1] * rows[p + 1, f]
                + scale[p + 2] * rows[p + 2, f]
                + scale[p + 3] * rows[p + 3, f]
            )
        p += 4
    while p < n:
        for f in range(d):
            out[f] += scale[p] * rows[p, f]
        p += 1


@inline
def apply(gram: np.ndarray, reg: float, x: np.ndarray, out: np.ndarray) -> None:
    """out = gram x + reg x, by rows of the symmetric gram, so that every inner loop runs over contiguous memory."""
    d = x.size
    for f in range(d):
        out[f] = reg * x[f]
    f = 0
    while f + 4 <= d:
        for g in range(d):
            out[g] += (
                gram[f, g] * x[f] + gram[f + 1, g] * x[f + 1] + gram[f + 2, g] * x[f + 2] + gram[f + 3, g] * x[f + 3]
            )
        f += 4
    while f < d:
        for g in range(d):
            out[g] += gram[f, g] * x[f]
        f += 1


@kernel
def cg(
    start: int,
    stop: int,
    indptr: np.ndarray,
    index: np.ndarray,
    weight: np.ndarray,
    rho: float,
    reg: np.ndarray,
    gram: np.ndarray,
    V: np.ndarray,
    steps: int,
    X: np.ndarray,
    loss: np.ndarray,
) -> None:
    """`steps` conjugate-gradient steps per row, from its present vector (Takács, Pilászy and Tikk 2011)."""
    d = V.shape[1]
    longest = 0
    for r in range(start, stop):
        longest = max(longest, indptr[r + 1] - indptr[r])
    rows = np.empty((longest, d), np.float32)
    scale = np.empty(longest, np.float32)
    rhs = np.empty(d, np.float32)
    residual = np.empty(d, np.float32)
    direction = np.empty(d, np.float32)
    image = np.empty(d, np.float32)
    for r in range(start, stop):
        lo = indptr[r]
        n = indptr[r + 1] - lo
        x = X[r]
        if n == 0:
            for f in range(d):
                x[f] = 0
            loss[r] = 0.0
            continue
        _gather(lo, lo + n, index, V, rows)
        total = 0.0
        for p in range(n):
            total += weight[lo + p]
        for p in range(n):
            scale[p] = weight[lo + p]
        _sum_rows(n, rows, scale, rhs)
        for p in range(n):
            scale[p] -= rho
        apply(gram, reg[r], x, image)
        _times_rows(n, rows, scale, x, image)
        for f in range(d):
            residual[f] = rhs[f] - image[f]
            direction[f] = residual[f]
        norm = dot(residual, residual)
        for _ in range(steps):
            if norm < 1e-20:
                break
            apply(gram, reg[r], direction, image)
            _times_rows(n, rows, scale, direction, image)
            step = norm / dot(direction, image)
            for f in range(d):
                x[f] += step * direction[f]
                residual[f] -= step * image[f]
            new_norm = dot(residual, residual)
            beta = new_norm / norm
            for f in range(d):
                direction[f] = residual[f] + beta * direction[f]
            norm = new_norm
        # x'Ax = x'(b - residual), so the objective costs two inner products: sum w - 2 x'b + x'Ax.
        loss[r] = total - dot(x, rhs) - dot(x, residual)


@kernel
def blocks(
    start: int,
    stop: int,
    indptr: np.ndarray,
    index: np.ndarray,
    weight: np.ndarray,
    rho: float,
    reg: np.ndarray,
    gram: np.ndarray,
    V: np.ndarray,
    block: int,
    X: np.ndarray,
    loss: np.ndarray,
) -> None:
    """A Newton step on `block` coordinates at a time, exact within each block (iALS++, Rendle et al. 2021).

    With block = d it solves the row exactly.
    """
    d = V.shape[1]
    block = min(block, d)
    longest = 0
    for r in range(start, stop):
        longest = max(longest, indptr[r + 1] - indptr[r])
    rows = np.empty((longest, d), np.float32)
    scale = np.empty(longest, np.float32)
    score = np.empty(longest, np.float32)
    A = np.empty((rounded(block), rounded(block)), np.float32)
    step = np.empty(rounded(block), np.float32)
    floor = np.empty(block, np.float32)
    some = np.zeros((ROWS, rounded(block)), np.float32)
    scaled = np.zeros((ROWS, rounded(block)), np.float32)
    image = np.empty(d, np.float32)
    for r in range(start, stop):
        first = indptr[r]
        n = indptr[r + 1] - first
        x = X[r]
        if n == 0:
            for f in range(d):
                x[f] = 0
            loss[r] = 0.0
            continue
        _gather(first, first + n, index, V, rows)
        for p in range(n):
            scale[p] = weight[first + p] - rho
            total = np.float32(0)
            for f in range(d):
                total += rows[p, f] * x[f]
            score[p] = total
        for lo in range(0, d, block):
            hi = min(lo + block, d)
            width = hi - lo
            for i in range(width):
                for f in range(i + 1):
                    A[i, f] = gram[lo + i, lo + f]
                A[i, i] += reg[r]
                total = np.float32(0)
                for f in range(d):
                    total += gram[lo + i, f] * x[f]
                step[i] = -total - reg[r] * x[lo + i]
            for p in range(0, n, ROWS):
                for q in range(ROWS):
                    inside = p + q < n
                    extra = scale[p + q] if inside else np.float32(0)
                    error = weight[first + p + q] - extra * score[p + q] if inside else np.float32(0)
                    at = p + q if inside else 0  # beyond the last entry, the first one with weight 0
                    for f in range(width):
                        some[q, f] = rows[at, lo + f]
                        scaled[q, f] = extra * rows[at, lo + f]
                        step[f] += error * rows[at, lo + f]
                add_outer(scaled, some, width, A)
            solve(A, width, floor, step)
            for f in range(width):
                x[lo + f] += step[f]
            for p in range(n):
                total = np.float32(0)
                for f in range(width):
                    total += rows[p, lo + f] * step[f]
                score[p] += total
        apply(gram, reg[r], x, image)
        whole = np.float64(dot(x, image))
        for p in range(n):
            s = np.float64(score[p])
            whole += weight[first + p] * (1.0 - s) ** 2 - rho * s * s
        loss[r] = whole
