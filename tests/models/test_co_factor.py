"""Co-Factor beyond the contract: its objective, its exact half-step, als without a graph, cold users, drawn zeros."""

from __future__ import annotations

import dataclasses
import itertools
from functools import partial

import numpy as np
import pytest

import corank as cr
from corank.models.als import ALS
from corank.models.co_factor import CoFactor
from graphs import rated

KINDS = ["g", "g2", "dna-1", "dna-2"]
random_data = partial(rated, users=20, items=14, n=120)


def spied(model, data):
    """The fitted model and the edges and factors of its graphs, which are not part of it."""
    seen = {}
    edge_factors = model._edge_factors

    def spy(data):
        seen.update(edge_factors(data))
        return seen

    model._edge_factors = spy
    return model.fit(data), seen


def objective(model, data, ties, mu):
    """The whole objective, entry by entry, in double precision."""
    U, V = model.user_factors_.astype(float), model.item_factors_.astype(float)
    guess = model.mean_ + model.user_bias_[data.user] + model.item_bias_[data.item].astype(float)
    total = np.square(data.value - guess - (U[data.user] * V[data.item]).sum(1)).sum()
    for side, codes, X, bias in (("user", data.user, U, model.user_bias_), ("item", data.item, V, model.item_bias_)):
        counts = np.bincount(codes, minlength=len(X)).astype(float)
        if side in ties:
            rows, W = ties[side].rows, ties[side].W.astype(float)
            owner = np.repeat(np.arange(len(X)), np.diff(rows.indptr))
            total += mu * np.square(rows.value - (X[owner] * W[rows.index]).sum(1)).sum()
            tied = np.bincount(rows.index, minlength=len(W)).astype(float)
            total += mu * model.reg * (np.where(tied > 0, tied**model.reg_power, 0)[:, None] * W * W).sum()
            counts += mu * np.diff(rows.indptr)
        total += model.reg * (counts[:, None] ** model.reg_power * X * X).sum() + model.reg_bias * np.square(bias).sum()
    return total


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reg_power", [0.0, 1.0])
def test_objective_is_the_true_one(kind, reg_power):
    data = random_data(1)
    model, ties = spied(CoFactor(dim=4, epochs=3, user_graph=kind, item_graph="g", reg_power=reg_power), data)
    np.testing.assert_allclose(model.history_[-1]["objective"], objective(model, data, ties, 0.1), rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_users_end_at_a_stationary_point(kind):
    """The last half-step is the users': the objective, by differences, has no slope in their vectors and biases."""
    data = random_data(2, cold=[4])
    options = {"reg_graph": 0.3, "reg_power": 0.5, "capacity": 6}
    model, ties = spied(CoFactor(dim=3, epochs=2, user_graph=kind, item_graph="none", **options), data)
    for learned in (model.user_factors_, model.user_bias_):
        wide = learned.astype(float)
        name = "user_factors_" if learned is model.user_factors_ else "user_bias_"
        for at in itertools.islice(np.ndindex(wide.shape), 0, None, 4):
            ends = []
            for step in (1e-3, -1e-3):
                moved = wide.copy()
                moved[at] += step
                setattr(model, name, moved)
                ends.append(objective(model, data, ties, 0.3))
            setattr(model, name, learned)
            assert abs(ends[0] - ends[1]) / 2e-3 < 0.02


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reg_graph", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("zeros", [0.0, 2.0])
def test_objective_never_rises(kind, reg_graph, zeros):
    model = CoFactor(dim=5, epochs=25, reg_graph=reg_graph, user_graph=kind, zeros=zeros, capacity=6)
    for before, after in itertools.pairwise(e["objective"] for e in model.fit(random_data(3)).history_):
        assert after <= before * (1 + 1e-6)


def test_weight_zero_is_als():
    data = random_data(4)
    one, other = CoFactor(dim=6, reg_graph=0.0).fit(data), ALS(dim=6).fit(data)
    for name in ("user_factors_", "item_factors_", "user_bias_", "item_bias_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_zeros_are_drawn_where_no_tie_is():
    data = random_data(5, users=40)
    _, ties = spied(CoFactor(dim=2, epochs=1, user_graph="g", item_graph="none", zeros=1.5), data)
    matrix, rows = data.user_graph.scipy().toarray(), ties["user"].rows
    owner = np.repeat(np.arange(40), np.diff(rows.indptr))
    np.testing.assert_array_equal(matrix[owner, rows.index], rows.value)
    assert np.unique(owner * 40 + rows.index).size == owner.size
    wanted = np.minimum(np.rint(1.5 * (matrix > 0).sum(1)), (40 - (matrix > 0).sum(1)) // 2)
    np.testing.assert_array_equal(np.bincount(owner[rows.value == 0], minlength=40), wanted)


def test_ones_alone_are_explained_by_a_constant():
    """Without zeros the ties can be met by vectors that do not tell two camps apart; with zeros they cannot."""
    camp = np.arange(40) % 2
    A = (camp[:, None] == camp) & ~np.eye(40, dtype=bool)
    item = np.arange(40) % 7
    data = cr.from_arrays(user=np.arange(40), item=item, value=np.full(40, 3.0), user_graph=cr.from_scipy(A * 1.0))
    fit = {z: spied(CoFactor(dim=4, user_graph="g", reg_graph=1.0, reg=0.01, zeros=z), data)[1] for z in (0.0, 1.0)}
    for zeros, ties in fit.items():
        rows, W = ties["user"].rows, ties["user"].W
        assert rows.value.mean() == (1 if zeros == 0 else rows.value.mean())
        assert np.isfinite(W).all()
    one = fit[0.0]["user"].W
    apart = fit[1.0]["user"].W
    cosine = [np.corrcoef(W[camp == 0].mean(0), W[camp == 1].mean(0))[0, 1] for W in (one, apart)]
    assert cosine[1] < cosine[0]


def test_cold_users_are_predicted_from_their_ties():
    rng = np.random.default_rng(8)
    camp = np.arange(80) % 2
    like = (camp[:, None] == np.arange(20) % 2) * 4.0 + 1
    known = rng.random(like.shape) < 0.5
    known[:10] = False
    known[10] = True
    A = np.triu((rng.random((80, 80)) < 0.3) & (camp[:, None] == camp), 1)
    user, item = np.nonzero(known)
    vocabulary = cr.from_arrays(user=np.append(user, np.arange(10)), item=np.append(item, np.zeros(10)))
    graph = cr.from_scipy((A + A.T) * 1.0)
    data = cr.Dataset(vocabulary.users, vocabulary.items, user, item, like[known], user_graph=graph)
    for kind in ("g", "dna-1"):
        model = CoFactor(dim=4, user_graph=kind, reg_graph=0.3, capacity=60, reg=0.02).fit(data)
        top = model.recommend(np.arange(10), k=5).items
        assert (top % 2 == camp[:10, None]).mean() > 0.9, kind


@pytest.mark.parametrize("kind", ["g", "dna-2"])
def test_threads_change_no_bit(kind):
    data = random_data(9, users=60, items=40, n=900)
    fits = []
    for count in (1, 2, 3):
        cr.set_threads(count)
        fits.append(CoFactor(dim=5, user_graph=kind, item_graph=kind, capacity=30).fit(data))
    for other in fits[1:]:
        for name in ("user_factors_", "item_factors_", "user_bias_", "item_bias_"):
            np.testing.assert_array_equal(getattr(fits[0], name), getattr(other, name))


def test_a_killed_fit_goes_on_where_it_was(tmp_path):
    data, file = random_data(10), tmp_path / "state"
    options = {"dim": 4, "user_graph": "dna-2", "capacity": 4, "epochs": 6}
    CoFactor(**options).fit(data, checkpoint=file, on_epoch=lambda entry: entry["epoch"] < 3)
    resumed, whole = CoFactor(**options).fit(data, checkpoint=file), CoFactor(**options).fit(data)
    np.testing.assert_array_equal(resumed.user_factors_, whole.user_factors_)


def test_graph_that_is_not_there_is_a_sentence():
    with pytest.raises(cr.CorankError, match="no user graph"):
        CoFactor(user_graph="g").fit(dataclasses.replace(random_data(11), user_graph=None))
