"""Squared-hinge loss over all comparable pairs of a list in O(n log n): the core of Primal-CR++.

    sum over pairs with level_j < level_k of max(0, 1 - (m_k - m_j))^2

A pair is active when m_k <= m_j + 1. With the scores sorted, the active partners of higher level of an item are a
prefix of the list, and those of lower level a suffix. Where these windows end depends on the scores alone, so they are
found once per half-step and serve the gradient and every Hessian-vector product (dissertation, ch. 3; the sums printed
there run over the wrong levels, see docs/primal-cr.md).

Of one list: score float32[n]; level int32[n], from 0; order int32[n], positions by increasing score; up, down int32[n],
ends of the windows of the item at each sorted place; active float32[n], number of active pairs of each item; gradient
float32[n], d loss / d m. width: number of levels; above, below [work_size], higher, lower [n]: work space.
"""

from __future__ import annotations

import numpy as np

from .threads import inline

LANES = 8  # floats in a vector
MANY = 64  # levels; with more of them a Fenwick tree is faster than one vector lane per level


@inline
def lanes_of(width: int) -> int:
    """Number of levels, rounded up to whole vectors."""
    return (width + LANES - 1) // LANES * LANES


@inline
def _sort(score: np.ndarray, order: np.ndarray) -> None:
    """Sort by score, starting from the previous order: between half-steps scores change little.

    Falls back to a full sort when the previous order turns out to be of no use.
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


@inline
def _find_windows(score: np.ndarray, order: np.ndarray, up: np.ndarray, down: np.ndarray) -> None:
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


@inline
def work_size(n: int, width: int) -> int:
    """Size of each of the two work arrays for a list of n items and `width` levels."""
    return (n + 1) * lanes_of(width) if width <= MANY else width + 1


@inline
def _sums_in_lanes(
    b: np.ndarray,
    level: np.ndarray,
    lanes: int,
    order: np.ndarray,
    up: np.ndarray,
    down: np.ndarray,
    above: np.ndarray,
    below: np.ndarray,
    higher: np.ndarray,
    lower: np.ndarray,
) -> None:
    """Few levels: running sums with one vector lane per level, and differences of them."""
    n = b.size
    for r in range(lanes):
        above[r] = 0
        below[r] = 0
    zero = b.dtype.type(0)
    if lanes == LANES:
        # The usual case, written with a constant row size: only then does the compiler vectorise it.
        for q in range(n):
            at = order[q]
            value = b[at]
            mine = level[at]
            here = q * LANES
            for r in range(LANES):
                above[here + LANES + r] = above[here + r] + (value if r < mine else zero)
            for r in range(LANES):
                below[here + LANES + r] = below[here + r] + (value if r > mine else zero)
    else:
        for q in range(n):
            at = order[q]
            value = b[at]
            mine = level[at]
            here = q * lanes
            for r in range(lanes):
                above[here + lanes + r] = above[here + r] + (value if r < mine else zero)
                below[here + lanes + r] = below[here + r] + (value if r > mine else zero)
    for q in range(n):
        mine = level[order[q]]
        higher[q] = above[up[q] * lanes + mine]
        lower[q] = below[n * lanes + mine] - below[down[q] * lanes + mine]


@inline
def _sums_in_trees(
    b: np.ndarray,
    level: np.ndarray,
    width: int,
    order: np.ndarray,
    up: np.ndarray,
    down: np.ndarray,
    tree: np.ndarray,
    higher: np.ndarray,
    lower: np.ndarray,
) -> None:
    """Many levels: the window slides over a Fenwick tree of levels, O(log levels) per item."""
    n = b.size
    for r in range(width + 1):
        tree[r] = 0
    inside = b.dtype.type(0)
    e = 0
    for q in range(n):
        while e < up[q]:
            value = b[order[e]]
            inside += value
            at = level[order[e]] + 1
            while at <= width:
                tree[at] += value
                at += at & -at
            e += 1
        total = inside
        at = level[order[q]] + 1
        while at > 0:
            total -= tree[at]
            at -= at & -at
        higher[q] = total
    for r in range(width + 1):
        tree[r] = 0
    s = n - 1
    for q in range(n - 1, -1, -1):
        while s >= down[q]:
            value = b[order[s]]
            at = level[order[s]] + 1
            while at <= width:
                tree[at] += value
                at += at & -at
            s -= 1
        total = b.dtype.type(0)
        at = level[order[q]]
        while at > 0:
            total += tree[at]
            at -= at & -at
        lower[q] = total


@inline
def _sums(
    b: np.ndarray,
    level: np.ndarray,
    width: int,
    order: np.ndarray,
    up: np.ndarray,
    down: np.ndarray,
    above: np.ndarray,
    below: np.ndarray,
    higher: np.ndarray,
    lower: np.ndarray,
) -> None:
    """higher[q]: sum of b over the partners of higher level in the window of sorted place q; lower[q]: of lower."""
    if width <= MANY:
        _sums_in_lanes(b, level, lanes_of(width), order, up, down, above, below, higher, lower)
    else:
        _sums_in_trees(b, level, width, order, up, down, above, higher, lower)


@inline
def evaluate(
    score: np.ndarray,
    level: np.ndarray,
    width: int,
    order: np.ndarray,
    up: np.ndarray,
    down: np.ndarray,
    active: np.ndarray,
    gradient: np.ndarray,
    precise: np.ndarray,
    above: np.ndarray,
    below: np.ndarray,
    higher: np.ndarray,
    lower: np.ndarray,
) -> float:
    """Order, windows, gradient and active pairs at these scores; returns the loss. The last five: float64 scratch."""
    n = score.size
    _sort(score, order)
    _find_windows(score, order, up, down)
    for p in range(n):
        precise[p] = 1.0
    _sums(precise[:n], level, width, order, up, down, above, below, higher, lower)
    loss = 0.0
    for q in range(n):
        j = order[q]
        m = np.float64(score[j])
        active[j] = higher[q] + lower[q]
        gradient[j] = higher[q] - lower[q]
        # A pair with shortfall x adds 2x to the gradient at its lower item and -2x at its higher one, so x^2 is half of
        # (gradient . m + its part at the lower item): no sums of squares are needed.
        loss += higher[q] * (m + 1.0) * (m + 1.0) + lower[q] * (m - 1.0) * m
    for p in range(n):
        precise[p] = score[p]
    _sums(precise[:n], level, width, order, up, down, above, below, higher, lower)
    for q in range(n):
        j = order[q]
        m = np.float64(score[j])
        gradient[j] = 2.0 * (m * active[j] + gradient[j] - higher[q] - lower[q])
        loss -= (m + 1.0) * higher[q] + m * lower[q]
    return loss


@inline
def hessian_product(
    b: np.ndarray,
    level: np.ndarray,
    width: int,
    order: np.ndarray,
    up: np.ndarray,
    down: np.ndarray,
    active: np.ndarray,
    above: np.ndarray,
    below: np.ndarray,
    higher: np.ndarray,
    lower: np.ndarray,
    out: np.ndarray,
) -> None:
    """out = H b, with H the Hessian with respect to m: out_j = 2 (active_j b_j - sum of b over its active partners)."""
    _sums(b, level, width, order, up, down, above, below, higher, lower)
    for q in range(b.size):
        j = order[q]
        out[j] = np.float32(2) * (active[j] * b[j] - higher[q] - lower[q])
