"""Shared vectors in GRMF and GRWMF: beside dense direct solves, cold users, and what every model must do."""

from __future__ import annotations

import dataclasses
import itertools
from functools import partial

import numpy as np
import pytest

import corank as cr
from corank.graph.lazy_walk import shells
from corank.models.als import ALS
from corank.models.grmf import GRMF
from corank.models.grwmf import GRWMF
from corank.models.wmf import WMF
from graphs import rated, tribes

KINDS = ["g", "g2", "dna-1", "dna-2", "dna-3"]
random_data = partial(rated, users=16, items=12, n=90, weighted=True)


def matrix(data, kind, side="user"):
    return shells(getattr(data, f"{side}_graph"), kind, capacity=4).scipy().toarray().astype(float)


def best(pulls, hold, S, weight):
    """Rows and shared vectors of one coordinate system at the minimum of

    sum_r x_r' N_r x_r - 2 y_r.x_r + sum_f hold_rf (x_r - (S w)_r)_f^2 + lam_f |w_f|^2, all unknowns in one system.

    pulls : (N_r, y_r) of each row; hold : [rows, f]. Where nothing holds a row, any pull brings it to what it shares.
    """
    (n, f), c = hold.shape, S.shape[1]
    lam = hold.mean(axis=0) / weight
    hold = np.where(hold == 0, 1.0, hold)
    H, y = np.zeros(((n + c) * f, (n + c) * f)), np.zeros((n + c) * f)
    for r, (N, b) in enumerate(pulls):
        H[r * f : (r + 1) * f, r * f : (r + 1) * f] += N
        y[r * f : (r + 1) * f] = b
    for k in range(f):
        rows, shared = np.arange(n) * f + k, (n + np.arange(c)) * f + k
        D = hold[:, k, None]
        H[rows, rows] += hold[:, k]
        H[np.ix_(rows, shared)] -= D * S
        H[np.ix_(shared, rows)] -= (D * S).T
        H[np.ix_(shared, shared)] += S.T @ (D * S) + lam[k] * np.eye(c)
    found = np.linalg.solve(H, y).reshape(n + c, f)
    x, w = found[:n], found[n:]
    energy = (hold * np.square(x - S @ w)).sum() + (lam * np.square(w)).sum()
    return x, energy


def rating_pulls(model, data):
    """Normal equations of the users' vectors and biases."""
    for u in range(len(data.users)):
        own = data.user == u
        A = np.column_stack([model.item_factors_[data.item[own]], np.ones(own.sum())]).astype(float)
        yield A.T @ A, A.T @ (data.value[own] - model.mean_ - model.item_bias_[data.item[own]])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reg_power", [0.0, 1.0])
