"""Experiments: said in Python or TOML, fair to each row, and stopped without loss."""

from __future__ import annotations

import numpy as np
import pytest

import corank as cr
from corank.experiment import make_model


@pytest.fixture(scope="module")
def made():
    return cr.synthetic.realistic(users=150, items=100, rows=3_500, groups=5, seed=1)


def test_rows_are_sorted_and_the_oracle_is_no_contender(made):
    results = cr.Experiment(data=made.data, models=[made.oracle, "popularity", "item_knn"], metrics=["ndcg@10"]).run()
    values = [row.report["ndcg@10"] for row in results.rows]
    assert values == sorted(values, reverse=True)
    assert [row.oracle for row in results.rows if row.label == "oracle"] == [True]
    assert not results.best.oracle
    assert "full ranking" in str(results)


def test_errors_sort_upwards():
    made = cr.synthetic.realistic(users=150, items=100, rows=3_000, groups=5, seed=2)
    results = cr.Experiment(data=made.data, models=["als", "popularity"], metrics=["rmse"], protocol="rated").run()
    assert results.best.label == "als"  # counts are no ratings


def test_same_seed_same_table(made):
    one, two = (
        cr.Experiment(
            data=made.data, models=["wmf"], metrics=["ndcg@10"], seed=5, protocol="sampled", negatives=20
        ).run()
        for _ in range(2)
    )
    assert one.best.report.mean == two.best.report.mean
    assert one.best.model.seed == 5


def test_all_models_by_default(made):
    results = cr.Experiment(data=made.data, metrics=["recall@5"]).run()
    assert {row.label for row in results.rows} == set(cr.available())


def test_split_follows_the_data(made):
    assert cr.Experiment(data=made.data).make_split().name == "leave-last-out"
    timeless = cr.from_arrays(user=made.data.user, item=made.data.item)
    assert cr.Experiment(data=timeless).make_split().name.startswith("holdout by user")
    split = cr.holdout(made.data, seed=3)
    assert cr.Experiment(data=split).make_split() is split


def test_positive_leaves_rows_out(made):
    split = cr.Experiment(data=made.data, positive=4.0).make_split()
    assert split.train.value.min() >= 4
    with pytest.raises(cr.CorankError, match="lower `positive`"):
        cr.Experiment(data=made.data, positive=99.0).make_split()


def test_refit_gives_validation_rows_back(made):
    results = cr.Experiment(data=made.data, models=["popularity"], metrics=["recall@5"], refit=True).run()
    split = cr.leave_last_out(made.data)
    assert results.best.model.seen_index_.size == len(split.train) + len(split.valid)


def test_a_row_that_cannot_be_had_does_not_cost_the_others():
    rng = np.random.default_rng(0)
    data = cr.from_arrays(user=rng.integers(0, 40, 600), item=rng.integers(0, 30, 600))
    results = cr.Experiment(
        data=data, models=[{"name": "popularity", "days": 7.0, "label": "recent"}, "item_knn"]
    ).run()
    assert [row.label for row in results.rows] == ["item_knn"]
    assert "timestamps" in results.failed["recent"]
    with pytest.raises(cr.CorankError, match="timestamps"):
        cr.Experiment(data=data, models=[{"name": "popularity", "days": 7.0}]).run()


def test_stopping_keeps_finished_rows_and_drops_the_half_trained_one(made):
    heard = []

    def stop_in_wmf(label, event):
        heard.append((label, event["event"]))
        return not (label == "wmf" and event["event"] == "epoch")

    results = cr.Experiment(data=made.data, models=["popularity", "wmf", "ease"], metrics=["recall@5"]).run(stop_in_wmf)
    assert [row.label for row in results.rows] == ["popularity"]
    assert ("ease", "start") not in heard


def test_mistakes_are_found_before_anything_is_fitted(made):
    heard = []
    for models in (
        ["popularity", "wnf"],
        ["popularity", {"name": "wmf", "dimm": 3}],
        ["popularity", {"name": "wmf", "dim": 0}],
    ):
        with pytest.raises(cr.CorankError):
            cr.Experiment(data=made.data, models=models).run(lambda label, event: heard.append(label))
    assert heard == []
    with pytest.raises(cr.CorankError, match="has no hyper-parameter 'dmi'; did you mean 'dim'"):
        make_model("wmf", {"dmi": 3})
    with pytest.raises(cr.CorankError, match="unexpected keyword"):
        cr.Experiment(data=made.data, split={"name": "holdout", "share": 0.5}).make_split()


def test_toml(tmp_path, made):
    path = tmp_path / "small.toml"
    path.write_text(
        "data = 'ratings.csv'\nmetrics = ['ndcg@5']\nprotocol = 'sampled'\nnegatives = 10\nseed = 2\n"
        "[split]\nname = 'holdout'\nseed = 4\n[[model]]\nname = 'wmf'\nlabel = 'tiny'\ndim = 2\n"
    )
    lines = [f"{u},{i},{t}" for u, i, t in zip(made.data.user, made.data.item, made.data.time, strict=True)]
    (tmp_path / "ratings.csv").write_text("user,item,time\n" + "\n".join(lines))
    experiment = cr.Experiment.from_toml(path)
    assert experiment.name == "small"
    results = experiment.run()
    assert results.rows[0].label == "tiny"
    assert results.rows[0].model.dim == 2
    assert "seed 4" in results.split.name
    assert "10 uniform negatives" in str(results.rows[0].report.protocol)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("metrics = ['ndcg@5']", "say what data"),
        ("data = 'x.csv'\nmodel = 'wmf'", "table of its own"),
        ("data = 'x.csv'\nprotocl = 'full'", "did you mean 'protocol'"),
        ("data = ", "cannot be read as TOML"),
    ],
)
def test_toml_mistakes(tmp_path, text, expected):
    (tmp_path / "e.toml").write_text(text)
    with pytest.raises(cr.CorankError, match=expected):
        cr.Experiment.from_toml(tmp_path / "e.toml")
