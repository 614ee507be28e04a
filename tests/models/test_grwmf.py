"""GRWMF beyond the contract: its objective and half-step beside dense ones, wmf without a graph, cold users."""

from __future__ import annotations

import dataclasses
import itertools
from functools import partial

import numpy as np
import pytest

import corank as cr
from corank.graph import side_graph
from corank.models.grwmf import GRWMF
from corank.models.wmf import WMF
from graphs import rated

KINDS = ["g", "g3", "dna-1", "dna-2"]
random_data = partial(rated, users=14, items=11, n=60, levels=3, share=0.2)


def written_down(data, kind, side):
    A = side_graph(getattr(data, f"{side}_graph"), kind, capacity=4).scipy().toarray()
    return np.diag(A.sum(1)) - A


def dense(model, data):
    """Weight and target of every pair: users x items."""
    weight, target = np.full((2, len(data.users), len(data.items)), float(model.rho_))
    target[:] = 0
    rows = data.csr().scipy().tocoo()
    weight[rows.row, rows.col], target[rows.row, rows.col] = 1 + model.alpha * rows.data, 1
    return weight, target


def best_items(model, data, lap, mu):
    """All items' vectors, and those of the nodes that are no items, from one dense system."""
    (weight, target), U = dense(model, data), model.user_factors_.astype(float)
    n, d = len(data.items), model.dim
    H = mu * np.kron(lap, np.eye(d))
    y = np.zeros(len(H))
    for i in range(n):
        at = slice(i * d, (i + 1) * d)
        H[at, at] += (U.T * weight[:, i]) @ U + model._reg(model._weighted(data.csr("item")))[i] * np.eye(d)
        y[at] = U.T @ (weight[:, i] * target[:, i])
    return np.linalg.lstsq(H, y, rcond=1e-12)[0][: n * d].reshape(n, d)


