"""Truncated Newton steps of Primal-CR: all items jointly, or each user alone (dissertation, ch. 3).

Objective: sum over users of a loss of their scores m_j = u.v_j, plus reg / 2 (|U|^2 + |V|^2). The loss of one list, its
slope and its Hessian product come from `windows` (Primal-CR++, squared hinge over all comparable pairs) or from `pairs`
(given pairs); everything else is shared. Scores are never computed twice: a step's change of the scores is collected
while conjugate gradient finds the step, so a line search costs no inner products.

`Lists` holds the state of all lists. Cost of a Hessian product: 2 n dim multiply-adds beside that of the lists.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from . import pairs, windows
from .threads import kernel
from .vectors import dot

CACHE = 4_000_000  # bytes that `collect` keeps at hand
WINDOWS = 0  # kind of loss; the others are pairs.SQUARED_HINGE and pairs.LOGISTIC


class Lists(NamedTuple):
    """One list a user. What a kind of loss does not need has length 0 or 1."""

    indptr: np.ndarray  # int64[users + 1]
    index: np.ndarray  # type: ignore[assignment]  # int32[n] item of each entry
    score: np.ndarray  # float32[n]
    slope: np.ndarray  # float32[n] d loss / d score
    loss: np.ndarray  # float64[users]
    level: np.ndarray  # int32[n] level of the rating within the user, from 0
    width: np.ndarray  # int32[users] number of levels
    order: np.ndarray  # int32[n] see `windows`
    up: np.ndarray  # int32[n]
    down: np.ndarray  # int32[n]
    active: np.ndarray  # float32[n] active pairs of each entry
    pair_indptr: np.ndarray  # int64[users + 1] see `pairs`
    high: np.ndarray  # int32[pairs]
    low: np.ndarray  # int32[pairs]
    bend: np.ndarray  # float32[pairs]


@kernel
def _sizes(start: int, stop: int, lists: Lists, kind: int) -> tuple[int, int]:
    """Longest list, and the work space of the windows, of a range of users."""
    longest = 0
    work = 0
    for i in range(start, stop):
        n = lists.indptr[i + 1] - lists.indptr[i]
        longest = max(longest, n)
        if kind == WINDOWS:
            work = max(work, windows.work_size(n, lists.width[i]))
    return longest, work


@kernel
def _prepare(i: int, score: np.ndarray, lists: Lists, kind: int, precise: np.ndarray, work: np.ndarray) -> float:
    """Everything that hangs on the scores of list i, at `score`; returns its loss."""
    a = lists.indptr[i]
    z = lists.indptr[i + 1]
    if kind == WINDOWS:
        return windows.prepare(  # type: ignore[no-any-return]
            score,
            lists.level[a:z],
            lists.width[i],
            lists.order[a:z],
            lists.up[a:z],
            lists.down[a:z],
            lists.active[a:z],
            lists.slope[a:z],
            precise[0],
            work[0],
            work[1],
            precise[1],
            precise[2],
        )
    c = lists.pair_indptr[i]
    e = lists.pair_indptr[i + 1]
    return pairs.prepare(  # type: ignore[no-any-return]
        score, lists.high[c:e], lists.low[c:e], kind, lists.slope[a:z], lists.bend[c:e]
    )


@kernel
def _curve(i: int, b: np.ndarray, lists: Lists, kind: int, sums: np.ndarray, work: np.ndarray, out: np.ndarray) -> None:
    """out = the Hessian of the loss of list i in its scores, times b."""
    a = lists.indptr[i]
    z = lists.indptr[i + 1]
    if kind == WINDOWS:
        windows.curve(
            b,
            lists.level[a:z],
            lists.width[i],
            lists.order[a:z],
            lists.up[a:z],
            lists.down[a:z],
            lists.active[a:z],
            work[0],
            work[1],
            sums[0],
            sums[1],
            out,
        )
    else:
        c = lists.pair_indptr[i]
        e = lists.pair_indptr[i + 1]
        pairs.curve(b, lists.high[c:e], lists.low[c:e], lists.bend[c:e], out)


@kernel
def prepare(start: int, stop: int, lists: Lists, kind: int, score: np.ndarray) -> None:
    """`_prepare` for a range of users, at `score` float32[n]; the losses land in lists.loss."""
    longest, size = _sizes(start, stop, lists, kind)
    precise = np.empty((3, longest), np.float64)
    work = np.empty((2, size), np.float64)
    for i in range(start, stop):
        lists.loss[i] = _prepare(i, score[lists.indptr[i] : lists.indptr[i + 1]], lists, kind, precise, work)


@kernel
def curves(
    start: int, stop: int, lists: Lists, kind: int, U: np.ndarray, A: np.ndarray, b: np.ndarray, out: np.ndarray
) -> None:
    """b = u_i . a_j of each entry, and out = the Hessian of the loss in the scores, times b."""
    products(start, stop, lists.indptr, lists.index, U, A, b)
    longest, size = _sizes(start, stop, lists, kind)
    sums = np.empty((2, longest), np.float32)
    work = np.empty((2, size), np.float32)
    for i in range(start, stop):
        a = lists.indptr[i]
        z = lists.indptr[i + 1]
        _curve(i, b[a:z], lists, kind, sums, work, out[a:z])


@kernel
def products(
    start: int, stop: int, indptr: np.ndarray, index: np.ndarray, U: np.ndarray, V: np.ndarray, out: np.ndarray
) -> None:
    """out = u_i . v_j of each entry, four entries a step so that each load of u serves four."""
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
def collect(
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
    """out_j = reg a_j + sum over the entries of item j of weight * u_owner; by items, so no two threads share a row.

    indptr int64[items + 1], owner int32[n] user of each entry by item (rising within an item), place int64[n] where
    that entry stands by user.
    Users are taken in blocks whose vectors and weights stay in the cache: an item's users are far apart in memory.
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


