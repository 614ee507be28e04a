"""The picture of docs/sql-rank.md: a small rating matrix and some of the orders that stochastic queuing really draws.

python -m benchmarks.queue_picture          writes docs/results/sql-rank-queue.svg
"""

from __future__ import annotations

from typing import Any

import numpy as np

import corank as cr
from corank.report import palette, svg
from corank.system.atomic import write_text

from .tools import ROOT

RATINGS = ((5, 5, 3, 0, 3), (0, 4, 4, 4, 1), (2, 0, 5, 2, 2))  # 0: not rated
USERS, ITEMS = ("ann", "bob", "cleo"), "ABCDE"
SEEDS = (1, 2, 3)
SHADES = {5: "#0b4f7a", 4: "#2f7db0", 3: "#5aa2cf", 2: "#8fc0df", 1: "#c4dcec"}


def orders() -> list[list[list[int]]]:
    """[draw][user] the items of the user in the order of the queue."""
    user, item = np.nonzero(RATINGS)
    rows = cr.from_arrays(user=user, item=item, value=np.array(RATINGS)[user, item]).csr()
    model = cr.SQLRank(feedback="explicit")
    model.feedback_ = "explicit"
    queues = model._queues(rows, np.zeros(rows.rows, np.int64), np.arange(rows.rows))
    drawn = []
    for seed in SEEDS:
        queues.resample(seed)
        at = [slice(*queues.indptr[u : u + 2]) for u in range(rows.rows)]
        drawn.append([queues.index[each][queues.order[each]].tolist() for each in at])
    return drawn


def draw() -> str:
    def paint(ax: Any) -> None:
        from matplotlib.patches import Rectangle

        def cell(x: float, y: float, text: str, rating: int) -> None:
            face = SHADES.get(rating, palette.PAPER)
            ax.add_patch(Rectangle((x, y), 0.92, 0.8, facecolor=face, edgecolor=palette.FAINT, lw=0.5))
            dark = palette.INK if rating in (0, 1, 2) else "#ffffff"
            ax.text(x + 0.46, y + 0.38, text, ha="center", va="center", color=dark, fontsize=8)

        ax.text(2.46, 1.5, "ratings", ha="center", color=palette.MUTED)
        for u, name in enumerate(USERS):
            ax.text(-0.25, -u + 0.38, name, ha="right", va="center", color=palette.MUTED)
            for i in range(len(ITEMS)):
                cell(i, -u, str(RATINGS[u][i] or ""), RATINGS[u][i])
        for i, name in enumerate(ITEMS):
            ax.text(i + 0.46, 0.92, name, ha="center", color=palette.MUTED)
        for n, lists in enumerate(orders()):
            left = 6.2 + 4.9 * n
            ax.text(left + 2, 1.5, f"epoch {n + 1}", ha="center", color=palette.MUTED)
            for u, items in enumerate(lists):
                for place, i in enumerate(items):
                    cell(left + place, -u, ITEMS[i], RATINGS[u][i])
        ax.set_xlim(-1.4, 6.2 + 4.9 * len(SEEDS) - 0.7)
        ax.set_ylim(-2.1, 1.9)
        ax.axis("off")

    return svg.draw("queue", paint, "Ratings, and the order of each user's items in three epochs", 1.4)


if __name__ == "__main__":
    write_text(ROOT / "docs" / "results" / "sql-rank-queue.svg", draw() + "\n")
