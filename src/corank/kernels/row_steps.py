"""One Newton step on each row of a factor matrix, with the other side held fixed.

For a loss of scores x.y with gradient g_p and curvature at most c_p >= 0 at entry p, the step of row x is

    -(reg I + sum_p c_p y_p y_p')^-1 (reg x + sum_p g_p y_p),

found by a few steps of conjugate gradient that never form the matrix. Rows are treated independently: for users, whose
lists are their own, that is exact; for items it replaces the Hessian by an upper bound, as the curvatures of the
entries do. The change of the scores comes along with the step. Cost: n d (2 + 2 cg_steps) multiply-adds for n entries
of d coordinates.

Shapes: indptr int64[R + 1]; other int32[n], row of Y of each entry; place int64[n], position of the entry in gradient,
curvature and score (float32[n]); Y float32[m, d]; X float32[R, d].
"""

from __future__ import annotations

import numpy as np

from .threads import inline, kernel
from .vectors import dot, longest_row


@inline
def _sum_rows(first: int, n: int, other: np.ndarray, weight: np.ndarray, Y: np.ndarray, out: np.ndarray) -> None:
    """out += sum_p weight_p y_p over n entries from `first` on, four at a time."""
    d = out.size
    p = 0
    while p + 4 <= n:
        a, b, c, e = weight[p], weight[p + 1], weight[p + 2], weight[p + 3]
        j, k, i, m = other[first + p], other[first + p + 1], other[first + p + 2], other[first + p + 3]
        for f in range(d):
            out[f] += (a * Y[j, f] + b * Y[k, f]) + (c * Y[i, f] + e * Y[m, f])
        p += 4
    while p < n:
        a = weight[p]
        j = other[first + p]
        for f in range(d):
            out[f] += a * Y[j, f]
        p += 1


@inline
def _hessian_product(
    first: int,
    n: int,
    other: np.ndarray,
    curvature: np.ndarray,
    Y: np.ndarray,
    direction: np.ndarray,
    along: np.ndarray,
    out: np.ndarray,
) -> None:
    """along_p = y_p . direction, and out += sum_p curvature_p along_p y_p, in one pass over the rows of Y."""
    d = direction.size
    p = 0
    while p + 4 <= n:
        j, k, i, m = other[first + p], other[first + p + 1], other[first + p + 2], other[first + p + 3]
        a = np.float32(0)
        b = np.float32(0)
        c = np.float32(0)
        e = np.float32(0)
        for f in range(d):
            x = direction[f]
            a += x * Y[j, f]
            b += x * Y[k, f]
            c += x * Y[i, f]
            e += x * Y[m, f]
        along[p], along[p + 1], along[p + 2], along[p + 3] = a, b, c, e
        a *= curvature[p]
        b *= curvature[p + 1]
        c *= curvature[p + 2]
        e *= curvature[p + 3]
        for f in range(d):
            out[f] += (a * Y[j, f] + b * Y[k, f]) + (c * Y[i, f] + e * Y[m, f])
        p += 4
    while p < n:
        j = other[first + p]
        a = np.float32(0)
        for f in range(d):
            a += direction[f] * Y[j, f]
        along[p] = a
        a *= curvature[p]
        for f in range(d):
            out[f] += a * Y[j, f]
        p += 1


@kernel
def row_steps(
    start: int,
    stop: int,
    indptr: np.ndarray,
    other: np.ndarray,
    place: np.ndarray,
    gradient: np.ndarray,
    curvature: np.ndarray,
    Y: np.ndarray,
    reg: float,
    cg_steps: int,
    scale: float,
    X: np.ndarray,
    score: np.ndarray,
) -> None:
    """Add `scale` times the Newton step to each row, and update the scores of its entries unless `score` is empty.

    At most `cg_steps` steps of conjugate gradient; with 0 of them the step is minus the gradient.
    """
    d = X.shape[1]
    longest = longest_row(start, stop, indptr)
    weight = np.empty(longest, np.float32)
    bound = np.empty(longest, np.float32)
    along = np.empty(longest, np.float32)
    shift = np.empty(longest, np.float32)
    step = np.empty(d, np.float32)
    direction = np.empty(d, np.float32)
    residual = np.empty(d, np.float32)
    image = np.empty(d, np.float32)
    for r in range(start, stop):
        first = indptr[r]
        n = indptr[r + 1] - first
        for p in range(n):
            weight[p] = -gradient[place[first + p]]
            bound[p] = curvature[place[first + p]]
            shift[p] = 0
        for f in range(d):
            residual[f] = -reg * X[r, f]
        _sum_rows(first, n, other, weight, Y, residual)
        for f in range(d):
            direction[f] = residual[f]
            step[f] = 0
        norm = dot(residual, residual)
        goal = np.float32(1e-6) * norm
        for _ in range(max(cg_steps, 1)):
            if not norm > 1e-30:
                break
            for f in range(d):
                image[f] = reg * direction[f]
            _hessian_product(first, n, other, bound, Y, direction, along, image)
            step_size = np.float32(1)
            if cg_steps > 0:
                product = dot(direction, image)
                if not product > 1e-30:
                    break
                step_size = norm / product
            for f in range(d):
                step[f] += step_size * direction[f]
                residual[f] -= step_size * image[f]
            new_norm = dot(residual, residual)
            for p in range(n):
                shift[p] += step_size * along[p]
            if new_norm < goal:
                break
            beta = new_norm / norm
            norm = new_norm
            for f in range(d):
                direction[f] = residual[f] + beta * direction[f]
        for f in range(d):
            X[r, f] += scale * step[f]
        if score.size > 0:
            for p in range(n):
                score[place[first + p]] += scale * shift[p]
