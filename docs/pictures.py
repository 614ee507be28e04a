"""The pictures of the pages.

The two of the design page are SVG text, which `docs/generate.py` writes: `rooms` draws the layers of tests/layers.py
with the first sentence of each part, `interaction` follows one row of a table through them. The picture of a report
needs a browser:

    python docs/pictures.py      runs `corank demo` and takes docs/report.png from its report
"""

from __future__ import annotations

import ast
import itertools
import shutil
import subprocess
import sys
import tempfile
import textwrap
from html import escape
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.append(str(DOCS.parent / "tests"))

from layers import LAYERS, LEVEL, SOURCE  # noqa: E402

INK, QUIET, LINE, ROOM, FILE, ASK = "#1f2933", "#5b6b7a", "#9fb3c8", "#e3eefa", "#f5f7fa", "#fdf0dc"
FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
MONO = "ui-monospace, 'DejaVu Sans Mono', Menlo, monospace"


def rooms() -> str:
    """The parts of the package by layer, the command line on top; imports point down."""
    width, left, gap = 960, 60, 10
    shapes, top = [], 16
    for layer in reversed(LAYERS):
        parts = [part for part in layer if not part.startswith("__")]
        each = (width - left - 16 - gap * (len(parts) - 1)) / len(parts)
        texts = [textwrap.wrap(_purpose(part), int(each / 6.3)) for part in parts]
        height = 32 + 15 * max(map(len, texts))
        for at, (part, text) in enumerate(zip(parts, texts, strict=True)):
            folder = (SOURCE / part).is_dir()
            name = f"{part}/" if folder else f"{part}.py"
            x = left + at * (each + gap)
            shapes.append(_box(x, top, each, height, ROOM if folder else FILE))
            shapes.append(_text(x + 12, top + 20, name, 14, bold=True))
            shapes += [_text(x + 12, top + 38 + 15 * row, line, 11.5, QUIET) for row, line in enumerate(text)]
        top += height + gap
    bottom = top - gap
    shapes.append(_arrow(30, 24, 30, bottom - 4))
    shapes.append(
        f'<text transform="translate(20 {(16 + bottom) / 2:.0f}) rotate(-90)" text-anchor="middle" '
        f'font-size="13" fill="{QUIET}">imports point down</text>'
    )
    return _picture(width, bottom + 16, "The parts of corank in layers; imports point down", shapes)


def _purpose(part: str) -> str:
    """The first sentence of a part's docstring."""
    path = SOURCE / part / "__init__.py" if (SOURCE / part).is_dir() else SOURCE / f"{part}.py"
    doc = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return " ".join(doc.split("\n\n")[0].split()).split(". ")[0].rstrip(".").replace("`", "")


