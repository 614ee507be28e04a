"""BPR beyond the contract: its objective, its options, its fold-in, threads and published figures."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import corank as cr
from corank.kernels import sgd
from reference import bpr_loss


@pytest.fixture(scope="module")
def split():
    """Enough rows for several blocks, chosen by taste and popularity."""
    rng = np.random.default_rng(1)
    taste, quality = rng.normal(size=(900, 4)), rng.normal(size=(150, 4))
    chosen = taste @ quality.T + rng.normal(size=150) + rng.gumbel(size=(900, 150)) > 1.0
    user, item = np.nonzero(chosen)
    split = cr.holdout(cr.from_arrays(user=user, item=item), test=0.1, valid=0.0, by="user")
    assert sgd.grid_side(len(split.train), 900, 150) > 1
    return split


def auc(model, split):
    return cr.evaluate(model, split, ["auc"], bootstrap=0)["auc"]


def test_objective_is_the_mean_over_all_triples():
    """On small data the sample has many negatives for each row: close to the sum over all of them."""
    rng = np.random.default_rng(2)
    user, item = np.nonzero(rng.random((20, 15)) < 0.4)
    data = cr.from_arrays(user=user, item=item)
    model = cr.BPR(dim=4, epochs=8, lr=0.2, reg=0.02, negatives=1).fit(data)
    losses = []
    for u, i in zip(data.user, data.item, strict=True):
        free = np.setdiff1d(np.arange(len(data.items)), data.item[data.user == u])
        x, v, b = model.user_factors_[u], model.item_factors_, model.item_bias_
        losses.append(np.mean([bpr_loss(x, v[i], v[j], b[i], b[j], 0.02) for j in free]))
    assert model.history_[-1]["objective"] == pytest.approx(np.mean(losses), rel=0.01)


def test_starts_at_a_coin_toss_and_falls(split):
    history = cr.BPR(epochs=10, reg=0.01, negatives=1).fit(split.train).history_
    values = [entry["objective"] for entry in history]
    assert values[0] < np.log(2)
    assert values[-1] < 0.8 * values[0]


def test_tells_taken_from_not_taken(split):
    floor = auc(cr.Popularity().fit(split.train), split)
    assert auc(cr.BPR(dim=8, epochs=15).fit(split.train), split) > floor + 0.05


def test_blocks_are_as_good_as_none(split, monkeypatch):
    """Negatives from the item's stripe, dealt anew each epoch, must teach what negatives from everywhere do."""
    blocked = np.mean([auc(cr.BPR(dim=8, epochs=15, seed=s).fit(split.train), split) for s in range(3)])
    monkeypatch.setattr(sgd, "grid_side", lambda *sizes: 1)
    free = np.mean([auc(cr.BPR(dim=8, epochs=15, seed=s).fit(split.train), split) for s in range(3)])
    assert abs(blocked - free) < 0.005


OTHER_ROWS = [{"sse_user": 0.2, "sse_item": 0.1, "negatives": 3}, {"dropout": 0.2}, {"sse_item": 0.3, "dropout": 0.1}]


@pytest.mark.parametrize("options", [{}, {"negatives": 3, "biases": False, "decay": 0.9}, *OTHER_ROWS])
def test_same_factors_for_any_number_of_threads(split, options):
    models = []
    for count in (1, 2, 3):
        cr.set_threads(count)
        models.append(cr.BPR(dim=8, epochs=2, **options).fit(split.train))
    for other in models[1:]:
        np.testing.assert_array_equal(models[0].user_factors_, other.user_factors_)
        np.testing.assert_array_equal(models[0].item_factors_, other.item_factors_)
        np.testing.assert_array_equal(models[0].item_bias_, other.item_bias_)
        assert models[0].history_[-1]["objective"] == other.history_[-1]["objective"]


def test_biases_can_be_left_out(split):
    assert not cr.BPR(dim=8, epochs=2, biases=False).fit(split.train).item_bias_.any()
    assert cr.BPR(dim=8, epochs=2).fit(split.train).item_bias_.all()


def test_more_negatives_are_more_steps(split):
    first = [cr.BPR(dim=8, epochs=1, lr=0.005, negatives=n).fit(split.train).history_ for n in (1, 3)]
    fallen = [np.log(2) - history[0]["objective"] for history in first]
    assert fallen[1] > 1.1 * fallen[0] > 0


def test_steps_get_shorter_by_decay(split):
    one, many, same = (
        cr.BPR(dim=4, lr=0.1, negatives=1, decay=decay, epochs=epochs).fit(split.train).item_bias_
        for decay, epochs in ((0.01, 1), (0.01, 4), (1.0, 4))
    )
    assert np.abs(many - one).mean() < 0.2 * np.abs(same - one).mean()


def test_values_do_not_count(split):
    train = split.train
    ids = {"user": train.users.ids[train.user], "item": train.items.ids[train.item]}
    rated = cr.from_arrays(**ids, value=np.random.default_rng(0).integers(1, 6, len(train)))
    bare = cr.from_arrays(**ids)
    one, other = (cr.BPR(dim=4, epochs=2).fit(data) for data in (rated, bare))
    np.testing.assert_array_equal(one.user_factors_, other.user_factors_)


