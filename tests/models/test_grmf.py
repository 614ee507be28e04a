"""GRMF beyond the contract: its objective and half-step beside dense ones, als without a graph, cold users."""

from __future__ import annotations

import dataclasses
import itertools
from functools import partial

import numpy as np
import pytest

import corank as cr
from corank.data import CSR
from corank.graph import side_graph
from corank.models.als import ALS
from corank.models.grmf import GRMF
from graphs import rated

KINDS = ["g", "g2", "g4", "dna-1", "dna-2", "dna-3"]
random_data = partial(rated, users=16, items=12, n=90, weighted=True)


def written_down(data, kind, capacity=4, side="user", **options):
    """The Laplacian of the side's graph with all of its nodes, dense."""
    A = side_graph(getattr(data, f"{side}_graph"), kind, capacity=capacity, **options).scipy().toarray()
    return np.diag(A.sum(1)) - A


def held(model, codes, rows):
    return model.reg * np.bincount(codes, minlength=rows).astype(float) ** model.reg_power


def best_users(model, data, lap, mu):
    """All users' vectors and biases, and those of the nodes without ratings, from one dense least-squares problem."""
    n, d, nodes = len(data.users), model.dim, len(lap)
    width = nodes * d + n * model.biases
    rows, targets = [], []
    for u, i, y in zip(data.user, data.item, data.value, strict=True):
        row = np.zeros(width)
        row[u * d : (u + 1) * d] = model.item_factors_[i]
        if model.biases:
            row[nodes * d + u] = 1
        rows.append(row)
        targets.append(y - model.mean_ - model.item_bias_[i])
    H = np.array(rows).T @ np.array(rows)
    H[: nodes * d, : nodes * d] += mu * np.kron(lap, np.eye(d))
    H[np.arange(n * d), np.arange(n * d)] += np.repeat(held(model, data.user, n), d)
    H[np.arange(nodes * d, width), np.arange(nodes * d, width)] += model.reg_bias
    best = np.linalg.lstsq(H, np.array(rows).T @ np.array(targets), rcond=1e-12)[0]
    return best[: n * d].reshape(n, d), best[nodes * d :]


def objective(model, data, laps, mu):
    """The whole objective in double precision; nodes without ratings at their best place."""
    sides = {"user": (data.user, model.user_factors_, model.user_bias_)}
    sides["item"] = (data.item, model.item_factors_, model.item_bias_)
    U, V = (sides[s][1].astype(float) for s in ("user", "item"))
    guess = model.mean_ + model.user_bias_[data.user] + model.item_bias_[data.item].astype(float)
    total = np.square(data.value - guess - (U[data.user] * V[data.item]).sum(1)).sum()
    for side, (codes, vectors, bias) in sides.items():
        X = vectors.astype(float)
        total += (held(model, codes, len(X))[:, None] * X * X).sum() + model.reg_bias * np.square(bias).sum()
        if side in laps:
            lap, n = laps[side], len(X)
            P = np.linalg.lstsq(lap[n:, n:], -lap[n:, :n] @ X, rcond=None)[0] if len(lap) > n else X[:0]
            total += mu * np.trace(np.vstack([X, P]).T @ lap @ np.vstack([X, P]))
    return total


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("biases", [True, False])
def test_users_end_at_the_minimum_of_a_dense_direct_solve(kind, biases):
    """The last half-step of an epoch is the users'; nodes without ratings are eliminated here and kept there."""
    data = random_data(1, cold=[3, 7])
    options = {"dim": 3, "epochs": 2, "reg": 0.2, "reg_power": 0.5, "steps": 300, "capacity": 4, "item_graph": "none"}
    model = GRMF(user_graph=kind, reg_graph=0.3, biases=biases, **options).fit(data)
    X, bias = best_users(model, data, written_down(data, kind), 0.3)
    np.testing.assert_allclose(model.user_factors_, X, rtol=5e-3, atol=1e-3)
    np.testing.assert_allclose(model.user_bias_, bias if biases else 0, rtol=5e-3, atol=1e-3)


