from __future__ import annotations

import numpy as np
import pytest

import reference
from corank.kernels import als
from corank.kernels.threads import run, set_threads


def problem(d, seed=0, rows=12, columns=30):
    """Rows of many lengths: empty ones, those shorter than the 8 entries taken at a time, and longer ones."""
    rng = np.random.default_rng(seed)
    lengths = np.array([0, 1, 2, 7, 8, 9, 15, 16, 17, 24, 29, 0])[:rows]
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    index = np.concatenate([rng.permutation(columns)[:n] for n in lengths]).astype(np.int32)
    value = rng.integers(1, 6, index.size).astype(np.float32)
    reg = rng.uniform(0.1, 2, rows).astype(np.float32)
    V = rng.standard_normal((columns, d)).astype(np.float32)
    c = rng.standard_normal(columns).astype(np.float32)
    return indptr, index, value, 3.2, reg, 0.7, V, c


def solve(args):
    rows, d = args[0].size - 1, args[6].shape[1]
    X, bias = np.full((rows, d), np.nan, np.float32), np.full(rows, np.nan, np.float32)
    run(als.half_step, rows, *args, X, bias, cost=args[0])
    return X, bias


@pytest.mark.parametrize("d", [1, 2, 6, 7, 8, 9, 15, 16, 31, 33])
def test_equals_a_direct_solve(d):
    args = problem(d)
    indptr, index, value, mean, reg, reg_bias, V, c = args
    X, bias = solve(args)
    for r in range(indptr.size - 1):
        at = slice(indptr[r], indptr[r + 1])
        x, b = reference.als_row(value[at] - mean - c[index[at]].astype(float), V[index[at]], reg[r], reg_bias)
        np.testing.assert_allclose(X[r], x, rtol=2e-3, atol=2e-4)
        np.testing.assert_allclose(bias[r], b, rtol=2e-3, atol=2e-4)


def test_rows_without_entries_become_zero():
    X, bias = solve(problem(5))
    assert not X[[0, -1]].any()
    assert not bias[[0, -1]].any()


@pytest.mark.parametrize("count", [2, 3])
def test_threads_change_no_bit(count):
    set_threads(1)
    alone = solve(problem(9))
    set_threads(count)
    together = solve(problem(9))
    set_threads(None)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


def test_repeated_entries_are_repeated_ratings():
    V = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    c = np.zeros(3, np.float32)
    one = np.ones(1, np.float32)
    index, value = np.array([1, 1, 2], np.int32), np.array([5, 3, 1], np.float32)
    X, bias = solve((np.array([0, 3], np.int64), index, value, 3.0, one, 1.0, V, c))
    x, b = reference.als_row(value - 3.0, V[index], 1.0, 1.0)
    np.testing.assert_allclose(X[0], x, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(bias[0], b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", [0, 4, 5, 9, 29, 117, 179, 227])  # the last four have pivots of rounding alone
def test_rounding_never_makes_nonsense(seed):
    """Ten columns of rank two: without care, rounding makes pivots negative and answers of 1e20."""
    rng = np.random.default_rng(seed)
    V = (100 * rng.standard_normal((40, 2)) @ rng.standard_normal((2, 10))).astype(np.float32)
    index = np.arange(40, dtype=np.int32)
    tiny = np.full(1, 1e-9, np.float32)
    value = rng.standard_normal(40).astype(np.float32)
    X, bias = solve((np.array([0, 40], np.int64), index, value, 0.0, tiny, 1e-9, V, np.zeros(40, np.float32)))
    design = np.hstack([V, np.ones((40, 1))]).astype(np.float64)
    best = value - design @ np.linalg.lstsq(design, value, rcond=1e-6)[0]
    error = value - design @ np.append(X[0], bias[0])
    assert error @ error < 1.0001 * best @ best


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_a_singular_system_gives_a_tame_answer(scale):
    """Equal columns and next to no regularisation: any split between them is right, NaN and huge numbers are not."""
    v = np.random.default_rng(0).standard_normal((20, 1)).astype(np.float32) * np.float32(scale)
    V = np.hstack([v, v, v])
    index = np.arange(20, dtype=np.int32)
    value = 2 * v[:, 0] / np.float32(scale)
    tiny = np.full(1, 1e-9, np.float32)
    X, bias = solve((np.array([0, 20], np.int64), index, value, 0.0, tiny, 1e-9, V, np.zeros(20, np.float32)))
    assert np.isfinite(X).all()
    np.testing.assert_allclose(V @ X[0] + bias[0], value, atol=0.02 * np.abs(value).max())


def test_losses_add_up_the_squared_errors():
    args = problem(6)
    indptr, index, value, mean, _, _, V, c = args
    X, bias = solve(args)
    loss = np.full(indptr.size - 1, np.nan)
    run(als.losses, loss.size, indptr, index, value, mean, V, c, X, bias, loss)
    for r in range(loss.size):
        errors = [value[p] - mean - c[index[p]] - bias[r] - X[r] @ V[index[p]] for p in range(indptr[r], indptr[r + 1])]
        np.testing.assert_allclose(loss[r], np.square(errors).sum(), rtol=1e-4, atol=1e-6)
