"""The pictures of a report: each function takes plain arrays and gives the text of one `<svg>` element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from ..data import Array
from .svg import (
    BLUE,
    BROWN,
    FAINT,
    INK,
    MUTED,
    PAPER,
    SKY,
    VIOLET,
    Style,
    draw,
    end_labels,
    is_dark,
    log_ticks,
    percent,
    point_labels,
    short,
    ticks,
)

ACCENT, WARM = "#0a74b4", "#d55e00"  # for areas: the same in light and dark
# Okabe and Ito's colours, the light ones darkened until they can be read on white; shapes tell them apart once more.
_COLOURS = (BLUE, "#d55e00", "#009e73", "#c0629a", "#b58900", SKY, VIOLET, BROWN)
_SHAPES = "os^DvPX*"


class Mark(NamedTuple):
    """A mean with its interval."""

    label: str
    mean: float
    low: float
    high: float
    oracle: bool = False


def styles(labels: Sequence[str], oracles: Sequence[str] = (), first: Sequence[str] = ()) -> dict[str, Style]:
    """A colour and a shape a label, by alphabet: the same models look the same in the next report; oracles are grey.

    first : labels that choose before the others, where there are more than the 8 colours.
    """
    contenders = sorted(set(labels) - set(oracles), key=lambda label: (label not in first, label))
    found = {label: Style(_COLOURS[i % 8], _SHAPES[(i + i // 8) % 8]) for i, label in enumerate(contenders)}
    return found | {label: Style(MUTED, "D") for label in oracles}


# ---- models ----------------------------------------------------------------------------------------------------------


def intervals(marks: Sequence[Mark], looks: Mapping[str, Style], metric: str) -> str:
    """Mean and interval of each row, in the order given, the figure beside it."""
    from .leaderboard import figure

    def paint(ax: Any) -> None:
        best = next((m for m in marks if not m.oracle), marks[0])
        ax.axvline(best.mean, color=FAINT, lw=1, zorder=0)
        for y, mark in enumerate(marks):
            colour, shape = looks[mark.label]
            if np.isfinite([mark.low, mark.high]).all():
                ax.plot([mark.low, mark.high], [y, y], color=colour, lw=2.2, solid_capstyle="round", alpha=0.75)
            ax.plot(mark.mean, y, shape, color=colour, mfc=PAPER if mark.oracle else colour, ms=6, mew=1.5)
            ax.text(1.03, y, figure(mark.mean), transform=ax.get_yaxis_transform(), va="center")
        ax.set_yticks(range(len(marks)), [short(m.label) for m in marks])
        for tick, mark in zip(ax.get_yticklabels(), marks, strict=True):
            tick.set_color(MUTED if mark.oracle else INK)
        ax.set_ylim(len(marks) - 0.4, -0.6)
        ax.margins(x=0.08)
        ax.set_xlabel(metric)
        ticks(ax, "x", 4)

    return draw("intervals", paint, f"{metric} of each model with its interval", 0.75 + 0.29 * len(marks), left=False)


def reach(share: Mapping[str, Array], looks: Mapping[str, Style], what: str) -> str:
    """For r = 1..k the share of users whose one test item is among the first r: curves labelled at their ends."""

    def paint(ax: Any) -> None:
        k = max(len(s) for s in share.values())
        for label, y in share.items():
            ax.plot(np.arange(1, len(y) + 1), y, color=looks[label].colour, lw=1.8, marker=".", ms=5)
        ax.set_ylim(0, max(ax.get_ylim()[1], 1e-3))
        end_labels(ax, k, {label: y[-1] for label, y in share.items()}, looks)
        ax.set_xticks(np.unique(np.linspace(1, k, min(k, 10)).round().astype(int)))
        ax.set_xlabel("length of the list")
        ax.set_ylabel(what)
        percent(ax, "y")

    return draw("reach", paint, "Share of users whose test item is in a list of that length", 2.9)


def distribution(values: Mapping[str, Array], looks: Mapping[str, Style], metric: str, higher_is_better: bool) -> str:
    """The share of users who get at least (for errors: at most) so much; the higher a curve, the better."""

    def paint(ax: Any) -> None:
        grid = np.unique(np.concatenate(list(values.values())))
        if grid.size > 160:  # a curve needs no point a user, and the file stays small
            grid = np.linspace(grid[0], grid[-1], 160)
        if higher_is_better and grid[0] <= 0 and grid.size > 1:
            grid = grid[grid > 0]  # everybody has at least nothing: that point would flatten the rest
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
    share: bool = False,
    ceiling: tuple[str, float] | None = None,
) -> str:
    """One point a model, labelled where there is room.

    seconds : x is a time, on a logarithmic axis; share : y is shown in percent; ceiling : a level (label, y) that no
    model can pass.
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
        if share:
            percent(ax, "y")
        point_labels(ax, points, looks)

    return draw(name, paint, f"{y} against {x}", 2.9)


def by_group(groups: Sequence[str], means: Mapping[str, Array], looks: Mapping[str, Style], x: str, y: str) -> str:
    """One line a model over ordered groups of users, labelled at the end."""

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


def shares(
    rows: Mapping[str, Sequence[float]], parts: Sequence[str], colours: Sequence[str], name: str, gap: int = 0
) -> str:
    """Horizontal bars that add up to all; the parts are named above the first bar. gap : rows set apart at the top."""

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


# ---- data ------------------------------------------------------------------------------------------------------------


