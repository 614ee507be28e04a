from __future__ import annotations

import numpy as np
import pytest

import reference
from corank.kernels.threads import run
from corank.kernels.topk import mask_rows, select


def best_of(scores, k):
    items = np.full((len(scores), k), 99, np.int32)
    best = np.full((len(scores), k), 99, np.float32)
    run(select, len(scores), scores, items, best)
    return items, best


def assert_is_reference(scores, k):
    items, best = best_of(scores, k)
    for row, got, values in zip(scores, items, best, strict=True):
        want = reference.top_k(row, k)
        assert got[: len(want)].tolist() == want
        assert (got[len(want) :] == -1).all()
        assert (values[: len(want)] == row[want]).all()
        assert (values[len(want) :] == -np.inf).all()


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 31, 32, 33, 100, 257])
@pytest.mark.parametrize("k", [1, 3, 10, 40])
def test_equals_sorting(n, k):
    assert_is_reference(np.random.default_rng(n * k).standard_normal((7, n)).astype(np.float32), k)


@pytest.mark.parametrize("n", [5, 16, 40, 129])
def test_ties_come_by_rising_index(n):
    rng = np.random.default_rng(n)
    assert_is_reference(rng.integers(0, 3, (20, n)).astype(np.float32), 6)
    assert best_of(np.zeros((1, n), np.float32), 4)[0].tolist() == [[0, 1, 2, 3]]


@pytest.mark.parametrize("n", [4, 16, 50])
def test_what_is_masked_never_comes_back(n):
    rng = np.random.default_rng(n)
    scores = rng.standard_normal((10, n)).astype(np.float32)
    scores[rng.random((10, n)) < 0.8] = -np.inf
    scores[0] = -np.inf
    assert_is_reference(scores, 6)


def test_nan_is_never_returned():
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((10, 40)).astype(np.float32)
    scores[rng.random((10, 40)) < 0.3] = np.nan
    scores[3] = np.nan
    assert_is_reference(scores, 8)


def test_infinity_is_the_best():
    scores = np.array([[1, np.inf, 2, np.inf]], np.float32)
    assert best_of(scores, 3)[0].tolist() == [[1, 3, 2]]


def test_rising_and_falling_scores():
    up = np.arange(100, dtype=np.float32)[None]
    assert best_of(up, 3)[0].tolist() == [[99, 98, 97]]
    assert best_of(up[:, ::-1].copy(), 3)[0].tolist() == [[0, 1, 2]]


def test_no_rows():
    assert best_of(np.empty((0, 5), np.float32), 2)[0].shape == (0, 2)


def test_mask_rows_masks_the_row_it_is_told():
    scores = np.zeros((3, 4), np.float32)
    indptr, index = np.array([0, 2, 3], np.int64), np.array([0, 3, 1], np.int32)
    run(mask_rows, 3, scores, np.array([1, -1, 0], np.int32), indptr, index)
    assert np.isinf(scores).tolist() == [
        [False, True, False, False],
        [False, False, False, False],
        [True, False, False, True],
    ]
