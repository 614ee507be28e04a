"""The pictures of docs/results/sse-theory.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import corank as cr
from corank.report import palette, svg
from corank.system.atomic import write_text

SHOWN = 250  # rows per panel
MF = {"dim": 50, "reg": 0.02, "epochs": 40}
SASREC = {"dim": 50, "max_len": 50, "epochs": 30}
# What is drawn: the name of a row of panels, then the settings of each panel.
VARIANTS: dict[str, dict[str, float]] = {
    "no SSE": {},
    "SSE-SE": {"sse_user": 0.1, "sse_item": 0.1},
    "SSE-Graph": {"sse_user": 0.1, "sse_item": 0.1, "rho_user": 500.0, "rho_item": 200.0},
}


def ratios(probabilities: Sequence[float], found: dict[str, np.ndarray]) -> str:
    """The mean ratio by probability, with the middle half of the draws."""

    def paint(ax: Any) -> None:
        ax.axhline(1, color=palette.FAINT, lw=1, zorder=0)
        looks = palette.styles(list(found))
        for name, values in found.items():
            look = looks[name]
            low, high = np.quantile(values, (0.25, 0.75), axis=1)
            if values.shape[1] > 20:
                ax.fill_between(probabilities, low, high, color=look.colour, alpha=0.12, lw=0)
            ax.plot(probabilities, values.mean(1), color=look.colour, marker=look.shape, ms=4, lw=1.6, label=name)
        ax.set_ylim(bottom=0)
        ax.set_xlabel("SSE probability of users and of items")
        ax.set_ylabel("ratio to p = 0")
        ax.legend(loc="best")

    return svg.draw("sse-rademacher", paint, "Signed sums of losses with SSE over those without", 2.8)


def write_embeddings(root: Path, to: Path) -> list[list[str]]:
    """Draw the panels; the rows of the table beside them."""
    data = cr.datasets.load("ml-1m-graphs", root=root)
    sequences = cr.datasets.load("ml-100k", root=root)
    panels: dict[str, dict[str, np.ndarray]] = {"MF, users": {}, "MF, items": {}, "SASRec, items": {}}
    count = {"MF, users": np.bincount(data.user), "MF, items": np.bincount(data.item, minlength=len(data.items))}
    count["SASRec, items"] = np.bincount(sequences.item, minlength=len(sequences.items))
    for name, options in VARIANTS.items():
        model = cr.MF(**MF, **options).fit(data)
        panels["MF, users"][name] = model.user_factors_
        panels["MF, items"][name] = model.item_factors_
        if "rho_item" not in options:
            sse = {"sse_item": 0.1, "sse_target": 0.1} if options else {"sse_item": 0.0, "sse_target": 0.0}
            fitted = cr.SASRec(**SASREC, **sse).fit(sequences)
            _, views = fitted._views()
            panels["SASRec, items"][name] = views["item"].numpy()
    write_text(to, panel_picture(panels, count) + "\n")
    return [row for kind, tables in panels.items() for row in spread(kind, tables, count[kind])]


def spread(kind: str, tables: dict[str, np.ndarray], count: np.ndarray) -> list[list[str]]:
    """How far the vectors are apart: total variance, of the rarer and of the more frequent half, and of what rank."""
    known = count > 0
    frequent = count > np.median(count[known])
    rows = []
    for name, table in tables.items():
        variance = [float(table[rows_].var(axis=0).sum()) for rows_ in (known, known & ~frequent, frequent)]
        values = np.linalg.svd(table[known] - table[known].mean(0), compute_uv=False) ** 2
        rows.append([kind, name, *(f"{one:.3f}" for one in variance), f"{100 * values[:3].sum() / values.sum():.0f} %"])
    return rows


def panel_picture(panels: dict[str, dict[str, np.ndarray]], count: dict[str, np.ndarray]) -> str:
    """A row of panels per table; axes are the first two principal components of each panel."""

    def paint(ax: Any) -> None:
        for down, (kind, tables) in enumerate(panels.items()):
            known = np.flatnonzero(count[kind])
            shown = np.random.default_rng(0).choice(known, min(SHOWN, len(known)), replace=False)
            tier = np.searchsorted(np.quantile(count[kind][known], (1 / 3, 2 / 3)), count[kind][shown])
            flat = {name: components(table[known], table[shown]) for name, table in tables.items()}
            scale = max(np.quantile(np.abs(xy), 0.995) for xy in flat.values())
            ax.text(-0.62, -1.15 * down, kind, rotation=90, va="center", ha="center", color=palette.MUTED)
            for across, (name, xy) in enumerate(flat.items()):
                x, y = (np.clip(xy / scale, -1, 1) * 0.47 + (1.1 * across, -1.15 * down)).T
                for level, colour in enumerate(reversed(palette.TIERS)):
                    ax.plot(x[tier == level], y[tier == level], "o", ms=1.6, mew=0, color=colour)
                ax.add_patch(_frame(1.1 * across, -1.15 * down))
                if down == 0:
                    ax.text(1.1 * across, 0.56, name, ha="center", color=palette.MUTED)
        ax.set_xlim(-0.75, 2.75)
        ax.set_ylim(-1.15 * len(panels) + 0.6, 0.7)
        ax.set_aspect("equal")
        ax.axis("off")

    return svg.draw("sse-embeddings", paint, "Embeddings without SSE, with SSE-SE and with SSE-Graph", 4.5)


def components(table: np.ndarray, of: np.ndarray) -> np.ndarray:
    """The first two principal components of a table, of the rows `of`: float[rows, 2]."""
    mean = table.mean(axis=0)
    _, _, axes = np.linalg.svd(table - mean, full_matrices=False)
    return (of - mean) @ axes[:2].T


def _frame(x: float, y: float) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, edgecolor=palette.FAINT, lw=0.7)