def test_unseen_users_are_ranked_as_well_as_known_users(split):
    """The history of a training user, folded in, finds the held-out items as the trained vector does."""
    model = cr.BPR(dim=8).fit(split.train)
    known = auc(model, split)
    rows = split.train.csr()
    scores = model._score_histories(rows)
    trained = model._score(np.arange(rows.rows, dtype=np.int32))
    agree = [np.corrcoef(a, b)[0, 1] for a, b in zip(scores, trained, strict=True)]
    assert np.median(agree) > 0.97
    model.user_factors_ = np.linalg.lstsq(model.item_factors_, (scores - model.item_bias_).T, rcond=None)[0].T
    assert auc(model, split) > known - 0.01


def test_nothing_known_means_what_is_popular(split):
    model = cr.BPR(dim=8, epochs=5).fit(split.train)
    ranking = model.recommend(histories=[[]], k=5)
    assert ranking.items[0].tolist() == np.argsort(-model.item_bias_, kind="stable")[:5].tolist()
    count = np.bincount(split.train.item, minlength=150)
    assert count[ranking.items[0]].min() > np.median(count)


@pytest.mark.parametrize("options", OTHER_ROWS)
def test_killed_with_sse_and_dropout_it_goes_on_where_it_was(split, options, tmp_path):
    def die(entry):
        if entry["epoch"] == 3:
            raise KeyboardInterrupt

    make = lambda: cr.BPR(dim=4, epochs=4, **options)  # noqa: E731
    whole = make().fit(split.train)
    with pytest.raises(KeyboardInterrupt):
        make().fit(split.train, checkpoint=tmp_path / "part", on_epoch=die)
    again = make().fit(split.train, checkpoint=tmp_path / "part")
    for name in ("user_factors_", "item_factors_", "item_bias_"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(again, name))
    plain = cr.BPR(dim=4, epochs=4, negatives=options.get("negatives", 1)).fit(split.train)
    assert not np.array_equal(plain.user_factors_, whole.user_factors_)


def test_who_takes_no_part_stands_in_for_nobody(split):
    train = split.train
    part = train.take((train.user > 0) & (train.item > 0))
    model = cr.BPR(dim=4, epochs=2, sse_user=0.5, sse_item=0.5).fit(part)
    assert not model.user_factors_[0].any()
    # An item that nobody has is only ever a negative.
    assert model.item_bias_[0] < model.item_bias_[1:].min()


def test_all_users_replaced_are_ranked_by_popularity(split):
    """When any user stands in for any other, what can be learned is what all of them like."""
    model = cr.BPR(dim=8, epochs=15, sse_user=1.0).fit(split.train)
    floor = auc(cr.Popularity().fit(split.train), split)
    assert abs(auc(model, split) - floor) < 0.02


def test_neighbours_share_rows_when_the_data_has_a_graph(split):
    """Users who like the same and are linked: sharing rows with them costs less than sharing with anybody."""
    taste = np.random.default_rng(1).normal(size=(900, 4))  # what made the data
    unit = taste / np.linalg.norm(taste, axis=1)[:, None]
    given = dataclasses.replace(split.train, user_graph=cr.data.from_scipy(unit @ unit.T > 0.9))
    options = {"dim": 8, "epochs": 15, "sse_user": 0.7}
    near, anyone = cr.BPR(**options, rho_user=1e6).fit(given), cr.BPR(**options).fit(given)
    np.testing.assert_array_equal(anyone.user_factors_, cr.BPR(**options).fit(split.train).user_factors_)
    assert auc(near, split) > auc(anyone, split) + 0.02


@pytest.mark.parametrize("rho", [5.0, 0.5])
@pytest.mark.parametrize("side", ["user", "item"])
def test_neighbours_without_a_graph_are_a_sentence(split, side, rho):
    with pytest.raises(cr.CorankError, match=f"rho_{side}={rho:g}\\).*no {side} graph") as error:
        cr.BPR(**{f"sse_{side}": 0.1, f"rho_{side}": rho}).fit(split.train)
    assert "\n" not in str(error.value)


def test_a_step_that_is_too_long_is_a_sentence(split):
    with pytest.raises(cr.CorankError, match=r"lower lr \(now") as error:
        cr.BPR(lr=100.0, reg=1.0, decay=1.0).fit(split.train)
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_the_baseline_of_the_dissertation(shared_data):
    """ML-1M, 50 rows a user, any rating a positive: published .6995 / .6561 / .6249, best of several epochs on test."""
    split = cr.fixed_per_user(cr.datasets.load("ml-1m", root=shared_data), train=50)
    model = cr.BPR(dim=100, lr=0.1, decay=0.9, reg=0.01, negatives=3, biases=False, epochs=40).fit(split.train)
    report = cr.evaluate(model, split, ["precision@1", "precision@5", "precision@10"], bootstrap=0)
    assert abs(report["precision@1"] - 0.6995) < 0.01
    assert abs(report["precision@5"] - 0.6561) < 0.015
    assert abs(report["precision@10"] - 0.6249) < 0.015


@pytest.mark.slow
def test_sse_bpr_of_the_dissertation(shared_data):
    """The same with their replacement probabilities: published .6813 and .6469 for the first five and ten."""
    split = cr.fixed_per_user(cr.datasets.load("ml-1m", root=shared_data), train=50)
    settings = {"dim": 100, "lr": 0.1, "decay": 0.9, "reg": 0.01, "negatives": 3, "biases": False, "epochs": 40}
    model = cr.BPR(**settings, sse_user=0.1, sse_item=0.01).fit(split.train)
    report = cr.evaluate(model, split, ["precision@5", "precision@10"], bootstrap=0)
    assert report["precision@5"] >= 0.681
    assert report["precision@10"] >= 0.647
