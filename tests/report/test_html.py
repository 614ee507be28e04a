"""The report: one file that opens anywhere, says what was found, and trusts no name."""

from __future__ import annotations

import dataclasses
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import pytest

from corank.errors import CorankError
from corank.evaluation.metrics import Positions
from corank.report import write_html
from corank.report.html import environment
from corank.report.leaderboard import verdict
from corank.report.palette import CSS_VARIABLES
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


def hostile(place: str) -> str:
    return f'</title></style><b onclick="{place}">&amp;{{{{ 7 * 7 }}}}\x07</b>\'{place}'


def hostile_metric(positions: Positions) -> Any:
    return np.full(positions.users, 0.5)


hostile_metric.__name__ = hostile("metric")


def test_every_text_of_the_user_is_escaped(tmp_path: Path) -> None:
    """Names are text wherever they stand: title, labels, column heads, settings, split, notes, command."""
    results = small(metrics=(hostile_metric, "coverage@10"))
    rows = []
    for i, row in enumerate(results.rows):
        own = dataclasses.replace(row.report, model=hostile(f"model{i}"), params={"dim": hostile(f"setting{i}")})
        published = {hostile(f"published{i}"): 0.5}
        rows.append(dataclasses.replace(row, label=hostile(f"label{i}"), report=own, published=published))
    bad = dataclasses.replace(
        results,
        rows=rows,
        name=hostile("title"),
        split=dataclasses.replace(results.split, name=hostile("split")),
        failed={hostile("failed"): hostile("why")},
        between=(rows[0].label, rows[1].label),
    )
    found, source = page(bad, tmp_path, command=hostile("command"))
    assert "b" not in found.tags
    assert found.tags.count("title") == found.tags.count("main") == 1
    assert not [name for _, name, _ in found.attributes if name.startswith("on")]
    assert "\x07" not in source
    assert "&amp;amp;" in source  # an entity of a name is text, too
    places = ["title", "metric", "split", "failed", "why", "command"]
    places += [f"{kind}{i}" for kind in ("label", "model", "setting", "published") for i in range(len(rows))]
    shown = found.text.lower()  # the names of metrics are capitalised
    for place in places:
        assert cleaned(hostile(place)) in shown, place
    tooltips = [cleaned(value) for _, name, value in found.attributes if name == "title"]
    assert f"dim={cleaned(hostile('setting0'))}" in tooltips
    for svg in found.pictures:
        ET.fromstring(svg)


def test_templates_miss_nothing() -> None:
    """A variable that is not given is an error; values are escaped without asking for it."""
    with pytest.raises(jinja2.UndefinedError):
        environment().get_template("report.html.jinja").render()
    assert environment().from_string("{{ x }}").render(x="<b>\n") == "&lt;b&gt; "


def test_charts_have_the_colours_of_the_page() -> None:
    """Each variable of the charts has a value in the dark; in the light, the neutral ones are the page's own."""
    style = environment().get_template("base.css").render()
    light, dark = style.split("prefers-color-scheme: dark")
    for colour, variable in CSS_VARIABLES.items():
        assert f"{variable}: #" in dark
        if f"{variable}: " in light:
            assert f"{variable}: {colour}" in light


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


def test_one_model_and_one_user(tmp_path: Path) -> None:
    alone, _ = page(measured({"alone": [0.25, 0.75]}), tmp_path)
    assert "nothing to compare it with" in alone.text
    single, source = page(measured({"a": [0.5], "b": [0.25]}), tmp_path)
    assert "a ranks best on 1 test user: NDCG@10 0.5000" in single.text
    assert "nan" not in re.sub(r"<svg.*?</svg>", "", source, flags=re.DOTALL).lower()
    assert "inf" not in single.text.split()


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
