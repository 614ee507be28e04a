"""Primal-CR++: squared-hinge loss of all comparable pairs of a list in O(n log n), and its first two derivatives.

Objective of one user (dissertation, ch. 3; every unordered pair of different ratings counted once, no factor 1/2):

    sum over pairs with level_j < level_k of max(0, 1 - (m_k - m_j))^2,        m_j = u.v_j

A pair is active when m_k <= m_j + 1, so with the scores sorted each item meets a prefix of the list (partners of higher
level) and a suffix (partners of lower level). Where these windows end depends on the scores alone: they are found once
a half-step and serve the gradient and every Hessian product. Sums by level over a window are differences of running
sums with one lane a level, without a branch in the loop (`_running`).

Arrays: indptr int64[users + 1]; index int32[n] item of each entry; level int32[n], 0-based per user; width int32[users]
number of levels; score float32[n]; order int32[n], positions within the user by rising score; up, down int32[n], ends
of the windows of the item at each sorted place; pairs float32[n], active pairs of each entry; slope float32[n],
d loss / d m; loss float64[users]. Cost: O(n log n + n levels) a list and O(n dim) for the products around it.
"""

from __future__ import annotations

import numpy as np

from .threads import kernel

LANES = 8


@kernel
def _sort(score: np.ndarray, order: np.ndarray) -> None:
    """Order the scores, starting from the order they had last: between half-steps they move little.

    Goes over to a fresh sort when the old order turns out to be of no help.
    """
    n = score.size
    moves = 0
    for q in range(1, n):
        at = order[q]
        key = score[at]
        p = q - 1
        while p >= 0 and score[order[p]] > key:
            order[p + 1] = order[p]
            p -= 1
        order[p + 1] = at
        moves += q - 1 - p
        if moves > 4 * n + 64:
            order[:] = np.argsort(score).astype(np.int32)
            return


@kernel
def _windows(score: np.ndarray, order: np.ndarray, up: np.ndarray, down: np.ndarray) -> None:
    """up[q]: number of places with score <= that of place q plus 1; down[q]: first place with score >= it minus 1."""
    n = score.size
    e = 0
    s = 0
    for q in range(n):
        here = score[order[q]]
        while e < n and score[order[e]] <= here + np.float32(1):
            e += 1
        while score[order[s]] < here - np.float32(1):
            s += 1
        up[q] = e
        down[q] = s


@kernel
def _running(
    b: np.ndarray, level: np.ndarray, order: np.ndarray, lanes: int, above: np.ndarray, below: np.ndarray
) -> None:
    """above[q, mine]: sum of b over the first q sorted places whose level is above l; below[q, mine]: below l."""
    for r in range(lanes):
        above[0, r] = 0
        below[0, r] = 0
    zero = b.dtype.type(0)
    for q in range(b.size):
        at = order[q]
        value = b[at]
        mine = level[at]
        for w in range(0, lanes, LANES):
            for r in range(w, w + LANES):
                above[q + 1, r] = above[q, r] + (value if r < mine else zero)
                below[q + 1, r] = below[q, r] + (value if r > mine else zero)


@kernel
def _prepare(
    score: np.ndarray,
    level: np.ndarray,
    lanes: int,
    order: np.ndarray,
    up: np.ndarray,
    down: np.ndarray,
    pairs: np.ndarray,
    slope: np.ndarray,
    precise: np.ndarray,
    above: np.ndarray,
    below: np.ndarray,
) -> float:
    """Order, windows, slope and active pairs of a list at its scores; returns its loss. The last three: work space."""
    n = score.size
    _sort(score, order)
    _windows(score, order, up, down)
    for p in range(n):
        precise[p] = 1.0
    _running(precise[:n], level, order, lanes, above, below)
    loss = 0.0
    for q in range(n):
        j = order[q]
        mine = level[j]
        m = np.float64(score[j])
        higher = above[up[q], mine]
        lower = below[n, mine] - below[down[q], mine]
        pairs[j] = higher + lower
        slope[j] = higher - lower
        # sum of x^2 over the pairs = half of sum slope.m + half of the slope from the lower end: no squares are summed.
        loss += higher * (m + 1.0) * (m + 1.0) + lower * (m - 1.0) * m
    for p in range(n):
        precise[p] = score[p]
    _running(precise[:n], level, order, lanes, above, below)
    for q in range(n):
        j = order[q]
        mine = level[j]
        m = np.float64(score[j])
        higher = above[up[q], mine]
        lower = below[n, mine] - below[down[q], mine]
        slope[j] = 2.0 * (m * pairs[j] + slope[j] - higher - lower)
        loss -= (m + 1.0) * higher + m * lower
    return loss


