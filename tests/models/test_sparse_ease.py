from __future__ import annotations

import numpy as np
import pytest

import corank as cr
import reference
from corank.experiment.entries import models_for, replaced
from corank.models import sparse_ease
from random_rows import presence, random_data


def weights(model):
    return model._item_weights().scipy().toarray()


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_with_all_items_as_regressors_it_is_ease(rounds):
    data = random_data(n=400)
    X = presence(data)
    assert (X.T @ X > 0).all()  # items without users in common are no candidates of the first round
    model = cr.SparseEASE(reg=5.0, neighbors=50, rounds=rounds).fit(data)
    ease = cr.EASE(reg=5.0).fit(data)
    np.testing.assert_allclose(weights(model), ease.item_weights_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(1 / model.error_, ease.item_precision_, rtol=1e-4)
    everyone = np.arange(25, dtype=np.int32)
    np.testing.assert_allclose(model._score(everyone), ease._score(everyone), rtol=1e-4, atol=1e-5)
    similar, same = model._similar(np.arange(14, dtype=np.int32)), ease._similar(np.arange(14, dtype=np.int32))
    np.testing.assert_allclose(similar[np.isfinite(similar)], same[np.isfinite(similar)], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("neighbors", "rounds"), [(3, 1), (4, 2), (7, 3), (13, 4)])
def test_equals_its_plain_twin(neighbors, rounds):
    rng = np.random.default_rng(neighbors)
    # Sizes that differ, so that no two candidates tie.
    data = cr.from_arrays(user=rng.integers(0, 200, 1500), item=(30 * rng.random(1500) ** 2).astype(int))
    model = cr.SparseEASE(reg=7.3, neighbors=neighbors, rounds=rounds).fit(data)
    want = reference.sparse_ease_weights(presence(data), 7.3, neighbors, rounds)
    np.testing.assert_allclose(weights(model), want, rtol=1e-3, atol=1e-5)
    assert (np.count_nonzero(weights(model), axis=0) <= neighbors).all()


def test_counts_are_those_of_the_users_in_common():
    data = random_data(1)
    X = presence(data)
    want = X.T @ X
    np.fill_diagonal(want, 0)
    got = cr.SparseEASE()._counts(data.csr(), data.csr(by="item"))
    np.testing.assert_array_equal(got.scipy().toarray(), want)


def test_same_weights_for_any_number_of_threads():
    data = random_data(2, users=200, items=60, n=3000)
    found = []
    for count in (1, 2, 3):
        cr.set_threads(count)
        found.append(cr.SparseEASE(neighbors=12).fit(data).sim_value_)
    cr.set_threads(None)
    assert all(np.array_equal(found[0], other) for other in found[1:])


def test_fresh_items_of_an_update_have_the_weights_of_a_fit():
    data = random_data(3, users=60, n=400)
    old = data.take(data.item < 11).compact()
    model = cr.SparseEASE(reg=4.0, neighbors=6).fit(old).update(data.take(data.item >= 11))
    whole = cr.SparseEASE(reg=4.0, neighbors=6).fit(data)
    np.testing.assert_allclose(weights(model)[:, 11:], weights(whole)[:, 11:], rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(weights(model)[:11, :11], weights(cr.SparseEASE(reg=4.0, neighbors=6).fit(old)))


def test_too_many_pairs_are_a_sentence(monkeypatch):
    monkeypatch.setattr(sparse_ease, "free_bytes", lambda: 100)
    with pytest.raises(cr.CorankError, match=r"pairs of items have a user in common, .* leave out the longest hist"):
        cr.SparseEASE()._counts(random_data().csr(), random_data().csr(by="item"))


def test_it_is_compared_where_the_catalogue_is_large():
    small = random_data()
    assert "ease" in models_for("implicit", small)
    assert "sparse_ease" not in models_for("implicit", small)
    large = cr.from_arrays(user=np.arange(12_001) % 7, item=np.arange(12_001))
    assert "sparse_ease" in models_for("implicit", large)
    assert "ease" not in models_for("implicit", large)
    assert replaced("implicit", small) == {}
    assert replaced("implicit", large) == {
        "ease": "above 12,000 items (12,001 here) sparse_ease is compared in its place: name it to run it all the same "
        "(--models ease)"
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ml-1m", "s3rec-beauty"])
def test_as_good_as_ease_on_real_data(name, shared_data):
    split = cr.holdout(cr.datasets.load(name, shared_data), by="user")
    ease, sparse = (cr.evaluate(m.fit(split.train), split, ["ndcg@10"]) for m in (cr.EASE(), cr.SparseEASE()))
    assert sparse["ndcg@10"] > 0.99 * ease["ndcg@10"]