# One interaction: title, example lines, and the part of the package that does the step, by place (column, row).
STEPS = {
    (0, 0): ("A row of a table", ["user,film,stars", "ann,Alien,5"], ""),
    (1, 0): ("Columns found", ["user  = user", "item  = film", "value = stars"], "reading"),
    (2, 0): ("Dataset: ids to codes", ["ann   -> user 0", "Alien -> item 17", "value 5.0"], "data"),
    (3, 0): ("Split", ["train  Alien, Heat", "valid  Brazil", "test   Solaris"], "data"),
    (4, 0): ("CSR of train", ["row 0:", "items  [17, 41]", "values [5.0, 4.0]"], "data"),
    (4, 1): ("Training", ["for epoch in epochs:", "  kernel(rows, ...)", "  report(objective)"], "training"),
    (3, 1): ("Factors", ["user_factors_[0]", "[0.3, -1.1, ...]"], "models"),
    (2, 1): ("_score", ["user 0, all items:", "[0.2, 0.9, -0.4, ...]"], "models"),
    (1, 1): ("Top k, not seen", ["items 93, 8, 60", "by score"], "answering"),
    (0, 1): ("Ranking: ids again", ["1 Dune     0.91", "2 Stalker  0.87", "3 Solaris  0.85"], "answering"),
    (2, 2): ("Rank of test item", ["Solaris: 2 above,", "0 equal -> rank 3"], "evaluation"),
    (3, 2): ("Report", ["ndcg@10 of ann 0.5", "mean, interval,", "protocol"], "evaluation"),
    (4, 2): ("Leaderboard, HTML", ["models side by side,", "paired tests,", "one file"], "report"),
}
WAY = [(0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (4, 1), (3, 1), (2, 1), (2, 2), (3, 2), (4, 2)]
ANSWER = [(2, 1), (1, 1), (0, 1)]


def interaction() -> str:
    """The way of one interaction from a CSV row to a recommendation and to a report."""
    box, tall, gap, down = 180, 104, 30, 44
    shapes = []

    def corner(place: tuple[int, int]) -> tuple[int, int]:
        return 16 + place[0] * (box + gap), 16 + place[1] * (tall + down)

    for way in (WAY, ANSWER):
        for a, b in itertools.pairwise(way):
            (x1, y1), (x2, y2) = corner(a), corner(b)
            if y1 == y2:
                right = x2 > x1
                start, end = (x1 + box, x2) if right else (x1, x2 + box)
                shapes.append(_arrow(start, y1 + tall / 2, end, y2 + tall / 2))
            else:
                shapes.append(_arrow(x1 + box / 2, y1 + tall, x2 + box / 2, y2))
    for place, (title, lines, part) in STEPS.items():
        assert not part or part in LEVEL, f"there is no part {part}"
        x, y = corner(place)
        shapes.append(_box(x, y, box, tall, ROOM if part else ASK))
        shapes.append(_text(x + 10, y + 20, title, 13.5, bold=True))
        shapes += [_text(x + 10, y + 40 + 15 * row, line, 11, mono=True) for row, line in enumerate(lines)]
        name = f"{part}/" if (SOURCE / part).is_dir() else f"{part}.py"
        shapes.append(_text(x + box - 10, y + tall - 8, name if part else "yours", 11, QUIET, end=True))
    x, y = corner((0, 1))
    shapes.append(_text(x, y + tall + 20, "model.recommend(...)", 12, QUIET, mono=True))
    x, y = corner((2, 2))
    shapes.append(_text(x - 12, y + tall / 2 + 4, "cr.evaluate(model, split)", 12, QUIET, mono=True, end=True))
    width, height = 32 + 5 * box + 4 * gap, 32 + 3 * tall + 2 * down
    return _picture(width, height, "The way of one interaction, from a CSV row to a report", shapes)


# ---- shapes ------------------------------------------------------------------------------------------------------


def _picture(width: float, height: float, title: str, shapes: list[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" font-family="{FONT}" role="img" aria-label="{escape(title)}">'
    )
    tip = (
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" '
        f'orient="auto"><path d="M0 0 L10 5 L0 10 z" fill="{QUIET}"/></marker></defs>'
    )
    paper = f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>'
    return "\n".join([head, f"<title>{escape(title)}</title>", tip, paper, *shapes, "</svg>"]) + "\n"


def _box(x: float, y: float, width: float, height: float, fill: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="6" fill="{fill}" '
        f'stroke="{LINE}"/>'
    )


def _text(
    x: float,
    y: float,
    text: str,
    size: float,
    color: str = INK,
    bold: bool = False,
    mono: bool = False,
    end: bool = False,
) -> str:
    looks = f' font-family="{MONO}" xml:space="preserve"' if mono else ""
    looks += ' font-weight="600"' if bold else ""
    looks += ' text-anchor="end"' if end else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" fill="{color}"{looks}>{escape(text)}</text>'


def _arrow(x1: float, y1: float, x2: float, y2: float) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{QUIET}" stroke-width="1.5" marker-end="url(#tip)"/>'


# ---- the report --------------------------------------------------------------------------------------------------


def report(picture: Path) -> None:
    """A screenshot of the top of a report, as wide as a page of the documentation."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        raise SystemExit("docs/report.png is a screenshot: install chromium first")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "corank", "demo", "-o", folder], check=True)
        looks = ["--headless=new", "--no-sandbox", "--hide-scrollbars", "--window-size=1200,1270"]
        command = [browser, *looks, f"--screenshot={picture}", f"file://{folder}/report.html"]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    report(DOCS / "report.png")
