"""WMF beyond the contract: its objective, its solvers, fold-in and the weights."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import corank as cr
from corank.models.wmf import WeightedSide
from reference import wmf_objective
from toys import play_counts


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    taste, quality = rng.normal(size=(60, 4)), rng.normal(size=(40, 4))
    chosen = taste @ quality.T + rng.gumbel(size=(60, 40)) > 2.0
    user, item = np.nonzero(chosen)
    return cr.from_arrays(user=user, item=item, value=rng.integers(1, 6, user.size))


@pytest.mark.parametrize(
    "options", [{}, {"alpha": 2.0, "rho": 1.0}, {"reg_power": 0.0, "reg": 0.5}, {"solver": "exact"}]
)
def test_objective_is_the_double_sum(data, options):
    model = cr.WMF(dim=5, epochs=3, **options).fit(data)
    assert model.history_[-1]["objective"] == pytest.approx(wmf_objective(model, data), rel=1e-4)


@pytest.mark.parametrize("solver", ["cg", "exact", "blocks"])
def test_objective_falls(data, solver):
    model = cr.WMF(dim=6, epochs=12, solver=solver, block=4).fit(data)
    values = [h["objective"] for h in model.history_]
    assert all(b <= a * (1 + 1e-5) for a, b in itertools.pairwise(values))
    assert values[-1] < values[0]


def test_solvers_agree(data):
    ends = [
        cr.WMF(dim=4, epochs=60, solver=s, block=2).fit(data).history_[-1]["objective"]
        for s in ("cg", "exact", "blocks")
    ]
    assert max(ends) < min(ends) * 1.01


def test_fold_in_equals_the_half_step(data):
    """A user's own history, folded in, gives what the user half-step of an exact fit gives."""
    model = cr.WMF(dim=6, epochs=4, solver="exact").fit(data)
    rows = data.csr()
    again = np.zeros_like(model.user_factors_)
    side = WeightedSide(model._weighted(rows), model._reg(model._weighted(rows)), again)
    model._half_step(side, model.item_factors_, "exact")
    np.testing.assert_allclose(model._score_histories(rows), again @ model.item_factors_.T, rtol=1e-4, atol=1e-5)


def test_same_factors_for_any_number_of_threads(data):
    factors = []
    for count in (1, 2, 3):
        cr.set_threads(count)
        factors.append(cr.WMF(dim=8, epochs=3).fit(data).user_factors_)
    cr.set_threads(None)
    assert all(np.array_equal(factors[0], f) for f in factors[1:])


def test_confidence_follows_the_value(data):
    """With alpha, pairs of high value are fitted more closely than pairs of low value."""
    model = cr.WMF(dim=3, epochs=20, alpha=20.0, rho=1.0).fit(data)
    misfit = np.abs(1 - model._predict(data.user, data.item))
    assert misfit[data.value == 5].mean() < misfit[data.value == 1].mean()


def test_negative_values_are_no_weights():
    bad = cr.from_arrays(user=[1, 1, 2], item=[1, 2, 1], value=[1.0, -2.0, 1.0])
    with pytest.raises(cr.CorankError, match=r"-2.*must not be negative"):
        cr.WMF(alpha=1.0).fit(bad)
    cr.WMF(dim=2).fit(bad)  # without alpha a row is a row


def test_rows_that_say_more_are_held_more(data):
    model = cr.WMF(dim=2, reg=0.1, reg_power=1.0, epochs=1).fit(data)
    rows = data.csr()
    reg = model._reg(model._weighted(rows))
    counts = np.diff(rows.indptr)
    np.testing.assert_allclose(reg, 0.1 * (counts + model.rho_ * (40 - counts)), rtol=1e-6)
    # Once fitted, it is the weight that counts: alpha does not switch regularisation off.
    model.alpha = 3.0
    model.fit(data)
    weighted = model._weighted(rows)
    total = np.add.reduceat(weighted.value, weighted.indptr[:-1]) + model.rho_ * (40 - counts)
    np.testing.assert_allclose(model._reg(weighted), 0.1 * total, rtol=1e-5)


def test_zeros_weigh_the_same_in_any_catalogue(data):
    """By default the zeros of all users together weigh rho_scale times as much as the interactions."""
    rows = data.csr()
    model = cr.WMF(dim=2, epochs=1, rho_scale=7.0).fit(data)
    pairs = np.unique(data.user).size * np.unique(data.item).size
    assert model.rho_ == pytest.approx(7 * rows.index.size / pairs)
    assert model.used_params()["rho"] == model.rho_
    assert model.params()["rho"] is None  # the next fit, on other data, chooses anew
    wide = cr.from_arrays(user=data.user, item=data.item * 50, value=data.value)
    assert cr.WMF(dim=2, epochs=1, rho_scale=7.0).fit(wide).rho_ == pytest.approx(model.rho_)
    assert cr.WMF(dim=2, epochs=1, rho=0.2).fit(data).rho_ == 0.2


