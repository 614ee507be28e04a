"""Sampling rows from known distributions; one random stream per row, so that the result does not depend on threads.

Cost: O(log columns) per draw; memory beyond the output is O(columns) per thread.

Shapes: n entries in R rows over C columns that fall into G groups and P periods.
indptr int64[R + 1]; item int32[n]; time int64[n]; score float32[n]; taste float32[R, G]; ladder float64[P, C], the
cumulative probabilities of the columns within their group, columns sorted by group; first int64[G + 1], the start of
each group among the sorted columns; member int32[C], the sorted columns.
"""

from __future__ import annotations

import math

import numpy as np

from .random import bisect, normal, seek, uniform
from .threads import inline, kernel


@inline
def _scan(
    x: float,
    mark: np.ndarray,
    row: int,
    taste: np.ndarray,
    cumulative: np.ndarray,
    first: np.ndarray,
    member: np.ndarray,
) -> int:
    """The sorted column at fraction x of the total probability of the columns that are not marked with `row`."""
    pick = -1
    total = 0.0
    for scan in range(2):
        # First pass: the total probability that remains. Second: the column where the fraction x of it is reached.
        goal = x * total
        passed = 0.0
        for g in range(first.size - 1):
            below = 0.0
            for j in range(first[g], first[g + 1]):
                if mark[member[j]] != row:
                    passed += taste[g] * (cumulative[j] - below)
                    pick = j
                    if scan == 1 and passed > goal:
                        return pick
                below = cumulative[j]
        total = passed
    return pick


@inline
def _group_of(first: np.ndarray, j: int) -> int:
    """The group that sorted column j belongs to."""
    g = 0
    while first[g + 1] <= j:
        g += 1
    return g


@kernel
def choices(
    start: int,
    stop: int,
    seed: int,
    indptr: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
    period: int,
    taste: np.ndarray,
    ladder: np.ndarray,
    first: np.ndarray,
    member: np.ndarray,
    row_lift: np.ndarray,
    column_lift: np.ndarray,
    weight: float,
    noise: float,
    item: np.ndarray,
    time: np.ndarray,
    score: np.ndarray,
) -> None:
    """For each row: sorted times, distinct columns drawn one after the other, and a noisy preference for each.

    Column c of group g is drawn at time t with probability taste[row, g] * P(c | g, t // period), renormalised over the
    columns that the row has not drawn yet. This is exact: repeated draws are rejected, and after too many rejections
    the remaining columns are scanned.
    Preference = weight * log(G * taste[row, g]) + row_lift[row] + column_lift[c] + noise * N(0, 1).
    """
    columns = member.size
    groups = first.size - 1
    tries = max(16, columns // 16)  # by then a scan of all columns would have cost as much
    mark = np.full(columns, -1, np.int64)
    state = np.empty(1, np.uint64)
    steps = np.empty(groups, np.float64)
    for r in range(start, stop):
        seek(state, seed, r)
        n = indptr[r + 1] - indptr[r]
        total = 0.0
        for g in range(groups):
            total += taste[r, g]
            steps[g] = total
        # Cumulative sums of exponential gaps, normalised, are sorted uniform times: no sort is needed.
        moments = np.empty(n, np.float64)
        sum_gaps = 0.0
        for t in range(n):
            sum_gaps -= math.log(1.0 - uniform(state))
            moments[t] = sum_gaps
        sum_gaps -= math.log(1.0 - uniform(state))
        for t in range(n):
            at = indptr[r] + t
            moment = begin[r] + np.int64(moments[t] / sum_gaps * (end[r] - begin[r]))
            p = min(moment // period, ladder.shape[0] - 1)
            cumulative = ladder[p]
            j = -1
            for _ in range(tries):
                g = bisect(steps, 0, groups, uniform(state) * total)
                j = bisect(cumulative, first[g], first[g + 1], uniform(state))
                if mark[member[j]] != r:
                    break
                j = -1
            if j < 0:
                j = _scan(uniform(state), mark, r, taste[r], cumulative, first, member)
                g = _group_of(first, j)
            c = member[j]
            mark[c] = r
            item[at] = c
            time[at] = moment
            preference = weight * math.log(groups * taste[r, g]) + row_lift[r] + column_lift[c]
            score[at] = preference + noise * normal(state)


@kernel
def chains(
    start: int, stop: int, seed: int, length: int, follow: float, successors: np.ndarray, item: np.ndarray
) -> None:
    """Rows of `length` columns: with probability `follow` the next one is a successor of the last, else uniform.

    successors int32[C, s], equally likely; item int32[R * length].
    """
    columns, width = successors.shape
    state = np.empty(1, np.uint64)
    for r in range(start, stop):
        seek(state, seed, r)
        last = np.int64(uniform(state) * columns)
        item[r * length] = last
        for t in range(1, length):
            if uniform(state) < follow:
                last = np.int64(successors[last, np.int64(uniform(state) * width)])
            else:
                last = np.int64(uniform(state) * columns)
            item[r * length + t] = last


@kernel
def grades(start: int, stop: int, score: np.ndarray, cuts: np.ndarray) -> None:
    """Replace each score by 1 + the number of cuts below it, in place."""
    for p in range(start, stop):
        level = 1
        for c in range(cuts.size):
            level += score[p] > cuts[c]
        score[p] = level


@kernel
def products(
    start: int, stop: int, left: np.ndarray, right: np.ndarray, row: np.ndarray, column: np.ndarray, out: np.ndarray
) -> None:
    """out[p] = left[row[p]] . right[column[p]]; left, right float64[., rank], out float64[n]."""
    for p in range(start, stop):
        total = 0.0
        for f in range(left.shape[1]):
            total += left[row[p], f] * right[column[p], f]
        out[p] = total
