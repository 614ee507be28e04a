"""Ranks of test items among the candidates, and expectations of metrics over random tie-breaking.

A test row needs two counts: `above`, the candidates that score strictly higher, and `tied`, those that score the same
(itself included). They are found by one scan of the score row per test row, without sorting, in a loop that the
compiler vectorises. Cost: candidates x test rows. Where several relevant items are tied, an average rank is not enough:
the two kernels at the end go through the ranks of each tie group, at most once over the candidates of a user.

Shapes: scores float32[b, n]; indptr int64[b + 1] over test rows; index int32[r] column of each test row; above, tied
int32[r]. A tie group is a set of equal scores of one user: g_above, g_tied, g_count (relevant rows in it)
int64[groups].
"""

from __future__ import annotations

import numpy as np

from .threads import inline, kernel
from .topk import mask_rows
from .vectors import insertion_point

# Counts are float32, the type of the scores, to use all vector lanes: exact far beyond this length.
CHUNK = 4096


@inline
def _count(row: np.ndarray, score: float) -> tuple[int, int]:
    """The number of entries of `row` above `score`, and of those equal to it."""
    above = 0
    tied = 0
    for low in range(0, row.size, CHUNK):
        more = np.float32(0)
        same = np.float32(0)
        for j in range(low, min(low + CHUNK, row.size)):
            more += np.float32(1) if row[j] > score else np.float32(0)
            same += np.float32(1) if row[j] == score else np.float32(0)
        above += int(more)
        tied += int(same)
    return above, tied


@inline
def _has_nan(row: np.ndarray) -> bool:
    bad = np.float32(0)
    for j in range(row.size):
        bad += np.float32(1) if row[j] != row[j] else np.float32(0)
    return bool(bad > 0)


@kernel
def rank_all(
    start: int,
    stop: int,
    scores: np.ndarray,
    known_row: np.ndarray,
    known_indptr: np.ndarray,
    known_index: np.ndarray,
    indptr: np.ndarray,
    index: np.ndarray,
    mine: np.ndarray,
    above: np.ndarray,
    tied: np.ndarray,
    candidates: np.ndarray,
    bad: np.ndarray,
) -> None:
    """Rank the test items of each row among all columns but the known ones; test items are always candidates.

    known_row int32[b]: the row of the known CSR (sorted by column) that belongs to each score row. `scores` is masked
    in place. Out: mine float32[r] score of each test row, above, tied; candidates int64[b]; bad bool[b], true where a
    score is NaN.
    """
    n = scores.shape[1]
    for b in range(start, stop):
        row = scores[b]
        bad[b] = _has_nan(row)
        for p in range(indptr[b], indptr[b + 1]):
            mine[p] = row[index[p]]
        mask_rows(b, b + 1, scores, known_row, known_indptr, known_index)
        low, high = known_indptr[known_row[b]], known_indptr[known_row[b] + 1]
        size = n - (high - low)
        for p in range(indptr[b], indptr[b + 1]):
            row[index[p]] = mine[p]
            at = insertion_point(known_index, low, high, index[p])
            if at < high and known_index[at] == index[p]:
                size += 1
        candidates[b] = size
        for p in range(indptr[b], indptr[b + 1]):
            more, same = _count(row, mine[p])
            above[p] = more
            tied[p] = min(same, size - more)  # a score of -inf must not tie with what is masked


@kernel
def rank_some(
    start: int,
    stop: int,
    scores: np.ndarray,
    other_indptr: np.ndarray,
    other_index: np.ndarray,
    indptr: np.ndarray,
    index: np.ndarray,
    mine: np.ndarray,
    above: np.ndarray,
    tied: np.ndarray,
    candidates: np.ndarray,
    bad: np.ndarray,
) -> None:
    """Rank the test items of each row among themselves and other columns (`other_*`: CSR over b); out as `rank_all`."""
    for b in range(start, stop):
        row = scores[b]
        bad[b] = _has_nan(row)
        first, last = indptr[b], indptr[b + 1]
        low, high = other_indptr[b], other_indptr[b + 1]
        list_ = np.empty(last - first + high - low, np.float32)
        for p in range(first, last):
            mine[p] = row[index[p]]
            list_[p - first] = mine[p]
        for q in range(low, high):
            list_[last - first + q - low] = row[other_index[q]]
        candidates[b] = list_.size
        for p in range(first, last):
            above[p], tied[p] = _count(list_, mine[p])


@kernel
def pair_errors(
    start: int,
    stop: int,
    indptr: np.ndarray,
    scores: np.ndarray,
    values: np.ndarray,
    discordant: np.ndarray,
    tied: np.ndarray,
    comparable: np.ndarray,
) -> None:
    """Count a row's pairs of different values (comparable); of these, those in the wrong order and with equal scores.

    scores float64[r], values float32[r]; out int64[b] each. Cost: the square of the row length.
    """
    for b in range(start, stop):
        wrong = 0
        same = 0
        all_ = 0
        for p in range(indptr[b], indptr[b + 1]):
            for q in range(p + 1, indptr[b + 1]):
                up = values[p] > values[q]
                down = values[p] < values[q]
                all_ += up | down
                wrong += (up & (scores[p] < scores[q])) | (down & (scores[p] > scores[q]))
                same += (up | down) & (scores[p] == scores[q])
        discordant[b] = wrong
        tied[b] = same
        comparable[b] = all_


@kernel
def first_relevant(
    start: int,
    stop: int,
    indptr: np.ndarray,
    g_above: np.ndarray,
    g_tied: np.ndarray,
    g_count: np.ndarray,
    k: int,
    reciprocal: np.ndarray,
    hit: np.ndarray,
) -> None:
    """Expected 1 / rank of the first relevant item in the top k, and the probability of one: float64[b] each.

    Only the best tie group with a relevant item matters. `miss` is the probability that none of its ranks so far holds
    a relevant item.
    """
    for b in range(start, stop):
        reciprocal[b] = 0.0
        hit[b] = 0.0
        if indptr[b] == indptr[b + 1]:
            continue
        g = indptr[b]
        miss = 1.0
        for j in range(min(g_tied[g], k - g_above[g])):
            chance = g_count[g] / (g_tied[g] - j)
            reciprocal[b] += miss * chance / (g_above[g] + j + 1)
            miss *= 1.0 - chance
            if chance >= 1.0:
                miss = 0.0
                break
        hit[b] = 1.0 - miss


@kernel
def precision_sum(
    start: int,
    stop: int,
    indptr: np.ndarray,
    g_above: np.ndarray,
    g_tied: np.ndarray,
    g_count: np.ndarray,
    k: int,
    out: np.ndarray,
) -> None:
    """Expected sum of the precisions at the ranks of the relevant items within the top k: float64[b].

    In a tie group of t items, c of them relevant, each rank holds a relevant item with probability c / t; given that,
    the j earlier ranks of the group hold j (c - 1) / (t - 1) more on average (McSherry and Najork 2008).
    """
    for b in range(start, stop):
        total = 0.0
        before = 0
        for g in range(indptr[b], indptr[b + 1]):
            t, c = g_tied[g], g_count[g]
            grow = (c - 1) / (t - 1) if t > 1 else 0.0
            for j in range(min(t, k - g_above[g])):
                total += c / t * (before + 1 + j * grow) / (g_above[g] + j + 1)
            before += c
        out[b] = total