def test_regularisation_of_a_mean_user_is_the_same_for_all_powers(data):
    """reg_power only distributes the default regularisation between users of few and of many interactions."""
    rows = data.csr()
    for power in (0.0, 0.5, 1.0):
        model = cr.WMF(dim=2, epochs=1, reg_scale=0.3, reg_power=power).fit(data)
        mean = rows.index.size / np.count_nonzero(np.diff(rows.indptr))
        weight = mean + model.rho_ * (np.unique(rows.index).size - mean)
        assert model.reg_ * weight**power == pytest.approx(0.3 * weight**0.65)
    assert cr.WMF(dim=2, epochs=1, reg=0.02).fit(data).reg_ == 0.02


def test_default_beats_popularity_in_a_large_catalogue():
    """With a weight of zeros that ignores the catalogue, the vectors shrink to popularity or less."""
    data = cr.synthetic.realistic(users=3_000, items=20_000, rows=60_000, groups=60, seed=3).data
    split = cr.holdout(data, by="user")
    found = [
        float(cr.evaluate(model.fit(split.train), split, ["recall@20"], bootstrap=0)["recall@20"])
        for model in (cr.WMF(), cr.WMF(rho=0.3, reg=0.005), cr.Popularity())
    ]
    assert found[0] > 1.15 * found[1]
    assert found[0] > 1.5 * found[2]


# ---- counts --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plays():
    return cr.holdout(play_counts(), by="user", seed=0)


@pytest.mark.parametrize("asked", ["auto", "log", "linear"])
def test_the_confidence_of_counts_is_their_logarithm(plays, asked, caplog):
    model = cr.WMF(dim=4, epochs=2, alpha=2.0, confidence=asked).fit(plays.train)
    assert model.confidence_ == ("linear" if asked == "linear" else "log")
    weight = model._weighted(plays.train.csr()).value
    value = plays.train.csr().value
    np.testing.assert_allclose(weight, 1 + 2 * (value if asked == "linear" else np.log1p(value)), rtol=1e-6)
    assert model.history_[-1]["objective"] == pytest.approx(wmf_objective(model, plays.train), rel=1e-4)
    if asked == "linear":
        assert "use confidence='log' or a smaller alpha" in caplog.text
        assert f"a count of {value.max():g} weighs" in caplog.text
    else:
        assert not caplog.text


def test_the_confidence_of_ratings_is_linear(data):
    assert cr.WMF(dim=2, epochs=1, alpha=1.0).fit(data).confidence_ == "linear"
    assert cr.WMF(dim=2, epochs=1, alpha=1.0, confidence="log").fit(data).confidence_ == "log"


def test_a_loaded_model_folds_in_as_it_was_fitted(plays, tmp_path):
    model = cr.WMF(dim=6, epochs=3, alpha=5.0, solver="exact").fit(plays.train)
    model.save(tmp_path / "m.corank")
    histories = plays.train.csr().take(np.arange(20))
    again = cr.load(tmp_path / "m.corank")
    assert again.confidence_ == "log"
    np.testing.assert_array_equal(again._fold_in(histories), model._fold_in(histories))
    again.confidence_ = "linear"
    assert not np.allclose(again._fold_in(histories), model._fold_in(histories))


def test_large_alpha_on_play_counts_does_not_collapse(plays):
    """What the docs call the confidence of Hu, Koren and Volinsky; linear, it ended below popularity."""

    def ndcg(model):
        return cr.evaluate(model.fit(plays.train), plays, "ndcg@10", bootstrap=0)["ndcg@10"]

    popular = ndcg(cr.Popularity())
    assert ndcg(cr.WMF(dim=32, alpha=40.0, rho=1.0)) > 1.2 * popular


def test_returned_purchases_are_rows_without_alpha():
    data = cr.from_arrays(user=[0, 0, 1, 1, 2] * 200, item=np.arange(1000), value=np.r_[-1, np.arange(999) ** 2])
    assert data.values == "counts"
    assert np.isfinite(cr.WMF(dim=2, epochs=1).fit(data).user_factors_).all()
    with pytest.raises(cr.CorankError, match="weights must not be negative"):
        cr.WMF(dim=2, epochs=1, alpha=1.0).fit(data)
