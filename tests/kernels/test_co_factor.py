"""Ratings and ties of the same rows, beside a dense solve; and the zeros that are drawn."""

from __future__ import annotations

import numpy as np
import pytest

from corank.kernels import als, co_factor
from corank.kernels.threads import run, set_threads
from graphs import ragged


def ties(rows=12, columns=20, d=4, seed=3):
    rng = np.random.default_rng(seed)
    lengths = np.array([5, 0, 3, 8, 1, 9, 0, 7, 16, 2, 11, 0])[:rows]
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    index = np.concatenate([rng.permutation(columns)[:n] for n in lengths]).astype(np.int32)
    value = rng.integers(0, 2, index.size).astype(np.float32)
    return indptr, index, value, rng.standard_normal((columns, d)).astype(np.float32)


@pytest.mark.parametrize("d", [1, 4, 7, 16])
def test_equals_a_direct_solve(d):
    indptr, index, value, mean, reg, reg_bias, V, c = ragged(d)
    tie_indptr, tie_index, tie_value, W = ties(d=d)
    rows, mu = indptr.size - 1, 0.4
    X, bias = np.full((rows, d), np.nan, np.float32), np.full(rows, np.nan, np.float32)
    tied = (tie_indptr, tie_index, tie_value, mu, W)
    run(co_factor.half_step, rows, indptr, index, value, mean, reg, reg_bias, *tied, V, c, X, bias)
    for r in range(rows):
        at, to = slice(indptr[r], indptr[r + 1]), slice(tie_indptr[r], tie_indptr[r + 1])
        design = np.hstack([V[index[at]].astype(float), np.ones((at.stop - at.start, 1))])
        second = np.hstack([W[tie_index[to]].astype(float), np.zeros((to.stop - to.start, 1))])
        A = design.T @ design + mu * second.T @ second + np.diag([float(reg[r])] * d + [reg_bias])
        y = design.T @ (value[at] - mean - c[index[at]].astype(float)) + mu * second.T @ tie_value[to]
        expected = np.linalg.solve(A, y)
        np.testing.assert_allclose(X[r], expected[:d], rtol=2e-3, atol=5e-4)
        np.testing.assert_allclose(bias[r], expected[d], rtol=2e-3, atol=5e-4)


def test_without_ties_it_is_als():
    args = ragged(5)
    rows = args[0].size - 1
    none = (np.zeros(rows + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), 1.0, np.zeros((0, 5), "f4"))
    answers = []
    for call, more in ((als.half_step, ()), (co_factor.half_step, none)):
        X, bias = np.empty((rows, 5), np.float32), np.empty(rows, np.float32)
        run(call, rows, *args[:6], *more, *args[6:], X, bias)
        answers.append((X, bias))
    np.testing.assert_allclose(answers[0][0], answers[1][0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(answers[0][1], answers[1][1], rtol=1e-4, atol=1e-5)


def zeros(seed, wanted=3, columns=12, rows=2_000):
    """Rows that all have the columns 0, 5 and 11."""
    indptr = 3 * np.arange(rows + 1)
    index = np.tile(np.array([0, 5, 11], np.int32), rows)
    out = np.empty(rows * wanted, np.int32)
    run(co_factor.draw_zeros, rows, indptr, index, columns, seed, wanted * np.arange(rows + 1), out)
    return out.reshape(rows, wanted)


def test_zeros_are_distinct_free_and_alike_likely():
    drawn = zeros(0)
    assert all(np.unique(row).size == 3 for row in drawn)
    counts = np.bincount(drawn.ravel(), minlength=12)
    assert not counts[[0, 5, 11]].any()
    # 6,000 draws over 9 columns: 667 each, standard deviation below 24.
    free = np.delete(counts, [0, 5, 11])
    assert np.abs(free - 6_000 / 9).max() < 5 * 24


def test_zeros_depend_on_the_seed_and_not_on_threads():
    assert (zeros(0) != zeros(1)).any()
    set_threads(3)
    together = zeros(0)
    set_threads(1)
    np.testing.assert_array_equal(zeros(0), together)
    set_threads(None)
