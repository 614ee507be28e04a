"""Charts that compare models: each function takes plain arrays and returns the text of one `<svg>` element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..data import Array
from .formatting import format_value
from .palette import FAINT, INK, MUTED, PAPER, Style, is_dark
from .svg import draw, end_labels, log_ticks, percent, point_labels, short, ticks


class Mark(NamedTuple):
    """A mean with its interval."""

    label: str
    mean: float
    low: float
    high: float
    oracle: bool = False


def intervals(marks: Sequence[Mark], looks: Mapping[str, Style], metric: str) -> str:
    """Mean and interval of each model, in the order given, with the value beside it."""

    def paint(ax: Any) -> None:
        best = next((m for m in marks if not m.oracle), marks[0])
        ax.axvline(best.mean, color=FAINT, lw=1, zorder=0)
        for y, mark in enumerate(marks):
            colour, shape = looks[mark.label]
            if np.isfinite([mark.low, mark.high]).all():
                ax.plot([mark.low, mark.high], [y, y], color=colour, lw=2.2, solid_capstyle="round", alpha=0.75)
            ax.plot(mark.mean, y, shape, color=colour, mfc=PAPER if mark.oracle else colour, ms=6, mew=1.5)
            ax.text(1.03, y, format_value(mark.mean), transform=ax.get_yaxis_transform(), va="center")
        ax.set_yticks(range(len(marks)), [short(m.label) for m in marks])
        for tick, mark in zip(ax.get_yticklabels(), marks, strict=True):
            tick.set_color(MUTED if mark.oracle else INK)
        ax.set_ylim(len(marks) - 0.4, -0.6)
        ax.margins(x=0.08)
        ax.set_xlabel(metric)
        ticks(ax, "x", 4)

    return draw(
        "intervals", paint, f"{metric} of each model with its confidence interval", 0.75 + 0.29 * len(marks), left=False
    )


def hit_rates(rates: Mapping[str, Array], looks: Mapping[str, Style]) -> str:
    """One curve per model, labelled at its end. rates : (k,) per model, the hit rate of lists of length 1..k."""

    def paint(ax: Any) -> None:
        k = max(len(y) for y in rates.values())
        for label, y in rates.items():
            ax.plot(np.arange(1, len(y) + 1), y, color=looks[label].colour, lw=1.8, marker=".", ms=5)
        ax.set_ylim(0, max(ax.get_ylim()[1], 1e-3))
        end_labels(ax, k, {label: y[-1] for label, y in rates.items()}, looks)
        ax.set_xticks(np.unique(np.linspace(1, k, min(k, 10)).round().astype(int)))
        ax.set_xlabel("list length k")
        ax.set_ylabel("hit rate@k")
        percent(ax, "y")

    return draw("hit-rates", paint, "Hit rate by list length", 2.9)


def distribution(values: Mapping[str, Array], looks: Mapping[str, Style], metric: str, higher_is_better: bool) -> str:
    """The share of users with at least (for errors: at most) a value; higher curves are better."""

    def paint(ax: Any) -> None:
        grid = np.unique(np.concatenate(list(values.values())))
        if grid.size > 160:  # one point per user is not needed, and the file stays small
            grid = np.linspace(grid[0], grid[-1], 160)
        if higher_is_better and grid[0] <= 0 and grid.size > 1:
            grid = grid[grid > 0]  # all users have at least 0: that point would flatten the rest
        for label, v in values.items():
            below = np.searchsorted(np.sort(v), grid, side="left" if higher_is_better else "right") / v.size
            y, where = (1 - below, "pre") if higher_is_better else (below, "post")
            x = grid
            if higher_is_better and grid[0] > 0:
                x, y = np.r_[0, grid], np.r_[y[0], y]
            ax.step(x, y, where=where, color=looks[label].colour, lw=1.6, label=short(label))
        low = min(0, grid[0]) if higher_is_better else grid[0]
        ax.set_xlim(low, grid[-1] if grid[-1] > low else low + 1)
        ax.set_ylim(0, max(ax.get_ylim()[1], 1e-3))
        ax.set_xlabel(f"{metric} of at {'least' if higher_is_better else 'most'}")
        ax.set_ylabel("share of users")
        ticks(ax, "x", 5)
        percent(ax, "y")
        ax.legend(loc="upper right" if higher_is_better else "lower right", labelcolor="linecolor")

    return draw("distribution", paint, f"Share of users by their {metric}", 2.9)


def scatter(
    points: Mapping[str, tuple[float, float]],
    looks: Mapping[str, Style],
    name: str,
    x: str,
    y: str,
    *,
    seconds: bool = False,
    in_percent: bool = False,
    ceiling: tuple[str, float] | None = None,
) -> str:
    """One point per model, labelled where there is room.

    seconds : x is a time, on a logarithmic axis; in_percent : y is shown in percent; ceiling : (label, y) of an upper
    bound, drawn as a line.
    """

    def paint(ax: Any) -> None:
        if seconds:
            ax.set_xscale("log")
        if ceiling is not None:
            ax.axhline(ceiling[1], color=MUTED, lw=1, ls=(0, (4, 3)))
            ax.annotate(
                short(ceiling[0]),
                (1, ceiling[1]),
                (0, -3),
                xycoords=ax.get_yaxis_transform(),
                textcoords="offset points",
                ha="right",
                va="top",
                color=MUTED,
            )
        for label, xy in points.items():
            colour, shape = looks[label]
            ax.plot(*xy, shape, color=colour, ms=7, mec=PAPER, mew=0.8, zorder=3)
        ax.margins(x=0.16, y=0.16)
        ax.set_xlabel(x)
        ax.set_ylabel(y)
        ticks(ax, "y", 5)
        if seconds:
            log_ticks(ax, _time)
        else:
            ticks(ax, "x", 5)
        if in_percent:
            percent(ax, "y")
        point_labels(ax, points, looks)

    return draw(name, paint, f"{y} against {x}", 2.9)


def by_group(groups: Sequence[str], means: Mapping[str, Array], looks: Mapping[str, Style], x: str, y: str) -> str:
    """One line per model over ordered groups of users, labelled at its end."""

    def paint(ax: Any) -> None:
        last = len(groups) - 1
        for label, mean in means.items():
            colour, shape = looks[label]
            ax.plot(mean, color=colour, lw=1.8, marker=shape, ms=4.5)
        low, high = ax.get_ylim()
        ax.set_ylim(0 if 0 < low < 0.5 * high else low, high)
        ax.set_xlim(-0.2, last + 0.1)
        end_labels(ax, last, {label: mean[-1] for label, mean in means.items()}, looks)
        ax.set_xticks(range(len(groups)), list(groups))
        ax.set_xlabel(x)
        ax.set_ylabel(y)
        ticks(ax, "y", 5)

    return draw("groups", paint, f"{y} by {x}", 2.9)


def stacked_bars(
    rows: Mapping[str, Sequence[float]], parts: Sequence[str], colours: Sequence[str], name: str, gap: int = 0
) -> str:
    """Horizontal bars of shares that sum to 1; the parts are named above. gap : number of rows set apart at the top."""

    def paint(ax: Any) -> None:
        from matplotlib.patches import Patch

        places = [i + (0.35 if gap and i >= gap else 0) for i in range(len(rows))]
        for y, row in zip(places, rows.values(), strict=True):
            start = 0.0
            for value, colour in zip(row, colours, strict=True):
                ax.barh(y, value, left=start, color=colour, height=0.68, ec=PAPER, lw=0.6)
                if value >= 0.085:
                    # The faint bar darkens with the page, so its text must lighten; the others keep theirs.
                    ink = "#ffffff" if is_dark(colour) else INK if colour == FAINT else "#111111"
                    ax.text(start + value / 2, y, f"{value:.0%}", ha="center", va="center", color=ink, fontsize=8)
                start += value
        ax.set_yticks(places, [short(label) for label in rows])
        ax.set_xlim(0, 1)
        ax.set_ylim(places[-1] + 0.5, -0.5)
        ax.xaxis.set_visible(False)
        ax.spines["bottom"].set_visible(False)
        handles = [Patch(facecolor=colour) for colour in colours]
        ax.legend(handles, list(parts), loc="lower left", bbox_to_anchor=(-0.02, 1), ncols=len(parts))

    return draw(name, paint, "; ".join(parts), 0.45 + 0.29 * (len(rows) + 0.35 * bool(gap)), left=False)


def _time(value: float) -> str:
    if value < 1:
        return f"{value * 1000:g} ms"
    return f"{value:g} s" if value < 1000 else f"{value / 1000:g} ks"
