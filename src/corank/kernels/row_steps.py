"""One Newton step on each row of a factor matrix, the other side staying as it is.

For a loss of scores x.y that has the slope s_p and at most the curvature c_p >= 0 at entry p, the step of row x is

    -(reg I + sum_p c_p y_p y_p')^-1 (reg x + sum_p s_p y_p),

by a few steps of conjugate gradient that never form the matrix. Rows do not see each other: for users that is exact
where a list is one user's, for items it is, like the entries' curvatures, an upper bound of the Hessian. What the step
does to the scores comes along with it. Cost: n d (2 + 2 steps) multiply-adds for n entries of d coordinates.

Shapes: indptr int64[R + 1]; other int32[n] row of Y of each entry; place int64[n] where the entry's slope, curve and
moved (float32[n]) stand; Y float32[m, d]; X, step float32[R, d].
"""

from __future__ import annotations

import numpy as np

from .threads import kernel


@kernel
def _sum_rows(first: int, n: int, other: np.ndarray, weight: np.ndarray, Y: np.ndarray, out: np.ndarray) -> None:
    """out += sum_p weight_p y_p over n entries from `first` on, four of them at a time."""
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


@kernel
def _bend(
    first: int,
    n: int,
    other: np.ndarray,
    curve: np.ndarray,
    Y: np.ndarray,
    way: np.ndarray,
    along: np.ndarray,
    out: np.ndarray,
) -> None:
    """along_p = y_p . way, and out += sum_p curve_p along_p y_p, while the rows of Y are at hand."""
    d = way.size
    p = 0
    while p + 4 <= n:
        j, k, i, m = other[first + p], other[first + p + 1], other[first + p + 2], other[first + p + 3]
        a = np.float32(0)
        b = np.float32(0)
        c = np.float32(0)
        e = np.float32(0)
        for f in range(d):
            x = way[f]
            a += x * Y[j, f]
            b += x * Y[k, f]
            c += x * Y[i, f]
            e += x * Y[m, f]
        along[p], along[p + 1], along[p + 2], along[p + 3] = a, b, c, e
        a *= curve[p]
        b *= curve[p + 1]
        c *= curve[p + 2]
        e *= curve[p + 3]
        for f in range(d):
            out[f] += (a * Y[j, f] + b * Y[k, f]) + (c * Y[i, f] + e * Y[m, f])
        p += 4
    while p < n:
        j = other[first + p]
        a = np.float32(0)
        for f in range(d):
            a += way[f] * Y[j, f]
        along[p] = a
        a *= curve[p]
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
    slope: np.ndarray,
    curve: np.ndarray,
    Y: np.ndarray,
    reg: float,
    steps: int,
    share: float,
    X: np.ndarray,
    score: np.ndarray,
) -> None:
    """Add a share of the Newton step to each row, and what it does to the score of each entry.

    At most `steps` steps of conjugate gradient; 0 of them: minus the gradient is the step.
    """
    d = X.shape[1]
    longest = 0
    for r in range(start, stop):
        longest = max(longest, indptr[r + 1] - indptr[r])
    weight = np.empty(longest, np.float32)
    bent = np.empty(longest, np.float32)
    along = np.empty(longest, np.float32)
    shift = np.empty(longest, np.float32)
    step = np.empty(d, np.float32)
    way = np.empty(d, np.float32)
    left = np.empty(d, np.float32)
    image = np.empty(d, np.float32)
    for r in range(start, stop):
        first = indptr[r]
        n = indptr[r + 1] - first
        for p in range(n):
            weight[p] = -slope[place[first + p]]
            bent[p] = curve[place[first + p]]
            shift[p] = 0
        for f in range(d):
            left[f] = -reg * X[r, f]
        _sum_rows(first, n, other, weight, Y, left)
        now = np.float32(0)
        for f in range(d):
            now += left[f] * left[f]
            way[f] = left[f]
            step[f] = 0
        goal = np.float32(1e-6) * now
        for _ in range(max(steps, 1)):
            if not now > 1e-30:
                break
            for f in range(d):
                image[f] = reg * way[f]
            _bend(first, n, other, bent, Y, way, along, image)
            length = np.float32(1)
            if steps > 0:
                bow = np.float32(0)
                for f in range(d):
                    bow += way[f] * image[f]
                if not bow > 1e-30:
                    break
                length = now / bow
            fresh = np.float32(0)
            for f in range(d):
                step[f] += length * way[f]
                left[f] -= length * image[f]
                fresh += left[f] * left[f]
            for p in range(n):
                shift[p] += length * along[p]
            if fresh < goal:
                break
            turn = fresh / now
            now = fresh
            for f in range(d):
                way[f] = left[f] + turn * way[f]
        for f in range(d):
            X[r, f] += share * step[f]
        if score.size > 0:
            for p in range(n):
                score[place[first + p]] += share * shift[p]
