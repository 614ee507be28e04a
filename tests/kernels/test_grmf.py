"""The rows' own part of the half-steps with a graph: factors and gradients, beside differences of the objective."""

from __future__ import annotations

import numpy as np
import pytest

from corank.kernels import grmf, grwmf
from corank.kernels.graph_block import solve_rows
from corank.kernels.threads import run
from graphs import ragged


def differences(f, x, step=1e-5):
    """Central differences of a scalar function of an array."""
    out = np.empty_like(x)
    for at in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[at] += step
        down[at] -= step
        out[at] = (f(up) - f(down)) / (2 * step)
    return out


def prepared(kernel, args, rows, size):
    L = np.full((rows, size * (size + 1) // 2), np.nan, np.float32)
    R = np.full((rows, size), np.nan, np.float32)
    run(kernel, rows, *args, L, R, cost=args[0])
    return L, R


@pytest.mark.parametrize("d", [1, 6, 7, 8, 15, 33])
@pytest.mark.parametrize("biases", [True, False])
def test_ratings_gradient_and_inverse(d, biases):
    indptr, index, value, mean, reg, reg_bias, V, c = ragged(d)
    rng = np.random.default_rng(1)
    rows = indptr.size - 1
    reg_bias = reg_bias if biases else np.inf
    pull = rng.uniform(0.5, 3, rows).astype(np.float32)
    X, bias = (rng.standard_normal(shape).astype(np.float32) for shape in ((rows, d), rows))
    bias *= biases
    L, R = prepared(grmf.prepare, (indptr, index, value, mean, reg, reg_bias, pull, V, c, X, bias), rows, d + 1)
    Z = np.empty_like(R)
    run(solve_rows, rows, L, R, Z, np.empty(rows))
    for r in range(rows):
        at = slice(indptr[r], indptr[r + 1])
        design = np.hstack([V[index[at]].astype(float), np.ones((at.stop - at.start, 1))])
        target = value[at] - mean - c[index[at]].astype(float)
        held = np.append(np.full(d, float(reg[r])), reg_bias if biases else 0.0)
        x = np.append(X[r], bias[r]).astype(float)

        def objective(x, design=design, target=target, held=held):
            return np.square(target - design @ x).sum() + (held * x * x).sum()

        gradient = differences(objective, x)
        M = design.T @ design + np.diag(held + np.append(np.full(d, pull[r]), 0))
        if not biases:
            gradient[d], M[d], M[:, d], M[d, d] = 0, 0, 0, 1
        np.testing.assert_allclose(R[r], -gradient / 2, rtol=1e-3, atol=2e-3)
        np.testing.assert_allclose(Z[r], np.linalg.solve(M, -gradient / 2), rtol=5e-3, atol=2e-3)


@pytest.mark.parametrize("d", [1, 6, 8, 15, 33])
def test_implicit_gradient_inverse_and_loss(d):
    indptr, index, value, _, reg, _, V, _ = ragged(d)
    rng = np.random.default_rng(2)
    rows, rho = indptr.size - 1, np.float32(0.3)
    pull = rng.uniform(0.5, 3, rows).astype(np.float32)
    X = 0.3 * rng.standard_normal((rows, d)).astype(np.float32)
    gram = rho * (V.T @ V)
    L, R = prepared(grwmf.prepare, (indptr, index, value, rho, reg, pull, gram, V, X), rows, d)
    Z, loss = np.empty_like(R), np.empty(rows)
    run(solve_rows, rows, L, R, Z, np.empty(rows))
    run(grwmf.losses, rows, indptr, index, value, rho, reg, gram, V, X, loss, cost=indptr)
    for r in range(rows):
        at = slice(indptr[r], indptr[r + 1])
        weight, target = np.full(len(V), float(rho)), np.zeros(len(V))
        weight[index[at]], target[index[at]] = value[at], 1

        def objective(x, weight=weight, target=target, held=float(reg[r])):
            return (weight * np.square(target - V.astype(float) @ x)).sum() + held * (x @ x)

        x = X[r].astype(float)
        gradient = differences(objective, x)
        M = (V.T.astype(float) * weight) @ V + np.eye(d) * (reg[r] + pull[r])
        np.testing.assert_allclose(R[r], -gradient / 2, rtol=1e-3, atol=2e-3)
        np.testing.assert_allclose(Z[r], np.linalg.solve(M, -gradient / 2), rtol=5e-3, atol=2e-3)
        np.testing.assert_allclose(loss[r], objective(x), rtol=1e-4)