def concentration(counts: Array) -> str:
    """How much of all rows the most popular items hold; counts : rows of each item."""

    def paint(ax: Any) -> None:
        held = np.cumsum(np.sort(counts)[::-1]) / max(counts.sum(), 1)
        n = held.size
        at = np.unique(np.r_[0, np.geomspace(1, n, 120).round(), np.linspace(1, n, 80).round()]).astype(int)
        x, y = at / n, np.r_[0, held][at]
        ax.fill_between(x, y, color=ACCENT, alpha=0.14, lw=0)
        ax.plot(x, y, color=ACCENT, lw=1.8)
        ax.plot([0, 1], [0, 1], color=FAINT, lw=1, zorder=0)
        for part in (0.01, 0.1):
            if n * part >= 1:
                level = float(held[round(part * n) - 1])
                ax.plot(part, level, "o", color=ACCENT, ms=5)
                words = f"top {part:.0%}: {level:.0%} of the rows"
                ax.annotate(words, (part, level), (7, -5), textcoords="offset points", va="center")
        ax.set_xlim(0, 1)
        ax.set_ylim(0, 1)
        ax.set_xlabel("share of the items, most popular first")
        ax.set_ylabel("share of the rows")
        percent(ax, "x")
        percent(ax, "y")

    return draw("concentration", paint, "Share of the rows that the most popular items hold", 2.5)


def activity(counts: Array) -> str:
    """How many users have how many rows, on a logarithmic axis; counts : rows of each user."""

    def paint(ax: Any) -> None:
        some = counts[counts > 0]
        low, high = (int(some.min()), int(some.max())) if some.size else (1, 1)
        edges = np.unique(np.geomspace(low, high + 1, 26).round()) - 0.5  # no whole number of rows is cut in two
        ax.hist(some, bins=edges, color=ACCENT, alpha=0.85, ec=PAPER, lw=0.5)
        ax.set_xscale("log")
        middle = float(np.median(some)) if some.size else 1.0
        ax.axvline(middle, color=WARM, lw=1.3)
        side, shift = ("left", 4) if middle**2 <= low * high else ("right", -4)
        ax.annotate(
            f"median {middle:g}",
            (middle, 1),
            (shift, 0),
            xycoords=ax.get_xaxis_transform(),
            textcoords="offset points",
            ha=side,
            va="top",
            color=WARM,
        )
        ax.set_ylim(0, ax.get_ylim()[1] * 1.12)
        ax.set_xlabel("rows a user")
        ax.set_ylabel("users")
        log_ticks(ax, _count)
        ticks(ax, "y", 4, _count)

    return draw("activity", paint, "Users by number of rows", 2.5)


def ratings(values: Array) -> str:
    """How often each rating occurs."""

    def paint(ax: Any) -> None:
        distinct, n = np.unique(values, return_counts=True)
        if distinct.size <= 20:
            ax.bar(range(distinct.size), n / n.sum(), color=ACCENT, alpha=0.85, width=0.75)
            shown = list(range(0, distinct.size, 1 + distinct.size // 12))
            ax.set_xticks(shown, [f"{distinct[i]:g}" for i in shown])
        else:
            # Play counts and the like: the far tail is one bin, or the rest would be a line.
            end = np.quantile(values, 0.99)
            part, edges = np.histogram(np.minimum(values, end), bins=30)
            ax.bar(
                edges[:-1], part / values.size, np.diff(edges), align="edge", color=ACCENT, alpha=0.85, ec=PAPER, lw=0.5
            )
            ticks(ax, "x", 5)
        ax.set_xlabel("value")
        ax.set_ylabel("share of the rows")
        percent(ax, "y")

    return draw("ratings", paint, "Share of the rows by value", 2.5)


def over_time(train: Array, test: Array) -> str:
    """Rows over time, training and test apart; read as dates where they look like unix seconds."""

    def paint(ax: Any) -> None:
        low, high = float(min(train.min(), test.min())), float(max(train.max(), test.max()))
        edges = np.linspace(low, high if high > low else low + 1, 41)
        bars = [np.histogram(t, edges)[0] for t in (train, test)]
        width = edges[1] - edges[0]
        ax.bar(edges[:-1], bars[0], width, align="edge", color=ACCENT, alpha=0.55, lw=0, label="train")
        ax.bar(edges[:-1], bars[1], width, bottom=bars[0], align="edge", color=WARM, lw=0, label="test")
        ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2)
        ax.set_xlim(low, edges[-1])
        if low > 1e8 and high < 5e9:
            at = np.linspace(low, high, 4)
            form = "%Y" if high - low > 2.4e8 else "%b %Y" if high - low > 8e6 else "%d %b"
            ax.set_xticks(at, [f"{datetime.fromtimestamp(t, UTC):{form}}" for t in at])
            ax.get_xticklabels()[0].set_ha("left")
            ax.get_xticklabels()[-1].set_ha("right")
        else:
            ticks(ax, "x", 4, _count)
            ax.set_xlabel("time")
        ax.set_ylabel("rows")
        ticks(ax, "y", 4, _count)

    return draw("time", paint, "Rows over time", 2.5)


def _count(value: float) -> str:
    """12000 -> 12k: a tick has no room for more."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def _time(value: float) -> str:
    if value < 1:
        return f"{value * 1000:g} ms"
    return f"{value:g} s" if value < 1000 else f"{value / 1000:g} ks"
