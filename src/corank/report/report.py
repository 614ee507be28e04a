"""What an experiment found, to be sent to a colleague: one HTML file that needs nothing else, or a Markdown page.

write_html(results, "report.html", command="corank compare ratings.csv")
write_markdown(results, "docs/results/ml-1m.md", command="corank reproduce ml-1m")
"""

from __future__ import annotations

import importlib.metadata
import math
import os
import platform
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from .. import __version__
from ..atomic import write_text
from .leaderboard import (
    STARS_MEAN,
    Line,
    bracket,
    chance,
    duration,
    figure,
    plain,
    setting,
    these_users,
    title,
    verdict,
)

if TYPE_CHECKING:
    from ..data.describe import Description
    from ..experiment.results import Results
    from .figures import Figure

PARTS = ("numpy", "scipy", "numba", "polars", "matplotlib")


def write_html(results: Results, path: str | Path, *, command: str = "") -> None:
    """Write the report as one self-contained file: no script, no request. command : what makes it again."""
    from .figures import data_figures, model_figures

    board = results.lines
    data = results.split.all_rows()
    facts = data.describe()
    body = [
        _header(results, facts),
        f'<p class="verdict">{_verdict_html(results)}</p>',
        _section("Leaderboard", _html_table(results, board), _notes(results, board)),
        _section("How good, for whom, at what cost", _figures(model_figures(results, board))),
        _section("The data", _facts(facts), _figures(data_figures(results.split, data))),
        _section("Settings of the models", _definitions([(b.label, setting(b.row) or "none") for b in board])),
        _section("How this was measured", _definitions(method(results, command))),
    ]
    name = escape(plain(results.name))
    write_text(path, _PAGE.format(title=f"{name} · corank", style=_STYLE, body="\n".join(body)))


def write_markdown(results: Results, path: str | Path, *, command: str = "") -> None:
    """Write the same tables as a Markdown page, for documentation and version control."""
    board = results.lines
    facts = results.split.all_rows().describe()
    heads, cells = table(results, board)
    page = [
        f"# {_md(results.name)}",
        _md(verdict(results)),
        "## Leaderboard",
        md_table(heads, [[a + (f" {b}" if b else "") for a, b in row] for row in cells]),
        "\n".join(f"- {_md(note)}" for note in notes(results, board)),
        "## Settings",
        md_table(
            ("", "hyper-parameters", "seed", "settings tried on validation"),
            [(b.label, setting(b.row), str(b.row.report.params.get("seed", "")), str(b.row.trials)) for b in board],
        ),
        "## Data",
        md_table(("", ""), portrait(facts)),
        "## Method",
        md_table(("", ""), [(k, v) for k, v in method(results, command) if k != "Command"]),
    ]
    if command:
        page.append(f"Made with\n\n    {plain(command)}")
    write_text(path, "\n\n".join(page) + "\n")


# ---- what both pages say ---------------------------------------------------------------------------------------------


def table(results: Results, board: Sequence[Line]) -> tuple[list[str], list[list[tuple[str, str]]]]:
    """Heads, and for each row its cells as (figure, small print)."""
    published = any(line.row.published for line in board)
    heads = [
        "",
        *map(title, results.metrics),
        *(["gain"] if results.gain else []),
        *(["published"] if published else []),
        "p",
        "effect",
        "better / worse",
        "fit",
    ]
    cells = []
    for line in board:
        report = line.row.report
        small = "" if report.model == line.label else report.model
        row = [(line.label, small)]
        row += [(figure(report[m]), bracket(report.interval[m])) for m in results.metrics]
        if results.gain:
            gained = results.gained(line.row)
            row.append(("" if gained is None else f"{round(gained, 2) + 0.0:.0%}", ""))  # not -0%
        if published:
            row.append((", ".join(f"{title(m)} {v:g}" for m, v in line.row.published.items()), ""))
        row.append((chance(line.p), line.stars) if line.p is not None else ("best" if line.best else "–", ""))
        versus = line.versus
        row.append(("" if versus is None else f"{versus.effect:+.2f}" if math.isfinite(versus.effect) else "–", ""))
        row.append(("" if versus is None else f"{versus.better:.0%} / {versus.worse:.0%}", ""))
        row.append((duration(report.fit_seconds), f"{line.row.trials} tried" if line.row.trials else ""))
        cells.append(row)
    return heads, cells


