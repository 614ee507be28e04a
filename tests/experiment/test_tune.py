"""Tuning: finds better settings on validation, never looks at test, goes on where it was stopped."""

from __future__ import annotations

import dataclasses
import tomllib

import numpy as np
import pytest

import corank as cr
from corank.errors import Stopped
from corank.experiment.entries import make_model
from corank.experiment.tune import tune
from corank.params import param, params_of


@pytest.fixture(scope="module")
def split():
    return cr.leave_last_out(cr.synthetic.realistic(users=200, items=100, rows=5_000, groups=5, seed=4).data)


def test_never_below_the_start(split):
    start = cr.evaluate(cr.WMF().fit(split.train), split, ["ndcg@10"], part="valid")["ndcg@10"]
    found = tune(cr.WMF(), split, trials=6)
    assert found.trials == 6
    again = cr.evaluate(found.model().fit(split.train), split, ["ndcg@10"], part="valid")["ndcg@10"]
    assert again == pytest.approx(found.value, abs=1e-9)
    assert found.after(1).value == pytest.approx(start, abs=1e-9)
    assert found.after(1).params == cr.WMF().params()
    assert found.value == max(v for _, v in found.tried if v is not None)
    assert found.after(6) == found
    assert isinstance(found.params["dim"], int)


@dataclasses.dataclass(kw_only=True, eq=False)
class Shrunk(cr.WMF):
    """A model that chooses one of its hyper-parameters by the data when nobody says it."""

    share: float | None = param(None, "of what is known (half of it when absent)", low=0.0, search=(0.1, 1.0))


def test_what_is_left_to_the_data_is_tried_too(split):
    """The first trial is the model as given, None included; the others try numbers."""
    tried = []
    trials = 3 + len(cr.WMF.starts)
    found = tune(Shrunk(dim=3, epochs=2), split, trials=trials, on_trial=lambda e: tried.append(e["params"]))
    assert "share" not in tried[0]
    assert all("share" in t for t in tried[-2:])
    assert found.trials == trials
    assert tune(Shrunk(dim=3, epochs=2), split, trials=1).params["share"] is None


def test_a_search_begins_with_settings_that_were_best_elsewhere(split):
    tried = []
    tune(cr.WMF(epochs=2), split, trials=3, on_trial=lambda e: tried.append(e["params"]))
    assert tried[0]["rho_scale"] == cr.WMF().rho_scale
    for params, start in zip(tried[1:], cr.WMF.starts, strict=False):
        assert start.items() <= params.items()
    held = []  # what is given is not searched, in the starts neither
    tune(cr.WMF(epochs=2, reg=0.5), split, trials=2, on_trial=lambda e: held.append(e["params"]))
    assert all("reg" not in params for params in held)


def test_hopeless_trials_end_early(split):
    """Trials below the median after 2 epochs do not reach the last one."""
    epochs = []

    @dataclasses.dataclass(kw_only=True, eq=False)
    class Counted(cr.BPR):
        def _fit(self, data, rows, training):
            super()._fit(data, rows, training)
            epochs.append(len(self.history_))

    tune(Counted(dim=4, epochs=32), split, trials=16)
    assert min(epochs) < 32 == max(epochs)


def test_starts_lie_in_the_ranges():
    """Every start of every model names hyper-parameters with a range, and values within it."""
    for name in cr.available():
        known = params_of(cr.find(name))
        for start in cr.find(name).starts:
            for key, value in start.items():
                rule = known[key][3]
                assert rule.search is not None, (name, key)
                if isinstance(value, str | bool):
                    assert value in rule.search
                else:
                    assert rule.search[0] <= value <= rule.search[1], (name, key, value)


def test_what_is_not_the_default_stays(split):
    found = tune(cr.WMF(dim=3, epochs=2), split, trials=3)
    assert found.params["dim"] == 3
    assert found.params["epochs"] == 2


def test_same_seed_same_search(split):
    one, two = (tune(cr.ItemKNN(), split, trials=4) for _ in range(2))
    assert one.params == two.params


def test_test_rows_are_not_looked_at(split):
    """Nonsense in the test part changes nothing."""
    spoiled = dataclasses.replace(split, test=split.test.take(np.zeros(1, np.int64)))
    assert tune(cr.ItemKNN(), split, trials=3).params == tune(cr.ItemKNN(), spoiled, trials=3).params


