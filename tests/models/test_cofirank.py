"""CofiRank beyond the contract: its objective, its two losses, fold-in and bad input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import corank as cr
from reference import cofirank_loss


def ratings(seed=0, users=30, items=14, share=0.45, levels=5):
    rng = np.random.default_rng(seed)
    taste = rng.normal(size=(users, 2)) @ rng.normal(size=(2, items)) + 0.2 * rng.normal(size=(users, items))
    user, item = np.nonzero(rng.random((users, items)) < share)
    return cr.from_arrays(user=user, item=item, value=np.digitize(taste[user, item], np.linspace(-2, 2, levels - 1)))


def test_objective_is_the_loss_over_all_orders():
    data = ratings(users=10, items=7, share=0.8, levels=3)
    model = cr.CofiRank(dim=3, reg=0.2, epochs=4, top_k=3).fit(data)
    total = 0.0
    for u in range(len(data.users)):
        mine = data.user == u
        if np.unique(data.value[mine]).size > 1:
            score = model.item_factors_[data.item[mine]].astype(float) @ model.user_factors_[u]
            total += cofirank_loss(score, data.value[mine], 3) + 0.1 * (model.user_factors_[u] ** 2).sum()
    total += 0.1 * (model.item_factors_**2).sum()
    assert model.history_[-1]["objective"] == pytest.approx(total, rel=1e-4)


@pytest.mark.parametrize(
    "options", [{}, {"passes": 1}, {"reg": 0.01}, {"reg": 3.0}, {"top_k": 1}, {"loss": "regression", "reg": 0.5}]
)
def test_objective_never_rises(options):
    model = cr.CofiRank(**{"dim": 4, "reg": 0.3, "epochs": 15, **options}).fit(ratings())
    values = [h["objective"] for h in model.history_]
    assert all(b <= a * (1 + 1e-6) for a, b in itertools.pairwise(values)), values
    assert values[-1] < values[0]


@pytest.mark.parametrize("loss", ["ndcg", "regression"])
def test_order_is_learned(loss):
    split = cr.holdout(ratings(seed=5, users=80, items=20, share=0.7), test=0.2, valid=0.0)
    model = cr.CofiRank(dim=2, loss=loss).fit(split.train)
    assert cr.evaluate(model, split, ["pairwise_error"], protocol="rated")["pairwise_error"] < 0.25


def test_regression_is_ridge_regression():
    """After the last half-step each user's vector solves the user's normal equations."""
    data = ratings(seed=1)
    model = cr.CofiRank(dim=3, reg=0.7, loss="regression", epochs=5).fit(data)
    V = model.item_factors_.astype(float)
    for u in range(len(data.users)):
        mine = data.user == u
        X = V[data.item[mine]]
        expected = np.linalg.solve(X.T @ X + 0.7 * np.eye(3), X.T @ data.value[mine])
        np.testing.assert_allclose(model.user_factors_[u], expected, rtol=1e-2, atol=1e-3)
    misfit = data.value - np.einsum("nf,nf->n", model.user_factors_[data.user], V[data.item])
    penalty = 0.35 * ((model.user_factors_**2).sum() + (V**2).sum())
    assert model.history_[-1]["objective"] == pytest.approx(0.5 * (misfit**2).sum() + penalty, rel=1e-4)


@pytest.mark.parametrize("loss", ["ndcg", "regression"])
def test_fold_in_knows_what_fit_knows(loss):
    """Folded in with their own ratings, users of the training set are ordered much as before."""
    data = ratings(seed=4, share=0.7)
    model = cr.CofiRank(dim=2, reg=0.3, loss=loss, epochs=30).fit(data)
    users = np.arange(len(data.users), dtype=np.int32)
    known, folded = model._score(users), model._score_histories(data.csr())
    agreement = [np.corrcoef(a, b)[0, 1] for a, b in zip(known, folded, strict=True)]
    assert np.median(agreement) > 0.98
    assert np.min(agreement) > 0.5


def test_long_lists_are_cut():
    data = ratings(seed=6, share=0.9)
    model = cr.CofiRank(dim=2, reg=0.3, list_length=4)
    rows = data.csr()
    cut = model._cut(rows)
    assert np.diff(cut.indptr).max() == 4
    for r in range(rows.rows):
        mine, left = slice(rows.indptr[r], rows.indptr[r + 1]), slice(cut.indptr[r], cut.indptr[r + 1])
        whole = dict(zip(rows.index[mine], rows.value[mine], strict=True))
        assert all(whole[i] == v for i, v in zip(cut.index[left], cut.value[left], strict=True))
        assert (np.diff(cut.index[left]) > 0).all()
    assert np.isfinite(model.fit(data).user_factors_).all()


@pytest.mark.parametrize("loss", ["ndcg", "regression"])
def test_same_factors_for_any_number_of_threads(loss):
    factors = []
    for count in (1, 2, 3):
        cr.set_threads(count)
        model = cr.CofiRank(dim=3, epochs=4, loss=loss).fit(ratings())
        factors.append(np.concatenate([model.user_factors_, model.item_factors_]))
    assert all(np.array_equal(factors[0], f) for f in factors[1:])


def test_negative_ratings_have_no_gain():
    data = cr.from_arrays(user=[1, 1, 2, 2], item=[1, 2, 1, 2], value=[-1.0, 3.0, 2.0, 1.0])
    with pytest.raises(cr.CorankError, match=r"-1.*regression"):
        cr.CofiRank().fit(data)
    cr.CofiRank(loss="regression").fit(data)


@pytest.mark.parametrize(
    "data",
    [
        cr.from_arrays(user=[1, 1, 2, 2], item=[1, 2, 1, 2], value=[3.0, 3.0, 3.0, 3.0]),
        cr.from_arrays(user=[1, 2, 3], item=[1, 2, 3], value=[1.0, 2.0, 3.0]),
    ],
    ids=["one level", "one item a user"],
)
def test_nothing_to_order_is_a_sentence(data):
    with pytest.raises(cr.CorankError, match="two items of different rating"):
        cr.CofiRank().fit(data)


@pytest.mark.parametrize("bad", [{"reg": 0.0}, {"dim": 0}, {"passes": 0}, {"loss": "hinge"}, {"list_length": 1}])
def test_bad_values_are_sentences(bad):
    with pytest.raises(cr.CorankError, match=next(iter(bad))):
        cr.CofiRank(**bad).fit(ratings())


@pytest.mark.parametrize("reg", [1e-6, 1e9])
def test_extreme_regularisation_gives_finite_factors(reg):
    model = cr.CofiRank(dim=3, reg=reg, epochs=5).fit(ratings())
    assert np.isfinite(model.user_factors_).all()
    assert np.isfinite(model.item_factors_).all()


def test_who_rated_everything_alike_is_answered_too():
    data = ratings(seed=8, share=0.7)
    more = cr.from_arrays(
        user=np.append(data.user, [99, 99]), item=np.append(data.item, [0, 1]), value=np.append(data.value, [3, 3])
    )
    model = cr.CofiRank(dim=2, reg=0.3).fit(more)
    liked = model._score(np.array([len(model.users_) - 1], np.int32))[0]
    assert liked[:2].mean() > liked.mean()