def test_users_end_at_the_minimum_of_a_dense_direct_solve(kind, reg_power):
    """The last half-step of an epoch is the users'; biases are shared too, and two users have no ratings."""
    data = random_data(1, cold=[3, 7])
    options = {"dim": 3, "epochs": 2, "reg": 0.2, "reg_power": reg_power, "steps": 300, "capacity": 4}
    model = GRMF(form="shared", user_graph=kind, item_graph="none", reg_graph=2.0, **options).fit(data)
    reg = model.reg * np.bincount(data.user, minlength=16).astype(float) ** reg_power
    hold = np.column_stack([reg, reg, reg, np.full(16, model.reg_bias)])
    x, penalty = best(rating_pulls(model, data), hold, matrix(data, kind), 2.0)
    np.testing.assert_allclose(model.user_factors_, x[:, :3], rtol=5e-3, atol=2e-3)
    np.testing.assert_allclose(model.user_bias_, x[:, 3], rtol=5e-3, atol=2e-3)
    # The objective, the users' part of the penalty being that of the dense solve.
    V = model.item_factors_.astype(float)
    guess = model.mean_ + x[data.user, 3] + model.item_bias_[data.item] + (x[data.user, :3] * V[data.item]).sum(1)
    held = model.reg * np.bincount(data.item, minlength=12).astype(float) ** reg_power
    total = np.square(data.value - guess).sum() + penalty + (held[:, None] * V * V).sum()
    total += model.reg_bias * np.square(model.item_bias_.astype(float)).sum()
    np.testing.assert_allclose(model.history_[-1]["objective"], total, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_items_of_implicit_feedback_end_there_too(kind, alpha):
    """The last half-step of an epoch is the items'."""
    data = random_data(2)
    options = {"dim": 3, "epochs": 2, "steps": 300, "capacity": 4, "reg": 0.05, "alpha": alpha, "reg_graph": 2.0}
    model = GRWMF(form="shared", user_graph="none", item_graph=kind, **options).fit(data)
    weight, target = np.full((12, 16), float(model.rho_)), np.zeros((12, 16))
    rows = data.csr("item").scipy().tocoo()
    weight[rows.row, rows.col], target[rows.row, rows.col] = 1 + alpha * rows.data, 1
    U = model.user_factors_.astype(float)
    pulls = [((U.T * w) @ U, U.T @ (w * t)) for w, t in zip(weight, target, strict=True)]
    hold = np.repeat(model._reg(model._weighted(data.csr("item")))[:, None], 3, axis=1).astype(float)
    x, penalty = best(pulls, hold, matrix(data, kind, "item"), 2.0)
    np.testing.assert_allclose(model.item_factors_, x, rtol=5e-3, atol=2e-3)
    total = (weight * np.square(target - x @ U.T)).sum() + penalty
    total += (model._reg(model._weighted(data.csr()))[:, None] * U * U).sum()
    np.testing.assert_allclose(model.history_[-1]["objective"], total, rtol=1e-5)


@pytest.mark.parametrize("model", [GRMF, GRWMF])
@pytest.mark.parametrize("kind", ["g2", "dna-2"])
@pytest.mark.parametrize("reg_graph", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("steps", [1, 3])
def test_objective_never_rises(model, kind, reg_graph, steps):
    options = {"dim": 5, "epochs": 25, "reg_graph": reg_graph, "steps": steps, "capacity": 4}
    fitted = model(form="shared", user_graph=kind, item_graph="g", **options).fit(random_data(3, cold=[1]))
    for before, after in itertools.pairwise(e["objective"] for e in fitted.history_):
        assert after <= before * (1 + 1e-6)


def test_next_to_nothing_shared_is_almost_als():
    data = random_data(4)
    options = {"dim": 3, "epochs": 200, "reg": 0.5}
    one = GRMF(form="shared", reg_graph=1e-6, user_graph="g2", item_graph="none", **options).fit(data)
    other = ALS(**options).fit(data)
    everybody = np.arange(16, dtype=np.int32)
    np.testing.assert_allclose(one._score(everybody), other._score(everybody), atol=0.02)
    zero = GRMF(form="shared", reg_graph=0.0, **options).fit(data)
    np.testing.assert_array_equal(zero.user_factors_, other.user_factors_)


@pytest.mark.parametrize("kind", KINDS)
def test_cold_users_are_predicted_from_those_around_them(kind):
    """Two tribes that like opposite items; ten users have friends in one of them and nothing else."""
    data = tribes(60, 20, cold=10)
    cold = np.arange(50, 60, dtype=np.int32)
    ratings = GRMF(dim=4, form="shared", user_graph=kind, reg_graph=3.0, capacity=60).fit(data)
    liked = data.take(data.value >= 3)
    taken = GRWMF(dim=4, form="shared", user_graph=kind, reg=0.05, reg_graph=3.0, capacity=60).fit(liked)
    for model in (ratings, taken):
        top = np.argsort(-model._score(cold), axis=1)[:, :5]
        assert (top % 2 == cold[:, None] % 2).all()


def test_shared_vectors_find_the_truth_of_the_simulation_where_ties_do_not():
    """Mean squared errors on the same rows: below those of ties of the same depth by more than their noise."""
    split = cr.synthetic.simulation(users=1_000, items=300, rank=5, edge=0.01, train=0.03, valid=0.0).split
    errors = []
    for form in ("shared", "ties"):
        options = {"dim": 5, "biases": False, "reg_power": 0.0, "user_graph": "g2", "reg": 0.3, "epochs": 30}
        weight = {"reg_graph": 10.0, "walk": 0.6} if form == "shared" else {"reg_graph": 0.2, "graph_weights": "0.01"}
        model = GRMF(form=form, **options, **weight).fit(split.train)
        errors.append(np.square(model._predict(split.test.user, split.test.item) - split.test.value))
    gap = errors[1] - errors[0]
    assert gap.mean() > 4 * gap.std() / np.sqrt(gap.size)


# ---- as every model ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [GRMF, GRWMF])
def test_threads_change_no_bit(model):
    data = random_data(5, users=60, items=40, n=900)
    fits = []
    for count in (1, 2, 3):
        cr.set_threads(count)
        options = {"dim": 5, "user_graph": "dna-2", "item_graph": "g2", "capacity": 30}
        fits.append(model(form="shared", **options).fit(data))
    for other in fits[1:]:
        np.testing.assert_array_equal(fits[0].user_factors_, other.user_factors_)
        np.testing.assert_array_equal(fits[0].item_factors_, other.item_factors_)


@pytest.mark.parametrize(("model", "plain"), [(GRMF, ALS), (GRWMF, WMF)])
def test_a_killed_fit_goes_on_where_it_was_and_keeps_no_graph(model, plain, tmp_path):
    data, file = random_data(6), tmp_path / "state"
    options = {"dim": 4, "form": "shared", "user_graph": "dna-2", "item_graph": "g", "capacity": 4, "epochs": 6}
    model(**options).fit(data, checkpoint=file, on_epoch=lambda entry: entry["epoch"] < 3)
    resumed, whole = model(**options).fit(data, checkpoint=file), model(**options).fit(data)
    np.testing.assert_array_equal(resumed.user_factors_, whole.user_factors_)
    assert set(whole._learned()) == {*plain(dim=4).fit(data)._learned(), "form_"}


def test_whoever_has_neither_friends_nor_ratings_is_like_nobody():
    data = random_data(7, cold=[0])
    A = data.user_graph.scipy().toarray()
    A[0], A[:, 0] = 0, 0
    alone = dataclasses.replace(data, user_graph=cr.from_scipy(A))
    model = GRMF(dim=3, form="shared", user_graph="dna-2", capacity=1).fit(alone)
    assert not model.user_factors_[0].any()
    assert model.user_factors_[1:].any(axis=1).all()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"graph_weights": "0.1", "user_graph": "dna-2"},
            "graph_weights, threshold, order and reg_bits are for form='ties'",
        ),
        ({"order": 2}, "order and reg_bits are for form='ties'"),
        ({"threshold": 0.5, "user_graph": "g2"}, "threshold, order"),
        ({"reg_bits": 0.5, "user_graph": "dna-2"}, "reg_bits are for form='ties'"),
        ({"form": "parts"}, "ties"),
        ({"walk": 0.0}, "walk must be at least 0.01"),
    ],
)
def test_what_does_not_go_together_is_a_sentence(options, says):
    with pytest.raises(cr.CorankError, match=says):
        GRMF(**{"form": "shared", **options}).fit(random_data(8))


def test_own_parts_must_be_held_by_something():
    with pytest.raises(cr.CorankError, match=r"reg=0.*form='shared'.*above 0"):
        GRWMF(form="shared", reg=0.0).fit(random_data(9))


def test_weights_do_not_count_and_that_is_said(caplog):
    data = random_data(10)
    plain = dataclasses.replace(data, user_graph=data.user_graph._replace(value=np.ones_like(data.user_graph.value)))
    options = {"dim": 3, "form": "shared", "user_graph": "g", "item_graph": "none"}
    one = GRMF(**options).fit(data)
    assert "weights of the edges" in caplog.text
    caplog.clear()
    np.testing.assert_array_equal(one.user_factors_, GRMF(**options).fit(plain).user_factors_)
    assert "weights" not in caplog.text


@pytest.mark.parametrize("reg_graph", [1e-39, 1e12])
def test_next_to_nothing_and_next_to_everything_stay_finite(reg_graph):
    model = GRMF(dim=3, form="shared", user_graph="g2", item_graph="none", reg_graph=reg_graph)
    assert np.isfinite(model.fit(random_data(11)).user_factors_).all()
