"""Drawing rows from known distributions; each row has its own random stream, so that threads cannot change the result.

Each row of a CSR-like layout (`indptr`) owns a splitmix64 stream (Steele, Lea and Flood 2014) that starts at a hash of
(seed, row): whoever works on the row draws the same numbers. Cost: O(log columns) a draw; memory beyond the output is
O(columns) a thread.

Shapes: n entries in R rows over C columns that fall into G groups and P periods.
indptr int64[R + 1]; item int32[n]; time int64[n]; score float32[n]; taste float32[R, G]; ladder float64[P, C], the
running total of the probability of a column within its group, columns sorted by group; first int64[G + 1] cuts the
sorted columns into groups; member int32[C] names the sorted columns.
"""

from __future__ import annotations

import math

import numpy as np

from .threads import kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11, _S32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11), np.uint64(32)
_GOLDEN32, _HASH1, _HASH2 = np.uint32(0x9E3779B9), np.uint32(0x7FEB352D), np.uint32(0x846CA68B)
_H16, _H15 = np.uint32(16), np.uint32(15)
FULL, LOW, SHIFT = np.uint32(65_536), np.uint32(65_535), np.uint32(16)  # a word is two coins of 16 bits


def kept(dropout: float) -> np.uint32 | None:
    """How many of FULL equally likely coins let a coordinate move; None where all of them do."""
    return np.uint32(round((1.0 - dropout) * int(FULL))) if dropout > 0 else None


@kernel
def _mix(z: np.uint64) -> np.uint64:
    z = (z ^ (z >> _S30)) * _MIX1
    z = (z ^ (z >> _S27)) * _MIX2
    return z ^ (z >> _S31)


@kernel
def _start(state: np.ndarray, seed: int, row: int) -> None:
    """Put `state` uint64[1] at the head of the stream of `row`."""
    state[0] = _mix(np.uint64(seed) + _GOLDEN * _mix(np.uint64(row) + _GOLDEN))


@kernel
def _uniform(state: np.ndarray) -> float:
    """The next number of the stream, in [0, 1)."""
    state[0] += _GOLDEN
    return np.float64(_mix(state[0]) >> _S11) * (1.0 / 9007199254740992.0)


@kernel
def _word(state: np.ndarray) -> np.uint32:
    """The next 32 random bits of the stream."""
    state[0] += _GOLDEN
    return np.uint32(_mix(state[0]) >> _S32)


@kernel
def _scatter(word: np.uint32, f: int) -> np.uint32:
    """The f-th of many 32-bit words that one random word stands for; a loop over f is a vector loop (Wellons 2018)."""
    # Products of 32-bit numbers are made with 64 bits here, so each is cut back.
    z = np.uint32(word + np.uint32(f) * _GOLDEN32)
    z = np.uint32((z ^ (z >> _H16)) * _HASH1)
    z = np.uint32((z ^ (z >> _H15)) * _HASH2)
    return z ^ (z >> _H16)


@kernel
def _normal(state: np.ndarray) -> float:
    radius = math.sqrt(-2.0 * math.log(1.0 - _uniform(state)))
    return radius * math.cos(2.0 * math.pi * _uniform(state))


@kernel
def _rung(ladder: np.ndarray, low: int, high: int, x: float) -> int:
    """Smallest position in low..high whose running total is above x (the last one when none is)."""
    high -= 1
    while low < high:
        middle = (low + high) >> 1
        if ladder[middle] > x:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def _scan(
    x: float, mark: np.ndarray, row: int, taste: np.ndarray, rungs: np.ndarray, first: np.ndarray, member: np.ndarray
) -> int:
    """The sorted column at share x of the probability that the columns not marked with `row` still have."""
    pick = -1
    total = 0.0
    for walk in range(2):
        # First walk: how much is left. Second: where the share x of it falls.
        goal = x * total
        passed = 0.0
        for g in range(first.size - 1):
            below = 0.0
            for j in range(first[g], first[g + 1]):
                if mark[member[j]] != row:
                    passed += taste[g] * (rungs[j] - below)
                    pick = j
                    if walk == 1 and passed > goal:
                        return pick
                below = rungs[j]
        total = passed
    return pick


@kernel
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
    columns that the row has not had yet: exact, because draws that repeat are thrown away and, where too many are, the
    rest is walked through.
    Preference = weight * log(G * taste[row, g]) + row_lift[row] + column_lift[c] + noise * N(0, 1).
    """
    columns = member.size
    groups = first.size - 1
    tries = max(16, columns // 16)  # by then a walk through all columns would have cost as much
    mark = np.full(columns, -1, np.int64)
    state = np.empty(1, np.uint64)
    steps = np.empty(groups, np.float64)
    for r in range(start, stop):
        _start(state, seed, r)
        n = indptr[r + 1] - indptr[r]
        total = 0.0
        for g in range(groups):
            total += taste[r, g]
            steps[g] = total
        # Running sums of exponential gaps, scaled, are sorted uniform times: no sort needed.
        moments = np.empty(n, np.float64)
        sum_gaps = 0.0
        for t in range(n):
            sum_gaps -= math.log(1.0 - _uniform(state))
            moments[t] = sum_gaps
        sum_gaps -= math.log(1.0 - _uniform(state))
        for t in range(n):
            at = indptr[r] + t
            moment = begin[r] + np.int64(moments[t] / sum_gaps * (end[r] - begin[r]))
            p = min(moment // period, ladder.shape[0] - 1)
            rungs = ladder[p]
            j = -1
            for _ in range(tries):
                g = _rung(steps, 0, groups, _uniform(state) * total)
                j = _rung(rungs, first[g], first[g + 1], _uniform(state))
                if mark[member[j]] != r:
                    break
                j = -1
            if j < 0:
                j = _scan(_uniform(state), mark, r, taste[r], rungs, first, member)
                g = _group_of(first, j)
            c = member[j]
            mark[c] = r
            item[at] = c
            time[at] = moment
            liking = weight * math.log(groups * taste[r, g]) + row_lift[r] + column_lift[c]
            score[at] = liking + noise * _normal(state)


@kernel
def chains(
    start: int, stop: int, seed: int, length: int, follow: float, successors: np.ndarray, item: np.ndarray
) -> None:
    """Rows of `length` columns: each one is, with probability `follow`, a successor of the one before, else uniform.

    successors int32[C, s], equally likely; item int32[R * length].
    """
    columns, ways = successors.shape
    state = np.empty(1, np.uint64)
    for r in range(start, stop):
        _start(state, seed, r)
        last = np.int64(_uniform(state) * columns)
        item[r * length] = last
        for t in range(1, length):
            if _uniform(state) < follow:
                last = np.int64(successors[last, np.int64(_uniform(state) * ways)])
            else:
                last = np.int64(_uniform(state) * columns)
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
