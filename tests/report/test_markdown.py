"""The Markdown page: the same tables as the HTML report, and no name breaks them."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from corank.report import write_markdown
from results import measured, small


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
    write_markdown(results, path, title="A small one")
    assert path.read_text("utf-8").startswith("# A small one\n\n")


def test_gain(tmp_path: Path) -> None:
    """A row half-way between the two that are named has half of the gain; what is beyond has more than all."""
    values = {"none": [0.2, 0.2], "some": [0.3, 0.3], "all": [0.4, 0.4], "beyond": [0.5, 0.5]}
    results = dataclasses.replace(measured(values), between=("none", "all"))
    assert [round(results.gained(row) or 0, 6) for row in results.rows] == [1.5, 1, 0.5, 0]
    write_markdown(results, tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text()
    assert "| 150% |" in text
    assert "from none (0%) to all (100%)" in text
    assert dataclasses.replace(results, between=("none", "gone")).gained(results.rows[0]) is None


@pytest.mark.parametrize(
    ("split", "options"),
    [
        ("strong_generalization", {}),
        ("holdout", {"protocol": "sampled", "negatives": 10, "metrics": ("hit@5", "auc")}),
        ("holdout", {"protocol": "rated", "metrics": ("rmse", "mae")}),
        ("leave_last_out", {"metrics": ("coverage@10",)}),
    ],
)
def test_every_protocol(split: str, options: dict[str, Any], tmp_path: Path) -> None:
    results = small(split, **options)
    write_markdown(results, tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text("utf-8")
    assert str(results.best.report.protocol)[1:] in text
    assert results.best.report.fingerprint in text
