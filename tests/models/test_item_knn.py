from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import corank as cr
import reference
from toys import play_counts


def random_data(seed=0, users=15, items=12, n=70):
    rng = np.random.default_rng(seed)
    return cr.from_arrays(user=rng.integers(0, users, n), item=rng.integers(0, items, n), value=rng.integers(1, 6, n))


def dense(data):
    X = np.zeros((len(data.users), len(data.items)))
    X[data.user, data.item] = data.value
    return X


@pytest.mark.parametrize("similarity", ["cosine", "jaccard", "conditional"])
@pytest.mark.parametrize("neighbors", [2, 100])
def test_scores_are_sums_of_similarities(similarity, neighbors):
    data = random_data()
    X = (dense(data) > 0).astype(float)
    model = cr.ItemKNN(similarity=similarity, neighbors=neighbors, shrink=2.0, weighting="none").fit(data)
    S = reference.similarities(X, similarity, 2.0)
    if neighbors < 12:
        # Ties between kept and dropped neighbours are settled on float32 numbers, as the model sees them.
        S = reference.top_neighbors(S.astype(np.float32), neighbors).astype(float)
    np.testing.assert_allclose(model._score(np.arange(len(X), dtype=np.int32)), X @ S, rtol=1e-4, atol=1e-6)


def test_value_weighting_uses_values_on_both_sides():
    data = random_data(1)
    X = dense(data)
    model = cr.ItemKNN(weighting="value", shrink=0.0).fit(data)
    want = X @ reference.similarities(X, "cosine", 0.0)
    np.testing.assert_allclose(model._score(np.arange(len(X), dtype=np.int32)), want, rtol=1e-4, atol=1e-5)


def test_tfidf_by_hand():
    data = random_data(2)
    X = dense(data)
    W = np.sqrt(X) * np.log1p(X.shape[1] / np.maximum((X > 0).sum(1, keepdims=True), 1))
    model = cr.ItemKNN(weighting="tfidf", shrink=1.0).fit(data)
    want = X @ reference.similarities(W, "cosine", 1.0)
    np.testing.assert_allclose(model._score(np.arange(len(X), dtype=np.int32)), want, rtol=1e-4, atol=1e-5)


def test_idf_is_tfidf_of_presence():
    """Weights of mean square 1: without `shrink` nothing but the scale of the weights differs, which cosines lose."""
    data = random_data(2)
    ones = dataclasses.replace(data, value=np.ones_like(data.value))
    users = np.arange(len(data.users), dtype=np.int32)
    model = cr.ItemKNN(weighting="idf", shrink=0.0).fit(data)
    want = cr.ItemKNN(weighting="tfidf", shrink=0.0).fit(ones)._score(users)
    np.testing.assert_allclose(model._score(users), want, rtol=1e-5)
    rows = data.csr()
    weight = model._weights(rows, data.csr("item"))[0]
    assert np.square(weight).mean() == pytest.approx(1, rel=1e-5)
    model = cr.ItemKNN(weighting="idf", shrink=1.0).fit(data)
    negative = dataclasses.replace(data, value=-data.value)
    np.testing.assert_array_equal(model._score(users), cr.ItemKNN(shrink=1.0).fit(negative)._score(users))


