"""Drawing a chart: one pair of axes, few ticks, labels beside what they name; the result is SVG text.

Text stays text, two runs give the same bytes, and no global state of matplotlib changes. Neutral colours are written
as CSS variables with a fallback, so that a chart follows the dark mode of the page around it.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from .formatting import plain
from .palette import CSS_VARIABLES, INK, MUTED, Style

WIDTH = 4.4  # inches: one column of the report, and a phone held upright
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
# Places for a label beside its point, nearest first: (side, dy) with side -1 left, 0 centred, 1 right; dy in points.
_BESIDE = (
    [(1, 0), (-1, 0), (0, 11), (0, -11)]
    + [(side, dy) for dy in (9, -9) for side in (1, -1)]
    + [(side, dy) for dy in (20, -20) for side in (0, 1, -1)]
)

Box = tuple[float, float, float, float]  # left, bottom, right, top


def short(label: str, width: int = 20) -> str:
    """A label that fits: without control characters, cut with an ellipsis."""
    text = plain(label).strip() or "?"
    return text if len(text) <= width else text[: width - 1] + "…"


def draw(name: str, paint: Callable[[Any], None], title: str, height: float, left: bool = True) -> str:
    """Set up axes, let `paint` fill them, return the SVG. name : unique in a page; left : draw the left axis line."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    settings: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": f"corank-{name}",
        "text.parse_math": False,  # a label with $ signs is no formula
        "font.family": ["DejaVu Sans"],  # comes with matplotlib: the same text widths on every machine
        "font.size": 8.5,
        "text.color": INK,
        "axes.edgecolor": MUTED,
        "axes.labelcolor": MUTED,
        "axes.linewidth": 0.7,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.spines.left": left,
        "xtick.color": MUTED,
        "ytick.color": MUTED,
        "ytick.labelcolor": MUTED if left else INK,
        "xtick.major.size": 3,
        "ytick.major.size": 3 if left else 0,
        "xtick.minor.size": 0,
        "ytick.minor.size": 0,
        "legend.frameon": False,
        "legend.handlelength": 0.9,
        "legend.handleheight": 0.8,
        "legend.handletextpad": 0.5,
        "legend.columnspacing": 1.0,
        "legend.labelspacing": 0.25,
        "legend.borderaxespad": 0.1,
        "legend.fontsize": 8.5,
    }
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # browsers have the glyphs that this font lacks
        plot = Figure(figsize=(WIDTH, height), layout=ConstrainedLayoutEngine(w_pad=0.02, h_pad=0.03))
        FigureCanvasSVG(plot)
        ax = plot.add_subplot()
        plot.patch.set_visible(False)
        ax.patch.set_visible(False)
        paint(ax)
        buffer = io.StringIO()
        plot.savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    return _finish(buffer.getvalue(), name, title)


def _finish(svg: str, name: str, title: str) -> str:
    """Turn an SVG file into an element of a page: no prolog or fixed size, unique ids, colours that follow the page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'( id="| xlink:href="#|\burl\(#)', rf"\g<1>{name}-", svg)
    # The whole font list, which older versions of matplotlib write as part of "font:".
    svg = re.sub(r"'DejaVu Sans'[^;\"<]*(?=[;\"])", _FONT, svg)
    for colour, variable in CSS_VARIABLES.items():
        svg = svg.replace(f": {colour}", f": var({variable}, {colour})")
    head, _, rest = svg.partition(">")
    head = re.sub(r' (width|height)="[^"]*"', "", head)
    return f'{head} role="img" aria-label={quoteattr(plain(title))}>{rest}'.strip()


def ticks(ax: Any, axis: str, n: int, form: Callable[[float], str] | None = None) -> None:
    """About n round ticks."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    target = ax.xaxis if axis == "x" else ax.yaxis
    target.set_major_locator(MaxNLocator(n, steps=[1, 2, 2.5, 5, 10]))
    if form is not None:
        target.set_major_formatter(FuncFormatter(lambda value, _: form(value)))


