"""One training session: epochs, reports, early stopping and checkpoints behave the same for every model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import corank as cr
from corank.evaluation.evaluate import validation_ndcg
from corank.model_file import read_file, write_file
from corank.params import param
from corank.stored import floats


@dataclass(kw_only=True, eq=False)
class Walk(cr.Model):
    """A random walk: after epoch t, `place_` is the sum of t draws, and `trace` in the state has all of them."""

    epochs: int = param(6, "steps of the walk", low=1)
    patience: int | None = param(None, "epochs without a better value", low=1)
    width: int = param(3, "size of the state", low=1)

    def _fit(self, data, rows, training):
        self.place_ = np.zeros(2)
        trace = np.zeros((self.width, 2))
        training.watch("height", higher_is_better=self.seed % 2 == 0)
        for epoch in training.epochs(trace=trace):
            step = training.rng.normal(size=2)
            self.place_ = self.place_ + step  # a new array, as some models make
            trace[epoch % self.width] += step
            training.report(height=float(np.cos(2.0 * epoch)))
        self.trace_ = trace

    def _stores(self):
        return super()._stores() | {
            "place_": floats(2, dtype="float64"),
            "trace_": floats("width", 2, dtype="float64"),
        }

    def _score(self, users):
        return np.tile(np.float32(self.place_), (users.size, len(self.items_)))[:, : len(self.items_)].copy()

    def _score_histories(self, histories):
        return self._score(np.zeros(histories.rows, np.int32))


@pytest.fixture
def data():
    return cr.from_arrays(user=[0, 0, 1, 1, 2], item=[0, 1, 0, 2, 1])


def test_epochs_are_numbered_and_recorded(data):
    model = Walk().fit(data)
    assert [entry["epoch"] for entry in model.history_] == [1, 2, 3, 4, 5, 6]
    assert all(entry["seconds"] >= 0 for entry in model.history_)


@pytest.mark.parametrize("seed", [0, 1])
def test_patience_returns_the_arrays_of_the_best_epoch(data, seed):
    model = Walk(seed=seed, patience=3, epochs=30).fit(data, valid=data)
    heights = [entry["height"] for entry in model.history_]
    best = 1 + int(np.argmax(heights) if seed == 0 else np.argmin(heights))
    assert len(heights) == best + 3 < 30
    draws = np.random.default_rng(seed).normal(size=(best, 2))
    np.testing.assert_allclose(model.place_, draws.sum(axis=0), rtol=1e-12)


def test_every_epoch_must_be_reported_once(data):
    model = Walk()
    model._fit = lambda data, rows, training: [None for _ in training.epochs()]
    with pytest.raises(RuntimeError, match="once per epoch"):
        model.fit(data)
    model._fit = lambda data, rows, training: training.report(loss=1.0)
    with pytest.raises(RuntimeError, match="inside"):
        model.fit(data)

    def twice(data, rows, training):
        for _ in training.epochs():
            training.report(loss=1.0)
            training.report(loss=1.0)

    model._fit = twice
    with pytest.raises(RuntimeError, match="once per epoch"):
        model.fit(data)


@pytest.mark.parametrize("stop", [1, 3, 5])
def test_stopped_and_resumed_is_never_stopped(data, tmp_path, stop):
    path = tmp_path / "walk.checkpoint"
    Walk(seed=4).fit(data, checkpoint=path, on_epoch=lambda entry: entry["epoch"] < stop)
    resumed = Walk(seed=4).fit(data, checkpoint=path)
    whole = Walk(seed=4).fit(data)
    assert np.array_equal(resumed.place_, whole.place_)
    assert np.array_equal(resumed.trace_, whole.trace_)
    assert [e["height"] for e in resumed.history_] == [e["height"] for e in whole.history_]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda arrays: {**arrays, "place_": np.zeros(3)},
        lambda arrays: {**arrays, "place_": arrays["place_"].astype(np.float32)},
        lambda arrays: {**arrays, "fit": np.zeros(2)},
        lambda arrays: {k: v for k, v in arrays.items() if k != "state.trace"},
    ],
)
def test_a_checkpoint_with_other_arrays_is_an_error_and_sets_nothing(data, tmp_path, spoil):
    path = tmp_path / "walk.checkpoint"
    Walk().fit(data, checkpoint=path, on_epoch=lambda entry: entry["epoch"] < 2)
    meta, arrays = read_file(path)
    write_file(path, spoil(arrays), {k: meta[k] for k in ("model", "params", "state")})
    model = Walk()
    with pytest.raises(cr.ModelFileError, match="holds other arrays than this fit: remove it to start anew"):
        model.fit(data, checkpoint=path)
    assert callable(model.fit)
    assert "place_" not in vars(model)


def test_a_saved_model_removes_its_finished_checkpoint_only(data, tmp_path):
    path = tmp_path / "walk.checkpoint"
    stopped = Walk().fit(data, checkpoint=path, on_epoch=lambda entry: entry["epoch"] < 2)
    stopped.save(tmp_path / "half.corank")
    assert path.exists()
    finished = Walk().fit(data, checkpoint=path)
    assert path.exists()
    finished.save(tmp_path / "whole.corank")
    assert not path.exists()


@pytest.mark.parametrize("name", ["item_knn", "sasrec", "sse_pt", "gru4rec", "gcmc", "graph_ae"])
def test_long_fits_report_progress_and_can_be_stopped(monkeypatch, name):
    monkeypatch.setattr("corank.training.OFTEN", 0.0)
    rng = np.random.default_rng(0)
    data = cr.from_arrays(user=rng.integers(0, 40, 600), item=rng.integers(0, 30, 600), value=rng.integers(1, 6, 600))
    small = {"epochs": 2, "dim": 8} | (
        {"batch_size": 10} if "batch_size" in cr.find(name)().params() else {"batches": 3}
    )
    params = {} if name == "item_knn" else small
    heard = []
    cr.find(name)(**params).fit(data, on_progress=heard.append)
    shares = [event["share"] for event in heard]
    assert len(shares) >= (2 if name == "item_knn" else 6)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)
    assert all(event["event"] == "progress" and event["left"] >= 0 for event in heard)
    model = cr.find(name)(**params)
    with pytest.raises(cr.errors.Stopped, match=f"the fit of {name} was stopped"):
        model.fit(data, on_progress=lambda event: False)
    with pytest.raises(cr.CorankError, match="not fitted"):
        model.recommend([0])


def test_progress_changes_no_numbers(monkeypatch):
    monkeypatch.setattr("corank.training.OFTEN", 0.0)
    rng = np.random.default_rng(1)
    data = cr.from_arrays(user=rng.integers(0, 50, 900), item=rng.integers(0, 400, 900))
    for cls in (cr.ItemKNN, cr.EASE):
        plain, watched = cls().fit(data), cls().fit(data, on_progress=lambda event: None)
        np.testing.assert_array_equal(plain.recommend().scores, watched.recommend().scores)


def test_progress_is_throttled(data):
    @dataclass(kw_only=True, eq=False)
    class Busy(Walk):
        def _fit(self, data, rows, training):
            self.place_ = np.zeros(2)
            for part in range(100_000):
                training.progress(part + 1, 100_000)

    heard = []
    Busy().fit(data, on_progress=heard.append)
    assert len(heard) < 100


def test_where_the_epochs_are_left_open_validation_decides_them():
    split = cr.leave_last_out(cr.synthetic.markov(users=60, items=20, length=8).data)
    model = cr.GRU4Rec(dim=8, batch_size=4096, lr=0.2).fit(split.train, valid=split.valid)  # one step per epoch
    values = [entry["ndcg@10"] for entry in model.history_]
    assert model.epochs_ == 3 * 60
    assert len(values) < model.epochs_
    assert len(values) - 1 - int(np.argmax(values)) == 10  # patience of a sixth of the usual epochs
    assert validation_ndcg(model, split.valid) == max(values)  # the best epoch is kept
    assert len(cr.GRU4Rec(dim=8, epochs=12, lr=0.2).fit(split.train, valid=split.valid).history_) == 12
    assert len(cr.GRU4Rec(dim=8, batch_size=4096).fit(split.train).history_) == 60


def test_experiments_stop_early_where_epochs_are_left_open():
    data = cr.synthetic.markov(users=60, items=20, length=8).data
    model = {"name": "gru4rec", "dim": 8, "batch_size": 4096, "lr": 0.2}
    row = cr.Experiment(data=data, task="sequential", models=[model], metrics=["ndcg@10"]).run().rows[0]
    assert len(row.model.history_) < 180
