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
