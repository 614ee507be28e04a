from __future__ import annotations

import numpy as np
import pytest

import corank as cr
import reference
from corank import memory
from corank.models import ease


def random_data(seed=0, users=25, items=14, n=120):
    rng = np.random.default_rng(seed)
    return cr.from_arrays(user=rng.integers(0, users, n), item=rng.integers(0, items, n), value=rng.integers(1, 6, n))


def presence(data):
    X = np.zeros((len(data.users), len(data.items)))
    X[data.user, data.item] = 1
    return X


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
    monkeypatch.setattr(memory, "free_bytes", lambda: 1000)
    with pytest.raises(cr.CorankError, match=r"14 items .* needs 0\.0 GB .* use item_knn or wmf"):
        cr.EASE().fit(random_data())
    monkeypatch.setattr(memory, "free_bytes", lambda: 24_000_000_000)
    many = 100_000
    huge = cr.from_arrays(user=np.zeros(many, int), item=np.arange(many))
    with pytest.raises(cr.CorankError, match=r"100,000 items .* needs 50\.0 GB and 24\.0 GB are free"):
        cr.EASE().fit(huge)


def test_the_largest_public_catalogue_fits_in_24_gb(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: 23_000_000_000)
    made = []
    monkeypatch.setattr(ease.np, "empty", lambda shape, dtype: made.append((shape, dtype)))
    cr.EASE()._room(41_140)
    assert made == [((41_140, 41_140), np.float32)]


def test_memory_that_runs_out_all_the_same_is_a_sentence(monkeypatch):
    def full(shape, dtype):
        raise MemoryError

    monkeypatch.setattr(memory, "free_bytes", lambda: None)
    monkeypatch.setattr(ease.np, "empty", full)
    with pytest.raises(cr.CorankError, match="use item_knn or wmf"):
        cr.EASE()._room(41_140)


def test_free_memory_is_known_here():
    free = memory.free_bytes()
    assert free is None or free > 1_000_000


def test_a_matrix_that_cannot_be_inverted_is_a_sentence():
    with pytest.raises(cr.CorankError, match="raise reg"):
        cr.EASE()._invert(np.array([[1.0, 0.0], [2.0, 1.0]]))


@pytest.mark.slow
def test_beats_popularity_on_real_data(movielens):
    split = cr.holdout(movielens, by="user")
    mine, floor = (cr.evaluate(m.fit(split.train), split, ["ndcg@10"]) for m in (cr.EASE(), cr.Popularity()))
    assert mine["ndcg@10"] > 1.8 * floor["ndcg@10"]
