"""Experiments: said in Python or TOML, fair to each row, and stopped without loss."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import corank as cr
from corank.experiment.entries import make_model
from corank.report import notes
from toys import play_counts


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
    assert {row.label for row in results.rows} == {n for n in cr.available() if cr.find(n).suits("implicit")}
    explicit = cr.Experiment(data=made.data, task="explicit").entries()
    assert {"als", "primal_cr", "popularity"} <= {row.label for row in explicit}


def test_split_follows_the_data(made):
    assert cr.Experiment(data=made.data).make_split().name == "leave-last-out"
    timeless = cr.from_arrays(user=made.data.user, item=made.data.item)
    assert cr.Experiment(data=timeless).make_split().name.startswith("holdout by user")
    short = cr.from_arrays(user=np.repeat(np.arange(50), 5), item=np.tile(np.arange(25), 10))
    parts = cr.Experiment(data=short).make_split()  # a tenth of five rows would be none
    assert len(parts.valid) == len(parts.test) == 50
    split = cr.holdout(made.data, seed=3)
    assert cr.Experiment(data=split).make_split() is split


def test_positive_leaves_rows_out(made):
    split = cr.Experiment(data=made.data, positive=4.0).make_split()
    assert split.train.value.min() >= 4
    with pytest.raises(cr.CorankError, match="lower positive"):
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
    with pytest.raises(cr.CorankError, match="no option 'share'"):
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


def test_made_up_data(tmp_path):
    """A table makes the data, anew for each seed, and brings its own split."""
    path = tmp_path / "small.toml"
    path.write_text(
        "task = 'explicit'\nmetrics = ['rmse']\nseeds = [3, 4]\n"
        "[data]\nsynthetic = 'simulation'\nusers = 60\nitems = 40\nrank = 2\ntrain = 0.3\ncold = 0.1\n"
        "[[model]]\nname = 'als'\ndim = 2\n"
    )
    experiment = cr.Experiment.from_toml(path)
    made = cr.synthetic.simulation(users=60, items=40, rank=2, train=0.3, cold=0.1, seed=4)
    assert np.array_equal(experiment.make_split(4).train.value, made.split.train.value)
    assert not np.array_equal(experiment.make_split(3).train.value[:50], made.split.train.value[:50])
    results = experiment.run()
    assert results.rows[0].runs == 2
    assert "0.1 of the users cold" in results.split.name
    cut = dataclasses.replace(experiment, split={"name": "holdout", "seed": 1}).make_split(4)
    assert len(cut.train) + len(cut.valid) + len(cut.test) == len(made.data)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"users": 9}, "names no generator; known"),
        ({"synthetic": "simulaton"}, "did you mean 'simulation'"),
        ({"synthetic": "simulation", "user": 9}, "has no option 'user'; did you mean 'users'"),
        ({"synthetic": "simulation", "users": "many"}, "whole number"),
    ],
)
def test_made_up_data_mistakes(asked, expected):
    with pytest.raises(cr.CorankError, match=expected):
        cr.Experiment(data=asked).make_split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("metrics = ['ndcg@5']", "name the data"),
        ("data = 'x.csv'\nmodel = 'wmf'", "table of its own"),
        ("data = 'x.csv'\nprotocl = 'full'", "did you mean 'protocol'"),
        ("data = ", "cannot be read as TOML"),
    ],
)
def test_toml_mistakes(tmp_path, text, expected):
    (tmp_path / "e.toml").write_text(text)
    with pytest.raises(cr.CorankError, match=expected):
        cr.Experiment.from_toml(tmp_path / "e.toml")


def test_gain_reaches_the_protocol(made, tmp_path):
    options = {"data": made.data, "models": ["popularity"], "split": {"name": "holdout", "by": "user"}}
    graded = cr.Experiment(**options, gain="exponential").run()
    assert ", exponential gains, " in str(graded).splitlines()[0]
    assert ", binary gains, " in str(cr.Experiment(**options).run()).splitlines()[0]
    assert ", exponential gains, " in str(cr.Experiment(**options, task="explicit").run()).splitlines()[0]
    with pytest.raises(cr.CorankError, match="gain = 'binery' is not known; did you mean 'binary'"):
        cr.Experiment(**options, gain="binery").run()
    with pytest.raises(cr.CorankError, match=r"gain is that of NDCG.*given with between"):
        cr.Experiment(**options, gain=["popularity", "wmf"]).run()


def test_the_kind_of_values_is_an_option_of_the_table(tmp_path):
    rows = [f"{u},{i},{1 + (u * i) % 5}" for u in range(9) for i in range(9)]
    (tmp_path / "t.csv").write_text("\n".join(["user,item,rating", *rows]))
    (tmp_path / "e.toml").write_text('data = "t.csv"\ncolumns = { values = "counts" }\n')
    split = cr.Experiment.from_toml(tmp_path / "e.toml").make_split()
    assert {split.train.values, split.valid.values, split.test.values} == {"counts"}
    (tmp_path / "e.toml").write_text('data = "t.csv"\ncolumns = { values = "cuonts" }\n')
    with pytest.raises(cr.CorankError, match=r"columns\.values = 'cuonts' is not known; did you mean 'counts'"):
        cr.Experiment.from_toml(tmp_path / "e.toml")


def test_counts_in_the_explicit_task_are_ratings_with_a_sentence(caplog):
    plays = play_counts(users=60, items=100, rows=1500)
    results = cr.Experiment(data=plays, models=["als"], task="explicit").run()
    assert "the values are counts from 1 to" in caplog.text
    assert "task 'explicit' treats them as ratings" in caplog.text
    assert results.best.report.protocol.gain == "binary"


def test_between_names_two_rows(made):
    with pytest.raises(cr.CorankError, match="labels of two rows"):
        cr.Experiment(data=made.data, models=["popularity", "wmf"], between=["popularity", "wfm"]).run()


def test_seeds_are_pooled(made):
    timeless = cr.from_arrays(user=made.data.user, item=made.data.item)
    split = {"name": "holdout", "by": "user"}
    single = [
        cr.Experiment(data=timeless, models=["wmf"], metrics=["ndcg@10"], seed=s, split=split).run() for s in (0, 1, 2)
    ]
    pooled = cr.Experiment(data=timeless, models=["wmf"], metrics=["ndcg@10"], seeds=[0, 1, 2], split=split).run()
    figures = [r.best.report["ndcg@10"] for r in single]
    assert len(set(figures)) == 3  # other splits, other starts
    assert pooled.best.report["ndcg@10"] == pytest.approx(np.mean(figures), abs=2e-3)
    assert pooled.best.deviation["ndcg@10"] == pytest.approx(np.std(figures, ddof=1), rel=1e-6)
    low, high = pooled.best.report.interval["ndcg@10"]
    assert low < pooled.best.report["ndcg@10"] < high


@pytest.mark.parametrize("name", ["cold_users", "strong_generalization"])
def test_seeds_that_test_other_users_are_refused_unless_the_split_has_a_seed(made, name):
    split = {"name": name, "users": 0.4}
    asked = {"data": made.data, "models": ["popularity"], "metrics": ["ndcg@10"], "seeds": [4, 1]}
    with pytest.raises(cr.CorankError, match=rf"'{name}' draws other test users.*2 seeds.*seed = 4"):
        cr.Experiment(**asked, split=split).run()
    results = cr.Experiment(**asked, split={**split, "seed": 3}).run()
    assert any("on the same split" in note for note in notes(results, results.lines))


def test_other_data_of_the_same_name_is_another_split():
    made = {"synthetic": "realistic", "users": 60, "items": 80, "rows": 900}
    results = cr.Experiment(data=made, models=["popularity"], metrics=["ndcg@10"], seeds=[1, 2]).run()
    assert any("different seeds and splits" in note for note in notes(results, results.lines))


def test_a_seed_that_is_none_is_said_once(made):
    with pytest.raises(cr.CorankError, match="seeds has -1"):
        cr.Experiment(data=made.data, models=["popularity"], seeds=[-1, 2]).run()


def test_published_figures_stand_beside(made, tmp_path):
    rows = [{"name": "popularity", "published": {"ndcg@10": 0.5}}, "item_knn"]
    results = cr.Experiment(data=made.data, models=rows, metrics=["ndcg@10"]).run()
    cr.report.write_markdown(results, tmp_path / "page.md", command="corank reproduce page")
    assert "NDCG@10 0.5" in (tmp_path / "page.md").read_text()


@pytest.mark.parametrize("protocol", ["full", "sampled", "rated"])
def test_every_protocol_has_metrics_of_its_own(made, protocol):
    results = cr.Experiment(data=made.data, models=["popularity", "item_knn"], protocol=protocol).run()
    assert len(results.rows) == 2
    assert str(results)


@pytest.mark.parametrize(
    "wrong",
    [
        {"tune": "3"},
        {"tune": -1},
        {"refit": "no"},
        {"relevant": "a"},
        {"positive": "a"},
        {"protocol": "ful"},
        {"task": "explict"},
        {"negatives": 7},
        {"columns": {"usr": "user"}},
        {"columns": {"user": 3}},
        {"data": 5},
        {"split": {"nmae": "holdout"}},
        {"split": {"test": 0.5}},
        {"split": {"name": "holdout", "tst": 0.5}},
        {"split": {"name": "holdout", "test": "a"}},
        {"split": "fixed_per_user"},
        {"models": "ease"},
        {"models": [cr.WMF]},
        {"metrics": ["ndgc@10"]},
    ],
    ids=str,
)
def test_a_wrong_option_is_a_sentence_and_nothing_is_fitted(made, wrong):
    heard = []
    with pytest.raises(cr.CorankError):
        cr.Experiment(**{"data": made.data, "models": ["popularity"], **wrong}).run(
            lambda label, event: heard.append(event)
        )
    assert not [e for e in heard if e["event"] != "start"]


class Backwards(cr.Popularity):
    """A model of somebody's own: the rarest first."""

    def _score(self, users):
        return -super()._score(users)


