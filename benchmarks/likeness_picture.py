"""The picture of docs/grmf.md: how alike two users are taken to be before anybody has rated, by the steps between them.

The graph is that of the dissertation's simulation, smaller: 3,000 users, about ten friends each. The truth is what the
simulation does to its users; the other lines are the priors of `grmf`, from the operators that it really uses.

python -m benchmarks.likeness_picture       writes docs/results/likeness.svg
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.csgraph import shortest_path

from corank import synthetic
from corank.graph import side_graph
from corank.graph.lazy_walk import shells
from corank.models._laplacian import Laplacian
from corank.report.model_charts import by_group
from corank.report.palette import styles
from corank.system.atomic import write_text

from .tools import ROOT

USERS, FRIENDS, FARTHEST = 3_000, 10, 4
BITS: dict[str, Any] = {"capacity": 50_000, "error": 0.5}
WEIGHT, WALK, STEPS = 10.0, 0.6, 3  # of the shared part beside one's own; of the simulation
TIE, LIGHT = 2.0, 0.01  # reg_graph of ties where reg is 1, and what a bit weighs: those of the 2 % page


def draw() -> str:
    graph = synthetic.simulation(users=USERS, items=20, rank=2, edge=FRIENDS / USERS).split.train.user_graph
    A = graph.scipy().toarray()
    steps = shortest_path(A, unweighted=True)
    walk = WALK * A / np.maximum(A.sum(axis=1), 1)[:, None] + (1 - WALK) * np.eye(USERS)
    moved = np.linalg.matrix_power(np.where(A.any(axis=1)[:, None], walk, np.eye(USERS)), STEPS)
    priors = {"truth": moved @ moved.T}
    for kind in ("g", "dna-2"):
        side = side_graph(graph, kind, weights=() if kind == "g" else (LIGHT,), **BITS)
        pull = np.zeros((USERS, USERS), np.float32)
        Laplacian(side, USERS).add(TIE, np.eye(USERS, dtype=np.float32), USERS, pull)
        priors[f"ties, {kind.upper()}"] = np.linalg.inv(np.eye(USERS) + pull)
    for kind in ("g", "dna-2"):
        S = shells(graph, kind, walk=WALK, **BITS).scipy()
        priors[f"shared, {kind.upper()}"] = np.eye(USERS) + WEIGHT * (S @ S.T).toarray()
    apart = range(FARTHEST, 0, -1)  # near ones last, where the lines are labelled
    lines = {}
    for name, prior in priors.items():
        scale = np.sqrt(np.diag(prior))
        alike = prior / scale / scale[:, None]
        lines[name] = np.array([alike[steps == s].mean() for s in apart])
    looks = styles(list(lines))
    groups = [f"{s} step{'s' if s > 1 else ''}" for s in apart]
    return by_group(groups, lines, looks, "how far apart two users are", "correlation")


if __name__ == "__main__":
    write_text(ROOT / "docs" / "results" / "likeness.svg", draw() + "\n")
