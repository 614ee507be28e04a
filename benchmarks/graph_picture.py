"""The picture of docs/graph-dna.md: how filters spread on a small graph, with the bits that `encode` really makes.

python -m benchmarks.graph_picture          writes docs/results/graph-dna.svg
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corank.data.edges import from_edges
from corank.graph import Filter, encode
from corank.report import palette, svg
from corank.system.atomic import write_text

from .tools import ROOT

CAPACITY, ERROR, SEED, DEPTH = 3, 0.25, 3, 3
NEW = "#e69f00"
CELL = 0.075


def draw() -> str:
    """A path of five nodes and a node alone; a row a round, the two slices of each filter below its node."""
    graph, nodes = from_edges(list("ABCDF"), list("BCDEF"))
    shape = Filter.of(CAPACITY, ERROR)
    bits = [np.zeros((len(nodes), shape.bits), np.bool_) for _ in range(DEPTH + 1)]
    for node, places in enumerate(shape.places(np.arange(len(nodes)), SEED)):
        bits[0][node, places] = True
    for depth in range(1, DEPTH + 1):
        dna = encode(graph, depth=depth, capacity=CAPACITY, error=ERROR, seed=SEED)
        bits[depth] = dna.bits().scipy().toarray() > 0

    def paint(ax: Any) -> None:
        from matplotlib.patches import Rectangle

        half = shape.width * CELL / 2
        for depth in range(DEPTH + 1):
            top = -1.0 * depth
            ax.text(
                -0.72, top, "start" if depth == 0 else f"round {depth}", ha="right", va="center", color=palette.MUTED
            )
            ax.plot([0, 4], [top, top], color=palette.MUTED, lw=1, zorder=0)
            for i, name in enumerate(nodes.ids):
                near = [str(n) for j, n in enumerate(nodes.ids) if _within(i, j, depth)]
                ax.scatter(i, top, s=130, color=palette.PAPER, edgecolor=palette.INK, lw=1, zorder=1)
                ax.text(i, top - 0.01, name, ha="center", va="center", fontsize=8)
                ax.text(i, top + 0.26, "".join(near), ha="center", va="center", color=palette.MUTED, fontsize=7)
                for bit in range(shape.bits):
                    place = (i - half + bit % shape.width * CELL, top - 0.36 - bit // shape.width * 0.13)
                    old = depth > 0 and bits[depth - 1][i, bit]
                    colour = palette.BLUE if old or (depth == 0 and bits[0][i, bit]) else NEW
                    face = colour if bits[depth][i, bit] else palette.PAPER
                    ax.add_patch(Rectangle(place, CELL, 0.12, facecolor=face, edgecolor=palette.FAINT, lw=0.5))
        ax.set_xlim(-1.3, 5.5)
        ax.set_ylim(-1.0 * DEPTH - 0.6, 0.4)
        ax.axis("off")

    return svg.draw("graph-dna", paint, "Filters of six nodes after each of three rounds", 3.9)


def _within(i: int, j: int, depth: int) -> bool:
    """The path A to E and F alone: whether j is at most `depth` steps from i."""
    return i == j or (abs(i - j) <= depth and max(i, j) < 5)


if __name__ == "__main__":
    write_text(ROOT / "docs" / "results" / "graph-dna.svg", draw() + "\n")
