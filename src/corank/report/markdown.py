"""The report as a Markdown page, for documentation and version control."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..system.atomic import write_text
from .formatting import plain
from .leaderboard import setting, verdict
from .sections import attempt, method, notes, portrait, table

if TYPE_CHECKING:
    from ..experiment.results import Results


def write_markdown(results: Results, path: str | Path, *, command: str = "", title: str = "") -> None:
    """Write the tables of the report as a Markdown page.

    Parameters
    ----------
    command : what reproduces it.
    title : the heading; the name of the experiment when absent.
    """
    board = results.lines
    missing: list[str] = []
    facts = attempt(missing, "the statistics of the dataset", lambda: portrait(results.split.all_rows().describe()))
    heads, cells = table(results, board)
    setup = attempt(missing, "the evaluation setup", lambda: method(results))
    remarks = attempt(missing, "the notes", lambda: notes(results, board)) or []
    page = [
        f"# {_escaped(title or results.name)}",
        _escaped(attempt(missing, "the summary", lambda: verdict(results)) or ""),
        "## Leaderboard",
        md_table(heads, [[value + (f" {detail}" if detail else "") for value, detail in row] for row in cells]),
        "\n".join(f"- {_escaped(note)}" for note in [*remarks, *missing]),
        "## Hyper-parameters",
        md_table(
            ("", "hyper-parameters", "seed", "how they were chosen"),
            [(b.label, setting(b.row), str(b.row.report.params.get("seed", "")), b.row.chosen) for b in board],
        ),
        *(["## Dataset", md_table(("", ""), facts)] if facts else []),
        *(["## Evaluation setup", md_table(("", ""), setup)] if setup else []),
    ]
    if command:
        page.append(f"Made with\n\n    {plain(command)}")
    write_text(path, "\n\n".join(page) + "\n")


def md_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table of plain texts: signs of Markdown and HTML in a cell are escaped."""
    out = ["| " + " | ".join(map(_escaped, heads)) + " |", "|" + "---|" * len(heads)]
    return "\n".join(out + ["| " + " | ".join(map(_escaped, row)) + " |" for row in rows])


def _escaped(text: object) -> str:
    out = plain(text).replace("&", "&amp;").replace("<", "&lt;")
    for sign in "\\`*_[]|#":
        out = out.replace(sign, "\\" + sign)
    return out