@pytest.mark.parametrize("kind", ["dna-1", "dna-2"])
@pytest.mark.parametrize("reg_bits", [0.05, 2.0])
def test_vectors_of_bits_are_penalised_where_reg_bits_is_given(kind, reg_bits):
    """The dissertation's objective, in which bits are users without ratings: lambda holds their vectors too."""
    data = random_data(1, cold=[3, 7])
    options = {"dim": 3, "epochs": 2, "reg": 0.2, "reg_power": 0.0, "steps": 300, "capacity": 4, "item_graph": "none"}
    model = GRMF(user_graph=kind, reg_graph=0.3, reg_bits=reg_bits, **options).fit(data)
    lap, n = written_down(data, kind), len(data.users)
    lap[np.arange(n, len(lap)), np.arange(n, len(lap))] += reg_bits / 0.3
    X, bias = best_users(model, data, lap, 0.3)
    np.testing.assert_allclose(model.user_factors_, X, rtol=5e-3, atol=1e-3)
    np.testing.assert_allclose(model.user_bias_, bias, rtol=5e-3, atol=1e-3)
    np.testing.assert_allclose(model.history_[-1]["objective"], objective(model, data, {"user": lap}, 0.3), rtol=1e-5)
    free = GRMF(user_graph=kind, reg_graph=0.3, **options).fit(data)
    assert np.abs(free.user_factors_ - model.user_factors_).max() > 1e-3


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("kind", ["g", "dna-2"])
def test_smoothness_of_higher_order(order, kind):
    data = random_data(18, cold=[5])
    options = {"dim": 3, "epochs": 2, "reg": 0.2, "steps": 400, "item_graph": "none", "biases": False, "capacity": 4}
    model = GRMF(user_graph=kind, reg_graph=0.3, order=order, **options).fit(data)
    lap, n = written_down(data, kind), len(data.users)
    degree = np.diag(lap)[:n]
    lap = lap[:n, :n] - lap[:n, n:] @ np.linalg.pinv(lap[n:, n:]) @ lap[n:, :n]
    deep = lap @ np.linalg.matrix_power(lap / degree[:, None], order - 1)
    X, _ = best_users(model, data, deep, 0.3)
    np.testing.assert_allclose(model.user_factors_, X, rtol=1e-2, atol=2e-3)
    np.testing.assert_allclose(model.history_[-1]["objective"], objective(model, data, {"user": deep}, 0.3), rtol=1e-5)


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("reg_graph", [0.1, 100.0])
def test_objective_never_rises_for_a_higher_order(order, reg_graph):
    model = GRMF(dim=5, epochs=25, reg_graph=reg_graph, user_graph="dna-2", item_graph="g", order=order, capacity=4)
    for before, after in itertools.pairwise(e["objective"] for e in model.fit(random_data(3)).history_):
        assert after <= before * (1 + 1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reg_power", [0.0, 1.0])
def test_objective_is_the_true_one(kind, reg_power):
    data = random_data(2)
    model = GRMF(dim=4, epochs=3, reg_power=reg_power, reg_graph=0.2, user_graph=kind, item_graph="g2", capacity=4)
    model.fit(data)
    laps = {"user": written_down(data, kind), "item": written_down(data, "g2", side="item")}
    np.testing.assert_allclose(model.history_[-1]["objective"], objective(model, data, laps, 0.2), rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reg_graph", [0.01, 1.0, 300.0])
@pytest.mark.parametrize("steps", [1, 3])
def test_objective_never_rises(kind, reg_graph, steps):
    model = GRMF(dim=5, epochs=25, reg_graph=reg_graph, user_graph=kind, item_graph=kind, steps=steps, capacity=4)
    for before, after in itertools.pairwise(e["objective"] for e in model.fit(random_data(3)).history_):
        assert after <= before * (1 + 1e-6)


@pytest.mark.parametrize("options", [{"reg_graph": 0.0}, {"user_graph": "none", "item_graph": "none"}])
def test_without_a_graph_it_is_als(options):
    data = random_data(4)
    one, other = GRMF(dim=6, **options).fit(data), ALS(dim=6).fit(data)
    for name in ("user_factors_", "item_factors_", "user_bias_", "item_bias_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert [e["objective"] for e in one.history_] == [e["objective"] for e in other.history_]


def test_a_graph_of_almost_no_weight_is_almost_als():
    data = random_data(5)
    one, other = GRMF(dim=3, reg_graph=1e-7, user_graph="g", steps=20).fit(data), ALS(dim=3).fit(data)
    np.testing.assert_allclose(one.user_factors_, other.user_factors_, atol=2e-3)


def test_data_without_a_graph_is_no_mistake_unless_one_is_asked_for():
    data = dataclasses.replace(random_data(6), user_graph=None, item_graph=None)
    np.testing.assert_array_equal(GRMF().fit(data).user_factors_, ALS().fit(data).user_factors_)
    with pytest.raises(cr.CorankError, match=r"item_graph='g2'.*no item graph"):
        GRMF(item_graph="g2").fit(data)


def test_auto_is_graph_dna_in_the_published_form():
    data = dataclasses.replace(random_data(6), item_graph=None)
    auto, said = GRMF(dim=3, form="ties").fit(data), GRMF(dim=3, user_graph="dna-2").fit(data)
    np.testing.assert_array_equal(auto.user_factors_, said.user_factors_)


def test_vectors_are_shared_where_nothing_is_said():
    data = dataclasses.replace(random_data(6), item_graph=None)
    auto, said = GRMF(dim=3).fit(data), GRMF(dim=3, user_graph="g", form="shared", reg_graph=0.1).fit(data)
    np.testing.assert_array_equal(auto.user_factors_, said.user_factors_)
    assert auto.used_params()["form"] == "shared"
    assert GRMF(dim=3, order=2, user_graph="g").fit(data).used_params()["form"] == "ties"


# ---- who has friends only ------------------------------------------------------------------------------------------


def test_a_cold_user_is_the_mean_of_the_friends():
    """Nothing else pulls at the vector where reg grows with the number of ratings."""
    data = random_data(7, cold=[2])
    A = data.user_graph.scipy().toarray()
    model = GRMF(dim=3, user_graph="g", item_graph="none", steps=300).fit(data)
    mean = A[2] @ model.user_factors_ / A[2].sum()
    np.testing.assert_allclose(model.user_factors_[2], mean, rtol=1e-2, atol=1e-3)
    assert model.user_bias_[2] == 0


def test_cold_users_are_predicted_from_their_friends():
    """Two camps that like opposite items; ten users have friends in a camp and no rating at all."""
    rng = np.random.default_rng(8)
    camp = np.arange(60) % 2
    like = (camp[:, None] == np.arange(20) % 2) * 4.0 + 1
    known = rng.random(like.shape) < 0.5
    known[:10] = False
    known[10] = True
    A = np.triu((rng.random((60, 60)) < 0.2) & (camp[:, None] == camp), 1)
    user, item = np.nonzero(known)
    everyone = cr.from_arrays(user=np.append(user, np.arange(10)), item=np.append(item, np.zeros(10)))
    rated = cr.Dataset(everyone.users, everyone.items, user, item, like[known], user_graph=cr.from_scipy(A + A.T))
    for kind in KINDS:
        model = GRMF(dim=4, user_graph=kind, reg_graph=0.05, capacity=40).fit(rated)
        guess = model._score(np.arange(10, dtype=np.int32))
        right = np.where(like[:10] > 3, guess, np.inf).min(axis=1) > np.where(like[:10] < 3, guess, -np.inf).max(axis=1)
        assert right.all(), kind
        top = model.recommend(np.arange(10), k=5).items
        assert (top % 2 == camp[:10, None]).all(), kind
    plain = ALS(dim=4).fit(rated)._score(np.arange(10, dtype=np.int32))
    assert np.ptp(plain, axis=0).max() == 0  # als knows nothing of them


def test_cold_users_of_the_simulation_are_nearer_to_the_truth():
    """200 cold users with about 1,200 test ratings: their mean squared error falls by more than its own noise."""
    split = cr.synthetic.simulation(
        users=1_000, items=300, rank=5, edge=0.01, train=0.05, valid=0.0, noise=0.1, cold=0.2
    ).split
    cold = ~np.isin(split.test.user, split.train.user)
    assert 0.15 < cold.mean() < 0.25
    errors = []
    for model in (ALS(dim=5, biases=False), GRMF(dim=5, biases=False, user_graph="g", reg=0.03, reg_graph=0.3)):
        model.fit(split.train)
        errors.append(np.square(model._predict(split.test.user, split.test.item) - split.test.value)[cold])
    gap = errors[0] - errors[1]
    assert gap.mean() > 4 * gap.std() / np.sqrt(gap.size)


def test_friends_who_know_nothing_either_stay_at_zero():
    data = random_data(9, cold=[0, 1])
    A = data.user_graph.scipy().toarray()
    A[:2], A[:, :2] = 0, 0
    A[0, 1] = A[1, 0] = 1
    model = GRMF(dim=3, user_graph="g").fit(dataclasses.replace(data, user_graph=cr.from_scipy(A)))
    assert not model.user_factors_[:2].any()


def test_strong_ties_make_equals():
    data = random_data(10)
    full = cr.from_scipy(np.ones((16, 16)) - np.eye(16))
    model = GRMF(dim=3, user_graph="g", item_graph="none", reg_graph=1e4, reg=0.01)
    model.fit(dataclasses.replace(data, user_graph=full))
    assert np.ptp(model.user_factors_, axis=0).max() < 1e-2
    assert np.abs(model.user_factors_).max() > 0.1


# ---- the graph that is asked for -----------------------------------------------------------------------------------


def test_direction_of_the_edges_does_not_matter():
    data = random_data(11)
    one_way = cr.from_scipy(np.triu(data.user_graph.scipy().toarray()))
    one, other = (GRMF(dim=3, user_graph="g").fit(d) for d in (data, dataclasses.replace(data, user_graph=one_way)))
    np.testing.assert_array_equal(one.user_factors_, other.user_factors_)


@pytest.mark.parametrize("weights", ["", "0.3,0.01"])
def test_powers_need_not_be_written_down(weights):
    data = random_data(12)
    options = {"dim": 3, "user_graph": "g3", "item_graph": "none", "graph_weights": weights, "steps": 100}
    one, other = (GRMF(threshold=t, reg_graph=0.01, **options).fit(data) for t in (0.0, 1e-9))
    np.testing.assert_allclose(one.user_factors_, other.user_factors_, atol=2e-3)
    np.testing.assert_allclose(one.history_[-1]["objective"], other.history_[-1]["objective"], rtol=1e-5)


def test_a_threshold_cuts_the_highest_power():
    data = random_data(12, cold=[3])
    options = {"dim": 3, "epochs": 2, "steps": 300, "item_graph": "none", "graph_weights": "0.3,0.05"}
    model = GRMF(user_graph="g3", threshold=4.0, reg_graph=0.1, **options).fit(data)
    A = data.user_graph.scipy().toarray().astype(float)
    cube = np.linalg.matrix_power(A, 3)
    assert ((cube > 0) & (cube < 4)).any()
    assert (cube >= 4).any()
    total = A + 0.3 * A @ A + 0.05 * np.where(cube >= 4, cube, 0)
    np.fill_diagonal(total, 0)
    X, _ = best_users(model, data, np.diag(total.sum(1)) - total, 0.1)
    np.testing.assert_allclose(model.user_factors_, X, rtol=5e-3, atol=1e-3)


def test_theta_limits_the_filters():
    data = random_data(12, users=40, n=200)
    options = {"dim": 3, "epochs": 2, "steps": 300, "item_graph": "none", "capacity": 10, "reg_graph": 0.1}
    model = GRMF(user_graph="dna-2", theta=4, **options).fit(data)
    X, _ = best_users(model, data, written_down(data, "dna-2", capacity=10, theta=4), 0.1)
    np.testing.assert_allclose(model.user_factors_, X, rtol=5e-3, atol=1e-3)
    free = GRMF(user_graph="dna-2", **options).fit(data)
    assert np.abs(free.user_factors_ - model.user_factors_).max() > 1e-3


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"threshold": 2.0, "user_graph": "g"}, r"threshold=2\) with user_graph='g': .* choose g2 to g6"),
        ({"threshold": 2.0, "user_graph": "dna-2"}, "cuts the highest power"),
        ({"theta": 5.0, "user_graph": "g2"}, "limits the Bloom filters of Graph DNA; choose dna-1 to dna-4"),
        ({"reg_bits": 1.0, "user_graph": "g"}, r"reg_bits=1\) with user_graph='g': .* choose dna-1 to dna-4"),
        ({"theta": 0.5, "user_graph": "dna-2"}, "theta must be at least 1"),
        ({"reg_bits": -1.0, "user_graph": "dna-2"}, "reg_bits must be at least 0"),
    ],
)
def test_options_of_another_kind_of_graph_are_a_sentence(options, says):
    with pytest.raises(cr.CorankError, match=says):
        GRMF(item_graph="none", **options).fit(random_data(12))