@kernel
def _curve(
    b: np.ndarray,
    level: np.ndarray,
    lanes: int,
    order: np.ndarray,
    up: np.ndarray,
    down: np.ndarray,
    pairs: np.ndarray,
    above: np.ndarray,
    below: np.ndarray,
    out: np.ndarray,
) -> None:
    """out[j] = 2 (pairs_j b_j - sum of b over the active partners of j): the Hessian of the loss in m, times b."""
    n = b.size
    _running(b, level, order, lanes, above, below)
    for q in range(n):
        j = order[q]
        mine = level[j]
        out[j] = np.float32(2) * (pairs[j] * b[j] - above[up[q], mine] - below[n, mine] + below[down[q], mine])


@kernel
def _rounded(width: int) -> int:
    return (width + LANES - 1) // LANES * LANES


@kernel
def _longest(start: int, stop: int, indptr: np.ndarray, width: np.ndarray) -> tuple[int, int]:
    n = 0
    lanes = LANES
    for i in range(start, stop):
        n = max(n, indptr[i + 1] - indptr[i])
        lanes = max(lanes, _rounded(width[i]))
    return n, lanes


@kernel
def prepare(
    start: int,
    stop: int,
    indptr: np.ndarray,
    level: np.ndarray,
    width: np.ndarray,
    score: np.ndarray,
    order: np.ndarray,
    up: np.ndarray,
    down: np.ndarray,
    pairs: np.ndarray,
    slope: np.ndarray,
    loss: np.ndarray,
) -> None:
    """`_prepare` for a range of users."""
    n, lanes = _longest(start, stop, indptr, width)
    precise = np.empty(n, np.float64)
    above = np.empty((n + 1, lanes), np.float64)
    below = np.empty((n + 1, lanes), np.float64)
    for i in range(start, stop):
        a = indptr[i]
        z = indptr[i + 1]
        loss[i] = _prepare(
            score[a:z],
            level[a:z],
            _rounded(width[i]),
            order[a:z],
            up[a:z],
            down[a:z],
            pairs[a:z],
            slope[a:z],
            precise,
            above,
            below,
        )


@kernel
def products(
    start: int, stop: int, indptr: np.ndarray, index: np.ndarray, U: np.ndarray, V: np.ndarray, out: np.ndarray
) -> None:
    """out = u_i . v_j of each entry."""
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
def curves(
    start: int,
    stop: int,
    indptr: np.ndarray,
    index: np.ndarray,
    level: np.ndarray,
    width: np.ndarray,
    order: np.ndarray,
    up: np.ndarray,
    down: np.ndarray,
    pairs: np.ndarray,
    U: np.ndarray,
    A: np.ndarray,
    b: np.ndarray,
    out: np.ndarray,
) -> None:
    """b = u_i . a_j of each entry, and out = the Hessian of the loss in the scores, times b."""
    products(start, stop, indptr, index, U, A, b)
    n, lanes = _longest(start, stop, indptr, width)
    above = np.empty((n + 1, lanes), np.float32)
    below = np.empty((n + 1, lanes), np.float32)
    for i in range(start, stop):
        a = indptr[i]
        z = indptr[i + 1]
        _curve(
            b[a:z], level[a:z], _rounded(width[i]), order[a:z], up[a:z], down[a:z], pairs[a:z], above, below, out[a:z]
        )


@kernel
def collect(
    start: int,
    stop: int,
    item_indptr: np.ndarray,
    owner: np.ndarray,
    place: np.ndarray,
    weight: np.ndarray,
    U: np.ndarray,
    reg: float,
    A: np.ndarray,
    out: np.ndarray,
) -> None:
    """out_j = reg a_j + sum over the entries of item j of weight * u_owner; by items, so no two threads share a row."""
    d = U.shape[1]
    for j in range(start, stop):
        for f in range(d):
            out[j, f] = reg * A[j, f]
        p = item_indptr[j]
        z = item_indptr[j + 1]
        while p + 4 <= z:
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
        while p < z:
            a = weight[place[p]]
            i0 = owner[p]
            for f in range(d):
                out[j, f] += a * U[i0, f]
            p += 1


@kernel
def _rows_times(n: int, rows: np.ndarray, x: np.ndarray, out: np.ndarray) -> None:
    """out[p] = rows[p] . x"""
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
        out[p] = a
        out[p + 1] = b
        out[p + 2] = c
        out[p + 3] = e
        p += 4
    while p < n:
        a = np.float32(0)
        for f in range(d):
            a += rows[p, f] * x[f]
        out[p] = a
        p += 1


