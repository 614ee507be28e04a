"""Products and sums at sparse entries, and the polynomials of the sigmoid, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from corank.kernels.vectors import inner_products, longest_row, sigmoids, weighted_sum, weighted_sums


@pytest.fixture(params=range(3))
def matrix(request):
    """Sparse rows of 0 to 8 entries over 9 columns, and factors of both sides."""
    rng = np.random.default_rng(request.param)
    lengths = np.concatenate([[0, 1, 4], rng.integers(0, 9, 30)])
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    index = np.concatenate([np.sort(rng.choice(9, n, replace=False)) for n in lengths]).astype(np.int32)
    owner = np.repeat(np.arange(lengths.size, dtype=np.int32), lengths)
    U, V = rng.normal(size=(lengths.size, 5)).astype(np.float32), rng.normal(size=(9, 5)).astype(np.float32)
    return indptr, index, owner, U, V


def test_inner_products_of_the_entries(matrix):
    indptr, index, owner, U, V = matrix
    out = np.empty(index.size, np.float32)
    inner_products(0, len(U), indptr, index, U, V, out)
    np.testing.assert_allclose(out, np.einsum("nf,nf->n", U[owner], V[index]), rtol=1e-5, atol=1e-6)
    assert longest_row(0, len(U), indptr) == np.diff(indptr).max()
    assert longest_row(0, 1, indptr) == 0


@pytest.mark.parametrize("dim", [5, 4000], ids=["one block of rows", "three blocks"])
def test_weighted_sums_by_column(dim):
    rng = np.random.default_rng(dim)
    owner, index = np.nonzero(rng.random((600, 9)) < 0.1)
    U, V = rng.normal(size=(600, dim)).astype(np.float32), rng.normal(size=(9, dim)).astype(np.float32)
    weight = rng.normal(size=index.size).astype(np.float32)
    place = np.lexsort((owner, index))
    columns = np.concatenate([[0], np.cumsum(np.bincount(index, minlength=9))]).astype(np.int64)
    out = np.empty_like(V)
    weighted_sums(0, 9, columns, owner[place].astype(np.int32), place, weight, U, np.float32(0.5), V, out)
    expected = 0.5 * V.astype(float)
    np.add.at(expected, index, weight[:, None].astype(float) * U[owner])
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", [0, 1, 4, 7])
def test_weighted_sum_of_rows(n):
    rng = np.random.default_rng(n)
    rows, weight, x = (rng.normal(size=s).astype(np.float32) for s in ((7, 5), 7, 5))
    out = np.empty(5, np.float32)
    weighted_sum(n, rows, weight, np.float32(0.3), x, out)
    np.testing.assert_allclose(out, 0.3 * x + weight[:n] @ rows[:n], rtol=1e-5, atol=1e-5)


def both(score):
    bits = np.empty(score.size, np.int32)
    h, growth = np.empty((2, score.size), np.float32)
    sigmoids(score.size, score, bits, bits.view(np.float32), h, growth)
    return h.astype(float), growth.astype(float)


def test_right_to_single_precision():
    score = np.linspace(-40, 40, 200_001).astype(np.float32)
    h, growth = both(score)
    expected = 1 / (1 + np.exp(-score.astype(float)))
    np.testing.assert_allclose(h, expected, rtol=2e-6, atol=1e-30)
    np.testing.assert_allclose(growth, np.exp(expected), rtol=5e-7)


def test_ends_and_middle():
    h, growth = both(np.array([0, 1e-30, 500, -500, 3e38, -3e38, np.inf, -np.inf], np.float32))
    np.testing.assert_allclose(h, [0.5, 0.5, 1, 0, 1, 0, 1, 0], atol=1e-30)
    np.testing.assert_allclose(growth, np.exp(h), rtol=5e-7)


def test_nan_stays_nan():
    h, growth = both(np.array([1.0, np.nan, 2.0], np.float32))
    assert np.isnan([h[1], growth[1]]).all()
    assert np.isfinite([h[0], growth[0], h[2], growth[2]]).all()