@pytest.mark.parametrize(
    ("weights", "kind", "says"),
    [
        ("0.3;0.1", "g3", "numbers of at least 0"),
        ("-1", "g2", "numbers of at least 0"),
        ("nan", "g2", "numbers of at least 0"),
        ("0.3", "g3", "2 factors"),
        ("0.3,0.1", "dna-2", "one number above 0"),
        ("0.3", "g", "the kind 'g' is G alone"),
    ],
)
def test_weights_that_cannot_be_are_a_sentence(weights, kind, says):
    with pytest.raises(cr.CorankError, match=says):
        GRMF(graph_weights=weights, user_graph=kind, item_graph="none").fit(random_data(13))


def test_one_text_gives_the_weights_of_both_sides():
    """G of the users has none to take; the items' do."""
    one, other = (
        GRMF(dim=3, graph_weights=w, user_graph="g", item_graph="g2").fit(random_data(13)) for w in ("0.3", "0.1")
    )
    assert np.abs(one.item_factors_ - other.item_factors_).max() > 1e-4


def test_whoever_has_neither_friends_nor_ratings_is_like_nobody():
    data = random_data(14, cold=[0])
    A = data.user_graph.scipy().toarray()
    A[0], A[:, 0] = 0, 0
    model = GRMF(dim=3, user_graph="dna-2", capacity=1).fit(dataclasses.replace(data, user_graph=cr.from_scipy(A)))
    assert not model.user_factors_[0].any()
    assert model.user_factors_[1:].any(axis=1).all()


