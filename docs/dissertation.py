"""The page docs/coverage.md: what corank has for each table and figure of the dissertation.

`dissertation.toml` lists them, `coverage.toml` says where our figures are; they are read from the pages in
docs/results, so that a page that is run again moves the table too.
"""

from __future__ import annotations

import html
import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import corank

DOCS = Path(__file__).resolve().parent
EXPERIMENTS = DOCS.parent / "experiments"
EQUAL = 0.005  # a difference of at most this share of the published figure
LOWER = re.compile(r"rmse|error|time", re.IGNORECASE)
VERDICTS = ("better", "equal", "worse", "not comparable", "shown", "not run yet", "cannot be run here", "no figures")
CHAPTERS = {
    "1": "Introduction",
    "2": "Graph DNA",
    "3": "Primal-CR",
    "4": "SQL-Rank",
    "5": "Stochastic shared embeddings",
    "6": "SSE-PT",
    "8": "Appendix",
}


@dataclass(frozen=True)
class Line:
    """A line of the page: one figure, or one part that has none."""

    of: str
    what: str
    ours: str
    published: str
    verdict: str
    why: str
    pages: tuple[str, ...]


# ---- what is asked for -------------------------------------------------------------------------------------------


def items() -> dict[str, dict[str, str]]:
    """The tables and figures of the dissertation by name."""
    return {item["name"]: item for item in tomllib.loads((DOCS / "dissertation.toml").read_text("utf-8"))["item"]}


def parts() -> list[dict[str, Any]]:
    return list(tomllib.loads((DOCS / "coverage.toml").read_text("utf-8"))["part"])


def lines(part: dict[str, Any]) -> Iterator[Line]:
    """The lines of a part."""
    of, data = part["of"], part.get("data", "")
    pages = tuple(part.get("see", ()))
    page = part.get("page", "")
    if "nothing" in part:
        yield Line(of, data, "", "", "no figures", part["nothing"], pages)
        return
    if "shown" in part:
        yield Line(of, data, "", "", "shown", "", (f"../{part['shown']}",))
        return
    measured = bool(page) and (DOCS / "results" / f"{page}.md").exists()
    missing = [] if not measured else [why for text, why in part.get("needs", ()) if text not in _text(page)]
    differs = "; ".join([*([part["differs"]] if "differs" in part else []), *missing])
    pages = (page, *pages) if measured else pages
    if not measured:
        yield _missing(part, page, pages)
        return
    for row, published in part["rows"]:
        what = ", ".join(text for text in (data, row.replace(" | ", ", "), part.get("column", "")) if text)
        said = "" if math.isnan(published) else _shown(published)
        ours = figure(page, part.get("section"), part["column"], row)
        why = part.get("source", "")
        if ours is None:
            yield Line(of, what, "", said, "not run yet", f"`corank reproduce {page}`", pages)
        elif differs:
            yield Line(of, what, ours, said, "not comparable", differs, pages)
        elif math.isnan(published):
            yield Line(of, what, ours, "", "shown", why, pages)
        else:
            lower = part.get("lower", bool(LOWER.search(part["column"])))
            told = verdict(number(ours), published, lower=lower, tolerance=part.get("tolerance", EQUAL))
            yield Line(of, what, ours, said, told, why, pages)


def _missing(part: dict[str, Any], page: str, pages: tuple[str, ...]) -> Line:
    """The line of a part without a page of its own, with all its published figures."""
    ready = bool(page) and (EXPERIMENTS / f"{page}.toml").exists()
    reason = part.get("reason", "")
    if not reason and not ready:
        raise SystemExit(f"docs/coverage.toml, {part['of']}: neither a page, an experiment nor a reason")
    late = not reason or reason.startswith("not run yet")
    asked = f"`corank reproduce {page}`" if ready else ""
    why = "; ".join(text for text in (reason.removeprefix("not run yet").lstrip(": "), asked) if text)
    said = "; ".join(f"{row} {_shown(figure)}" for row, figure in part.get("rows", ()) if not math.isnan(figure))
    what = ", ".join(text for text in (part.get("data", ""), part.get("column", "")) if text)
    return Line(part["of"], what, "", said, "not run yet" if late else "cannot be run here", why, pages)


def verdict(ours: float, published: float, *, lower: bool, tolerance: float = EQUAL) -> str:
    """Better, equal or worse."""
    if abs(ours - published) <= tolerance * abs(published):
        return "equal"
    return "better" if (ours < published) == lower else "worse"


# ---- reading pages -----------------------------------------------------------------------------------------------


@cache
def _text(page: str) -> str:
    """A page without the escapes of Markdown and HTML."""
    text = (DOCS / "results" / f"{page}.md").read_text("utf-8")
    return html.unescape(re.sub(r"\\(.)", r"\1", text)).replace("**", "")


def figure(page: str, section: str | None, column: str, row: str) -> str | None:
    """A cell of a table on a page as it is printed there; None where the experiment has it, but not yet the page.

    section : the heading of the table; the first table of the page when None.
    column : its head; the last column when empty.
    row : the first cells, separated by ` | `.
    """
    heads, rows = _table(page, section)
    asked = row.split(" | ")
    found = [cells for cells in rows if [_label(cells[0]), *cells[1 : len(asked)]] == asked]
    if column not in heads or not found:
        if _planned(page, column, asked[0]):
            return None
        what = f"column {column!r}" if column not in heads else f"row {row!r}"
        raise SystemExit(f"docs/results/{page}.md has no {what}: correct docs/coverage.toml")
    at = len(heads) - 1 - heads[::-1].index(column)
    return found[0][at].strip() or None


