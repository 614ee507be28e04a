"""Ranks, pairs and negatives against loops that can be checked by eye."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from corank.kernels.negatives import draw
from corank.kernels.ranks import CHUNK, pair_errors, rank_all, rank_some
from corank.kernels.threads import run, set_threads
from reference import counts_in_list, pair_counts


def rows_of(lists):
    indptr = np.r_[0, np.cumsum([len(one) for one in lists])].astype(np.int64)
    return indptr, np.array([i for one in lists for i in one], np.int32)


def subsets(rng, rows, n, most):
    return [sorted(rng.choice(n, rng.integers(0, most + 1), replace=False).tolist()) for _ in range(rows)]


def ranked(kernel, scores, first, test):
    indptr, index = rows_of(test)
    mine, above, tied = (np.empty(index.size, t) for t in (np.float32, np.int32, np.int32))
    candidates, bad = np.empty(len(scores), np.int64), np.zeros(len(scores), np.bool_)
    out = (mine, above, tied, candidates, bad)
    run(kernel, len(scores), scores, *first, indptr, index, *out)
    return out


@pytest.mark.parametrize("levels", [2, 7, 10**6])
@pytest.mark.parametrize("threads", [1, 3])
def test_rank_all_equals_counting(levels: int, threads: int) -> None:
    rng = np.random.default_rng(levels)
    rows, n = 40, 37
    scores = rng.integers(0, levels, (rows, n)).astype(np.float32)
    known, test = subsets(rng, rows, n, 20), subsets(rng, rows, n, 6)
    who = rng.permutation(rows).astype(np.int32)
    set_threads(threads)
    try:
        mine, above, tied, candidates, bad = ranked(rank_all, scores.copy(), (who, *rows_of(known)), test)
    finally:
        set_threads(None)
    assert not bad.any()
    at = 0
    for b in range(rows):
        left = [i for i in range(n) if i not in known[who[b]] or i in test[b]]
        assert candidates[b] == len(left)
        for item in test[b]:
            assert (above[at], tied[at]) == counts_in_list(scores[b, item], scores[b, left])
            assert mine[at] == scores[b, item]
            at += 1


def test_rank_all_masks_known_items_but_never_test_items() -> None:
    scores = np.array([[4, 3, 2, 1]], np.float32)
    _, above, tied, candidates, _ = ranked(rank_all, scores, (np.zeros(1, np.int32), *rows_of([[0, 2]])), [[2, 3]])
    assert above.tolist() == [1, 2]
    assert tied.tolist() == [1, 1]
    assert candidates.tolist() == [3]
    assert scores.tolist() == [[-np.inf, 3, 2, 1]]  # what the top lists are then taken from


def test_minus_infinity_ties_with_candidates_only() -> None:
    scores = np.array([[5, -np.inf, -np.inf, 1, 0]], np.float32)
    _, above, tied, candidates, bad = ranked(rank_all, scores, (np.zeros(1, np.int32), *rows_of([[3, 4]])), [[1]])
    assert (above[0], tied[0], candidates[0], bad[0]) == (1, 2, 3, False)


def test_nan_is_reported_wherever_it_is() -> None:
    for column in range(3):
        scores = np.zeros((2, 3), np.float32)
        scores[1, column] = np.nan
        known = (np.arange(2, dtype=np.int32), *rows_of([[0], [0]]))
        assert ranked(rank_all, scores.copy(), known, [[1], [1]])[4].tolist() == [False, True]
        assert ranked(rank_some, scores.copy(), rows_of([[2], [2]]), [[1], [1]])[4].tolist() == [False, True]


def test_counts_stay_exact_beyond_a_chunk() -> None:
    n = 5 * CHUNK + 3
    scores = np.zeros((1, n), np.float32)
    scores[0, : 2 * CHUNK + 1] = 1
    _, above, tied, _, _ = ranked(rank_all, scores, (np.zeros(1, np.int32), *rows_of([[]])), [[n - 1]])
    assert (above[0], tied[0]) == (2 * CHUNK + 1, n - 2 * CHUNK - 1)


def test_rank_some_equals_counting() -> None:
    rng = np.random.default_rng(1)
    rows, n = 30, 25
    scores = rng.integers(0, 5, (rows, n)).astype(np.float32)
    test = subsets(rng, rows, n, 4)
    others = [[i for i in some if i not in t] for some, t in zip(subsets(rng, rows, n, 8), test, strict=True)]
    _, above, tied, candidates, _ = ranked(rank_some, scores, rows_of(others), test)
    at = 0
    for b in range(rows):
        assert candidates[b] == len(others[b]) + len(test[b])
        for item in test[b]:
            assert (above[at], tied[at]) == counts_in_list(scores[b, item], scores[b, others[b] + test[b]])
            at += 1


def test_pair_errors_equal_counting() -> None:
    rng = np.random.default_rng(2)
    lengths = rng.integers(0, 12, 50)
    indptr = np.r_[0, np.cumsum(lengths)].astype(np.int64)
    scores = rng.integers(0, 6, indptr[-1]).astype(np.float64)
    values = rng.integers(1, 6, indptr[-1]).astype(np.float32)
    out = np.full((3, 50), -1, np.int64)
    run(pair_errors, 50, indptr, scores, values, *out)
    for b, (low, high) in enumerate(itertools.pairwise(indptr)):
        assert tuple(out[:, b]) == pair_counts(scores[low:high].tolist(), values[low:high].tolist())[:3]


# ---- negatives -------------------------------------------------------------------------------------------------------


def drawn(taken, n, count, seed=0, weights=(), rows=None):
    rows = np.arange(len(taken), dtype=np.int32) if rows is None else rows
    out = np.full((rows.size, count), -9, np.int32)
    run(draw, rows.size, rows, *rows_of(taken), np.cumsum(np.array(weights, np.float64)), n, seed, out)
    return out


def test_negatives_are_distinct_free_and_padded() -> None:
    rng = np.random.default_rng(3)
    taken = subsets(rng, 200, 20, 20)
    for weights in ((), rng.integers(0, 4, 20)):
        for row, mine in zip(drawn(taken, 20, 8, weights=weights), taken, strict=True):
            real = row[row >= 0].tolist()
            assert len(real) == min(8, 20 - len(mine)) == len(set(real))
            assert not set(real) & set(mine)
            assert (row[len(real) :] == -1).all()


def test_negatives_depend_on_seed_and_row_alone() -> None:
    taken = [[0], [1], [2], [3]]
    base = drawn(taken, 500, 10)
    assert (base == drawn(taken, 500, 10)).all()
    assert (base[[2, 0]] == drawn(taken, 500, 10, rows=np.array([2, 0], np.int32))).all()
    assert (base != drawn(taken, 500, 10, seed=1)).any(axis=1).all()
    assert len({tuple(row) for row in base}) == 4
    set_threads(3)
    try:
        assert (base == drawn(taken, 500, 10)).all()
    finally:
        set_threads(None)


def successive(weights, count):
    """Probability of each sequence of distinct draws, each in proportion to what is left."""
    for order in itertools.permutations([i for i, w in enumerate(weights) if w > 0], count):
        left, chance = float(sum(weights)), 1.0
        for i in order:
            chance *= weights[i] / left
            left -= weights[i]
        yield order, chance


@pytest.mark.parametrize(
    ("weights", "count", "taken"),
    [
        ((1, 1, 1, 1, 1), 2, []),  # rejection
        ((1, 1, 1), 2, []),  # the exact way from the start
        ((5, 3, 1, 1, 0), 2, []),
        ((900, 3, 2, 1, 1), 2, [0]),  # nearly all the weight is taken: rejection gives up on the way
    ],
)
def test_draws_follow_the_weights(weights, count, taken) -> None:
    rows, n = 20_000, len(weights)
    out = drawn([taken] * rows, n, count, seed=5, weights=() if set(weights) == {1} else weights)
    free = [0 if i in taken else w for i, w in enumerate(weights)]
    seen, counts = np.unique(out, axis=0, return_counts=True)
    found = {tuple(row): c for row, c in zip(seen.tolist(), counts.tolist(), strict=True)}
    chances = dict(successive(free, count))
    assert set(found) <= set(chances)
    assert sum(chances.values()) == pytest.approx(1)
    for order, chance in chances.items():
        deviation = (found.get(order, 0) - rows * chance) / np.sqrt(rows * chance * (1 - chance))
        assert abs(deviation) < 4.5, order


def test_weightless_columns_fill_up_when_nothing_else_is_left() -> None:
    out = drawn([[]] * 300, 6, 4, weights=(2, 0, 1, 0, 0, 0))
    assert all({0, 2} <= set(row.tolist()) for row in out)
    assert {tuple(sorted(set(row.tolist()) - {0, 2})) for row in out} == set(itertools.combinations([1, 3, 4, 5], 2))