def objective(model, data, laps, mu):
    weight, target = dense(model, data)
    U, V = model.user_factors_.astype(float), model.item_factors_.astype(float)
    total = (weight * np.square(target - U @ V.T)).sum()
    for side, X in (("user", U), ("item", V)):
        total += (model._reg(model._weighted(data.csr(side)))[:, None] * X * X).sum()
        lap, n = laps[side], len(X)
        P = np.linalg.lstsq(lap[n:, n:], -lap[n:, :n] @ X, rcond=None)[0] if len(lap) > n else X[:0]
        total += mu * np.trace(np.vstack([X, P]).T @ lap @ np.vstack([X, P]))
    return total


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_items_end_at_the_minimum_of_a_dense_direct_solve(kind, alpha):
    """The last half-step of an epoch is the items'."""
    data = random_data(1, cold=[3])
    options = {"dim": 3, "epochs": 2, "steps": 300, "capacity": 4, "reg": 0.05}
    model = GRWMF(user_graph="g", item_graph=kind, reg_graph=0.3, alpha=alpha, **options).fit(data)
    expected = best_items(model, data, written_down(data, kind, "item"), 0.3)
    np.testing.assert_allclose(model.item_factors_, expected, rtol=5e-3, atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_objective_is_the_true_one(kind):
    data = random_data(2)
    model = GRWMF(dim=4, epochs=3, reg_graph=0.2, user_graph=kind, item_graph="g2", capacity=4).fit(data)
    laps = {"user": written_down(data, kind, "user"), "item": written_down(data, "g2", "item")}
    np.testing.assert_allclose(model.history_[-1]["objective"], objective(model, data, laps, 0.2), rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reg_graph", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("items", ["none", "g"])
def test_objective_never_rises(kind, reg_graph, items):
    model = GRWMF(dim=5, epochs=25, reg_graph=reg_graph, user_graph=kind, item_graph=items, capacity=4)
    for before, after in itertools.pairwise(e["objective"] for e in model.fit(random_data(3)).history_):
        assert after <= before * (1 + 1e-6)


@pytest.mark.parametrize("solver", ["cg", "exact", "blocks"])
@pytest.mark.parametrize("options", [{"reg_graph": 0.0}, {"user_graph": "none", "item_graph": "none"}])
def test_without_a_graph_it_is_wmf(solver, options):
    data = random_data(4)
    one, other = GRWMF(dim=6, solver=solver, **options).fit(data), WMF(dim=6, solver=solver).fit(data)
    np.testing.assert_array_equal(one.user_factors_, other.user_factors_)
    np.testing.assert_array_equal(one.item_factors_, other.item_factors_)
    assert [e["objective"] for e in one.history_] == [e["objective"] for e in other.history_]


def test_cold_users_rank_what_their_friends_take():
    rng = np.random.default_rng(5)
    camp = np.arange(60) % 2
    known = (rng.random((60, 20)) < 0.6) & (camp[:, None] == np.arange(20) % 2)
    known[:10] = False
    known[10:12] = camp[10:12, None] == np.arange(20) % 2
    A = np.triu((rng.random((60, 60)) < 0.2) & (camp[:, None] == camp), 1)
    user, item = np.nonzero(known)
    vocabulary = cr.from_arrays(user=np.append(user, np.arange(10)), item=np.append(item, np.zeros(10)))
    ones = np.ones(user.size)
    data = cr.Dataset(vocabulary.users, vocabulary.items, user, item, ones, user_graph=cr.from_scipy(A + A.T))
    for kind in KINDS:
        model = GRWMF(dim=4, user_graph=kind, reg_graph=0.5, capacity=40).fit(data)
        top = model.recommend(np.arange(10), k=5)
        assert (top.items % 2 == camp[:10, None]).all(), kind
        assert (top.scores > 0.01).all(), kind
    assert not WMF(dim=4).fit(data).user_factors_[:10].any()


def test_strangers_are_folded_in_as_in_wmf(tmp_path):
    data = random_data(6)
    model = GRWMF(dim=4, user_graph="dna-2", capacity=4).fit(data)
    plain = WMF(**{f.name: getattr(model, f.name) for f in dataclasses.fields(WMF)})
    for name in ("item_factors_", "rho_", "reg_", "confidence_"):
        setattr(plain, name, getattr(model, name))
    np.testing.assert_array_equal(model._score_histories(data.csr()), plain._score_histories(data.csr()))


@pytest.mark.parametrize("kind", ["g", "g3", "dna-2"])
def test_threads_change_no_bit(kind):
    data = random_data(7, users=60, items=40, n=600)
    fits = []
    for count in (1, 2, 3):
        cr.set_threads(count)
        fits.append(GRWMF(dim=5, user_graph=kind, item_graph=kind, capacity=30).fit(data))
    for other in fits[1:]:
        np.testing.assert_array_equal(fits[0].user_factors_, other.user_factors_)
        np.testing.assert_array_equal(fits[0].item_factors_, other.item_factors_)


def test_a_killed_fit_goes_on_where_it_was(tmp_path):
    data, file = random_data(8), tmp_path / "state"
    options = {"dim": 4, "user_graph": "dna-2", "capacity": 4, "epochs": 6}
    GRWMF(**options).fit(data, checkpoint=file, on_epoch=lambda entry: entry["epoch"] < 3)
    resumed, whole = GRWMF(**options).fit(data, checkpoint=file), GRWMF(**options).fit(data)
    np.testing.assert_array_equal(resumed.user_factors_, whole.user_factors_)


def test_the_default_is_not_worse_than_wmf():
    """With friends who like similar things and with friends at random."""
    for homophily in (0.9, 0.0):
        made = cr.synthetic.realistic(users=800, items=500, rows=16_000, groups=10, homophily=homophily, seed=2)
        split = cr.holdout(made.data, by="user")
        found = {
            model: float(cr.evaluate(model().fit(split.train), split, ["ndcg@10"], bootstrap=0)["ndcg@10"])
            for model in (GRWMF, WMF)
        }
        assert found[GRWMF] > 0.97 * found[WMF], (homophily, found)
