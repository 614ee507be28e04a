"""The leaderboard: who is best, how sure that is, and in which words."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from corank.evaluation.significance import compare
from corank.report import formatting, leaderboard
from results import HOSTILE, measured, small


def test_rows_are_compared_with_the_best_contender_not_with_the_oracle() -> None:
    results = small()
    best = [line for line in results.lines if line.best]
    assert [line.row for line in best] == [results.best]
    assert not best[0].row.oracle
    assert best[0].versus is None
    ceiling = next(line for line in results.lines if line.row.oracle)
    assert ceiling.versus is None
    contenders = [line.row.report for line in results.lines if not line.row.oracle]
    expected = {row.model: row for row in compare(contenders, "ndcg@10", against=results.best.report.model).rows}
    for line in results.lines:
        if line.versus is not None:
            assert line.p == expected[line.row.report.model].p_randomization
            assert line.versus.effect == expected[line.row.report.model].effect


def test_clear_and_unclear_differences_are_said_so() -> None:
    rng = np.random.default_rng(0)
    base = rng.random(300)
    near, far = base + rng.normal(0, 0.3, 300), base - 0.3 + rng.normal(0, 0.1, 300)
    near += base.mean() - near.mean() - 1e-4
    results = measured({"a": base, "b": near, "c": far})
    assert [line.stars for line in results.lines] == ["", "", "***"]
    said = leaderboard.verdict(results)
    assert said.startswith(f"a ranks best on 300 test users: NDCG@10 {base.mean():.4f} [")
    assert "runner-up b" in said
    assert "is not significant, p = " in said
    said = leaderboard.verdict(measured({"a": base, "c": far}))
    assert "is significant, p < 0.001." in said


def test_how_many_are_level_with_the_best() -> None:
    base = np.tile([0.2, 0.8], 50)
    results = measured({"a": base + 1e-9, "b": base[::-1], "c": base[::-1] - 1e-9, "d": base[::-1] - 2e-9})
    assert "is not significant, p = 1.000, nor are those to the next 2 models." in leaderboard.verdict(results)
    results = measured({"a": base + 1e-9, "b": base[::-1], "c": base[::-1] - 1e-9})
    assert "nor is that to the next model." in leaderboard.verdict(results)


def test_a_tie_is_said_so() -> None:
    said = leaderboard.verdict(measured({"a": [0.2, 0.8], "b": [0.8, 0.2]}))
    assert said.startswith("a and b tie on 2 test users: NDCG@10 0.5000 [")


def test_share_of_the_possible() -> None:
    values = {"truth": np.full(40, 0.8), "a": np.full(40, 0.6), "b": np.full(40, 0.1)}
    said = leaderboard.verdict(measured(values, oracle="truth"))
    assert said.startswith("a ranks best")
    assert "reaches 75% of the best possible: truth, which knows the parameters" in said
    assert said.endswith("has 0.8000.")
    level = leaderboard.verdict(measured({"truth": np.full(40, 0.5), "a": np.full(40, 0.6)}, oracle="truth"))
    assert "on a par with the best possible" in level


def test_errors_are_best_when_low() -> None:
    squares = {"good": np.full(30, 0.25), "bad": np.full(30, 1.0)}
    results = measured(squares, "rmse")
    assert results.best.label == "good"
    assert leaderboard.verdict(results).startswith("good predicts best on 30 test users: RMSE 0.5000")
    worse = next(line for line in results.lines if line.label == "bad")
    assert worse.versus is not None
    assert (worse.versus.better, worse.versus.worse) == (0, 1)


def test_one_row_has_nothing_to_compare_with() -> None:
    results = measured({"alone": [0.1, 0.9]})
    assert "nothing to compare it with" in leaderboard.verdict(results)
    assert results.lines[0].p is None


def test_a_metric_that_is_defined_for_nobody_leaves_a_board_without_tests(caplog: pytest.LogCaptureFixture) -> None:
    results = measured({"a": [np.nan, np.nan], "b": [np.nan, np.nan]})
    assert [line.p for line in results.lines] == [None, None]
    assert "no significance tests" in caplog.text
    assert "–" in str(results)


def test_equal_labels_are_told_apart() -> None:
    once = measured({"a": [0.1, 0.2, 0.4]})
    twice = dataclasses.replace(once, rows=[once.rows[0], dataclasses.replace(once.rows[0])])
    assert [line.label for line in twice.lines] == ["a", "a (2)"]
    assert twice.lines[1].p == 1.0


def test_frame() -> None:
    results = small()
    frame = results.leaderboard()
    assert frame.height == 5
    assert frame["ndcg@10"].to_list() == [row.report["ndcg@10"] for row in results.rows]
    for name in ("label", "ndcg@10_low", "ndcg@10_high", "novelty@10", "p", "effect", "better", "worse", "fit_seconds"):
        assert name in frame.columns
    first = frame.row(0, named=True)
    assert first["ndcg@10_low"] <= first["ndcg@10"] <= first["ndcg@10_high"]
    assert json.loads(frame["params"][frame["label"].to_list().index("als")])["seed"] == 0


def test_text_has_every_row_with_its_figures() -> None:
    results = dataclasses.replace(small(), failed={"broken": "it needs timestamps"})
    text = str(results)
    for row in results.rows:
        line = next(one for one in text.splitlines() if one.startswith(row.label.split()[0].rstrip("\x07")))
        low, high = row.report.interval["ndcg@10"]
        assert f"{row.report['ndcg@10']:.4f} [{low:.4f}, {high:.4f}]" in line
    assert "skipped: broken: it needs timestamps" in text
    assert "full ranking of" in text
    assert "Holm" in text
    assert "\x07" not in text


def test_dict_is_plain_json() -> None:
    results = small()
    back = json.loads(json.dumps(results.as_dict(), allow_nan=False))
    assert [row["label"] for row in back["rows"]] == [row.label for row in results.rows]
    assert back["metrics"] == list(results.metrics)
    assert sum(row["best"] for row in back["rows"]) == 1
    assert back["rows"][-1]["against_best"]["worse"] > 0
    single = measured({"a": [0.5], "b": [0.25]})  # one user: the effect is infinite
    assert json.loads(json.dumps(single.as_dict(), allow_nan=False))["rows"][1]["against_best"]["effect"] is None


def test_the_tests_run_once() -> None:
    results = small()
    assert results.lines is results.lines


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.00002, "< 1 ms"),
        (0.012, "12 ms"),
        (0.36, "0.36 s"),
        (9.94, "9.9 s"),
        (75, "75 s"),
        (1800, "30 min"),
        (9000, "2.5 h"),
    ],
)
def test_durations(value: float, expected: str) -> None:
    assert formatting.format_duration(value) == expected


def test_words() -> None:
    assert formatting.metric_title("ndcg@10") == "NDCG@10"
    assert formatting.metric_title("pairwise_error") == "Pairwise error"
    assert formatting.format_value(float("nan")) == "–"
    assert formatting.format_value(12.345) == "12.35"
    assert formatting.format_p(0.0004) == "<0.001"
    assert formatting.format_interval((float("nan"), float("nan"))) == ""
    assert formatting.count_of(1, "user") == "1 user"
    assert formatting.count_of(1200, "user") == "1,200 users"
    assert HOSTILE in {line.label for line in small().lines}
