"""What a worker's users contribute to half-steps of items: against sums that are written out."""

from __future__ import annotations

import numpy as np
import pytest

from corank.data import row_ends
from corank.kernels.partial import equations, packed_size, products, solutions, sums

LENGTHS = [0, 1, 3, 4, 9, 17, 40]


@pytest.fixture(params=[1, 5, 8, 64])
def rows(request):
    rng = np.random.default_rng(request.param)
    d, n = request.param, sum(LENGTHS)
    c, w = rng.uniform(-1, 2, (2, n)).astype(np.float32)
    index = rng.integers(0, 30, n).astype(np.int32)
    U, X = rng.standard_normal((30, d), np.float32), rng.standard_normal((len(LENGTHS), d), np.float32)
    return row_ends(LENGTHS), index, c, w, U, X


def test_products_and_sums(rows):
    indptr, index, c, w, U, X = rows
    image, target = np.full_like(X, np.nan), np.full_like(X, np.nan)
    products(0, len(X), indptr, index, c, U, X, image)
    sums(0, len(X), indptr, index, w, U, target)
    for r in range(len(X)):
        own = slice(indptr[r], indptr[r + 1])
        Z = U[index[own]].astype(np.float64)
        np.testing.assert_allclose(image[r], (c[own] * (Z @ X[r])) @ Z, atol=1e-4 * U.shape[1])
        np.testing.assert_allclose(target[r], w[own] @ Z, atol=1e-4)


@pytest.mark.parametrize("biases", [0, 1])
@pytest.mark.parametrize("unit", [False, True])
def test_equations_of_two_workers(rows, biases, unit):
    """The equations of two workers, added up and solved, are those of all entries."""
    indptr, index, c, w, U, X = rows
    d = U.shape[1]
    size = d + biases
    c = np.abs(c) + np.float32(0.1)
    packed = np.zeros((len(X), packed_size(size)), np.float32)
    for users in (index < 12, index >= 12):
        part = row_ends(np.add.reduceat(np.append(users, 0), indptr[:-1]) * (np.diff(indptr) > 0))
        weights = np.empty(0, np.float32) if unit else c[users]
        share = np.full_like(packed, np.nan)
        for first in (0, 3):  # in blocks
            stop = min(first + 3, len(X)) if first == 0 else len(X)
            equations(0, stop - first, first, part, index[users], weights, w[users], U, biases, share[first:stop])
        packed += share
    rng = np.random.default_rng(0)
    half = rng.standard_normal((size, size)).astype(np.float32)
    gram, reg, last = half @ half.T, rng.uniform(1, 2, len(X)).astype(np.float32), np.full(len(X), 0.7, np.float32)
    weight = rng.uniform(1, 2, len(X)) * (np.diff(indptr) > 0)
    found, loss = np.full((len(X), size), np.nan, np.float32), np.full(len(X), np.nan)
    solutions(0, len(X), packed, gram, reg, last, weight, found, loss)
    for r in range(len(X)):
        own = slice(indptr[r], indptr[r + 1])
        if indptr[r] == indptr[r + 1]:
            assert not found[r].any()
            assert loss[r] == 0
            continue
        Z = U[index[own]].astype(np.float64)
        Z = np.column_stack([Z, np.ones(len(Z))]) if biases else Z
        A = gram + np.diag(np.append(np.full(size - 1, reg[r]), last[r]))
        A = A + (Z if unit else c[own, None] * Z).T @ Z
        b = w[own] @ Z
        x = np.linalg.solve(A, b)
        np.testing.assert_allclose(found[r], x, atol=2e-3)
        assert loss[r] == pytest.approx(weight[r] - 2 * x @ b + x @ A @ x, abs=5e-3)
