"""The sampling kernels alone: streams, the exact walk through what is left, and rows that take every column."""

from __future__ import annotations

import numpy as np

from corank.kernels import random, sample
from corank.kernels.threads import run

FIRST = np.array([0, 3, 4, 8])
MEMBER = np.array([5, 0, 7, 2, 1, 3, 6, 4], np.int32)
RUNGS = np.array([0.2, 0.9, 1.0, 1.0, 0.1, 0.3, 0.6, 1.0])
WITHIN = np.array([0.2, 0.7, 0.1, 1.0, 0.1, 0.2, 0.3, 0.4])  # what RUNGS adds up, group by group
TASTE = np.array([0.5, 0.1, 0.4], np.float32)
LAW = WITHIN * np.repeat(TASTE, np.diff(FIRST))  # of the sorted columns


def draw(rows: int, each: int, ladder: np.ndarray, seed: int = 9) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`each` choices of `rows` rows of equal taste: item, time, score, one row a line."""
    indptr = np.arange(rows + 1) * each
    item, time = np.empty(rows * each, np.int32), np.empty(rows * each, np.int64)
    score = np.empty(rows * each, np.float32)
    begin, end = np.zeros(rows, np.int64), np.full(rows, 2_000, np.int64)
    taste, lift, columns = np.tile(TASTE, (rows, 1)), np.zeros(rows), np.arange(8.0)
    laws = (taste, ladder, FIRST, MEMBER, lift, columns, 0.5, 0.0)
    run(sample.choices, rows, seed, indptr, begin, end, 1_000, *laws, item, time, score, cost=indptr)
    return item.reshape(rows, each), time.reshape(rows, each), score.reshape(rows, each)


def test_the_walk_gives_each_column_left_its_share() -> None:
    mark = np.full(8, -1)
    mark[[0, 2, 6]] = 4  # row 4 has had these columns
    steps = 20_000
    picks = [sample._scan((x + 0.5) / steps, mark, 4, TASTE, RUNGS, FIRST, MEMBER) for x in range(steps)]
    left = np.where(np.isin(MEMBER, [0, 2, 6]), 0, LAW)
    np.testing.assert_allclose(np.bincount(picks, minlength=8) / steps, left / left.sum(), atol=2 / steps)
    # Marks of another row forbid nothing, and the very end of the scale is still a column that is left.
    assert sample._scan(0.99999999, mark, 3, TASTE, RUNGS, FIRST, MEMBER) == 7
    mark[4] = 4
    assert MEMBER[sample._scan(1.0, mark, 4, TASTE, RUNGS, FIRST, MEMBER)] == 3


def test_a_row_can_take_every_column() -> None:
    # One column has all but 1e-12 of its group: rejection would never find the others.
    rungs = RUNGS.copy()
    rungs[4:7] = 1e-12, 2e-12, 3e-12
    item, _, _ = draw(200, 8, np.vstack([rungs, rungs]))
    assert (np.sort(item, axis=1) == np.arange(8)).all()


def test_choices_follow_the_period_of_their_time() -> None:
    other = np.array([0.8, 0.9, 1.0, 1.0, 0.7, 0.8, 0.9, 1.0])
    item, time, score = draw(100_000, 1, np.vstack([RUNGS, other]))
    group = np.repeat(np.arange(3), np.diff(FIRST))
    laws = LAW, TASTE[group] * np.array([0.8, 0.1, 0.1, 1.0, 0.7, 0.1, 0.1, 0.1])
    for period, law in enumerate(laws):
        drawn = item[time // 1_000 == period]
        share = np.bincount(drawn, minlength=8)[MEMBER] / drawn.size
        assert (np.abs(share - law) < 5 * np.sqrt(law * (1 - law) / drawn.size)).all()
    # Without noise a score is the stated preference.
    where = np.argsort(MEMBER)[item]
    np.testing.assert_allclose(score, 0.5 * np.log(3 * TASTE[group[where]]) + item, rtol=1e-5)


def test_times_are_sorted_and_uniform() -> None:
    _, time, _ = draw(20_000, 4, np.vstack([RUNGS, RUNGS]))
    assert (np.diff(time, axis=1) >= 0).all()
    assert time.min() >= 0
    assert time.max() < 2_000
    quarter = np.bincount(time.ravel() // 500, minlength=4) / time.size
    assert np.abs(quarter - 0.25).max() < 0.01
    # Order statistics of four uniform times: k / 5 of the span on average.
    np.testing.assert_allclose(time.mean(axis=0) / 2_000, [0.2, 0.4, 0.6, 0.8], atol=0.01)


def test_streams_are_uniform_normal_and_unlike_each_other() -> None:
    state = np.empty(1, np.uint64)
    heads = np.empty((2_000, 5))
    for row in range(2_000):
        random.seek(state, 7, row)
        heads[row] = [random.uniform(state) for _ in range(5)]
    assert heads.min() >= 0
    assert heads.max() < 1
    assert np.unique(heads).size == heads.size
    assert np.abs(np.corrcoef(heads.T) - np.eye(5)).max() < 0.12
    assert abs(np.corrcoef(heads[:-1, 0], heads[1:, 0])[0, 1]) < 0.12  # neighbouring rows
    assert abs(heads.var() - 1 / 12) < 0.003
    normal = np.array([random.normal(state) for _ in range(20_000)])
    assert abs(normal.mean()) < 0.04
    assert abs(normal.std() - 1) < 0.03
    assert abs((np.abs(normal) < 1.96).mean() - 0.95) < 0.01


def test_grades_count_the_cuts_below() -> None:
    score = np.array([-5.0, 0.0, 0.5, 1.0, 9.0], np.float32)
    run(sample.grades, 5, score, np.array([0.0, 1.0]))
    assert score.tolist() == [1, 1, 2, 2, 3]
