from __future__ import annotations

import numpy as np
import pytest

import reference
from corank.data import from_scipy
from corank.kernels import knn
from corank.kernels.threads import run

KINDS = ("cosine", "jaccard", "conditional")


def sparse(X):
    rows, columns = from_scipy(X), from_scipy(X.T)
    return rows, columns


def neighbors(X, kind, shrink, k):
    rows, columns = sparse(X)
    n = X.shape[1]
    items, best = np.empty((n, k), np.int32), np.empty((n, k), np.float32)
    size = (X.astype(np.float64) ** 2).sum(0).astype(np.float32)
    run(knn.neighbors, n, *columns[:3], *rows[:3], size, KINDS.index(kind), shrink, items, best, cost=columns.indptr)
    return items, best


def random_matrix(seed, weighted):
    rng = np.random.default_rng(seed)
    X = (rng.random((14, 11)) < 0.3) * (rng.integers(1, 6, (14, 11)) if weighted else 1)
    X[:, 4] = 0  # an item that nobody took
    X[7] = 0  # a user who took nothing
    return X.astype(np.float32)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shrink", [0.0, 3.5])
@pytest.mark.parametrize("k", [1, 3, 11])
@pytest.mark.parametrize("weighted", [False, True])
def test_equals_brute_force(kind, shrink, k, weighted):
    X = random_matrix(k, weighted)
    items, best = neighbors(X, kind, shrink, k)
    want = reference.similarities(X.astype(np.float64), kind, shrink).astype(np.float32)
    for i in range(X.shape[1]):
        row = np.where(want[i] > 0, want[i], -np.inf)
        near = reference.top_k(row, k)
        np.testing.assert_allclose(best[i, : len(near)], row[near], rtol=1e-5)
        assert (items[i, len(near) :] == -1).all()
        real = items[i][items[i] >= 0]
        np.testing.assert_allclose(want[i][real], row[near], rtol=1e-5)  # the same items, but for ties in the last bit
        assert i not in real


def test_equal_similarities_come_by_rising_index():
    items, best = neighbors(np.ones((3, 5), np.float32), "cosine", 0.0, 3)
    assert items.tolist() == [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2], [0, 1, 2]]
    np.testing.assert_allclose(best, 1.0, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [1, 4, 300])
def test_a_wide_catalogue_of_equals(kind, k):
    """Most items share a user with few others, many to the same degree: order and -1 must not depend on the walk."""
    rng = np.random.default_rng(k)
    X = (rng.random((40, 300)) < 0.02).astype(np.float32)
    X[:3, 7] = X[3, ::2] = 1  # an item and a user with more than the rest
    items, best = neighbors(X, kind, 2.0, k)
    want = reference.similarities(X.astype(np.float64), kind, 2.0).astype(np.float32)
    for i, row in enumerate(want):
        near = reference.top_k(np.where((row > 0) & (np.arange(300) != i), row, -np.inf), k)
        np.testing.assert_array_equal(items[i, : len(near)], near)
        np.testing.assert_array_equal(items[i, len(near) :], -1)
        np.testing.assert_allclose(best[i, : len(near)], row[near], rtol=1e-6)


def test_conditional_is_the_share_of_those_who_took_the_first():
    X = np.array([[1, 1], [1, 0], [1, 0], [1, 1]], np.float32)
    _, best = neighbors(X, "conditional", 0.0, 1)
    np.testing.assert_allclose(best[:, 0], [0.5, 1.0])


def test_add_rows_is_a_sparse_product():
    rng = np.random.default_rng(3)
    X = ((rng.random((9, 11)) < 0.3) * rng.random((9, 11))).astype(np.float32)
    S = ((rng.random((11, 11)) < 0.4) * rng.random((11, 11))).astype(np.float32)
    X[2] = 0
    out = np.full((9, 11), np.nan, np.float32)
    rows = from_scipy(X)
    run(knn.add_rows, 9, *rows[:3], *from_scipy(S)[:3], out, cost=rows.indptr)
    np.testing.assert_allclose(out, X @ S, rtol=1e-5, atol=1e-6)
