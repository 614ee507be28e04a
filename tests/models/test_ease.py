from __future__ import annotations

import re

import numpy as np
import pytest

import corank as cr
import reference
from corank import training
from corank.cost import Size
from corank.data import restricted
from corank.kernels import inverse
from corank.models import ease
from random_rows import presence, random_data


@pytest.fixture(params=[np.float64, np.float32], ids=["double", "single"])
def precision(request, monkeypatch):
    if request.param is np.float32:
        monkeypatch.setattr(ease, "DOUBLE_UP_TO", 0)
    return request.param


@pytest.mark.parametrize("reg", [0.5, 20.0])
def test_weights_are_regressions_of_each_item_on_the_others(precision, reg):
    data = random_data()
    model = cr.EASE(reg=reg).fit(data)
    np.testing.assert_allclose(model.item_weights_, reference.ease_weights(presence(data), reg), rtol=1e-3, atol=1e-5)
    assert model.item_weights_.dtype == np.float32
    assert not np.diag(model.item_weights_).any()


def test_scores_are_the_history_times_the_weights(precision):
    data = random_data(1)
    model = cr.EASE(reg=5.0).fit(data)
    want = presence(data) @ model.item_weights_
    np.testing.assert_allclose(model._score(np.arange(25, dtype=np.int32)), want, rtol=1e-4, atol=1e-5)


def test_fold_in_of_a_training_user_is_that_user():
    data = random_data(2)
    model = cr.EASE().fit(data)
    np.testing.assert_array_equal(model._score_histories(data.sequences()), model._score(np.arange(25, dtype=np.int32)))


def test_repetition_and_values_change_nothing():
    data = random_data(3)
    model = cr.EASE().fit(data)
    once, again = model.recommend(histories=[[1, 2]]), model.recommend(histories=[{1: 5.0, 2: 1.0}])
    np.testing.assert_array_equal(once.scores, again.scores)
    np.testing.assert_array_equal(once.scores, model.recommend(histories=[[2, 1, 1, 1]]).scores)


def test_similarity_is_the_partial_correlation():
    data = random_data(4)
    X = presence(data)
    P = np.linalg.inv(X.T @ X + 7.0 * np.eye(X.shape[1]))
    want = -P / np.sqrt(np.outer(np.diag(P), np.diag(P)))
    np.fill_diagonal(want, 0)
    got = cr.EASE(reg=7.0).fit(data)._similar(np.arange(X.shape[1], dtype=np.int32))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(got, got.T, rtol=1e-4, atol=1e-6)


def test_an_item_without_rows_has_no_weights():
    data = random_data(5)
    model = cr.EASE().fit(data.take(data.item != 3))
    assert not model.item_weights_[3].any()
    assert not model.item_weights_[:, 3].any()


def test_catalogue_beyond_memory_is_a_sentence(monkeypatch):
    free = [1000]
    monkeypatch.setattr(training, "free_bytes", lambda: free[0])
    with pytest.raises(
        cr.CorankError, match=r"14 items needs \d+ kB and .* are free: .* use sparse_ease, item_knn or wmf"
    ):
        cr.EASE().fit(random_data())
    free[0] = 24_000_000_000
    many = 100_000
    huge = cr.from_arrays(user=np.zeros(many, int), item=np.arange(many))
    with pytest.raises(cr.CorankError, match=r"100,000 items needs 50\.0 GB and 24\.0 GB are free: max_items=61000 "):
        cr.EASE().fit(huge)


def test_the_smaller_model_that_is_suggested_fits():
    size = Size(1000, 100_000, np.full(1000, 50))
    suggested = int(re.search(r"max_items=(\d+) ", cr.EASE()._smaller(size, 24_000_000_000))[1])
    assert cr.EASE(max_items=suggested)._memory(size) < 24e9 < cr.EASE()._memory(size)
    assert "max_items" not in cr.EASE()._smaller(size, 1_000_000)  # nothing worth having fits