def test_a_negative_edge_is_a_sentence():
    data = random_data(13)
    data.user_graph.value[0] = -1
    with pytest.raises(cr.CorankError, match="negative"):
        GRMF(user_graph="g2").fit(data)


# ---- as every model ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["g", "g3", "dna-2"])
def test_threads_change_no_bit(kind):
    data = random_data(14, users=60, items=40, n=900)
    fits = []
    for count in (1, 2, 3):
        cr.set_threads(count)
        fits.append(GRMF(dim=5, user_graph=kind, item_graph=kind, capacity=30).fit(data))
    for other in fits[1:]:
        for name in ("user_factors_", "item_factors_", "user_bias_", "item_bias_"):
            np.testing.assert_array_equal(getattr(fits[0], name), getattr(other, name))


def test_strangers_are_folded_in_as_in_als():
    data = random_data(15)
    model = GRMF(dim=4, user_graph="g").fit(data)
    plain = ALS(**{f.name: getattr(model, f.name) for f in dataclasses.fields(ALS)})
    plain.mean_, plain.item_factors_, plain.item_bias_ = model.mean_, model.item_factors_, model.item_bias_
    np.testing.assert_array_equal(model._score_histories(data.sequences()), plain._score_histories(data.sequences()))


def test_a_killed_fit_goes_on_where_it_was(tmp_path):
    data, file = random_data(16), tmp_path / "state"
    options = {"dim": 4, "user_graph": "dna-2", "capacity": 4, "epochs": 6}
    GRMF(**options).fit(data, checkpoint=file, on_epoch=lambda entry: entry["epoch"] < 3)
    resumed, whole = GRMF(**options).fit(data, checkpoint=file), GRMF(**options).fit(data)
    np.testing.assert_array_equal(resumed.user_factors_, whole.user_factors_)


