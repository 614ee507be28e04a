"""NDCG@10 against the similarity within lists, for the settings of `diversify`: the picture of docs/diversity.md.

python -m benchmarks.diversity_picture      writes docs/results/diversity.svg and prints its numbers; under a minute
"""

from __future__ import annotations

import os
from typing import Any

import corank as cr
from corank.answering.diversity import list_similarity, recommend_diverse
from corank.report import palette, svg
from corank.system.atomic import write_text

from .tools import ROOT

DIALS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
RULES = {"by the item vectors": None, "by genre": "genres"}


def measured() -> dict[str, list[tuple[float, float]]]:
    """rule -> (similarity by genre of two films of a list, NDCG@10 on the validation rows) per dial."""
    root = os.environ.get("CORANK_DATA") or ROOT.parent / "shared" / "data"
    split = cr.holdout(cr.datasets.load("ml-1m", root=root), seed=0)
    model = cr.WMF().fit(split.train)
    users = split.valid.users.ids[sorted(set(split.valid.user.tolist()))]
    found: dict[str, list[tuple[float, float]]] = {}
    for rule, by in RULES.items():
        for dial in DIALS:
            lists = recommend_diverse(model, dial, by=by, users=users)
            ndcg = cr.evaluate(lists, split, ["ndcg@10"], part="valid", bootstrap=0)["ndcg@10"]
            found.setdefault(rule, []).append((list_similarity(lists, model, "genres"), float(ndcg)))
            print(f"{rule}, dial {dial}: similarity {found[rule][-1][0]:.3f}, NDCG@10 {ndcg:.4f}", flush=True)
    return found


def draw(found: dict[str, list[tuple[float, float]]]) -> str:
    def paint(ax: Any) -> None:
        for (rule, points), colour, marker in zip(found.items(), (palette.BLUE, palette.BROWN), "os", strict=True):
            ax.plot(*zip(*points, strict=True), color=colour, marker=marker, markersize=4, lw=1.2, label=rule)
            for dial, (x, y) in zip(DIALS, points, strict=True):
                if dial in (0.0, 0.3, 0.6, 0.9) and (dial or not rule.endswith("genre")):
                    ax.annotate(f"{dial:g}", (x, y), (4, -10), textcoords="offset points", fontsize=7, color=colour)
        ax.margins(y=0.15)
        ax.set_xlabel("similarity of two films of a list (shared genres; left: more diverse)")
        ax.set_ylabel("NDCG@10")
        ax.legend(frameon=False, loc="lower right")

    return svg.draw("diversity", paint, "NDCG@10 and similarity within lists for dials from 0 to 0.9", 2.6)


if __name__ == "__main__":
    write_text(ROOT / "docs" / "results" / "diversity.svg", draw(measured()) + "\n")
