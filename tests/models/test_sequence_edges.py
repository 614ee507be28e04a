"""Edges of the data and of the settings, for every sequence model: each has a rule or one sentence."""

from __future__ import annotations

import numpy as np
import pytest

import corank as cr
from corank.models._sequence import SequenceModel
from corank.models._sequence_options import LOSSES, rounded_to_heads
from corank.params import params_of

pytest.importorskip("torch")

NAMES = [name for name in cr.available() if issubclass(cr.find(name), SequenceModel)]
SMALL = {"dim": 4, "epochs": 2, "batch_size": 16}


def rows(*histories):
    """One user per history, in the order of time."""
    user = np.repeat(np.arange(len(histories)), [len(one) for one in histories])
    item = np.concatenate([np.asarray(one) for one in histories])
    return cr.from_arrays(user=user, item=item, time=np.arange(user.size), duplicates="keep")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return rows(*[(rng.integers(12) + np.arange(n)) % 12 for n in rng.integers(2, 15, 30)])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("max_len", [1, 5])
def test_of_a_long_history_the_last_items_are_read(name, max_len, data):
    model = cr.find(name)(**SMALL, max_len=max_len).fit(data)
    long = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    one, other = (model.recommend(histories=[given], k=3, exclude_seen=False) for given in (long, long[-max_len:]))
    np.testing.assert_allclose(one.scores, other.scores, rtol=1e-4, atol=1e-5)
    assert model.user_length_.max() == max_len


@pytest.mark.parametrize("name", NAMES)
def test_users_of_one_event_teach_nothing_and_are_scored(name, data):
    """Beside others they change nothing that is learned; alone they are refused."""
    given = data.sequences()
    histories = [given.index[a:b] for a, b in zip(given.indptr[:-1], given.indptr[1:], strict=True)]
    more = rows(*histories, [3])
    one, other = (cr.find(name)(**SMALL, max_len=6).fit(each) for each in (data, more))
    assert np.isfinite(other.recommend([30], k=3).scores).all()
    if "user" not in one._network().parameters():  # a vector per user: there is one more, and other random numbers
        np.testing.assert_array_equal(one.weights_, other.weights_)
    with pytest.raises(cr.CorankError, match="no user has two items") as error:
        cr.find(name)(**SMALL).fit(rows([1], [2], [2]))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", NAMES)
def test_users_of_two_events_are_enough(name):
    model = cr.find(name)(**{**SMALL, "epochs": 60, "lr": 0.02, "dropout": 0.0}).fit(rows(*[[1, 2], [3, 4]] * 8))
    best = model.recommend(histories=[[1], [3]], k=1).items[:, 0]
    assert model.items_.ids[best].tolist() == [2, 4]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", NAMES)
def test_a_catalogue_of_two_items(name, loss):
    if "loss" not in cr.find(name)().params() or loss not in (params_of(cr.find(name))["loss"][3].choices or ()):
        pytest.skip("has no such loss")
    data = rows([1, 2, 1, 2], [2, 1], [1], [2, 2, 2])
    model = cr.find(name)(**SMALL, loss=loss, negatives=7).fit(data)
    assert np.isfinite(model.weights_).all()
    ranking = model.recommend(histories=[[1, 2, 1], [2]], k=5, exclude_seen=False)
    assert sorted(ranking.items[0, :2].tolist()) == [0, 1]


@pytest.mark.parametrize("sampling", ["uniform", "popular", "batch"])
@pytest.mark.parametrize("loss", ["sampled_softmax", "gbce", "bpr", "bpr_max", "top1"])
def test_more_negatives_than_items(loss, sampling, data):
    model = cr.SASRec(**SMALL, max_len=6, loss=loss, sampling=sampling, negatives=500, log_q=True).fit(data)
    assert np.isfinite(model.weights_).all()
    assert model.history_[-1]["loss"] < model.history_[0]["loss"] * 1.5


def test_bce_with_more_negatives_than_items(data):
    model = cr.SASRec(**SMALL, max_len=6, loss="bce", negatives=50).fit(data)
    assert np.isfinite(model.weights_).all()


@pytest.mark.parametrize(("width", "heads", "size"), [(64, 1, 64), (65, 2, 65), (37, 4, 5), (3, 8, 3), (64, 3, 60)])
def test_a_size_is_rounded_to_the_heads(width, heads, size):
    found = rounded_to_heads(width, heads, size)
    assert (width - size + found) % heads == 0
    assert found >= 1
    assert abs(found - size) < heads


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("sasrec", {"heads": 3}),
        ("bsarec", {"heads": 8}),
        ("sse_pt", {"heads": 4}),
        ("sse_pt", {"heads": 4, "dim": 33}),
        ("sse_pt", {"heads": 7, "dim_user": 9}),
    ],
)
def test_a_search_proposes_only_sizes_that_the_heads_divide(name, options, data, monkeypatch):
    pytest.importorskip("optuna")
    from corank.experiment.tune import tune

    cls, tried = cr.find(name), []

    def fit(self, data, rows, training):
        tried.append(self._width())
        learn(self, data, rows, training)

    learn = cls._fit
    monkeypatch.setattr(cls, "_fit", fit)
    split = cr.leave_last_out(data)
    heard = []
    model = cls(epochs=1, max_len=4, blocks=1, lr=1e-3, **options)
    found = tune(model, split, trials=6, on_trial=lambda event: heard.append(event["params"]))
    assert len(tried) == 6
    assert all(width % options["heads"] == 0 for width in tried)
    assert len(set(tried)) > 1
    assert found.model()._width() % options["heads"] == 0
    for params, (whole, _) in zip(heard, found.tried, strict=True):
        assert all(whole[key] == value for key, value in params.items())
    for key, value in options.items():
        assert found.params[key] == value


def test_sizes_that_are_given_are_not_changed(data):
    """Then nothing but an error is left."""
    model = cr.SASRec(**SMALL, heads=3)
    assert model._feasible(["lr"]).dim == 4
    with pytest.raises(cr.CorankError, match="heads must divide the hidden size 4"):
        model.fit(data)


def test_nobody_searches_what_changes_nothing(data):
    assert "sse_user" in cr.SSEPT(share="everyone")._pointless(data)
    assert "sse_user" not in cr.SSEPT()._pointless(data)
