"""The report: one file that opens anywhere, says what was found, and trusts no name."""

from __future__ import annotations

import dataclasses
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from corank.errors import CorankError
from corank.report import write_html, write_markdown
from corank.report.leaderboard import verdict
from results import HOSTILE, measured, small

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Page(HTMLParser):
    """Checks that tags close in order; keeps text, attributes and pictures."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.words: list[str] = []
        self.feed(source)
        self.close()
        assert self.open == []
        self.text = " ".join(" ".join(self.words).split())
        self.pictures = re.findall(r"<svg.*?</svg>", source, re.DOTALL)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data)


def page(results: Any, folder: Path, **options: Any) -> tuple[Page, str]:
    write_html(results, folder / "report.html", **options)
    source = (folder / "report.html").read_text("utf-8")
    return Page(source), source


def cleaned(label: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in label).split())


def test_has_all_that_was_found(tmp_path: Path) -> None:
    results = small()
    found, _ = page(results, tmp_path, command="corank compare 'a & b.csv'")
    for row in results.rows:
        assert cleaned(row.label) in found.text
        for name in results.metrics:
            assert f"{row.report[name]:.4f}" in found.text
        low, high = row.report.interval["ndcg@10"]
        assert f"[{low:.4f}, {high:.4f}]" in found.text
    for words in (
        cleaned(verdict(results)),
        "corank compare 'a & b.csv'",
        "full ranking of 80 items",
        "leave-last-out",
        results.best.report.fingerprint,
        "2,000 interactions",
        "dim=4",
        "Popularity bias",
        "Accuracy against training time",
        "Hit rate by list length",
    ):
        assert words in found.text, words
    assert len(found.pictures) == 11
    for svg in found.pictures:
        ET.fromstring(svg)


def test_needs_nothing_else(tmp_path: Path) -> None:
    found, source = page(small(), tmp_path)
    assert not {"script", "link", "iframe", "object", "embed", "img", "base", "form"} & set(found.tags)
    for tag, name, value in found.attributes:
        if name in ("src", "href", "xlink:href", "srcset", "data", "action", "poster"):
            assert value.startswith("#"), (tag, name, value)
        assert not name.startswith("on"), (tag, name)
    assert "@import" not in source
    assert all(target.startswith("#") for target in re.findall(r"url\(\s*['\"]?([^)'\"]*)", source))
    assert not re.findall(r"https?://", re.sub(r'xmlns(:\w+)?="[^"]*"', "", source))
    ids = [value for _, name, value in found.attributes if name == "id"]
    assert len(ids) == len(set(ids))


def test_names_cannot_run_anything(tmp_path: Path) -> None:
    bad = dataclasses.replace(small(), failed={HOSTILE: f"because of {HOSTILE}"}, name=HOSTILE)
    found, source = page(bad, tmp_path, command=f"corank compare {HOSTILE}")
    assert "<script" not in source.lower()
    assert "script" not in found.tags
    assert "\x07" not in source
    assert f"Skipped: {cleaned(HOSTILE)} : because of" in found.text.replace("\xa0", " ")


def test_same_results_same_file(tmp_path: Path) -> None:
    results = small()
    pages = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        pages.append(re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "", page(results, tmp_path / name)[1]))
    assert pages[0] == pages[1]


@pytest.mark.parametrize(
    ("split", "options"),
    [
        ("holdout", {}),
        ("time_cut", {}),
        ("strong_generalization", {}),
        ("holdout", {"protocol": "sampled", "negatives": 10, "metrics": ("hit@5", "auc")}),
        ("holdout", {"protocol": "rated", "metrics": ("ndcg@5", "pairwise_error")}),
        ("holdout", {"protocol": "rated", "metrics": ("rmse", "mae")}),
        ("leave_last_out", {"metrics": ("coverage@10",)}),
    ],
)
def test_every_protocol(split: str, options: dict[str, Any], tmp_path: Path) -> None:
    results = small(split, **options)
    found, _ = page(results, tmp_path)
    assert str(results.best.report.protocol)[1:] in found.text
    for label in results.failed:  # only some models predict ratings
        assert f"Skipped: {cleaned(label)}"[:19] in found.text
    for svg in found.pictures:
        ET.fromstring(svg)
    write_markdown(results, tmp_path / "page.md")


def test_one_model_and_one_user(tmp_path: Path) -> None:
    alone, _ = page(measured({"alone": [0.25, 0.75]}), tmp_path)
    assert "nothing to compare it with" in alone.text
    single, source = page(measured({"a": [0.5], "b": [0.25]}), tmp_path)
    assert "a ranks best on 1 test user: NDCG@10 0.5000" in single.text
    assert "nan" not in re.sub(r"<svg.*?</svg>", "", source, flags=re.DOTALL).lower()
    assert "inf" not in single.text.split()


def test_markdown_has_the_same_tables(tmp_path: Path) -> None:
    results = dataclasses.replace(small(), failed={"broken": "no timestamps"})
    path = tmp_path / "deep" / "page.md"
    write_markdown(results, path, command="corank reproduce small")
    text = path.read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    widths = {
        len(re.findall(r"(?<!\\)\|", line))
        for line in text.split("## Hyper-parameters")[0].splitlines()
        if line[:1] == "|"
    }
    assert widths == {len(results.metrics) + 6}  # a pipe in a name does not make a column
    for row in results.rows:
        assert any(f"{row.report['mrr@10']:.4f}" in line for line in rows)
    for words in ("| item\\_knn |", "corank reproduce small", "Skipped: broken: no timestamps", "Fingerprint".lower()):
        assert words in text
    assert "<script" not in text
    assert "\x07" not in text


def test_gain(tmp_path: Path) -> None:
    """A row half-way between the two that are named has half of the gain; what is beyond has more than all."""
    values = {"none": [0.2, 0.2], "some": [0.3, 0.3], "all": [0.4, 0.4], "beyond": [0.5, 0.5]}
    results = dataclasses.replace(measured(values), gain=("none", "all"))
    assert [round(results.gained(row) or 0, 6) for row in results.rows] == [1.5, 1, 0.5, 0]
    write_markdown(results, tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text()
    assert "| 150% |" in text
    assert "from none (0%) to all (100%)" in text
    assert dataclasses.replace(results, gain=("none", "gone")).gained(results.rows[0]) is None


def test_cannot_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = measured({"a": [0.5, 0.1]})
    with pytest.raises(CorankError, match="is a folder: give a file name"):
        write_html(results, tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(CorankError, match=r"cannot write .*choose a folder"):
        write_html(results, tmp_path / "file" / "report.html")
    target = tmp_path / "report.html"
    target.write_text("the old one")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(CorankError, match="No space left on device"):
        write_html(results, target)
    assert target.read_text() == "the old one"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "report.html"]
