"""What an experiment states before it runs, and what it leaves out."""

from __future__ import annotations

import numpy as np
import pytest

import corank as cr
from corank.estimate import Estimate
from corank.experiment import plan as plans
from corank.experiment.plan import leave_out


def seconds(**rows):
    return {label: Estimate(float(s), 10**6) for label, s in rows.items()}


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return cr.from_arrays(user=rng.integers(0, 60, 900), item=rng.integers(0, 30, 900), time=np.arange(900))


def test_a_row_longer_than_all_others_is_left_out_with_a_sentence():
    found = leave_out(seconds(popularity=1, ease=1500, wmf=200, bpr=280), {})
    assert found == {
        "ease": "estimated at about 25 min, longer than all others together (about 8 min): name it to run it all the "
        "same (--models ease)"
    }


@pytest.mark.parametrize(
    "rows",
    [
        {"popularity": 0, "ease": 40, "wmf": 1, "bpr": 1},  # longer than all others, and not long
        {"a": 1000, "b": 900, "c": 800, "d": 1},  # all of them take long
        {"popularity": 0, "wmf": 5000, "bpr": 1},  # little would remain
        {},
    ],
)
def test_nothing_is_left_out_of_an_ordinary_run(rows):
    assert leave_out(seconds(**rows), {}) == {}


def test_what_is_left_out_does_not_count_as_another_row():
    found = leave_out(seconds(popularity=1, ease=6000, sasrec=5000, wmf=200, bpr=280), {"ease": "no room"})
    assert list(found) == ["ease", "sasrec"]


def test_a_run_leaves_out_and_says_so(data, monkeypatch):
    told = {"ease": Estimate(1500.0, 10**6), "wmf": Estimate(1.0, 10**15)}
    monkeypatch.setattr(cr.Model, "estimate", lambda self, data, users=0: told.get(self.name(), Estimate(5.0, 10**6)))
    monkeypatch.setattr(plans, "free_bytes", lambda: 10**10)
    heard = []
    results = cr.Experiment(data=data).run(lambda label, event: heard.append((label, event["event"])))
    assert set(results.left_out) == {"ease", "wmf"}
    assert "needs 1,000,000.0 GB and 10.0 GB are free" in results.left_out["wmf"]
    assert not {"ease", "wmf"} & {row.label for row in results.rows}
    assert "left out: ease: estimated at about 25 min" in str(results)
    assert results.as_dict()["left_out"] == results.left_out
    assert results.not_run == ()
    assert ("", "plan") in heard
    assert ("ease", "estimating") in heard
    assert ("ease", "start") not in heard


def test_named_models_are_never_left_out(data, monkeypatch):
    monkeypatch.setattr(cr.Model, "estimate", lambda self, data, users=0: Estimate(1e6, 10**15))
    names = ["popularity", "item_knn", "ease", "wmf"]
    results = cr.Experiment(data=data, models=names, estimate=True).run()
    assert {row.label for row in results.rows} == set(names)
    assert results.left_out == {}


def test_trials_multiply_the_estimate(data, monkeypatch):
    monkeypatch.setattr(cr.Model, "estimate", lambda self, data, users=0: Estimate(10.0, 1))
    heard = []
    experiment = cr.Experiment(data=data, models=["popularity"], estimate=True, tune=2)
    experiment.run(lambda label, event: heard.append(event))
    plan = next(event["plan"] for event in heard if event["event"] == "plan")
    assert plan.estimates["popularity"].seconds == 30
    assert plan.seconds == 30


def test_a_stop_while_estimating_ends_the_run(data):
    with pytest.raises(cr.CorankError, match="stopped before any row"):
        cr.Experiment(data=data).run(lambda label, event: event["event"] != "estimating")


def test_a_stop_within_a_fit_keeps_the_rows_before(data, monkeypatch):
    monkeypatch.setattr("corank.training.OFTEN", 0.0)
    experiment = cr.Experiment(data=data, models=["popularity", "ease", "wmf"])
    results = experiment.run(lambda label, event: event["event"] != "progress")
    assert [row.label for row in results.rows] == ["popularity"]
    assert results.not_run == ("ease", "wmf")
