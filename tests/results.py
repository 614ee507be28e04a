"""Small results for the tests of leaderboard, figures and report: fitted on real rows, or made to measure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

import corank as cr
from corank import synthetic
from corank.evaluation.evaluate import evaluate
from corank.evaluation.metrics import metrics_of
from corank.evaluation.report import Report
from corank.experiment.experiment import Experiment
from corank.experiment.options import METRICS
from corank.experiment.results import Results, Row

HOSTILE = "<script>alert('1 & 2')</script> $x$ | \"q\"\x07"


@cache
def small(split: str = "leave_last_out", **options: Any) -> Results:
    """An oracle, three models and a row with a hostile name on synthetic data."""
    made = synthetic.realistic(users=120, items=80, rows=2_000, groups=4, seed=3)
    rows: list[Any] = [{"name": "wmf", "label": HOSTILE, "dim": 4, "epochs": 2}, "popularity", "item_knn", "als"]
    if split != "strong_generalization":  # the oracle does not fold in
        rows.append(made.oracle)
    options.setdefault("metrics", METRICS["full"])
    return Experiment(data=made.data, models=rows, split=split, name="small & <b>", **options).run()


def measured(values: Mapping[str, Any], metric: str = "ndcg@10", oracle: str | None = None) -> Results:
    """Results whose values per user are given; every user has one test row. `oracle` names a row that is a ceiling."""
    n = len(next(iter(values.values())))
    user, item = np.repeat(np.arange(n), 4), np.tile(np.arange(4), n)
    split = cr.leave_last_out(cr.from_arrays(user=user, item=item, time=np.arange(4 * n)))
    model = cr.Popularity().fit(split.train)
    plain = evaluate(model, split, "ndcg@10", bootstrap=0)
    what = metrics_of(metric)
    rows = []
    for label, given in values.items():
        per_user = np.asarray(given, np.float64)
        mean = float(what[0].finish(np.nanmean(per_user))) if np.isfinite(per_user).any() else np.nan
        report: Report = dataclasses.replace(
            plain,
            metrics=what,
            values={what[0].name: per_user},
            weights={what[0].name: np.isfinite(per_user).astype(np.float64)},
            mean={what[0].name: mean},
            interval={what[0].name: (mean - 0.01, mean + 0.01)},
        )
        kind = Ceiling().fit(split.train) if label == oracle else model
        rows.append(Row(label, kind, report))
    rows.sort(key=lambda row: row.report[metric] * (-1 if what[0].higher_is_better else 1))
    return Results(split, rows, (what[0].name,), "measured", 1.0)


class Ceiling(cr.Popularity):
    """Counts as an oracle."""

    oracle = True