def test_stop_and_go_on(split, tmp_path):
    heard = []

    def twice(event):
        heard.append(event["trial"])
        return len(heard) < 2

    first = tune(cr.ItemKNN(), split, trials=5, storage=tmp_path, on_trial=twice)
    assert first.trials == 2
    second = tune(cr.ItemKNN(), split, trials=5, storage=tmp_path, on_trial=lambda e: heard.append(e["trial"]))
    assert second.trials == 5
    assert heard == [1, 2, 3, 4, 5]
    assert second.after(2).tried == first.tried


def test_a_search_stops_within_a_trial_and_tries_it_again(split, tmp_path, monkeypatch):
    monkeypatch.setattr("corank.training.OFTEN", 0.0)
    heard = []

    def in_the_second(event):
        heard.append((event["trial"], event["of"], event["event"]))
        return event["trial"] < 2

    model = Talkative(dim=2, epochs=2)
    found = tune(model, split, trials=3, storage=tmp_path, on_progress=in_the_second)
    assert found.trials == 1
    assert heard[-1] == (2, 3, "progress")
    assert tune(model, split, trials=3, storage=tmp_path).trials == 3
    with pytest.raises(Stopped, match="before a trial had finished"):
        tune(model, split, trials=3, on_progress=lambda event: False)


class Talkative(cr.WMF):
    """A model that reports progress within its epochs."""

    def _fit(self, data, rows, training):
        training.progress(1, 2)
        super()._fit(data, rows, training)


def test_other_data_is_another_search(split, tmp_path):
    tune(cr.ItemKNN(), split, trials=2, storage=tmp_path)
    other = cr.holdout(split.train, seed=1)
    assert tune(cr.ItemKNN(), other, trials=1, storage=tmp_path).trials == 1


def test_another_graph_is_another_search(split, tmp_path):
    tune(cr.WMF(dim=2, epochs=1), split, trials=1, storage=tmp_path)
    graph = cr.from_scipy(np.ones((len(split.train.users),) * 2))
    tied = dataclasses.replace(split, train=dataclasses.replace(split.train, user_graph=graph))
    seen = []
    tune(cr.WMF(dim=2, epochs=1), tied, trials=1, storage=tmp_path, on_trial=lambda entry: seen.append(entry) or True)
    assert len(seen) == 1


def test_other_ratings_are_another_search(split, tmp_path):
    tune(cr.WMF(dim=2, epochs=1), split, trials=1, storage=tmp_path)
    rated = dataclasses.replace(split, train=dataclasses.replace(split.train, value=split.train.value + 1))
    seen = []
    tune(cr.WMF(dim=2, epochs=1), rated, trials=1, storage=tmp_path, on_trial=lambda entry: seen.append(entry) or True)
    assert len(seen) == 1


@pytest.mark.parametrize("name", cr.available())
def test_the_default_setting_can_be_tried(name):
    """A default of 0 cannot lie in a range that is searched by ratios: it stays as it is in the first trial."""
    data = cr.synthetic.realistic(users=40, items=30, rows=300, groups=2, seed=3).data
    model = cr.find(name)()
    short = {k: v for k, v in (("epochs", 1), ("dim", 2)) if k in model.params()}
    found = tune(cr.find(name)(**short), cr.holdout(data, seed=1), metric="ndcg@10", trials=1)
    assert found.trials == 1
    assert found.params == {**model.params(), **short}


def test_lower_is_better_for_errors():
    data = cr.synthetic.realistic(users=200, items=100, rows=4_000, groups=5, seed=5).data
    split = cr.holdout(data)
    found = tune(cr.ALS(epochs=4), split, metric="rmse", trials=4, protocol="rated")
    values = [cr.evaluate(cr.ALS(epochs=4).fit(split.train), split, ["rmse"], part="valid", protocol="rated")["rmse"]]
    assert found.value <= min(values) * 1.05
    assert 0 < found.value < 3


def test_model_without_ranges(split):
    found = tune(cr.Popularity(), split, trials=5)
    assert found.params == cr.Popularity().params()


def test_written_toml_is_a_model(split, tmp_path):
    found = tune(cr.WMF(epochs=2), split, trials=2)
    found.write(tmp_path / "w.toml")
    table = tomllib.loads((tmp_path / "w.toml").read_text())
    assert make_model(table.pop("name"), table).params() == found.params
    with pytest.raises(cr.CorankError, match="cannot write"):
        found.write(tmp_path / "w.toml" / "below.toml")


def test_bad_requests(split):
    with pytest.raises(cr.CorankError, match="at least one trial"):
        tune(cr.WMF(), split, trials=0)
    with pytest.raises(cr.CorankError, match="no validation rows"):
        tune(cr.WMF(), split.refit(), trials=1)
