from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import corank as cr
import reference
from corank.answering.ranking import BLOCK_BYTES, blocks, top_k
from corank.data import Vocab


@pytest.fixture
def ranking():
    vocab = Vocab(np.array(["milk", "rye", "tea"], dtype=object))
    items = np.array([[2, 0], [1, -1], [-1, -1]], np.int32)
    scores = np.array([[0.9, 0.5], [0.25, -np.inf], [-np.inf, -np.inf]], np.float32)
    return cr.Ranking(np.array(["ann", "bob", "cy"], dtype=object), items, scores, vocab)


def test_one_user(ranking):
    assert ranking["ann"] == [("tea", pytest.approx(0.9)), ("milk", 0.5)]
    assert ranking["bob"] == [("rye", 0.25)]
    assert ranking["cy"] == []


def test_user_who_is_not_there(ranking):
    with pytest.raises(cr.CorankError, match="'dan' is not in this ranking of 3 users"):
        ranking["dan"]


def test_iteration_gives_each_user_once(ranking):
    assert [(user, [item for item, _ in row]) for user, row in ranking] == [
        ("ann", ["tea", "milk"]),
        ("bob", ["rye"]),
        ("cy", []),
    ]
    assert len(ranking) == 3


def test_frame_has_no_padding(ranking):
    frame = ranking.to_frame()
    assert frame.columns == ["user", "rank", "item", "score"]
    assert frame.rows() == [("ann", 1, "tea", pytest.approx(0.9)), ("ann", 2, "milk", 0.5), ("bob", 1, "rye", 0.25)]


def test_titles_where_they_are_known(ranking):
    titled = dataclasses.replace(ranking, titles=["Milk", "", "Tea, green"])
    assert titled.to_frame()["title"].to_list() == ["Tea, green", "Milk", None]
    assert titled.to_frame(titles=False).columns == ranking.to_frame().columns


def test_short_repr(ranking):
    assert repr(ranking) == "Ranking(3 users, k=2)"


@pytest.mark.parametrize("backend", ["polars", "pandas", "pyarrow"])
def test_frames_of_any_kind(ranking, backend):
    frame = ranking.to_frame(backend)
    assert type(frame).__module__.startswith(backend)
    assert len(frame) == 3


def test_unknown_backend_names_the_known_ones(ranking):
    with pytest.raises(cr.CorankError, match="'excel' is not known: use 'polars', 'pandas' or 'pyarrow'"):
        ranking.to_frame("excel")


def test_empty_frame_keeps_its_types():
    empty = cr.Ranking(
        np.zeros(0, np.int64), np.zeros((0, 2), np.int32), np.zeros((0, 2), np.float32), Vocab(np.array([1, 2]))
    )
    assert [str(t) for t in empty.to_frame().dtypes] == ["Int64", "Int64", "Int64", "Float32"]


@pytest.mark.parametrize("rows", [0, 1, 15, 16, 17, 1000])
@pytest.mark.parametrize("columns", [0, 1, 1000, 10**7])
def test_blocks_cover_each_row_once_and_stay_small(rows, columns):
    covered = np.zeros(rows, int)
    for part in blocks(rows, columns):
        covered[part] += 1
        size = part.stop - part.start
        assert size <= 16 or size * columns * 4 <= BLOCK_BYTES
    assert (covered == 1).all()


@pytest.mark.parametrize("k", [3, 256, 257, 300])
def test_top_k_by_scan_and_by_sorting_is_the_same(k):
    rng = np.random.default_rng(k)
    scores = rng.integers(0, 40, (6, 400)).astype(np.float32)
    scores[rng.random(scores.shape) < 0.4] = -np.inf
    scores[1] = -np.inf
    scores[2, :350] = np.nan
    items, best = np.full((6, k), 9, np.int32), np.full((6, k), 9, np.float32)
    top_k(scores, k, items, best)
    for row, got, values in zip(scores, items, best, strict=True):
        want = reference.top_k(row, k)
        assert got[: len(want)].tolist() == want
        assert (values[: len(want)] == row[want]).all()
        assert (got[len(want) :] == -1).all()
        assert (values[len(want) :] == -np.inf).all()
