"""Charts of an explanation: each function takes an `Explanation` and returns the text of one `<svg>` element."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from ..answering.explain import Explanation
from .palette import ACCENT, INK, PAPER, WARM
from .svg import draw, percent, short

LONGEST = 24  # positions of an attention map that can be read


def reasons(found: Explanation, items: int = 5, most: int = 4) -> str:
    """Bars of the shares of the history items that speak most for (or against) each of the first items."""
    groups = [sorted(one, key=lambda pair: -abs(pair[1]))[:most] for one in found.shares()[:items]]

    def paint(ax: Any) -> None:
        y, places, names, heads = 0.0, [], [], []
        for item, group in zip(found.items, groups, strict=False):
            heads.append((y, _name(found, item, 44)))
            y += 1
            for because, share in group:
                ax.barh(y, share, color=ACCENT if share >= 0 else WARM, height=0.7, ec=PAPER, lw=0.5)
                places.append(y)
                names.append(_name(found, because, 26))
                y += 1
            y += 0.5
        ax.set_yticks(places, names)
        ax.set_ylim(y - 0.6, -0.7)
        shares = [share for group in groups for _, share in group]
        ax.set_xlim(min(0.0, *shares, 0.0) * 1.05, max(0.0, *shares, 0.01) * 1.05)
        for place, text in heads:
            ax.annotate(
                text,
                (0, place),
                xycoords=ax.get_yaxis_transform(),
                va="center",
                color=INK,
                fontweight="bold",
                annotation_clip=False,
            )
        ax.axvline(0, color=INK, lw=0.7)
        ax.set_xlabel(f"share of the reasons ({found.kind})")
        percent(ax, "x")

    rows = sum(len(group) + 1.5 for group in groups)
    return draw(
        "reasons", paint, "Items of the history that speak for each recommendation", 0.5 + 0.19 * rows, left=False
    )


def attention(found: Explanation) -> str:
    """A map of the attention weights: how much each position (row) reads of itself and the items before it."""
    if found.attention is None:
        raise ValueError("this explanation has no attention weights")
    n = min(LONGEST, len(found.history))
    weights = np.where(np.tri(n, dtype=bool), found.attention[-n:, -n:], np.nan)
    names = [f"{_name(found, item, 22)}  {at}" for at, item in enumerate(found.history[-n:], 1)]

    def paint(ax: Any) -> None:
        ax.pcolormesh(np.arange(n + 1), np.arange(n + 1), weights, cmap="Blues", vmin=0, edgecolor=PAPER, linewidth=0.4)
        ax.set_yticks(np.arange(n) + 0.5, names)
        shown = np.arange(0, n, 1 + n // 13)
        ax.set_xticks(shown + 0.5, [str(at + 1) for at in shown])
        ax.set_xlim(0, n)
        ax.set_ylim(n, 0)
        ax.tick_params(length=0)
        ax.spines["bottom"].set_visible(False)
        ax.set_xlabel("attention to item number")

    return draw("attention", paint, "Attention weights between the items of the history", 0.6 + 0.2 * n, left=False)


def _name(found: Explanation, item: Hashable, width: int) -> str:
    return short(found.titles.get(item) or str(item), width)