def test_bm25_by_hand():
    data = random_data(3)
    X = dense(data)
    length = X.sum(0) / X.sum(0)[X.sum(0) > 0].mean()
    W = X * 2.2 / (X + 1.2 * (0.25 + 0.75 * length)) * np.log1p(X.shape[1] / (X > 0).sum(1, keepdims=True))
    model = cr.ItemKNN(weighting="bm25", shrink=1.0).fit(data)
    want = X @ reference.similarities(W, "cosine", 1.0)
    np.testing.assert_allclose(model._score(np.arange(len(X), dtype=np.int32)), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("weighting", ["none", "idf", "value", "tfidf", "bm25"])
def test_fold_in_of_a_training_user_is_that_user(weighting):
    data = random_data(4)
    model = cr.ItemKNN(weighting=weighting).fit(data)
    np.testing.assert_array_equal(
        model._score_histories(data.sequences()), model._score(np.arange(len(data.users), dtype=np.int32))
    )


def test_presence_ignores_values_and_repetition():
    data = random_data(5)
    model = cr.ItemKNN().fit(data)
    ids = data.items.ids[:3].tolist()
    once = model.recommend(histories=[ids], k=5)
    again = model.recommend(histories=[ids + ids[:1] * 4], k=5)
    np.testing.assert_array_equal(once.scores, again.scores)
    ones = cr.from_arrays(user=data.users.ids[data.user], item=data.items.ids[data.item])
    np.testing.assert_array_equal(cr.ItemKNN().fit(ones).sim_value_, model.sim_value_)


def test_unlisted_items_are_not_similar():
    data = cr.from_arrays(user=[1, 1, 2, 2], item=["a", "b", "c", "d"])
    ranking = cr.ItemKNN().fit(data).similar_items(["a", "c"], k=3)
    assert [i for i, _ in ranking["a"]] == ["b"]
    assert [i for i, _ in ranking["c"]] == ["d"]


def test_no_more_neighbors_than_asked_for_and_best_first():
    model = cr.ItemKNN(neighbors=3).fit(random_data(6, n=150))
    lengths = np.diff(model.sim_indptr_)
    assert lengths.max() == 3
    for start, length in zip(model.sim_indptr_, lengths, strict=False):
        assert (np.diff(model.sim_value_[start : start + length]) <= 0).all()


def test_shrink_distrusts_few_shared_users():
    user = [1, 1, *np.repeat(np.arange(2, 22), 2)]
    item = ["rare", "rare too", *["usual", "usual too"] * 20]
    data = cr.from_arrays(user=user, item=item)
    near = {shrink: cr.ItemKNN(shrink=shrink, weighting="none").fit(data) for shrink in (0.0, 10.0)}
    top = {shrink: [m.similar_items([i])[i][0][1] for i in ("rare", "usual")] for shrink, m in near.items()}
    np.testing.assert_allclose(top[0.0], [1.0, 1.0], rtol=1e-5)
    np.testing.assert_allclose(top[10.0], [1 / 11, 20 / 30], rtol=1e-5)


@pytest.mark.parametrize("weighting", ["value", "tfidf", "bm25"])
def test_negative_values_cannot_be_weights(weighting):
    data = cr.from_arrays(user=[1, 1, 2], item=[1, 2, 2], value=[1.0, -2.0, 1.0])
    with pytest.raises(cr.CorankError, match="-2: shift them or use weighting='idf'"):
        cr.ItemKNN(weighting=weighting).fit(data)
    assert cr.ItemKNN().fit(data).recommend([2])[2][0][0] == 1
    model = cr.ItemKNN(weighting=weighting).fit(cr.from_arrays(user=[1, 1], item=[1, 2]))
    with pytest.raises(cr.CorankError, match="-3"):
        model.recommend(histories=[{1: -3.0}])


@pytest.mark.slow
def test_beats_popularity_on_real_data(movielens):
    split = cr.holdout(movielens, by="user")
    mine, floor = (cr.evaluate(m.fit(split.train), split, ["ndcg@10"]) for m in (cr.ItemKNN(), cr.Popularity()))
    assert mine["ndcg@10"] > 1.4 * floor["ndcg@10"]


@pytest.mark.parametrize("weighting", ["value", "tfidf", "bm25"])
def test_a_count_weighs_its_logarithm_in_a_score(weighting):
    """One song that a user plays all day must not decide the list."""
    plays = play_counts(users=40, items=60, rows=600)
    assert plays.values == "counts"
    model = cr.ItemKNN(weighting=weighting, neighbors=60, shrink=10.0).fit(plays)
    X = dense(plays)
    n = len(plays.items)
    S = np.zeros((n, n), np.float32)
    S[np.repeat(np.arange(n), np.diff(model.sim_indptr_)), model.sim_index_] = model.sim_value_
    np.testing.assert_allclose(model._score(np.arange(40, dtype=np.int32)), np.log1p(X) @ S, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model._score_histories(plays.csr()), np.log1p(X) @ S, rtol=1e-4, atol=1e-5)
    if weighting == "value":
        want = reference.similarities(np.log1p(X), "cosine", 10.0)
        np.testing.assert_allclose(S, want, rtol=1e-4, atol=1e-5)