def test_the_model_file_knows_no_graph(tmp_path):
    model = GRMF(dim=4, user_graph="dna-2").fit(random_data(17))
    assert not [name for name in vars(model) if "laplacian" in name]
    assert set(model._learned()) == {*ALS(dim=4).fit(random_data(17))._learned(), "form_"}


def test_without_a_graph_it_says_what_it_is(caplog):
    data = cr.synthetic.simulation(users=30, items=20, rank=2, train=0.5).split.train
    plain = dataclasses.replace(data, user_graph=None)
    cr.GRMF(dim=2, epochs=2).fit(data)
    assert "no graph" not in caplog.text
    for model, name in ((cr.GRMF, "ALS"), (cr.GRWMF, "WMF"), (cr.CoFactor, "ALS")):
        caplog.clear()
        model(dim=2, epochs=2).fit(plain)
        assert f"no graph of users or items, so it reduces to {name}" in caplog.text


@pytest.mark.parametrize("kind", ["auto", "g", "g2", "dna-2"])
def test_a_graph_without_edges_is_as_none(caplog, kind):
    data = cr.synthetic.simulation(users=30, items=20, rank=2, train=0.5).split.train
    n = len(data.users)
    loops = cr.from_scipy(np.eye(n))
    zeros = CSR(np.arange(n + 1), np.arange(n, dtype=np.int32)[::-1].copy(), np.zeros(n, np.float32), n)
    plain = cr.ALS(dim=2, epochs=2).fit(data)
    for graph in (loops, zeros):
        alone = dataclasses.replace(data, user_graph=graph)
        for model in (cr.GRMF, cr.CoFactor):
            caplog.clear()
            fitted = model(dim=2, epochs=2, user_graph=kind).fit(alone)
            assert f"{model.name()}: the data has a graph of users without edges, so it reduces to ALS" in caplog.text
            np.testing.assert_allclose(fitted.user_factors_, plain.user_factors_, rtol=1e-3, atol=1e-4)
    caplog.clear()
    cr.GRMF(dim=2, epochs=2, user_graph="none").fit(dataclasses.replace(data, user_graph=loops))
    assert "reduces" not in caplog.text  # as asked for


def test_ratings_that_are_all_equal_are_remarked_on(caplog):
    data = cr.from_arrays(user=[0, 0, 1, 1], item=[0, 1, 1, 2])
    cr.ALS(dim=2, epochs=1).fit(data)
    assert "all ratings are 1, so no item is preferred to another" in caplog.text
