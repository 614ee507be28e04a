"""What `make demo` promises: on the embedded data the oracle is on top and the personal methods beat popularity."""

from __future__ import annotations

import pytest

import corank as cr


@pytest.mark.parametrize("seed", [0, 1])
def test_demo_data_tells_methods_apart(seed):
    made = cr.synthetic.realistic(seed=seed)
    models = [made.oracle, "wmf", "ease", "item_knn", "popularity"]
    results = cr.Experiment(data=made.data, models=models, metrics=["ndcg@10"]).run()
    assert results.rows[0].label == "oracle"
    floor = next(row.report for row in results.rows if row.label == "popularity")
    for row in results.rows:
        if row.label in ("wmf", "ease", "item_knn"):
            versus = cr.compare([row.report, floor], "ndcg@10", against=floor.model)
            line = next(r for r in versus.rows if r.model != floor.model)
            assert line.difference > 0
            assert max(line.p_randomization, line.p_wilcoxon) < 0.001