def notes(results: Results, board: Sequence[Line]) -> list[str]:
    """What a reader of the table must know."""
    best, first = results.best, title(results.metrics[0])
    down = [title(m) for m in results.metrics if not results.metric(m).higher_is_better]
    lower = f" Lower is better: {', '.join(down)}." if down else ""
    protocol = str(best.report.protocol)
    out = [
        f"{protocol[:1].upper()}{protocol[1:]}; {best.report.split}.",
        f"In brackets: 95% bootstrap interval over {these_users(best.report.users.size)}.{lower}",
    ]
    if best.runs > 1:
        over = ", ".join(f"{line.label} {figure(line.row.deviation[results.metrics[0]])}" for line in board)
        seeds = "seeds on the same split" if results.one_split else "seeds, splits included"
        out.append(f"Mean of {best.runs} runs with other {seeds}; standard deviation of {first}: {over}.")
    if results.gain:
        start, end = results.gain
        out.append(f"Gain: how far {first} has come on the way from {start} (0%) to {end} (100%).")
    if any(line.p is not None for line in board):
        out.append(
            f"p: paired randomisation test of {first} against {best.label}, Holm-corrected ({STARS_MEAN}). "
            "Effect: mean difference over its standard deviation, below 0 = worse than the best. "
            "Better / worse: users for whom the row beats, or is beaten by, the best."
        )
    if any(line.row.oracle for line in board):
        out.append("The oracle knows the truth behind the synthetic data: it is the ceiling, not a contender.")
    return out + [f"Left out: {label}: {why}" for label, why in results.failed.items()]


def portrait(facts: Description) -> list[tuple[str, str]]:
    """The numbers of the data."""
    out = [
        ("Rows", f"{facts.rows:,}"),
        ("Users", f"{facts.users:,}"),
        ("Items", f"{facts.items:,}"),
        ("Density", f"{100 * facts.density:.3g}%"),
        ("Rows a user", f"{facts.user_rows.median:g} median, {facts.user_rows.min:g} to {facts.user_rows.max:,g}"),
        ("Rows an item", f"{facts.item_rows.median:g} median, {facts.item_rows.min:g} to {facts.item_rows.max:,g}"),
        ("Top items", f"1% hold {facts.top1_share:.0%} of the rows, 10% hold {facts.top10_share:.0%}"),
    ]
    if facts.value.min < facts.value.max:
        out.append(("Values", f"{facts.value.min:g} to {facts.value.max:g}, mean {facts.value.mean:.3g}"))
    if facts.dates is not None:
        out.append(("Time", f"{facts.dates[0][:10]} to {facts.dates[1][:10]}"))
    edges = [f"{n:,} {side}" for side, n in (("user", facts.user_edges), ("item", facts.item_edges)) if n is not None]
    return out + [("Graph edges", ", ".join(edges))] * bool(edges)