@kernel
def _combine(n: int, rows: np.ndarray, weight: np.ndarray, reg: float, x: np.ndarray, out: np.ndarray) -> None:
    """out = reg x + sum_p weight_p rows_p, four rows a step."""
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
def user_steps(
    start: int,
    stop: int,
    lists: Lists,
    kind: int,
    V: np.ndarray,
    reg: float,
    steps: int,
    tolerance: float,
    rounds: int,
    U: np.ndarray,
) -> None:
    """At most `rounds` truncated Newton steps on each user's vector; scores and all that hangs on them follow.

    The lists must be prepared at their scores. A step is halved until the objective falls, and not taken otherwise.
    """
    d = V.shape[1]
    longest, size = _sizes(start, stop, lists, kind)
    rows = np.empty((longest, d), np.float32)
    here = np.zeros((1, d), np.float32)
    local = np.arange(longest).astype(np.int32)
    b = np.empty(longest, np.float32)
    shift = np.empty(longest, np.float32)
    bent = np.empty(longest, np.float32)
    trial = np.empty(longest, np.float32)
    sums = np.empty((2, longest), np.float32)
    work = np.empty((2, size), np.float32)
    precise = np.empty((3, longest), np.float64)
    work2 = np.empty((2, size), np.float64)
    ends = np.zeros(2, np.int64)
    gradient = np.empty(d, np.float32)
    step = np.empty(d, np.float32)
    left = np.empty(d, np.float32)
    image = np.empty(d, np.float32)
    way = here[0]
    for i in range(start, stop):
        first = lists.indptr[i]
        last = lists.indptr[i + 1]
        n = last - first
        u = U[i]
        if n == 0:
            for f in range(d):
                u[f] = 0
            continue
        ends[1] = n
        score = lists.score[first:last]
        for p in range(n):
            j = lists.index[first + p]
            for f in range(d):
                rows[p, f] = V[j, f]
        for _ in range(rounds):
            _combine(n, rows, lists.slope[first:last], reg, u, gradient)
            now = dot(gradient, gradient)
            if now < 1e-10:
                break
            # Conjugate gradient on H step = gradient; the change of the scores comes along with the step.
            goal = max(tolerance * tolerance, np.float32(1e-12)) * now  # beyond that is rounding
            for f in range(d):
                step[f] = 0
                left[f] = gradient[f]
                way[f] = gradient[f]
            for p in range(n):
                shift[p] = 0
            for _ in range(steps):
                products(0, 1, ends, local, here, rows, b)
                _curve(i, b[:n], lists, kind, sums, work, bent[:n])
                _combine(n, rows, bent, reg, way, image)
                length = now / dot(way, image)
                for f in range(d):
                    step[f] += length * way[f]
                    left[f] -= length * image[f]
                for p in range(n):
                    shift[p] += length * b[p]
                fresh = dot(left, left)
                if fresh <= goal:
                    break
                turn = fresh / now
                for f in range(d):
                    way[f] = left[f] + turn * way[f]
                now = fresh
            before = lists.loss[i] + 0.5 * np.float64(reg) * np.float64(dot(u, u))
            share = np.float32(1)
            taken = False
            for _ in range(20):
                norm = 0.0
                for f in range(d):
                    x = np.float64(u[f] - share * step[f])
                    norm += x * x
                for p in range(n):
                    trial[p] = score[p] - share * shift[p]
                value = _prepare(i, trial[:n], lists, kind, precise, work2)
                if value + 0.5 * np.float64(reg) * norm < before:
                    taken = True
                    break
                share *= np.float32(0.5)
            if not taken:
                lists.loss[i] = _prepare(i, score, lists, kind, precise, work2)
                break
            for f in range(d):
                u[f] -= share * step[f]
            for p in range(n):
                score[p] = trial[p]
            lists.loss[i] = value