def test_a_model_of_your_own_is_a_contender(made, tmp_path):
    results = cr.Experiment(data=made.data, models=[Backwards(), made.oracle], metrics=["ndcg@10"]).run()
    assert results.best.label == "Backwards"
    results.best.model.save(tmp_path / "own.corank")
    with pytest.raises(cr.CorankError):
        cr.load(tmp_path / "own.corank")
    assert isinstance(cr.load(tmp_path / "own.corank", model=Backwards), Backwards)


def test_a_metric_of_your_own(made, tmp_path):
    def places(positions):
        """How many items stand above the test item, on average."""
        return np.add.reduceat(positions.above.astype(float), positions.indptr[:-1])

    results = cr.Experiment(data=made.data, models=["popularity", "item_knn"], metrics=["ndcg@10", places]).run()
    assert "places" in str(results)
    cr.report.write_html(results, tmp_path / "r.html")


def test_rows_that_learn_from_fewer_ratings():
    """`at_most` thins the training rows of one line of the table, never the test rows."""
    made = cr.synthetic.realistic(users=150, items=100, rows=3_500, groups=5, seed=1)
    rows = [{"name": "popularity", "label": "3", "at_most": 3}, {"name": "popularity", "label": "all"}]
    results = cr.Experiment(data=made.data, models=rows, metrics=["ndcg@10"]).run()
    few, all_ = sorted(results.rows, key=lambda row: row.label)
    assert np.diff(few.model.seen_indptr_).max() == 3
    assert np.diff(all_.model.seen_indptr_).max() > 3
    assert np.array_equal(few.report.users, all_.report.users)
    for wrong in (0, 2.5, "many"):
        with pytest.raises(cr.CorankError, match="at_most"):
            cr.Experiment(data=made.data, models=[{"name": "popularity", "at_most": wrong}]).entries()


