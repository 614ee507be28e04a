from __future__ import annotations

import numpy as np
import pytest

from corank.data import from_scipy
from corank.kernels import ease
from corank.kernels.threads import run


def random_matrix(users, items):
    X = (np.random.default_rng(items).random((users, items)) < 0.2).astype(np.float32)
    X[:, items // 2] = 0
    return X


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 70, 130])
def test_counts_are_the_lower_triangle_of_the_gram_matrix(dtype, n):
    X = random_matrix(40, n)
    rows, columns = from_scipy(X), from_scipy(X.T)
    out = np.full((n, n), np.nan, dtype)
    run(ease.counts, n, columns.indptr, columns.index, rows.indptr, rows.index, 2.5, out)
    np.testing.assert_array_equal(out, np.tril(X.T @ X + 2.5 * np.eye(n, dtype=np.float32)))


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
def test_weights_mirror_and_scale(n, in_place):
    rng = np.random.default_rng(n)
    P = rng.standard_normal((n, n)).astype(np.float32)
    P = P + P.T + 9 * np.eye(n, dtype=np.float32)
    want = -P / np.diag(P)
    np.fill_diagonal(want, 0)
    lower = np.tril(P) + np.triu(np.full((n, n), 77, np.float32), 1)  # what is above the diagonal must not be read
    out = lower if in_place else np.empty_like(lower)
    run(ease.weights, -(-n // ease.TILE), lower, np.diag(P).copy(), out)
    np.testing.assert_allclose(out, want, rtol=1e-6)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 150])
def test_add_rows_is_a_product_with_ones(n):
    X = random_matrix(13, n)
    X[3] = 0
    X[5] = 1
    B = np.random.default_rng(1).standard_normal((n, n)).astype(np.float32)
    rows = from_scipy(X)
    out = np.full((13, n), np.nan, np.float32)
    run(ease.add_rows, -(-n // ease.STRIP), rows.indptr, rows.index, B, out)
    np.testing.assert_allclose(out, X @ B, rtol=1e-4, atol=1e-4)
