"""`ties` in experiments and on the command line: it reaches the split, the report and the fingerprint."""

from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl
import pytest

import corank as cr
from corank.cli import main
from corank.report import sections


@pytest.fixture
def data() -> cr.Dataset:
    """Three moments for all rows, so that most last rows are tied."""
    rng = np.random.default_rng(0)
    return cr.from_arrays(user=np.arange(600) % 60, item=rng.integers(0, 50, 600), time=rng.integers(0, 3, 600))


@pytest.fixture
def table(data, tmp_path):
    data.to_frame().drop("value").write_csv(tmp_path / "rows.csv")
    return tmp_path / "rows.csv"


@pytest.mark.parametrize("name", ["auto", "leave_last_out"])
def test_the_rule_reaches_split_report_and_fingerprint(data, name):
    made = {}
    for ties in ("file", "item"):
        asked = cr.Experiment(data=data, models=["fmc"], split={"name": name, "ties": ties}, task="sequential")
        asked.models = [{"name": "fmc", "epochs": 2, "dim": 4}]
        made[ties] = asked.run()
        assert made[ties].split.ties == ties
    assert dict(sections.method(made["file"]))["Order"].startswith("equal timestamps keep the order of the file; ")
    assert dict(sections.method(made["item"]))["Order"].startswith("events of equal timestamps are ordered by item id")
    assert "equal times by item id" in " ".join(sections.notes(made["item"], []))
    reports = [results.best.report for results in made.values()]
    assert reports[0].fingerprint != reports[1].fingerprint
    with pytest.raises(cr.CorankError):
        cr.compare(reports)


def test_one_moment_for_all_rows_is_noted(data):
    still = dataclasses.replace(data, time=np.full(len(data), 9))
    for ties, words in (("file", "order of the file is"), ("item", "item ids are")):
        split = cr.Experiment(data=still, split={"name": "leave_last_out", "ties": ties}).make_split()
        assert split.notes == (f"all times are equal: the {words} the order of events",)
    assert not cr.Experiment(data=data).make_split().notes
    with pytest.raises(cr.CorankError, match="too many rows share one timestamp"):
        cr.Experiment(data=still, split="time_cut").make_split()


def test_rows_that_are_divided_already_have_no_use_for_it(data, tmp_path):
    split = cr.leave_last_out(data)
    with pytest.raises(cr.CorankError, match="data is a Split already"):
        cr.Experiment(data=split, split={"name": "auto", "ties": "item"}).check()
    with pytest.raises(cr.CorankError, match="test rows are given: leave ties out"):
        cr.Experiment(data=split.train, test=split.test, split={"name": "auto", "ties": "item"}).check()
    for name in ("train", "test"):
        getattr(split, name).to_frame().drop("value").write_csv(tmp_path / f"{name}.csv")
    with pytest.raises(cr.CorankError, match=r"the data comes with .*: leave ties out, or choose split") as error:
        cr.Experiment(data=tmp_path, split={"name": "auto", "ties": "item"}).make_split()
    assert "\n" not in str(error.value)


def test_the_command_line_and_the_file_say_the_same(table, data, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wanted = cr.leave_last_out(data, ties="item")
    assert wanted.test.item.tolist() != cr.leave_last_out(data).test.item.tolist()
    assert main(["compare", str(table), "--models", "popularity", "--ties", "item", "-o", "one"]) == 0
    assert "leave-last-out, equal times by item id" in capsys.readouterr().out
    lines = f"data = '{table}'\nsplit = {{ name = 'leave_last_out', ties = 'item' }}\n[[model]]\nname = 'popularity'\n"
    (tmp_path / "e.toml").write_text(lines)
    assert main(["compare", "e.toml", "-o", "two"]) == 0
    (tmp_path / "plain.toml").write_text(f"data = '{table}'\n[[model]]\nname = 'popularity'\n")
    assert main(["compare", "plain.toml", "--split", "leave_last_out", "--ties", "item", "-o", "three"]) == 0
    found = {(tmp_path / name / "results.json").read_text() for name in ("one", "two", "three")}
    prints = {line for text in found for line in text.splitlines() if '"fingerprint"' in line}
    assert len(prints) == 1
    capsys.readouterr()
    assert main(["compare", "plain.toml", "--ties", "item", "-o", "four"]) == 2
    assert "--ties needs --split beside it" in capsys.readouterr().err
    pl.DataFrame({"user": [1, 1, 1], "item": [1, 2, 3]}).write_csv("timeless.csv")
    assert main(["compare", "timeless.csv", "--split", "leave_last_out", "--ties", "item"]) == 2
    assert "this data has none: name a time column" in capsys.readouterr().err
