"""What files state about their figures: pages print it, and figures with and without refit are never side by side."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import corank as cr
from corank.experiment.stated import how_chosen, measured_under
from corank.report import notes

EXPERIMENTS = sorted((Path(__file__).parents[2] / "experiments").glob("*.toml"))
START = "data = { synthetic = 'realistic', users = 40, items = 40, rows = 400, groups = 3, friends = 3 }\n"
ROW = "[[model]]\nname = 'popularity'\npublished = { 'ndcg@10' = 0.5 }\n"


def load(tmp_path, text):
    (tmp_path / "e.toml").write_text(text)
    return cr.Experiment.from_toml(tmp_path / "e.toml")


@pytest.mark.parametrize(
    ("chosen", "trials", "given", "expected"),
    [
        ({}, 0, True, "not recorded"),
        ({}, 0, False, "defaults, none tried here"),
        ({}, 7, True, "7 tried by a search on the validation rows"),
        ({"by": "person", "settings": 3, "rows": "old rows"}, 0, True, "3 tried by hand on old rows"),
        ({"by": "person"}, 0, True, "number not recorded tried by hand on rows that are not recorded"),
        ({"by": "unknown", "note": "set first"}, 0, True, "not recorded; set first"),
        ({"by": "paper", "note": "but lr"}, 0, True, "settings of the paper, none tried here; but lr"),
        ({"by": "search", "settings": "a few", "rows": "r"}, 2, True, "before that, a few tried by a search on r"),
    ],
)
def test_how_settings_were_chosen(chosen, trials, given, expected):
    assert expected in how_chosen(chosen, trials, given)


def test_what_is_not_recorded_is_said():
    words = measured_under({"source": "Someone 2020", "refit": False}, sequential=True)
    assert words.startswith("Someone 2020: protocol not recorded; trained without the rows that are validation rows")
    assert "targets: not recorded; equal timestamps: not recorded" in words
    assert measured_under({"protocol": "full"}, sequential=False) == "source not recorded: full"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("chosen = 3", "it must be a table that says how the settings were chosen, such as"),
        ("chosen = { by = 'persn' }", "chosen.by = 'persn' is not known; did you mean 'person'"),
        ("chosen = { settings = 0 }", "chosen.settings = 0: it must be a whole number of 1 or more, or a text"),
        ("chosen = { tries = 4 }", "chosen has no option 'tries'"),
        ("published_under = { refit = 'no' }", "published_under.refit = 'no': it must be true, false or 'not stated'"),
        ("published_under = { src = 'x' }", "published_under has no option 'src'; did you mean 'source'"),
        ("remarks = 'x'", "remarks = 'x': it must be a list of sentences"),
        (
            "refit = true",
            r"model 1 \(popularity\): with refit = true a published figure must have learned from the same",
        ),
        ("refit = true\npublished_under = { refit = 'not stated' }", "must have learned from the same rows"),
        ("refit = true\npublished_under = { refit = false }", "refit = false beside refit = true"),
        ("published_under = { refit = true }", "refit = true beside refit = false"),
    ],
)
def test_mistakes(tmp_path, line, expected):
    with pytest.raises(cr.CorankError, match=expected):
        load(tmp_path, START + line + "\n" + ROW)


def test_a_row_overrides_the_file(tmp_path):
    made = load(
        tmp_path,
        START
        + "refit = true\npublished_under = { source = 'A', refit = false }\n"
        + ROW.replace("published =", "chosen = { by = 'paper' }\npublished_under = { refit = true }\npublished ="),
    )
    (entry,) = made.entries()
    assert entry.published_under == {"source": "A", "refit": True}
    assert entry.chosen == {"by": "paper"}


def test_pages_print_what_is_stated(tmp_path):
    text = (
        START
        + "remarks = ['The test rows were seen.']\nchosen = { by = 'person', settings = 4, rows = 'other rows' }\n"
    )
    rows = "published_under = { source = 'Someone 2020', protocol = 'full' }\n"
    rows += "[[model]]\nname = 'item_knn'\nneighbors = 5\n"
    results = load(tmp_path, text + ROW + rows + "[[model]]\nname = 'ease'\n").run()
    cr.report.write_markdown(results, tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text()
    assert "- The test rows were seen." in page
    assert "- Published: Someone 2020: full." in page
    assert "| 4 tried by hand on other rows |" in page
    assert "| defaults, none tried here |" in page
    assert "0 settings" not in page


def test_overlap_of_test_rows_with_the_rows_of_the_search():
    pytest.importorskip("optuna")
    data = cr.synthetic.realistic(users=100, items=80, rows=2000, groups=3, friends=3).data
    asked = {"data": data, "models": [{"name": "item_knn"}], "metrics": ["recall@5"], "tune": 1}
    split = {"name": "holdout", "test": 0.2, "valid": 0.2}
    results = cr.Experiment(**asked, seeds=[1, 2, 3], split=split).run()
    assert results.overlap == pytest.approx(0.2, abs=0.05)  # a fifth of any rows is validation in the first split
    assert any("% of the test rows of the other splits are among" in note for note in notes(results, results.lines))
    fixed = cr.Experiment(**asked, seeds=[1, 2, 3], split={**split, "seed": 4}).run()
    assert fixed.overlap == 0


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda p: p.stem)
def test_every_published_figure_has_a_source_and_every_setting_a_history(path):
    experiment = cr.Experiment.from_toml(path)
    table = tomllib.loads(path.read_text("utf-8"))
    for entry in experiment.entries():
        where = f"{path.name}, {entry.label}"
        if entry.published:
            assert {"source", "protocol"} <= entry.published_under.keys(), f"{where}: published_under"
            if experiment.task == "sequential":
                assert {"refit", "targets", "ties"} <= entry.published_under.keys(), f"{where}: published_under"
        if entry.given and not table.get("tune"):
            assert entry.chosen, f"{where}: chosen"