def method(results: Results, command: str) -> list[tuple[str, str]]:
    """Everything that must be known to get the same numbers again."""
    split, report = results.split, results.best.report
    seeds = sorted({str(row.report.params["seed"]) for row in results.rows if "seed" in row.report.params})
    parts = f"{len(split.train):,} training rows, {len(split.valid):,} validation, {len(split.test):,} test"
    machine = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    held = "" if split.history is None else f", {len(split.history):,} known of held-out users"
    out = [
        ("Protocol", str(report.protocol)),
        ("Split", f"{split.name}: {parts}{held}"),
        ("Task", f"{report.part} rows, users: {report.users.size:,}, fingerprint {report.fingerprint}"),
        ("Seed", ", ".join(seeds) or "none"),
        ("Time", f"{duration(results.seconds)} in all, on {os.cpu_count()} processors"),
        ("Versions", f"corank {__version__}, {', '.join(_versions())}; {machine}"),
        ("Written", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"),
    ]
    return out + [("Command", plain(command))] * bool(command)


def machine_facts() -> str:
    """Versions and processors, in a sentence."""
    python = f"Python {platform.python_version()}, {os.cpu_count()} processors"
    return f"corank {__version__}, {', '.join(_versions())}; {python}."


def _versions() -> Iterable[str]:
    for name in PARTS:
        try:
            yield f"{name} {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            continue


# ---- Markdown --------------------------------------------------------------------------------------------------------


def _md(text: object) -> str:
    out = plain(text).replace("&", "&amp;").replace("<", "&lt;")
    for sign in "\\`*_[]|#":
        out = out.replace(sign, "\\" + sign)
    return out


def md_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    out = ["| " + " | ".join(map(_md, heads)) + " |", "|" + "---|" * len(heads)]
    return "\n".join(out + ["| " + " | ".join(map(_md, row)) + " |" for row in rows])


# ---- HTML ------------------------------------------------------------------------------------------------------------


def _text(text: object) -> str:
    return escape(plain(text))


def _header(results: Results, facts: Description) -> str:
    size = f"{facts.users:,} users · {facts.items:,} items · {facts.rows:,} rows"
    return f"<header><h1>{_text(results.name)}</h1><p>{size} · {_text(results.split.name)}</p></header>"


def _verdict_html(results: Results) -> str:
    said = _text(verdict(results))
    label = _text(results.best.label)
    return f"<strong>{label}</strong>{said[len(label) :]}"


def _section(name: str, *parts: str) -> str:
    return f"<section><h2>{_text(name)}</h2>\n" + "\n".join(parts) + "</section>"


def _notes(results: Results, board: Sequence[Line]) -> str:
    return '<ul class="notes">' + "".join(f"<li>{_text(note)}</li>" for note in notes(results, board)) + "</ul>"


def _html_table(results: Results, board: Sequence[Line]) -> str:
    heads, cells = table(results, board)
    head = "".join(f"<th>{_text(h)}</th>" for h in heads)
    rows = []
    for line, row in zip(board, cells, strict=True):
        kind = "oracle" if line.row.oracle else "best" if line.best else ""
        first, *others = (f"{_text(a)}<small>{_text(b)}</small>" if b else _text(a) for a, b in row)
        rest = "".join(f"<td>{cell}</td>" for cell in others)
        rows.append(f'<tr class="{kind}"><th scope="row" title="{_text(setting(line.row))}">{first}</th>{rest}</tr>')
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _figures(figures: Iterable[Figure]) -> str:
    cards = (
        f"<figure><h3>{_text(f.title)}</h3>{f.svg}<figcaption>{_text(f.caption)}</figcaption></figure>" for f in figures
    )
    return f'<div class="grid">{"".join(cards)}</div>'


def _facts(facts: Description) -> str:
    return (
        '<dl class="facts">'
        + "".join(f"<div><dt>{_text(k)}</dt><dd>{_text(v)}</dd></div>" for k, v in portrait(facts))
        + "</dl>"
    )


def _definitions(pairs: Sequence[tuple[str, str]]) -> str:
    shown = ((k, f"<code>{_text(v)}</code>" if k == "Command" else _text(v)) for k, v in pairs)
    return '<dl class="method">' + "".join(f"<dt>{_text(k)}</dt><dd>{v}</dd>" for k, v in shown) + "</dl>"


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2128; --muted: #667080; --line: #d9dee4; --card: #fefefe; --page: #f4f6f8;
  --accent: #0072b2; --soft: #e8f1f8 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --muted: #9aa4b0; --line: #3a424c; --card: #1b2027;
  --page: #12161b; --accent: #5db3e6; --soft: #1d2f3d;
  --blue: #4aa8e0; --sky: #9ad4ff; --violet: #ab9df0; --brown: #c08f5f } }
@media print { :root { color-scheme: light; --ink: #000; --muted: #444; --line: #ccc; --card: #fff; --page: #fff;
  --accent: #0072b2; --soft: #f2f6f9;
  --blue: #0072b2; --sky: #3a9bd9; --violet: #7d6bc4; --brown: #8a5a2b } }
* { box-sizing: border-box }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif }
main { max-width: 1160px; margin: 0 auto; padding: 28px 20px 48px }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0; overflow-wrap: anywhere }
header p { margin: 4px 0 0; color: var(--muted) }
h2 { font-size: 1.25rem; margin: 40px 0 12px }
h3 { font-size: 1rem; margin: 0 0 8px }
.verdict { margin: 20px 0 0; padding: 16px 20px; background: var(--soft); border-left: 4px solid var(--accent);
  border-radius: 6px; font-size: 1.1rem; overflow-wrap: anywhere }
.scroll { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: 8px }
table { border-collapse: separate; border-spacing: 0; width: 100%;
  font-size: .86rem; font-variant-numeric: tabular-nums }
th, td { padding: 8px 9px; text-align: right; white-space: nowrap; vertical-align: top;
  border-top: 1px solid var(--line) }
thead th { border-top: 0; color: var(--muted); font-weight: 500; vertical-align: bottom; white-space: normal }
tbody th { text-align: left; font-weight: 600; position: sticky; left: 0; background: var(--card); max-width: 14rem;
  overflow: hidden; text-overflow: ellipsis }
small { display: block; color: var(--muted); font-weight: 400; font-size: .7rem; letter-spacing: -.01em }
.best td, .best th { background: var(--soft) }
.oracle td, .oracle th { color: var(--muted); font-style: italic; border-bottom: 2px solid var(--line) }
.notes { margin: 12px 0 0; padding-left: 20px; color: var(--muted); font-size: .88rem; overflow-wrap: anywhere }
dt { color: var(--muted); font-size: .82rem }
dd { margin: 0 0 8px; overflow-wrap: anywhere }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 400px), 1fr)); gap: 16px }
@media (min-width: 870px) { .grid > :last-child:nth-child(odd) { grid-column: 1 / -1 } }
figure { margin: 0; padding: 16px; background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  display: flex; flex-direction: column; break-inside: avoid }
figure svg { display: block; width: 100%; height: auto; max-width: 560px; margin: 0 auto }
figcaption { margin-top: auto; padding-top: 10px; color: var(--muted); font-size: .85rem }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 4px 20px; margin: 0 0 16px }
.facts dd { font-weight: 600 }
.method { display: grid; grid-template-columns: fit-content(12rem) 1fr; gap: 4px 20px; margin: 0; font-size: .9rem }
.method dd { margin: 0 }
code { font: .88em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; background: var(--soft); padding: 2px 6px;
  border-radius: 4px }
@media (max-width: 560px) { main { padding: 20px 12px 32px } h1 { font-size: 1.5rem } figure { padding: 12px }
  .method { grid-template-columns: 1fr; gap: 0 } .method dd { margin: 0 0 8px } tbody th { max-width: 8.5rem } }
@media print { main { max-width: none; padding: 0 } .scroll { overflow: visible } th, td { padding: 4px 6px }
  table { font-size: .72rem } h2 { break-after: avoid } }
"""
