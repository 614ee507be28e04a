"""What long benchmarks have measured, kept in the repository: one file of JSON lines per model and dataset.

A run reads what is there and measures the rest, so that it can be stopped at any time and continued by anybody. Every
line says which commit it was measured with.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from corank.report.machine import commit

ROOT = Path(__file__).resolve().parent / "recorded"


def path(folder: Path, *words: str) -> Path:
    """The file of a benchmark, a model and a dataset."""
    return folder / ("-".join(words).replace(" ", "-").replace(",", "") + ".jsonl")


def read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []


def append(file: Path, line: Mapping[str, Any]) -> dict[str, Any]:
    """Add a line with the current commit; returns it."""
    whole = {**line, "commit": commit()}
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(whole) + "\n")
    return whole


def commits(lines: Iterable[Mapping[str, Any]]) -> str:
    """Which commits measured these lines, for the head of a page."""
    return "Measured with commit " + ", ".join(sorted({line["commit"] for line in lines})) + "."
