"""The cross entropy against its formula, its gradient against differences."""

from __future__ import annotations

import numpy as np
import pytest

from corank.kernels import list_mf
from reference import differences, top_one_loss


def evaluate(score, rating, indptr):
    target, gradient, curvature = np.empty((3, score.size), np.float32)
    loss = np.empty(indptr.size - 1)
    list_mf.targets(0, loss.size, indptr, rating, target)
    list_mf.evaluate(0, loss.size, indptr, target, score, gradient, curvature, loss)
    return target, gradient, curvature, loss


def test_a_thousand_random_lists():
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 12, 1000)
    lengths[:20] = [*[0] * 10, *[1] * 10]
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    score = (rng.choice([0.1, 1, 5, 20], 1000).repeat(lengths) * rng.normal(size=indptr[-1])).astype(np.float32)
    rating = rng.integers(1, 6, indptr[-1]).astype(np.float32)
    rating[: indptr[40]] = 3  # users of one level
    _, gradient, curvature, loss = evaluate(score, rating, indptr)
    for r in range(1000):
        mine = slice(indptr[r], indptr[r + 1])
        x, given = score[mine].astype(float), rating[mine]

        def f(x, given=given):
            return top_one_loss(x, given)

        assert loss[r] == pytest.approx(f(x) if x.size else 0, rel=1e-5, abs=1e-6)
        np.testing.assert_allclose(gradient[mine], differences(f, x), atol=1e-6, rtol=1e-4)
        if r % 20 == 0 and x.size:
            hessian = np.array(
                [differences(lambda y, p=p, f=f: differences(f, y, 1e-3)[p], x, 1e-3) for p in range(x.size)]
            )
            bound = np.diag(curvature[mine].astype(float))
            assert np.linalg.eigvalsh(bound - (hessian + hessian.T) / 2).min() > -1e-4


def test_ratings_of_any_size_are_probabilities():
    rating = np.array([1000, 999, -5000, 0.5, 0.5], np.float32)
    indptr = np.array([0, 3, 5])
    target, *rest = evaluate(np.zeros(5, np.float32), rating, indptr)
    np.testing.assert_allclose(target, [1 / (1 + np.exp(-1)), 1 / (1 + np.e), 0, 0.5, 0.5], rtol=1e-6)
    assert all(np.isfinite(part).all() for part in rest)
