"""Truncated Newton steps of Primal-CR: on each user's vector alone, and the parts of the joint step on all items.

Objective (dissertation, ch. 3): sum over users of a loss of their scores m_j = u.v_j, plus reg / 2 (|U|^2 + |V|^2). The
loss of one list, its gradient and its Hessian-vector products come from `windows` (Primal-CR++: squared hinge over all
comparable pairs) or from `pairs` (explicit pairs); everything else is the same for both. Scores are never recomputed:
conjugate gradient yields the change of the scores along with the step, so a line search needs no inner products.

`PreferenceLists` holds the state of all lists. A Hessian-vector product costs 2 n dim multiply-adds beside the work of
`windows` or `pairs`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from . import pairs, windows
from .threads import inline, kernel
from .vectors import dot, inner_products, longest_row, weighted_sum

WINDOWS = 0  # kind of loss; the others are pairs.SQUARED_HINGE and pairs.LOGISTIC


class PreferenceLists(NamedTuple):
    """One list of rated items per user and the state of its loss; arrays that a kind of loss does not use are empty."""

    indptr: np.ndarray  # int64[users + 1]
    index: np.ndarray  # type: ignore[assignment]  # int32[n] item of each entry
    score: np.ndarray  # float32[n]
    gradient: np.ndarray  # float32[n] d loss / d score
    loss: np.ndarray  # float64[users]
    level: np.ndarray  # int32[n] rank of the rating among the distinct ratings of the user, from 0
    width: np.ndarray  # int32[users] number of levels
    order: np.ndarray  # int32[n] this and the next three: see `windows`
    up: np.ndarray  # int32[n]
    down: np.ndarray  # int32[n]
    active: np.ndarray  # float32[n] number of active pairs of each entry
    pair_indptr: np.ndarray  # int64[users + 1] this and the next three: see `pairs`
    high: np.ndarray  # int32[pairs]
    low: np.ndarray  # int32[pairs]
    curvature: np.ndarray  # float32[pairs]


@inline
def _sizes(start: int, stop: int, lists: PreferenceLists, kind: int) -> tuple[int, int]:
    """Length of the longest list, and size of the work space of `windows`, for a range of users."""
    work = 0
    if kind == WINDOWS:
        for i in range(start, stop):
            work = max(work, windows.work_size(lists.indptr[i + 1] - lists.indptr[i], lists.width[i]))
    return longest_row(start, stop, lists.indptr), work


@inline
def _evaluate(
    i: int, score: np.ndarray, lists: PreferenceLists, kind: int, precise: np.ndarray, work: np.ndarray
) -> float:
    """The loss of list i at `score`; also sets its gradient and what its Hessian-vector products need."""
    a, z = lists.indptr[i], lists.indptr[i + 1]
    if kind == WINDOWS:
        order, up, down = lists.order[a:z], lists.up[a:z], lists.down[a:z]
        scratch = (precise[0], work[0], work[1], precise[1], precise[2])
        active, gradient = lists.active[a:z], lists.gradient[a:z]
        return windows.evaluate(  # type: ignore[no-any-return]
            score, lists.level[a:z], lists.width[i], order, up, down, active, gradient, *scratch
        )
    c, e = lists.pair_indptr[i], lists.pair_indptr[i + 1]
    return pairs.evaluate(  # type: ignore[no-any-return]
        score, lists.high[c:e], lists.low[c:e], kind, lists.gradient[a:z], lists.curvature[c:e]
    )


@inline
def _hessian_product(
    i: int, b: np.ndarray, lists: PreferenceLists, kind: int, sums: np.ndarray, work: np.ndarray, out: np.ndarray
) -> None:
    """out = H b, with H the Hessian of the loss of list i with respect to its scores."""
    a, z = lists.indptr[i], lists.indptr[i + 1]
    if kind == WINDOWS:
        order, up, down, active = lists.order[a:z], lists.up[a:z], lists.down[a:z], lists.active[a:z]
        scratch = (work[0], work[1], sums[0], sums[1])
        windows.hessian_product(b, lists.level[a:z], lists.width[i], order, up, down, active, *scratch, out)
    else:
        c, e = lists.pair_indptr[i], lists.pair_indptr[i + 1]
        pairs.hessian_product(b, lists.high[c:e], lists.low[c:e], lists.curvature[c:e], out)


@kernel
def evaluate(start: int, stop: int, lists: PreferenceLists, kind: int, score: np.ndarray) -> None:
    """Loss, gradient and curvature of the lists start..stop at `score` float32[n]."""
    longest, size = _sizes(start, stop, lists, kind)
    precise = np.empty((3, longest), np.float64)
    work = np.empty((2, size), np.float64)
    for i in range(start, stop):
        lists.loss[i] = _evaluate(i, score[lists.indptr[i] : lists.indptr[i + 1]], lists, kind, precise, work)


@kernel
def hessian_products(
    start: int,
    stop: int,
    lists: PreferenceLists,
    kind: int,
    U: np.ndarray,
    A: np.ndarray,
    b: np.ndarray,
    out: np.ndarray,
) -> None:
    """b = u_i . a_j for each entry, and out = H b, with H the Hessian of the loss with respect to the scores."""
    inner_products(start, stop, lists.indptr, lists.index, U, A, b)
    longest, size = _sizes(start, stop, lists, kind)
    sums = np.empty((2, longest), np.float32)
    work = np.empty((2, size), np.float32)
    for i in range(start, stop):
        a, z = lists.indptr[i], lists.indptr[i + 1]
        _hessian_product(i, b[a:z], lists, kind, sums, work, out[a:z])


@kernel
def user_steps(
    start: int,
    stop: int,
    lists: PreferenceLists,
    kind: int,
    V: np.ndarray,
    reg: float,
    cg_steps: int,
    tolerance: float,
    newton_steps: int,
    U: np.ndarray,
) -> None:
    """At most `newton_steps` truncated Newton steps on each user's vector; the state of the lists follows.

    The lists must have been evaluated at their scores. A step is halved until the objective falls; if it never does,
    the user's vector is left as it was.
    """
    d = V.shape[1]
    longest, size = _sizes(start, stop, lists, kind)
    rows = np.empty((longest, d), np.float32)
    direction_row = np.zeros((1, d), np.float32)  # a matrix of one row, as `inner_products` takes it
    direction = direction_row[0]
    local = np.arange(longest).astype(np.int32)
    along = np.empty(longest, np.float32)
    shift = np.empty(longest, np.float32)
    curved = np.empty(longest, np.float32)
    trial = np.empty(longest, np.float32)
    sums = np.empty((2, longest), np.float32)
    work = np.empty((2, size), np.float32)
    precise = np.empty((3, longest), np.float64)
    precise_work = np.empty((2, size), np.float64)
    ends = np.zeros(2, np.int64)
    gradient = np.empty(d, np.float32)
    step = np.empty(d, np.float32)
    residual = np.empty(d, np.float32)
    image = np.empty(d, np.float32)
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
        for _ in range(newton_steps):
            weighted_sum(n, rows, lists.gradient[first:last], reg, u, gradient)
            norm = dot(gradient, gradient)
            if norm < 1e-10:
                break
            # Conjugate gradient on H step = gradient; `shift` is the change of the scores that the step makes.
            goal = max(tolerance * tolerance, np.float32(1e-12)) * norm  # a smaller residual is rounding error
            for f in range(d):
                step[f] = 0
                residual[f] = gradient[f]
                direction[f] = gradient[f]
            for p in range(n):
                shift[p] = 0
            for _ in range(cg_steps):
                inner_products(0, 1, ends, local, direction_row, rows, along)
                _hessian_product(i, along[:n], lists, kind, sums, work, curved[:n])
                weighted_sum(n, rows, curved, reg, direction, image)
                step_size = norm / dot(direction, image)
                for f in range(d):
                    step[f] += step_size * direction[f]
                    residual[f] -= step_size * image[f]
                for p in range(n):
                    shift[p] += step_size * along[p]
                new_norm = dot(residual, residual)
                if new_norm <= goal:
                    break
                beta = new_norm / norm
                for f in range(d):
                    direction[f] = residual[f] + beta * direction[f]
                norm = new_norm
            before = lists.loss[i] + 0.5 * np.float64(reg) * np.float64(dot(u, u))
            scale = np.float32(1)
            accepted = False
            for _ in range(20):
                square = 0.0
                for f in range(d):
                    x = np.float64(u[f] - scale * step[f])
                    square += x * x
                for p in range(n):
                    trial[p] = score[p] - scale * shift[p]
                value = _evaluate(i, trial[:n], lists, kind, precise, precise_work)
                if value + 0.5 * np.float64(reg) * square < before:
                    accepted = True
                    break
                scale *= np.float32(0.5)
            if not accepted:
                lists.loss[i] = _evaluate(i, score, lists, kind, precise, precise_work)
                break
            for f in range(d):
                u[f] -= scale * step[f]
            for p in range(n):
                score[p] = trial[p]
            lists.loss[i] = value