def test_long_training_goes_on_where_it_was(tmp_path):
    """With `keep`, a stopped run resumes its model and a finished one is not learned again."""
    made = cr.synthetic.realistic(users=150, items=100, rows=3_500, groups=5, seed=1)
    asked = {"name": "bpr", "epochs": 6, "dim": 4}
    experiment = cr.Experiment(data=made.data, models=[asked], metrics=["ndcg@10"], keep=True)
    plain = cr.Experiment(data=made.data, models=[asked], metrics=["ndcg@10"]).run()
    heard = []

    def stop_after_three(label, event):
        heard.append(event)
        return sum(e["event"] == "epoch" for e in heard) < 3

    with pytest.raises(cr.CorankError, match="stopped"):
        experiment.run(stop_after_three, storage=tmp_path)
    epochs = []
    results = experiment.run(lambda label, event: epochs.append(event.get("epoch")), storage=tmp_path)
    assert [e for e in epochs if e] == [4, 5, 6]
    assert np.array_equal(results.best.model.item_factors_, plain.best.model.item_factors_)
    epochs.clear()
    again = experiment.run(lambda label, event: epochs.append(event.get("epoch")), storage=tmp_path)
    assert not [e for e in epochs if e]
    assert again.best.report.mean == results.best.report.mean


def test_patience_looks_at_validation(made):
    rows = [{"name": "sql_rank", "epochs": 30, "patience": 2, "dim": 4}]
    model = cr.Experiment(data=made.data, models=rows, metrics=["ndcg@10"]).run().best.model
    assert all("ndcg@10" in entry for entry in model.history_)
    assert len(model.history_) < 30


def test_models_of_graphs_join_where_there_is_one():
    made = cr.synthetic.simulation(users=40, items=20, rank=2, train=0.5, valid=0.1)
    plain = dataclasses.replace(made.split.train, user_graph=None)
    with_graph = [row.model.name() for row in cr.Experiment(data=made.split, task="explicit").entries()]
    without = [row.model.name() for row in cr.Experiment(data=plain, task="explicit").entries()]
    assert set(with_graph) - set(without) == {"grmf", "co_factor"}
    assert "als" in without
    assert [row.model.name() for row in cr.Experiment(data=plain, models=["grmf"]).entries()] == ["grmf"]


def test_two_rows_of_one_label_are_refused():
    rows = ({"name": "wmf", "label": "A"}, {"name": "ease", "label": "A"})
    with pytest.raises(cr.CorankError, match="two rows are called 'A': give each a label of its own"):
        cr.Experiment(data="x.csv", models=rows).entries()
