"""A figure or a section that fails is named in the report, which has the leaderboard all the same."""

from __future__ import annotations

import pytest

from corank import report
from corank.report import data_charts, html, markdown, model_charts
from results import small


def broken(*arguments, **options):
    raise ZeroDivisionError("no\nwidth")


@pytest.mark.parametrize(
    ("place", "name", "words"),
    [
        (model_charts, "scatter", "This figure is missing: unexpected ZeroDivisionError: no width."),
        (data_charts, "concentration", "This figure is missing: unexpected ZeroDivisionError: no width."),
        (html, "model_figures", "Missing in this report: the charts of the models: unexpected ZeroDivisionError"),
        (html, "portrait", "Missing in this report: the statistics of the dataset"),
        (html, "method", "Missing in this report: the evaluation setup"),
        (html, "notes", "Missing in this report: the notes"),
    ],
)
def test_the_html_report_goes_on(tmp_path, monkeypatch, place, name, words):
    monkeypatch.setattr(place, name, broken)
    report.write_html(small(), tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    assert words in text
    assert all(label in text for label in ("popularity", "item_knn", "als"))


def test_the_markdown_page_goes_on(tmp_path, monkeypatch):
    for name in ("portrait", "method"):
        monkeypatch.setattr(markdown, name, broken)
    report.write_markdown(small(), tmp_path / "r.md")
    text = (tmp_path / "r.md").read_text()
    assert "Missing in this report: the evaluation setup" in text
    assert "Missing in this report: the statistics of the dataset" in text
    assert "| popularity |" in text