def percent(ax: Any, axis: str) -> None:
    """Ticks in percent."""
    ticks(ax, axis, 5, lambda value: f"{100 * value:.4g}%")


def log_ticks(ax: Any, form: Callable[[float], str], axis: str = "x") -> None:
    """Powers of ten on a logarithmic axis, with steps between where the range has few of them."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    target = ax.xaxis if axis == "x" else ax.yaxis
    low, high = ax.get_xlim() if axis == "x" else ax.get_ylim()
    decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    at: list[float] = []
    for steps in ([1], [1, 3], [1, 2, 5], range(1, 10)):
        at = [s * 10.0**d for d in decades for s in steps if low <= s * 10.0**d <= high]
        if len(at) >= 3:
            break
    at = at[:: 1 + (len(at) - 1) // 6] if at else [float(f"{(low * high) ** 0.5:.2g}")]  # a very narrow range
    target.set_major_locator(FixedLocator(at))
    target.set_minor_locator(NullLocator())
    target.set_major_formatter(FuncFormatter(lambda value, _: form(float(f"{value:.6g}"))))


def end_labels(ax: Any, x: float, ends: Mapping[str, float], looks: Mapping[str, Style]) -> None:
    """Label each curve at its right end, once the y limits are set; labels that would overlap are pushed apart."""
    low, high = ax.get_ylim()
    room = (high - low) * 0.07  # a line of text, in units of the axis
    order = sorted((label for label in ends if np.isfinite(ends[label])), key=lambda label: ends[label])
    places = np.array([ends[label] for label in order])
    for _ in range(300):
        near = np.flatnonzero(np.diff(places) < room * 0.999)
        if not near.size:
            break
        for i in near:
            push = (room - (places[i + 1] - places[i])) / 2
            places[i] -= push
            places[i + 1] += push
        places += max(0.0, low - places[0])
    for label, place in zip(order, places, strict=True):
        colour = looks[label].colour
        ax.annotate(
            short(label, 16),
            xy=(x, ends[label]),
            xytext=(1.04, place),
            textcoords=ax.get_yaxis_transform(),
            va="center",
            color=colour,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.6, "shrinkA": 1, "shrinkB": 4, "relpos": (0, 0.5)},
        )


def point_labels(ax: Any, points: Mapping[str, tuple[float, float]], looks: Mapping[str, Style]) -> None:
    """Write each label beside its point, at the first of several places where it covers nothing."""
    ax.figure.draw_without_rendering()
    scale = 72 / ax.figure.dpi  # pixels to points, the unit of offsets
    frame: Box = tuple(v * scale for v in ax.get_window_extent().extents)
    dots = {label: ax.transData.transform(xy) * scale for label, xy in points.items()}
    taken: list[Box] = [(x - 4, y - 4, x + 4, y + 4) for x, y in dots.values()]
    for label, (x, y) in dots.items():
        text = short(label, 18)
        width = 5.2 * len(text)
        choices: list[tuple[float, int, tuple[float, float], Box]] = []
        for side, dy in _BESIDE:
            dx = (side - 1) / 2 * width + 8 * side
            box = (x + dx, y + dy - 5.5, x + dx + width, y + dy + 5.5)
            cost = 3 * _outside(box, frame) + sum(_overlap(box, other) for other in taken)
            choices.append((cost, len(choices), (dx, dy), box))
        _, _, offset, box = min(choices)
        taken.append(box)
        colour = looks[label].colour
        ax.annotate(text, points[label], offset, "data", "offset points", ha="left", va="center", color=colour)


def _overlap(a: Box, b: Box) -> float:
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def _outside(box: Box, frame: Box) -> float:
    across = max(0.0, frame[0] - box[0]) + max(0.0, box[2] - frame[2])
    return across + max(0.0, frame[1] - box[1]) + max(0.0, box[3] - frame[3])
