"""Quality against time: the measured run is the timed one, and the page holds what was measured."""

from __future__ import annotations

import pytest

import corank as cr
from corank.experiment import curves


@pytest.fixture(scope="module")
def experiment():
    made = cr.synthetic.realistic(users=120, items=100, rows=2_500, groups=4, seed=6)
    models = [{"name": "als", "epochs": 3, "dim": 4}, {"name": "primal_cr", "epochs": 4, "dim": 4, "label": "ranking"}]
    return cr.Experiment(data=cr.holdout(made.data), models=models, task="explicit", metrics=["ndcg@10"], name="curves")


def test_curves(experiment, tmp_path):
    split, found, failed = curves.run(experiment)
    assert not failed
    assert [len(c.seconds) for c in found] == [3, 4]
    for curve in found:
        assert sorted(curve.seconds) == curve.seconds
        assert len(curve.metrics["ndcg@10"]) == len(curve.metrics["objective"]) == len(curve.seconds)
    again = cr.PrimalCR(epochs=4, dim=4).fit(experiment.data.train)
    assert (
        found[1].metrics["ndcg@10"][-1] == cr.evaluate(again, experiment.data, "ndcg@10", protocol="rated")["ndcg@10"]
    )
    curves.write(experiment, split, found, tmp_path / "page.md", "corank reproduce page")
    text = (tmp_path / "page.md").read_text()
    assert "ranking" in text
    assert "corank reproduce page" in text
    for picture in ("page-objective.svg", "page-ndcg10.svg"):
        assert picture in text
        assert (tmp_path / picture).read_text().startswith("<svg")


def test_progress_can_stop(experiment):
    heard = []
    curves.run(experiment, lambda label, event: heard.append(label))
    assert set(heard) == {"als", "ranking"}


def test_all_training_rows_of_a_given_split_are_learned_from(tmp_path):
    # Validation rows that were cut from the training rows of a published split are for choosing settings only.
    rows = cr.synthetic.realistic(users=60, items=50, rows=700, groups=3, seed=6).data
    split = cr.holdout(rows, valid=0.0, seed=1)
    split.train.to_frame().write_csv(tmp_path / "train.csv")
    split.test.to_frame().write_csv(tmp_path / "test.csv")
    models = [{"name": "als", "epochs": 2, "dim": 4}]
    given = cr.Experiment(
        data=tmp_path / "train.csv", test=tmp_path / "test.csv", models=models, task="explicit", metrics=["rmse"]
    )
    assert given.make_split().valid_from_train
    _, [curve], failed = curves.run(given)
    assert not failed
    whole = cr.ALS(epochs=2, dim=4).fit(given.make_split().refit().train)
    assert curve.metrics["objective"] == [entry["objective"] for entry in whole.history_]
