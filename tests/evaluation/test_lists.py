"""Lists of any origin: evaluated as the model that made them, and what is odd about them is said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import corank as cr
from toys import Table, some_data

METRICS = ["ndcg@10", "recall@5", "precision@10", "hit@1", "map@10", "mrr@10", "hlu@7", "coverage@10", "novelty@5"]


@pytest.fixture(scope="module")
def split() -> cr.Split:
    return cr.holdout(some_data(), test=0.25, valid=0.1, by="user", seed=1).refit()


@pytest.fixture(scope="module")
def model(split: cr.Split) -> Table:
    return Table().fit(split.train)


@pytest.fixture(scope="module")
def frame(split: cr.Split, model: Table) -> pl.DataFrame:
    return model.recommend(split.users, k=12).to_frame()


def same(report: cr.Report, model: Table, split: cr.Split) -> None:
    own = cr.evaluate(model, split, list(report.mean))
    for name in own.mean:
        np.testing.assert_array_equal(report.values[name], own.values[name], err_msg=name)
    assert report.mean == own.mean
    assert report.interval == own.interval
    assert report.fingerprint == own.fingerprint
    assert cr.compare([own, report], "ndcg@10").rows[0].difference == 0


def test_lists_of_a_model_have_its_figures(split: cr.Split, model: Table, frame: pl.DataFrame) -> None:
    ranking = model.recommend(split.users, k=12)
    for lists in (ranking, frame, frame.to_pandas(), frame.to_arrow(), frame.sample(fraction=1, shuffle=True, seed=1)):
        same(cr.evaluate(lists, split, METRICS, name="theirs"), model, split)
    same(cr.evaluate(frame.drop("rank"), split, METRICS, name="theirs"), model, split)  # by score
    texts = frame.with_columns(pl.col("user").cast(pl.String), pl.col("item").cast(pl.String))
    same(cr.evaluate(texts, split, METRICS, name="theirs"), model, split)


@pytest.mark.parametrize("name", ["l.csv", "l.tsv", "l.parquet", "l.jsonl", "l.csv.gz", "l.jsonl.gz"])
def test_files_of_lists(split: cr.Split, model: Table, name: str, tmp_path: Path) -> None:
    model.recommend(split.users, k=12).write(tmp_path / name)
    same(cr.evaluate(tmp_path / name, split, METRICS, name="theirs"), model, split)


def test_a_trec_run(split: cr.Split, model: Table, frame: pl.DataFrame, tmp_path: Path) -> None:
    lines = [f"{user} Q0 {item} {rank} {score} mine" for user, rank, item, score in frame.iter_rows()]
    (tmp_path / "run.txt").write_text("\n".join(lines))
    same(cr.evaluate(tmp_path / "run.txt", split, METRICS, name="theirs"), model, split)


def test_a_report_of_lists_says_who_made_them(split: cr.Split, frame: pl.DataFrame) -> None:
    report = cr.evaluate(frame, split, "ndcg@10", name="theirs")
    assert str(report).splitlines()[0] == f"theirs on {split.name} (test, {report.users.size} users)"
    assert str(report).splitlines()[2] == "note: lists in order of rank, 12 items on average"
    assert report.params == {}
    assert np.isnan(report.fit_seconds)
    assert report.as_dict()["notes"] == list(report.notes)
    assert cr.evaluate(frame, split, "ndcg@10").model == "lists"
    assert cr.evaluate(frame, split, ["coverage@3"]).top is not None


def test_equal_scores_share_their_ranks(split: cr.Split, frame: pl.DataFrame) -> None:
    """A list whose scores say nothing is as good as its items in random order."""
    flat = cr.evaluate(frame.drop("rank").with_columns(score=pl.lit(0.5)), split, ["hit@1", "recall@12"])
    rows = []
    for seed in range(300):
        mixed = frame.sample(fraction=1, shuffle=True, seed=seed)
        rows.append(cr.evaluate(mixed.with_columns(rank=np.arange(len(mixed))), split, "hit@1", bootstrap=0)["hit@1"])
    assert flat["hit@1"] == pytest.approx(np.mean(rows), abs=4 * np.std(rows) / np.sqrt(300))
    assert flat["recall@12"] == cr.evaluate(frame, split, "recall@12")["recall@12"]


def test_users_without_a_list_count_as_zero(split: cr.Split, model: Table, frame: pl.DataFrame) -> None:
    gone = split.users[:4].tolist()
    report = cr.evaluate(frame.filter(~pl.col("user").is_in(gone)), split, ["recall@10", "ndcg@10", "novelty@10"])
    own = cr.evaluate(model, split, "recall@10")
    assert f"test users without a list, who count as 0 (of {split.users.size}): 4" in report.notes
    assert (report.per_user["recall@10"][:4] == 0).all()
    np.testing.assert_array_equal(report.per_user["recall@10"][4:], own.per_user["recall@10"][4:])
    assert np.isnan(report.per_user["novelty@10"][:4]).all()


def test_lists_made_from_all_rows_are_said(split: cr.Split) -> None:
    lists = Table().fit(split.all_rows()).recommend(split.users, k=10)
    report = cr.evaluate(lists, split, "recall@10")
    assert report["recall@10"] == 0
    assert "no test item is in any list" in report.notes[-1]


def test_what_is_odd_is_counted(split: cr.Split, frame: pl.DataFrame) -> None:
    user = int(split.users[0])
    mine = split.train.item[split.train.users.ids[split.train.user] == user]
    seen = int(split.train.items.ids[mine[0]])
    first = int(frame.filter(pl.col("user") == user)["item"][0])
    strange = pl.DataFrame(
        {"user": [user, user, user, 9999], "rank": [0, 13, 14, 1], "item": [seen, first, 777, first]},
        schema_overrides={"user": pl.Int64, "item": pl.Int64, "rank": pl.Int64},
    )
    report = cr.evaluate(pl.concat([frame.drop("score"), strange], how="diagonal_relaxed"), split, "ndcg@10")
    assert report.notes[1:] == (
        "listed items known from training or validation rows, removed: 1",
        "items listed twice for a user, of which the first counts: 1",
        "listed items unknown to the data, which are misses: 1",
        "lists of unknown users, left out: 1",
    )
    assert report.mean == cr.evaluate(frame, split, "ndcg@10").mean
    untested = cr.Split(split.train, split.valid, split.test.take(split.test.user != split.test.user[0]), "fewer")
    assert "lists of users without test rows, left out: 1" in cr.evaluate(frame, untested, "ndcg@10").notes
    short = cr.evaluate(frame.filter((pl.col("rank") < 3) | (pl.col("user") != user)), split, "ndcg@10")
    assert "lists with fewer than 10 items, whose missing ranks are misses: 1" in short.notes


@pytest.mark.parametrize(
    ("change", "metrics", "options", "expected"),
    [
        (
            lambda f: f,
            "recall@20",
            {},
            r"recall@20 needs lists of 20 items, and the longest of these has 12.*recall@12",
        ),
        (lambda f: f, "ndcg", {}, "ndcg cannot be computed from lists.*write 'ndcg@12'"),
        (lambda f: f, "auc", {}, "auc cannot be computed from lists"),
        (lambda f: f, "rmse", {}, "rmse cannot be computed from lists"),
        (lambda f: f, "ndcg@10", {"protocol": "sampled"}, "protocol='full', not 'sampled'"),
        (lambda f: f.drop("rank", "score"), "ndcg@10", {}, "neither a rank nor a score: it has user, item"),
        (lambda f: f.drop("item"), "ndcg@10", {}, "which column of the table of lists is the item"),
        (lambda f: f.with_columns(user=pl.col("user") + 5000), "ndcg@10", {}, "no list is for a test user"),
        (lambda f: f.with_columns(rank=pl.lit("x")), "ndcg@10", {}, "holds 'x' in row 1: a rank must be"),
        (lambda f: f.with_columns(item=pl.lit(None)), "ndcg@10", {}, "empty fields"),
        (lambda f: 5, "ndcg@10", {}, "a int is not a data frame"),
    ],
)
def test_lists_that_cannot_be_evaluated_are_one_sentence(split, frame, change, metrics, options, expected) -> None:
    with pytest.raises(cr.CorankError, match=expected) as why:
        cr.evaluate(change(frame), split, metrics, **options)
    assert "\n" not in str(why.value)


def test_all_items_listed_is_long_enough(split: cr.Split, model: Table) -> None:
    lists = model.recommend(split.users, k=1000)
    assert cr.evaluate(lists, split, "recall@500")["recall@500"] == 1


def test_a_model_fitted_on_test_rows_is_warned_about(split: cr.Split, caplog: pytest.LogCaptureFixture) -> None:
    cr.evaluate(Table().fit(split.train), split)
    assert not caplog.records
    cr.evaluate(Table().fit(split.all_rows()), split)
    rows = f"{len(split.test):,}"
    assert f"{rows} of {rows} test rows are in the model's training data: metrics are optimistic" in caplog.text
    caplog.clear()
    both = cr.holdout(some_data(), by="user")
    cr.evaluate(Table().fit(both.refit().train), both, part="valid")
    assert f"{len(both.valid):,} validation rows are in the model's training data" in caplog.text


def test_a_pair_that_repeats_is_not_a_training_row(caplog: pytest.LogCaptureFixture) -> None:
    rng = np.random.default_rng(0)
    user, item, value = rng.integers(0, 9, (3, 200))
    data = cr.from_arrays(user=user, item=item, value=value, duplicates="keep")
    split = cr.holdout(data)
    cr.evaluate(Table().fit(split.train), split)
    assert not caplog.records
