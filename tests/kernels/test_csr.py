from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_array

from corank.kernels import csr


def random_triples(seed, n=200, rows=9, columns=7):
    rng = np.random.default_rng(seed)
    row, col = rng.integers(0, rows, n).astype(np.int32), rng.integers(0, columns, n).astype(np.int32)
    return row, col, rng.integers(1, 5, n).astype(np.float32)


@pytest.mark.parametrize("n", [0, 1, 5, 200])
def test_count_is_a_running_total(n):
    row, _, _ = random_triples(n, n)
    indptr = csr.count(row, 9)
    assert indptr.dtype == np.int64
    assert indptr.tolist() == [0, *np.cumsum(np.bincount(row, minlength=9)).tolist()]


def test_stable_order_is_a_stable_sort():
    row, _, _ = random_triples(1)
    order = csr.stable_order(row, np.arange(row.size), csr.count(row, 9))
    np.testing.assert_array_equal(order, np.argsort(row, kind="stable"))


def test_stable_order_visits_equal_keys_as_told():
    row, _, _ = random_triples(2)
    backwards = np.arange(row.size)[::-1].copy()
    order = csr.stable_order(row, backwards, csr.count(row, 9))
    np.testing.assert_array_equal(order, backwards[np.argsort(row[backwards], kind="stable")])


def test_place_keeps_the_order_within_a_row():
    row, col, val = random_triples(3)
    indptr = csr.count(row, 9)
    index, value = csr.place(row, col, val, np.arange(row.size), indptr)
    for r in range(9):
        assert index[indptr[r] : indptr[r + 1]].tolist() == col[row == r].tolist()
        assert value[indptr[r] : indptr[r + 1]].tolist() == val[row == r].tolist()


@pytest.mark.parametrize("seed", range(5))
def test_merged_equals_scipy(seed):
    row, col, val = random_triples(seed, n=60)
    row[row == 4] = 5  # an empty row
    indptr = csr.count(row, 9)
    parts = (indptr, *csr.place(row, col, val, np.arange(row.size), indptr))
    before = [p.copy() for p in parts]
    indptr, index, value = csr.merged(*parts)
    want = coo_array((val, (row, col)), shape=(9, 7)).tocsr()
    want.sum_duplicates()
    assert indptr.tolist() == want.indptr.tolist()
    assert index.tolist() == want.indices.tolist()
    assert value.tolist() == want.data.tolist()
    for part, old in zip(parts, before, strict=True):
        np.testing.assert_array_equal(part, old)


def test_sort_rows_keeps_the_order_of_equal_columns():
    index, value = np.array([3, 1, 3, 1, 2, 3], np.int32), np.arange(6, dtype=np.float32)
    csr.sort_rows(0, 2, np.array([0, 5, 6], np.int64), index, value)
    assert index.tolist() == [1, 1, 2, 3, 3, 3]
    assert value.tolist() == [1, 3, 4, 0, 2, 5]


def test_merged_of_nothing():
    empty = csr.merged(np.zeros(4, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
    assert [part.size for part in empty] == [4, 0, 0]


def test_merge_returns_what_is_left():
    indptr = np.array([0, 3, 3, 5], np.int64)
    index, value = np.array([1, 1, 2, 0, 0], np.int32), np.array([1, 2, 3, 4, 5], np.float32)
    assert csr.merge(indptr, index, value) == 3
    assert indptr.tolist() == [0, 2, 2, 3]
    assert index[:3].tolist() == [1, 2, 0]
    assert value[:3].tolist() == [3, 3, 9]


def test_levels_rank_the_distinct_values_of_each_row():
    value = np.array([3, 1, 3, 5, 2, 2, 0.5], np.float32)
    indptr = np.array([0, 4, 4, 6, 7], np.int64)
    level, width = np.empty(7, np.int32), np.empty(4, np.int32)
    csr.levels(0, 4, indptr, value, level, width)
    assert level.tolist() == [1, 0, 1, 2, 0, 0, 0]
    assert width.tolist() == [3, 0, 1, 1]
