"""The report as one HTML file, from templates that escape every value."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..atomic import write_text
from .figures import Figure, data_figures, model_figures
from .formatting import plain
from .leaderboard import setting, verdict
from .sections import method, notes, portrait, table

if TYPE_CHECKING:
    from jinja2 import Environment

    from ..experiment.results import Results


def write_html(results: Results, path: str | Path, *, command: str = "") -> None:
    """Write the report as one self-contained file: no script, no request. command : what reproduces it."""
    board, best = results.lines, results.best
    data = results.split.all_rows()
    facts = data.describe()
    size = f"{facts.users:,} users · {facts.items:,} items · {facts.rows:,} interactions"
    heads, cells = table(results, board)
    rows = [
        {
            "label": line.label,
            "kind": "oracle" if line.row.oracle else "best" if line.best else "",
            "setting": setting(line.row),
            "cells": row,
        }
        for line, row in zip(board, cells, strict=True)
    ]
    page = environment().get_template("report.html.jinja")
    text = page.render(
        name=results.name,
        summary=f"{size} · {results.split.name}",
        best=best.label,
        verdict=verdict(results).removeprefix(best.label),
        heads=heads,
        rows=rows,
        notes=notes(results, board),
        model_figures=_with_svg(model_figures(results, board)),
        portrait=portrait(facts),
        data_figures=_with_svg(data_figures(results.split, data)),
        method=method(results),
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
