"""Play counts on the command line: detected, printed, overruled, and good for a model with a large alpha."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

import corank as cr
from corank.cli import main
from toys import play_counts


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """plays.csv, the same values under a name that says nothing, and ratings.csv."""
    here = tmp_path_factory.mktemp("counts")
    plays = play_counts(users=200, items=150, rows=6000)
    frame = pl.DataFrame({"user": plays.user, "item": plays.item, "value": plays.value})
    frame.write_csv(here / "plays.csv")
    frame.with_columns(value=pl.col("value").cast(int) % 5 + 1).write_csv(here / "ratings.csv")
    return here


@pytest.fixture
def run(folder, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def call(line: str) -> tuple[int, str, str]:
        code = main([word.format(p=folder / "plays.csv", r=folder / "ratings.csv") for word in line.split()])
        out, err = capsys.readouterr()
        return code, out, err

    return call


def test_the_kind_of_the_values_is_printed(run):
    assert re.search(r"^values +counts$", run("data describe {p}")[1], re.M)
    assert re.search(r"^values +ratings$", run("data describe {r}")[1], re.M)
    assert re.search(r"^values +counts$", run("data describe {r} --values counts")[1], re.M)
    assert re.search(r"^values +none$", run("data describe {p} --values none")[1], re.M)
    _, _, err = run("fit popularity {p} -o m.corank")
    assert re.search(r"6,000 rows, 200 users, 150 items, counts from 1 to [\d,.e+]+$", err, re.M)
    _, _, err = run("fit popularity {r} -o m.corank --values counts")
    assert "counts from 1 to 5" in err


def test_the_protocol_line_prints_the_gain(run):
    code, out, _ = run("compare {p} --models popularity,wmf --metrics ndcg@10 -o out")
    assert code == 0
    assert out.splitlines()[0].endswith(
        "full ranking of 150 items, seen items excluded, binary gains, trained without validation rows"
    )
    page = Path("out/report.html").read_text()
    assert "binary gains" in page
    assert re.search(r"counts from 1 to [\d,.e+]+, mean", page)
    code, out, _ = run("compare {p} --models popularity --metrics ndcg@10 -o out --gain exponential")
    assert out.splitlines()[0].endswith("exponential gains, trained without validation rows")
    code, out, _ = run("compare {r} --task explicit --models als --metrics ndcg@10 -o out")
    assert out.splitlines()[0].endswith(
        "rated: each user's test items only, exponential gains, trained without validation rows"
    )


def test_counts_as_ratings_are_a_sentence(run):
    code, out, err = run("compare {p} --task explicit --models als --metrics ndcg@10 -o out")
    assert code == 0
    assert "corank: the values are counts from 1 to" in err
    assert "task 'explicit' treats them as ratings: use task 'implicit'" in err
    assert ", binary gains, " in out.splitlines()[0]
    code, _, err = run("fit als {p} -o m.corank --dim 2 --epochs 1")
    assert code == 0
    assert "als treats values as ratings, and these are counts from 1 to" in err
    assert "treats values as ratings" not in run("fit als {r} -o m.corank --dim 2 --epochs 1")[2]


def test_large_alpha_on_play_counts(run, folder):
    """Linear in the counts, this ended far below popularity."""
    code, _, err = run("fit wmf {p} -o m.corank --alpha 40 --rho 1 --dim 16")
    assert code == 0
    assert "smaller alpha" not in err
    assert cr.load("m.corank").confidence_ == "log"
    code, _, err = run("fit wmf {p} -o m.corank --alpha 40 --rho 1 --dim 16 --confidence linear")
    assert code == 0
    assert re.search(
        r"wmf: with alpha=40 and confidence='linear' a count of [\d.e+]+ weighs [\d,]+ times as much as the median", err
    )
    assert "use confidence='log' or a smaller alpha" in err


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("data describe {p} --values count", "values='count' is not a kind of values; did you mean 'counts'?"),
        ("data describe {p} --valeus counts", "did you mean '--value"),
        ("compare {p} --gain graded", "gain = 'graded' is not known; known: binary, exponential"),
        ("fit wmf {p} -o m.corank --confidence logarithm", "--confidence"),
    ],
)
def test_mistakes(run, line, expected):
    code, _, err = run(line)
    assert code == 2
    assert expected in err.strip().splitlines()[-1]
    assert "Traceback" not in err
