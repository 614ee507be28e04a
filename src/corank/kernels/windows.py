"""Squared-hinge loss of all comparable pairs of a list, in O(n log n): the heart of Primal-CR++.

    sum over pairs with level_j < level_k of max(0, 1 - (m_k - m_j))^2

A pair is active when m_k <= m_j + 1, so with the scores sorted each item meets a prefix of the list (partners of higher
level) and a suffix (partners of lower level). Where these windows end depends on the scores alone: they are found once
a half-step and serve the gradient and every Hessian product (dissertation, ch. 3; the printed sums run over the wrong
levels, see docs/primal-cr.md).

Of one list: score float32[n]; level int32[n], from 0; order int32[n], positions by rising score; up, down int32[n],
ends of the windows of the item at each sorted place; pairs float32[n], active pairs of each item; slope float32[n],
d loss / d m. width: number of levels; above, below [work_size], higher, lower [n]: work space.
"""

from __future__ import annotations

import numpy as np

from .threads import kernel

LANES = 8  # floats in a vector
MANY = 64  # levels from which a tree beats a lane a level


@kernel
def lanes_of(width: int) -> int:
    """Levels rounded up to whole vectors."""
    return (width + LANES - 1) // LANES * LANES


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


@kernel
def work_size(n: int, width: int) -> int:
    """Numbers of work space, for each of the two arrays, that a list of n items and `width` levels needs."""
    return (n + 1) * lanes_of(width) if width <= MANY else width + 1


@kernel
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
    """Few levels: running sums with a lane a level, and differences of them."""
    n = b.size
    for r in range(lanes):
        above[r] = 0
        below[r] = 0
    zero = b.dtype.type(0)
    if lanes == LANES:
        # The usual case once more with the distance between two rows written out: only then is it vector code.
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


@kernel
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
    """Many levels: the window slides over a Fenwick tree of levels, O(log levels) an item."""
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


@kernel
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


@kernel
def prepare(
    score: np.ndarray,
    level: np.ndarray,
    width: int,
    order: np.ndarray,
    up: np.ndarray,
    down: np.ndarray,
    pairs: np.ndarray,
    slope: np.ndarray,
    precise: np.ndarray,
    above: np.ndarray,
    below: np.ndarray,
    higher: np.ndarray,
    lower: np.ndarray,
) -> float:
    """Order, windows, slope and active pairs at these scores; returns the loss. The last five: float64 work space."""
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
        pairs[j] = higher[q] + lower[q]
        slope[j] = higher[q] - lower[q]
        # sum of x^2 over pairs = half of sum slope.m + half of the slope at the lower ends: no squares are summed.
        loss += higher[q] * (m + 1.0) * (m + 1.0) + lower[q] * (m - 1.0) * m
    for p in range(n):
        precise[p] = score[p]
    _sums(precise[:n], level, width, order, up, down, above, below, higher, lower)
    for q in range(n):
        j = order[q]
        m = np.float64(score[j])
        slope[j] = 2.0 * (m * pairs[j] + slope[j] - higher[q] - lower[q])
        loss -= (m + 1.0) * higher[q] + m * lower[q]
    return loss


@kernel
def curve(
    b: np.ndarray,
    level: np.ndarray,
    width: int,
    order: np.ndarray,
    up: np.ndarray,
    down: np.ndarray,
    pairs: np.ndarray,
    above: np.ndarray,
    below: np.ndarray,
    higher: np.ndarray,
    lower: np.ndarray,
    out: np.ndarray,
) -> None:
    """out[j] = 2 (pairs_j b_j - sum of b over the active partners of j): the Hessian of the loss in m, times b."""
    _sums(b, level, width, order, up, down, above, below, higher, lower)
    for q in range(b.size):
        j = order[q]
        out[j] = np.float32(2) * (pairs[j] * b[j] - higher[q] - lower[q])
