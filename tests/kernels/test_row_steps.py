"""Newton steps against a dense solve, and what they do to the scores."""

from __future__ import annotations

import numpy as np
import pytest

from corank.kernels.row_steps import row_steps

D = 6


@pytest.fixture(params=range(3))
def problem(request):
    """Rows with 0, 1 and more entries, whose gradients stand in another order than the entries do."""
    rng = np.random.default_rng(request.param)
    lengths = np.array([0, 1, 3, 4, 5, 11, 30])
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    n = indptr[-1]
    other, place = rng.integers(0, 20, n).astype(np.int32), rng.permutation(n)
    gradient, curvature = rng.normal(size=n).astype(np.float32), rng.uniform(0, 2, n).astype(np.float32)
    Y, X = rng.normal(size=(20, D)).astype(np.float32), rng.normal(size=(lengths.size, D)).astype(np.float32)
    return indptr, other, place, gradient, curvature, Y, X


def move(problem, reg, steps, share=1.0, scored=True):
    *given, X = problem
    X, score = X.copy(), np.zeros(given[1].size if scored else 0, np.float32)
    row_steps(0, len(X), *given, np.float32(reg), steps, np.float32(share), X, score)
    return X, score


def parts(problem, r, reg):
    """Gradient and bound of the Hessian of a row."""
    indptr, other, place, gradient, curvature, Y, X = problem
    at = slice(indptr[r], indptr[r + 1])
    y = Y[other[at]].astype(float)
    return reg * X[r] + gradient[place[at]] @ y, reg * np.eye(D) + (curvature[place[at]][:, None] * y).T @ y


@pytest.mark.parametrize("reg", [0.3, 5.0])
def test_enough_steps_solve_the_system(problem, reg):
    X, _ = move(problem, reg, 40)
    for r in range(len(X)):
        gradient, hessian = parts(problem, r, reg)
        np.testing.assert_allclose(X[r], problem[-1][r] - np.linalg.solve(hessian, gradient), rtol=1e-3, atol=2e-3)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_every_step_lowers_the_quadratic(problem, steps):
    values = []
    for count in (steps, steps + 1):
        X, _ = move(problem, 0.5, count)
        total = 0.0
        for r in range(len(X)):
            gradient, hessian = parts(problem, r, 0.5)
            change = (X - problem[-1])[r].astype(float)
            total += gradient @ change + change @ hessian @ change / 2
        values.append(total)
    assert values[1] <= values[0] + 1e-4
    assert values[0] < 0


def test_no_steps_mean_the_gradient(problem):
    X, _ = move(problem, 0.5, 0, share=0.1)
    for r in range(len(X)):
        np.testing.assert_allclose(X[r], problem[-1][r] - 0.1 * parts(problem, r, 0.5)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_scores_follow(problem, steps):
    indptr, other, place, *_, Y, before = problem
    X, score = move(problem, 0.5, steps, share=0.7)
    owner = np.repeat(np.arange(len(X)), np.diff(indptr))
    expected = np.einsum("nf,nf->n", (X - before)[owner], Y[other])
    np.testing.assert_allclose(score[place], expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(X, move(problem, 0.5, steps, share=0.7, scored=False)[0])


def test_a_row_without_entries_shrinks_to_nothing(problem):
    assert np.abs(move(problem, 0.5, 2)[0][0]).max() < 1e-6


def test_nothing_to_hold_on_to_is_no_nan(problem):
    """No regularisation, no curvature: a system that cannot be solved leaves the row where it is."""
    indptr, other, place, gradient, curvature, Y, X = problem
    moved, score = move((indptr, other, place, gradient, np.zeros_like(curvature), Y, X), 0.0, 2)
    np.testing.assert_array_equal(moved, X)
    assert (score == 0).all()