def test_the_largest_public_catalogue_fits_in_24_gb():
    assert cr.EASE()._memory(Size(30_000, 41_140, np.full(30_000, 35))) < 23e9


def test_memory_that_runs_out_all_the_same_is_a_sentence(monkeypatch):
    def full(shape, dtype):
        raise MemoryError

    monkeypatch.setattr(ease.np, "empty", full)
    with pytest.raises(cr.CorankError, match="use sparse_ease, item_knn or wmf"):
        cr.EASE()._room(41_140)


def test_a_matrix_that_cannot_be_inverted_is_a_sentence():
    with pytest.raises(cr.CorankError, match="raise reg"):
        cr.EASE()._invert(np.array([[1.0, 0.0], [2.0, 1.0]]))


def test_blocks_give_the_weights_of_one_block(monkeypatch, precision):
    data = random_data(6, items=40, n=300)
    whole = cr.EASE(reg=3.0).fit(data).item_weights_
    monkeypatch.setattr(inverse, "BLOCK", 7)
    np.testing.assert_allclose(cr.EASE(reg=3.0).fit(data).item_weights_, whole, rtol=1e-3, atol=1e-6)


def test_progress_is_reported_and_can_stop_between_blocks(monkeypatch):
    monkeypatch.setattr(inverse, "BLOCK", 4)
    monkeypatch.setattr(training, "OFTEN", 0.0)
    data, heard = random_data(7), []
    cr.EASE().fit(data, on_progress=heard.append)
    shares = [event["share"] for event in heard]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)
    assert {event["what"] for event in heard} == {"counting pairs of items", "inverting the counts"}
    assert all(event["left"] >= 0 and event["seconds"] >= 0 for event in heard)
    seen = len(heard)
    model = cr.EASE()
    with pytest.raises(cr.errors.Stopped, match=r"the fit of ease was stopped after \d+%"):
        model.fit(data, on_progress=lambda event: heard.append(event) or event["what"] != "inverting the counts")
    assert len(heard) < 2 * seen
    with pytest.raises(cr.CorankError, match="not fitted"):
        model.recommend([1])


def test_max_items_is_ease_of_the_most_popular_items():
    data = random_data(8, items=30, n=200)
    model = cr.EASE(reg=5.0, max_items=12).fit(data)
    counts = np.bincount(data.item, minlength=30)
    kept = np.sort(np.argsort(-counts, kind="stable")[:12])
    small = cr.EASE(reg=5.0).fit(restricted(data, np.arange(len(data.users)), kept))
    everyone = np.arange(len(data.users), dtype=np.int32)
    got = model._score(everyone)
    np.testing.assert_allclose(got[:, kept], small._score(everyone), rtol=1e-4, atol=1e-6)
    rest = np.setdiff1d(np.arange(30), kept)
    assert (got[:, rest].max(axis=1) < got[:, kept].min(axis=1)).all()
    by_popularity = rest[np.argsort(-counts[rest], kind="stable")]
    assert (np.diff(got[:, by_popularity], axis=1) <= 0).all()
    np.testing.assert_allclose(model._similar(kept)[:, kept], small._similar(np.arange(12)), rtol=1e-4, atol=1e-6)
    assert np.isneginf(model._similar(rest[:2])).all()


def test_max_items_survives_a_file(tmp_path):
    data = random_data(9)
    model = cr.EASE(max_items=5).fit(data)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(cr.load(tmp_path / "m").recommend([1, 2]).scores, model.recommend([1, 2]).scores)


def test_max_items_beyond_the_catalogue_changes_nothing():
    data = random_data(10)
    np.testing.assert_array_equal(cr.EASE(max_items=99).fit(data).item_weights_, cr.EASE().fit(data).item_weights_)


@pytest.mark.slow
def test_beats_popularity_on_real_data(movielens):
    split = cr.holdout(movielens, by="user")
    mine, floor = (cr.evaluate(m.fit(split.train), split, ["ndcg@10"]) for m in (cr.EASE(), cr.Popularity()))
    assert mine["ndcg@10"] > 1.8 * floor["ndcg@10"]