@kernel
def _times_rows(n: int, rows: np.ndarray, weight: np.ndarray, reg: float, x: np.ndarray, out: np.ndarray) -> None:
    """out = reg x + sum_p weight_p rows_p"""
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


@kernel
def _dot(x: np.ndarray, y: np.ndarray) -> float:
    total = np.float32(0)
    for f in range(x.size):
        total += x[f] * y[f]
    return total  # type: ignore[return-value]


@kernel
def user_steps(
    start: int,
    stop: int,
    indptr: np.ndarray,
    index: np.ndarray,
    level: np.ndarray,
    width: np.ndarray,
    V: np.ndarray,
    reg: float,
    steps: int,
    tolerance: float,
    rounds: int,
    U: np.ndarray,
    score: np.ndarray,
    order: np.ndarray,
    up: np.ndarray,
    down: np.ndarray,
    pairs: np.ndarray,
    slope: np.ndarray,
    loss: np.ndarray,
) -> None:
    """`rounds` truncated Newton steps on each user's vector; scores and everything that hangs on them follow.

    A step is taken only if the objective falls; it is halved until it does.
    """
    d = V.shape[1]
    longest, most = _longest(start, stop, indptr, width)
    rows = np.empty((longest, d), np.float32)
    b = np.empty(longest, np.float32)
    shift = np.empty(longest, np.float32)
    bent = np.empty(longest, np.float32)
    trial = np.empty(longest, np.float32)
    above = np.empty((longest + 1, most), np.float32)
    below = np.empty((longest + 1, most), np.float32)
    precise = np.empty(longest, np.float64)
    above2 = np.empty((longest + 1, most), np.float64)
    below2 = np.empty((longest + 1, most), np.float64)
    gradient = np.empty(d, np.float32)
    step = np.empty(d, np.float32)
    left = np.empty(d, np.float32)
    way = np.empty(d, np.float32)
    image = np.empty(d, np.float32)
    for i in range(start, stop):
        first = indptr[i]
        last = indptr[i + 1]
        n = last - first
        lanes = _rounded(width[i])
        u = U[i]
        if n == 0:
            for f in range(d):
                u[f] = 0
            continue
        for p in range(n):
            j = index[first + p]
            for f in range(d):
                rows[p, f] = V[j, f]
        for _ in range(rounds):
            _times_rows(n, rows, slope[first:last], reg, u, gradient)
            size = _dot(gradient, gradient)
            if size < 1e-10:
                break
            # Conjugate gradient on H step = gradient; the change of the scores comes along with the step.
            goal = tolerance * tolerance * size
            for f in range(d):
                step[f] = 0
                left[f] = gradient[f]
                way[f] = gradient[f]
            for p in range(n):
                shift[p] = 0
            for _ in range(steps):
                _rows_times(n, rows, way, b)
                _curve(
                    b[:n],
                    level[first:last],
                    lanes,
                    order[first:last],
                    up[first:last],
                    down[first:last],
                    pairs[first:last],
                    above,
                    below,
                    bent[:n],
                )
                _times_rows(n, rows, bent, reg, way, image)
                length = size / _dot(way, image)
                for f in range(d):
                    step[f] += length * way[f]
                    left[f] -= length * image[f]
                for p in range(n):
                    shift[p] += length * b[p]
                fresh = _dot(left, left)
                if fresh < goal:
                    break
                turn = fresh / size
                for f in range(d):
                    way[f] = left[f] + turn * way[f]
                size = fresh
            before = loss[i] + 0.5 * np.float64(reg) * np.float64(_dot(u, u))
            share = np.float32(1)
            taken = False
            for _ in range(20):
                norm = 0.0
                for f in range(d):
                    x = np.float64(u[f] - share * step[f])
                    norm += x * x
                for p in range(n):
                    trial[p] = score[first + p] - share * shift[p]
                value = _prepare(
                    trial[:n],
                    level[first:last],
                    lanes,
                    order[first:last],
                    up[first:last],
                    down[first:last],
                    pairs[first:last],
                    slope[first:last],
                    precise,
                    above2,
                    below2,
                )
                if value + 0.5 * np.float64(reg) * norm < before:
                    taken = True
                    break
                share *= np.float32(0.5)
            if not taken:
                loss[i] = _prepare(
                    score[first:last],
                    level[first:last],
                    lanes,
                    order[first:last],
                    up[first:last],
                    down[first:last],
                    pairs[first:last],
                    slope[first:last],
                    precise,
                    above2,
                    below2,
                )
                break
            for f in range(d):
                u[f] -= share * step[f]
            for p in range(n):
                score[first + p] = trial[p]
            loss[i] = value
