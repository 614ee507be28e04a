"""ListRank-MF beyond the contract: its objective, where it ends, its fold-in, and the published figure."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import corank as cr
from corank.evaluation.evaluate import validation_ndcg
from reference import listwise_objective, top_one_loss


def ratings(users=40, items=25, seed=0):
    rng = np.random.default_rng(seed)
    taste = rng.normal(size=(users, 3)) @ rng.normal(size=(items, 3)).T + 0.3 * rng.normal(size=(users, items))
    user, item = np.nonzero(rng.random((users, items)) < 0.5)
    return cr.from_arrays(user=user, item=item, value=np.round(taste[user, item]).clip(-2, 2) + 3)


def objective(data, reg):
    rows = data.csr()
    lists = [(rows.index[a:b], rows.value[a:b]) for a, b in itertools.pairwise(rows.indptr)]
    return lambda U, V: listwise_objective(U, V, [i for i, _ in lists], lambda x, u: top_one_loss(x, lists[u][1]), reg)


@pytest.mark.parametrize("reg", [0.0, 0.01, 0.5])
def test_objective_is_the_cross_entropy(reg):
    data = ratings()
    model = cr.ListMF(dim=4, reg=reg, epochs=7).fit(data)
    expected = objective(data, reg)(model.user_factors_, model.item_factors_)
    assert model.history_[-1]["objective"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("reg", [0.0, 1e-4, 0.05, 10.0])
def test_objective_never_rises(reg):
    values = [entry["objective"] for entry in cr.ListMF(dim=5, reg=reg, epochs=60).fit(ratings()).history_]
    assert all(b <= a * (1 + 2e-8) for a, b in itertools.pairwise(values))
    assert values[-1] < values[0]


def test_ends_where_nothing_is_left_to_gain():
    """The gradient by differences vanishes for every user and every item: no update looks at the wrong item."""
    data = ratings(users=15, items=20)  # nobody rated all alike: they are folded in afterwards
    model = cr.ListMF(dim=3, reg=0.02, epochs=120).fit(data)
    U, V, f = model.user_factors_.astype(float), model.item_factors_.astype(float), objective(data, 0.02)
    at_zero = []
    for X, g in ((U, lambda X: f(X, V)), (V, lambda X: f(U, X))):
        for row in range(len(X)):
            for column in range(3):
                move = np.zeros_like(X)
                move[row, column] = 1e-4
                at_zero.append((g(X + move) - g(X - move)) / 2e-4)
    assert np.abs(at_zero).max() < 1e-3


def test_the_number_of_an_item_is_no_matter():
    """Names change the random start and nothing else: the valley is the same."""
    data = ratings()
    other = cr.from_arrays(user=data.user, item=(7 * data.item + 3) % 25, value=data.value)
    ends = [cr.ListMF(dim=3, reg=0.1, epochs=100).fit(d).history_[-1]["objective"] for d in (data, other)]
    assert ends[0] == pytest.approx(ends[1], rel=2e-3)


def test_orders_what_it_has_seen():
    data = ratings()
    model = cr.ListMF(dim=5, reg=0.005, epochs=60).fit(data)
    scores = model.predict(data.users.ids[data.user], data.items.ids[data.item])
    best = [data.value[mine][np.argmax(scores[mine])] for mine in (data.user == u for u in range(40))]
    top = [data.value[data.user == u].max() for u in range(40)]
    assert np.mean(np.equal(best, top)) > 0.8


def test_huge_ratings_give_finite_factors():
    data = ratings()
    model = cr.ListMF(dim=3).fit(cr.from_arrays(user=data.user, item=data.item, value=1e6 * data.value))
    assert np.isfinite(model.user_factors_).all()
    assert np.isfinite(model.recommend(histories=[[0, 1]], k=3).scores).all()


def test_strangers_are_seen_as_known_users_are():
    data = ratings(users=300, items=80)
    model = cr.ListMF(dim=8, reg=0.02, epochs=60).fit(data)
    rows = data.csr()
    trained = model._score(np.arange(rows.rows, dtype=np.int32))
    pairs = zip(model._score_histories(rows), trained, strict=True)
    assert np.median([np.corrcoef(a, b)[0, 1] for a, b in pairs]) > 0.99


def test_same_factors_for_any_number_of_threads():
    factors = []
    for count in (1, 2, 3):
        cr.set_threads(count)
        model = cr.ListMF(dim=8, epochs=4).fit(ratings(users=90))
        factors.append(np.concatenate([model.user_factors_, model.item_factors_]))
    assert all(np.array_equal(factors[0], f) for f in factors[1:])


@pytest.mark.parametrize(
    "data",
    [
        cr.from_arrays(user=[1, 1, 2, 2], item=[1, 2, 1, 2], value=[3.0] * 4),
        cr.from_arrays(user=[1, 2, 3], item=[1, 2, 3], value=[1.0, 2.0, 3.0]),
    ],
    ids=["one level", "one item a user"],
)
def test_nothing_to_compare_is_a_sentence(data):
    with pytest.raises(cr.CorankError, match="two items of different rating"):
        cr.ListMF().fit(data)


def test_patience_keeps_the_best_epoch():
    split = cr.holdout(ratings(users=200, items=60), valid=0.2, by="user")
    model = cr.ListMF(dim=16, reg=0.001, epochs=80, patience=2).fit(split.train, valid=split.valid)
    found = [entry["ndcg@10"] for entry in model.history_]
    assert len(found) == int(np.argmax(found)) + 3 < 80
    assert validation_ndcg(model, split.valid) == pytest.approx(max(found), abs=1e-9)


@pytest.mark.slow
def test_explicit_table_of_the_dissertation(shared_data):
    """ML-1M, 50 ratings a user: published .733, by a program that updates the vectors of the wrong items."""
    split = cr.fixed_per_user(cr.datasets.load("ml-1m", root=shared_data), train=50)
    model = cr.ListMF().fit(split.train)
    assert cr.evaluate(model, split, ["ndcg@10"], protocol="rated", bootstrap=0)["ndcg@10"] > 0.755
