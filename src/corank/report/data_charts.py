"""Charts of a dataset: each function takes plain arrays and returns the text of one `<svg>` element."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np

from ..data import Array
from .palette import ACCENT, FAINT, PAPER, WARM
from .svg import draw, log_ticks, percent, ticks


def concentration(counts: Array) -> str:
    """The share of the interactions that the most popular items account for; counts : interactions per item."""

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
                words = f"top {part:.0%}: {level:.0%} of the interactions"
                ax.annotate(words, (part, level), (7, -5), textcoords="offset points", va="center")
        ax.set_xlim(0, 1)
        ax.set_ylim(0, 1)
        ax.set_xlabel("share of the items, most popular first")
        ax.set_ylabel("share of the interactions")
        percent(ax, "x")
        percent(ax, "y")

    return draw("concentration", paint, "Share of the interactions by popularity of the items", 2.5)


def activity(counts: Array) -> str:
    """Histogram of the users by number of interactions, on a logarithmic axis; counts : interactions per user."""

    def paint(ax: Any) -> None:
        some = counts[counts > 0]
        low, high = (int(some.min()), int(some.max())) if some.size else (1, 1)
        edges = (
            np.unique(np.geomspace(low, high + 1, 26).round()) - 0.5
        )  # between whole numbers, so that each count is in one bin
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
        ax.set_xlabel("interactions per user")
        ax.set_ylabel("users")
        log_ticks(ax, _count)
        ticks(ax, "y", 4, _count)

    return draw("activity", paint, "Users by number of interactions", 2.5)


def ratings(values: Array) -> str:
    """Distribution of the ratings."""

    def paint(ax: Any) -> None:
        distinct, n = np.unique(values, return_counts=True)
        if distinct.size <= 20:
            ax.bar(range(distinct.size), n / n.sum(), color=ACCENT, alpha=0.85, width=0.75)
            shown = list(range(0, distinct.size, 1 + distinct.size // 12))
            ax.set_xticks(shown, [f"{distinct[i]:g}" for i in shown])
        else:
            # Play counts and the like: the far tail shares one bin, or the other bars would be too thin.
            end = np.quantile(values, 0.99)
            part, edges = np.histogram(np.minimum(values, end), bins=30)
            ax.bar(
                edges[:-1], part / values.size, np.diff(edges), align="edge", color=ACCENT, alpha=0.85, ec=PAPER, lw=0.5
            )
            ticks(ax, "x", 5)
        ax.set_xlabel("value")
        ax.set_ylabel("share of the interactions")
        percent(ax, "y")

    return draw("ratings", paint, "Share of the interactions by value", 2.5)


def over_time(train: Array, test: Array) -> str:
    """Training and test interactions over time; shown as dates where the times look like unix seconds."""

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
        ax.set_ylabel("interactions")
        ticks(ax, "y", 4, _count)

    return draw("time", paint, "Interactions over time", 2.5)


def _count(value: float) -> str:
    """12000 -> 12k: a tick has no room for more."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"
