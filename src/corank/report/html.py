"""The report as one HTML file, from templates that escape every value."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..system.atomic import write_text
from .figures import Figure, data_figures, model_figures
from .formatting import plain
from .leaderboard import setting, verdict
from .sections import attempt, method, notes, portrait, table

if TYPE_CHECKING:
    from jinja2 import Environment

    from ..experiment.results import Results


def write_html(results: Results, path: str | Path, *, command: str = "") -> None:
    """Write the report as one self-contained file: no script, no request. command : what reproduces it.

    A figure or section that cannot be made is named with the reason; the leaderboard is there all the same.
    """
    board, best = results.lines, results.best
    missing: list[str] = []
    data = attempt(missing, "the dataset", results.split.all_rows)
    facts = None if data is None else attempt(missing, "the statistics of the dataset", data.describe)
    size = f"{facts.users:,} users · {facts.items:,} items · {facts.rows:,} interactions · " if facts else ""
    heads, cells = table(results, board)
    rows = [
        {
            "label": line.label,
            "kind": "oracle" if line.row.oracle else "best" if line.best else "",
            "setting": setting(line.row),
            "chosen": line.row.chosen,
            "cells": row,
        }
        for line, row in zip(board, cells, strict=True)
    ]
    of_models = attempt(missing, "the charts of the models", lambda: _with_svg(model_figures(results, board)))
    of_data = data and attempt(missing, "the charts of the data", lambda: _with_svg(data_figures(results.split, data)))
    page = environment().get_template("report.html.jinja")
    text = page.render(
        name=results.name,
        summary=f"{size}{results.split.name}",
        best=best.label,
        verdict=attempt(missing, "the summary", lambda: verdict(results).removeprefix(best.label)) or "",
        heads=heads,
        rows=rows,
        model_figures=of_models or [],
        portrait=(facts and attempt(missing, "the statistics of the dataset", lambda: portrait(facts))) or [],
        data_figures=of_data or [],
        method=attempt(missing, "the evaluation setup", lambda: method(results)) or [],
        notes=[*(attempt(missing, "the notes", lambda: notes(results, board)) or []), *missing],
        command=command,
    )
    write_text(path, text)


@cache
def environment() -> Environment:
    """The templates of this package: every value is escaped and printable, a missing one is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def printable(value: Any) -> Any:
        return value if isinstance(value, Markup) else plain(value)

    return Environment(
        loader=PackageLoader("corank.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=printable,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _with_svg(figures: Iterable[Figure]) -> list[Figure]:
    """The charts as markup: the only values that templates do not escape, as matplotlib escaped the text in them."""
    from markupsafe import Markup

    return [figure._replace(svg=Markup(figure.svg)) for figure in figures]