def _table(page: str, section: str | None) -> tuple[list[str], list[list[str]]]:
    text = _text(page)
    if section is not None:
        start = re.search(rf"^## {re.escape(section)}$", text, re.MULTILINE)
        if not start:
            raise SystemExit(f"docs/results/{page}.md has no section {section!r}: correct docs/coverage.toml")
        text = text[start.end() :]
    found = re.search(r"^\|.*\|$(?:\n\|.*\|$)+", text, re.MULTILINE)
    if not found:
        raise SystemExit(f"docs/results/{page}.md has no table: correct docs/coverage.toml")
    heads, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in found[0].splitlines()]
    return heads, rows


def _label(cell: str) -> str:
    """The label of a row; the name of its model stands behind it where they differ."""
    label, _, model = cell.rpartition(" ")
    return label if label and model in corank.available() else cell


def _planned(page: str, column: str, label: str) -> bool:
    """Whether the experiment of a page has a row and a metric that the page does not have yet."""
    path = EXPERIMENTS / f"{page}.toml"
    if not path.exists():
        return False
    table = tomllib.loads(path.read_text("utf-8"))
    labels = {model.get("label", model["name"]) for model in table.get("model", ())}
    metrics = {*table.get("metrics", ()), "objective", "time"}
    return label in labels and column.lower().replace(" ", "_") in metrics


def number(cell: str) -> float:
    """The first number of a cell."""
    found = re.search(r"-?\d[\d,]*(?:\.\d+)?", cell)
    if not found:
        raise SystemExit(f"{cell!r} holds no number: correct docs/coverage.toml")
    return float(found[0].replace(",", ""))


def _shown(figure: float) -> str:
    return f"{figure:,}" if isinstance(figure, int) else f"{figure:.7f}".rstrip("0").rstrip(".")


# ---- the page ----------------------------------------------------------------------------------------------------

HEAD = f"""# The dissertation's tables and figures

Every table and figure of L. Wu, *Advances in Collaborative Filtering and Ranking* (2020), and what corank has for it.
Our figures are read from the [result pages](results/index.md), which say how they were measured.

- *Better*, *worse*: ours differs from the published figure by more than {EQUAL:.1%}; *equal*: by less. This is no
  significance test: the interval in brackets is ours, over users; most published tables have none.
- Most published figures are the best test epoch of a run, after tuning on validation rows. Our epochs and other
  settings are never chosen on test rows, except where a page says so.
- *Not comparable*: both exist, measured under different conditions, which are named.
- *Cannot be run here*: the data is not public or not at hand. Where an experiment is ready, its command is given.
"""


def text() -> str:
    """The page."""
    made = [line for part in parts() for line in lines(part)]
    listed = items()
    stray = [line.of for line in made if line.of not in listed]
    left = [name for name in listed if not any(line.of == name for line in made)]
    if stray or left:
        why = f"{stray[0]} is not in docs/dissertation.toml" if stray else f"{left[0]} has no part"
        raise SystemExit(f"docs/coverage.toml: {why}")
    counts = Counter(line.verdict for line in made)
    out = [HEAD, "| | lines |", "|---|---|", *(f"| {name} | {counts[name]} |" for name in VERDICTS if counts[name])]
    for chapter, title in CHAPTERS.items():
        named = [name for name in listed if name.split()[1].split(".")[0] == chapter]
        out += ["", f"## {chapter}. {title}", "", "| | subject | verdict |", "|---|---|---|"]
        for name in named:
            of = Counter(line.verdict for line in made if line.of == name)
            told = ", ".join(f"{of[one]} {one}" if of.total() > 1 else one for one in VERDICTS if of[one])
            out.append(f"| {name} | {listed[name]['caption']} | {told} |")
        own = [line for line in made if line.of in named and (line.ours or line.published)]
        if own:
            out += ["", "| | what | ours | published | verdict | note | page |", "|---|---|---|---|---|---|---|"]
            out += [_row(line) for name in named for line in own if line.of == name]
        rest = [line for line in made if line.of in named and not (line.ours or line.published)]
        out += [""] * bool(rest)
        out += [f"- {_remark(line)}" for name in named for line in rest if line.of == name]
    return "\n".join(out) + "\n"


def _row(line: Line) -> str:
    cells = (line.of, line.what, line.ours, line.published, line.verdict, line.why, _links(line))
    return f"| {' | '.join(_escaped(cell) if at < 5 else cell for at, cell in enumerate(cells))} |"


def _remark(line: Line) -> str:
    head = f"{line.of}{f', {line.what}' if line.what else ''}: {line.verdict}"
    return head + (f": {line.why}" if line.why else "") + (f" ({_links(line)})" if line.pages else "")


def _links(line: Line) -> str:
    ways = [(page.removeprefix("../"), f"results/{page}.md".replace("results/../", "")) for page in line.pages]
    return ", ".join(f"[{name}]({path})" for name, path in ways)


def _escaped(text: str) -> str:
    out = text.replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_\[\]|#])", r"\\\1", out)


if __name__ == "__main__":
    print(text())
