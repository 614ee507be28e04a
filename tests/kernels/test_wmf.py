"""The row solvers against a dense direct solve, the objective against its double sum, the gradient against
differences.
"""

from __future__ import annotations

import numpy as np
import pytest

from corank.kernels import wmf
from reference import wmf_objective_row, wmf_solve_row

D = 7


@pytest.fixture(params=range(4))
def problem(request):
    rng = np.random.default_rng(request.param)
    rows, m = 12, 15
    lengths = rng.integers(0, m, rows)
    lengths[0] = 0
    index = np.concatenate([np.sort(rng.choice(m, n, replace=False)) for n in lengths]).astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    weight = rng.uniform(1, 5, index.size).astype(np.float32)
    V = rng.normal(size=(m, D)).astype(np.float32)
    reg = rng.uniform(0.05, 2, rows).astype(np.float32)
    rho = np.float32([0.0, 0.01, 0.5, 1.0][request.param])
    X = rng.normal(size=(rows, D)).astype(np.float32)
    return indptr, index, weight, rho, reg, rho * (V.T @ V), V, X


def solve(kernel, problem, effort):
    *args, X = problem
    X, loss = X.copy(), np.empty(len(X))
    kernel(0, len(X), *args, effort, X, loss)
    return X, loss


@pytest.mark.parametrize(("kernel", "effort"), [(wmf.cg, 40), (wmf.blocks, D)])
def test_equals_dense_solve(problem, kernel, effort):
    indptr, index, weight, rho, reg, _, V, _ = problem
    X, _ = solve(kernel, problem, effort)
    for r in range(len(X)):
        mine = slice(indptr[r], indptr[r + 1])
        expected = wmf_solve_row(index[mine], weight[mine], rho, reg[r], V)
        np.testing.assert_allclose(X[r], expected, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize(
    ("kernel", "effort"), [(wmf.cg, 1), (wmf.cg, 3), (wmf.blocks, 2), (wmf.blocks, 3), (wmf.blocks, D)]
)
def test_loss_is_the_objective(problem, kernel, effort):
    indptr, index, weight, rho, reg, _, V, _ = problem
    X, loss = solve(kernel, problem, effort)
    for r in range(len(X)):
        mine = slice(indptr[r], indptr[r + 1])
        assert loss[r] == pytest.approx(
            wmf_objective_row(X[r], index[mine], weight[mine], rho, reg[r], V), rel=2e-4, abs=2e-4
        )


@pytest.mark.parametrize(("kernel", "effort"), [(wmf.cg, 1), (wmf.cg, 2), (wmf.blocks, 1), (wmf.blocks, 3)])
def test_never_rises(problem, kernel, effort):
    indptr, index, weight, rho, reg, gram, V, X = problem
    last = np.full(len(X), np.inf)
    for _ in range(6):
        X, loss = solve(kernel, (indptr, index, weight, rho, reg, gram, V, X), effort)
        assert (loss <= last + 1e-3 * np.abs(loss) + 1e-4).all()
        last = loss


def test_gradient_vanishes_at_the_solution(problem):
    """Central differences of the brute-force objective: an answer to the wrong equations would not be flat."""
    indptr, index, weight, rho, reg, _, V, _ = problem
    X, _ = solve(wmf.blocks, problem, D)
    for r in range(1, len(X)):
        mine = slice(indptr[r], indptr[r + 1])
        for f in range(D):
            step = np.zeros(D)
            step[f] = 1e-3
            up = wmf_objective_row(X[r] + step, index[mine], weight[mine], rho, reg[r], V)
            down = wmf_objective_row(X[r] - step, index[mine], weight[mine], rho, reg[r], V)
            assert abs(up - down) / 2e-3 < 2e-2 * (1 + weight[mine].sum())


def test_blocks_approach_the_exact_solution(problem):
    exact, _ = solve(wmf.blocks, problem, D)
    X = problem[-1]
    for _ in range(300):
        X, _ = solve(wmf.blocks, (*problem[:-1], X), 3)
    np.testing.assert_allclose(X, exact, rtol=2e-2, atol=2e-3)
