"""The coverage page: complete against the dissertation, and each figure of ours is read from the page it names."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))

import dissertation  # noqa: E402

PAGE = """# A page

## Leaderboard

|  | RMSE | published | fit |
|---|---|---|---|
| SSE\\_1, ours mf | 0.9500 \\[0.9400, 0.9600\\] | RMSE 0.91 | 2 s |
| mf | 1.0500 |  | 1 s |

## Data

|  |  |
|---|---|
| Rows | 1,000,209 |
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Documentation with one page, a list of two tables, and one experiment that has more rows than its page."""
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "made.md").write_text(PAGE)
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "made.toml").write_text('metrics = ["rmse"]\n[[model]]\nname = "mf"\nlabel = "new"\n')
    names = ("Table 1.1", "Table 1.2")
    (tmp_path / "dissertation.toml").write_text("".join(f'[[item]]\nname = "{n}"\ncaption = "one"\n' for n in names))
    (tmp_path / "coverage.toml").write_text(
        '[[part]]\nof = "Table 1.1"\npage = "made"\ncolumn = "RMSE"\nrows = [["SSE_1, ours", 1.0], ["mf", 1.0]]\n'
        '[[part]]\nof = "Table 1.2"\nnothing = "a drawing"\n'
    )
    monkeypatch.setattr(dissertation, "DOCS", tmp_path)
    monkeypatch.setattr(dissertation, "EXPERIMENTS", tmp_path / "experiments")
    dissertation._text.cache_clear()
    yield tmp_path
    dissertation._text.cache_clear()


# ---- the list ----------------------------------------------------------------------------------------------------


def test_numbers_run_without_a_gap():
    names = [name.split() for name in dissertation.items()]
    assert Counter(kind for kind, _ in names) == {"Table": 36, "Figure": 24}
    for kind in ("Table", "Figure"):
        last: Counter[str] = Counter()
        for chapter, number in (n.split(".") for k, n in names if k == kind):
            last[chapter] += 1
            assert int(number) == last[chapter], f"{kind} {chapter}.{number}"
    assert {n.split(".")[0] for _, n in names} == set(dissertation.CHAPTERS)


def test_the_list_is_that_of_the_dissertation():
    folder = Path(os.environ.get("CORANK_DATA") or ROOT.parent / "shared" / "data").parent / "seeds"
    sources = list(folder.glob("*.txt")) if folder.is_dir() else []
    if not sources:
        pytest.skip("the text of the dissertation is not here")
    text = sources[0].read_text("utf-8")
    found, chapter, count = [], 0, Counter()
    for mark in re.finditer(r"\\chapter\{|\\begin\{(table|figure)\*?\}(.*?)\\end\{\1\*?\}", text, re.DOTALL):
        if mark[1] is None:
            chapter, count = chapter + 1, Counter()
            continue
        count[mark[1]] += 1
        labels = re.findall(r"\\label\{(.*?)\}", mark[2])
        found.append((f"{mark[1].capitalize()} {chapter}.{count[mark[1]]}", labels[0] if labels else ""))
    listed = [(item["name"], item.get("label", "")) for item in dissertation.items().values()]
    labels = dict(found)
    assert Counter(name for name, _ in found) == Counter(name for name, _ in listed)
    assert [(n, label) for n, label in listed if label and labels[n] != label] == []


# ---- the page ----------------------------------------------------------------------------------------------------


def test_every_part_names_pages_that_exist():
    known = {"of", "data", "page", "section", "column", "rows", "lower", "needs", "differs", "source", "reason", "see"}
    known |= {"shown", "nothing", "tolerance"}
    for part in dissertation.parts():
        assert part["of"] in dissertation.items()
        assert not part.keys() - known, part
        for page in part.get("see", ()):
            assert (ROOT / "docs" / "results" / f"{page}.md").exists(), page
        if "shown" in part:
            assert "![" in (ROOT / "docs" / f"{part['shown']}.md").read_text("utf-8")
        if "page" in part and "reason" not in part:
            pages = [ROOT / "docs" / "results" / f"{part['page']}.md", ROOT / "experiments" / f"{part['page']}.toml"]
            assert any(path.exists() for path in pages), part["page"]


def test_published_figures_are_those_of_the_experiments():
    """A figure that an experiment shows beside its row is the one that the coverage page shows."""
    for part in dissertation.parts():
        path = ROOT / "experiments" / f"{part.get('page')}.toml"
        if not path.exists() or "rows" not in part:
            continue
        rows = tomllib.loads(path.read_text("utf-8"))["model"]
        shown = {row.get("label", row["name"]): row.get("published", {}) for row in rows}
        metric = part["column"].lower().replace(" ", "_")
        for row, figure in part["rows"]:
            own = shown.get(row, {}).get(metric)
            assert own is None or abs(own - figure) < 6e-4 * max(1, abs(figure)), (part["of"], row, own, figure)


def test_figures_are_read_from_the_page(folder: Path):
    assert dissertation.figure("made", None, "RMSE", "SSE_1, ours") == "0.9500 [0.9400, 0.9600]"
    assert dissertation.figure("made", "Data", "", "Rows") == "1,000,209"
    text = dissertation.text()
    assert "| Table 1.1 | SSE\\_1, ours, RMSE | 0.9500 \\[0.9400, 0.9600\\] | 1 | better |" in text
    assert "| Table 1.1 | mf, RMSE | 1.0500 | 1 | worse |" in text
    assert "- Table 1.2: no figures: a drawing" in text
    page = folder / "results" / "made.md"
    page.write_text(PAGE.replace("0.9500", "1.0040"))
    dissertation._text.cache_clear()
    assert "1 | equal |" in dissertation.text()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('["mf", 1.0]', '["mff", 1.0]', "has no row 'mff'"),
        ('column = "RMSE"', 'column = "MAE"', "has no column 'MAE'"),
        ('page = "made"', 'page = "made"\nsection = "None"', "has no section 'None'"),
        ('page = "made"', 'page = "other"', "neither a page, an experiment nor a reason"),
        ('of = "Table 1.2"', 'of = "Table 1.3"', "Table 1.3 is not in docs/dissertation.toml"),
        ('of = "Table 1.2"', 'of = "Table 1.1"', "Table 1.2 has no part"),
    ],
)
def test_mistakes_are_said(folder: Path, old: str, new: str, said: str):
    path = folder / "coverage.toml"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(SystemExit, match=said):
        dissertation.text()


def test_conditions_decide_whether_figures_are_compared(folder: Path):
    path = folder / "coverage.toml"
    path.write_text(path.read_text().replace('page = "made"', 'page = "made"\nneeds = [["2 s", "A"], ["refit", "B"]]'))
    assert "| not comparable | B |" in dissertation.text()
    (folder / "results" / "made.md").write_text(PAGE + "\nrefit\n")
    dissertation._text.cache_clear()
    assert "not comparable |" not in dissertation.text().split("## 1.")[1]


def test_rows_that_only_the_experiment_has_are_not_run_yet(folder: Path):
    path = folder / "coverage.toml"
    path.write_text(path.read_text().replace('["mf", 1.0]', '["new", 1.0]'))
    assert "| Table 1.1 | new, RMSE |  | 1 | not run yet | `corank reproduce made` |" in dissertation.text()
