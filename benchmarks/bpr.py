"""One epoch of BPR against implicit's: same rows, dimensions, steps, regularisation, epochs and threads; then AUC.

Two differences remain. implicit draws rows with replacement and negatives in proportion to popularity, and throws a
triple away where the negative is taken; ours goes through every row once and draws uniform negatives until one is free,
which is what AUC asks for. And implicit's threads race for the vectors, while ours gives the same factors for any
number of threads.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from implicit.cpu.bpr import BayesianPersonalizedRanking

import corank as cr

from .tools import Table, movielens

EPOCHS, REPEATS, REG = 10, 3, 0.01


def run() -> Table:
    name, data = movielens()
    split = cr.holdout(data, test=0.1, valid=0.0, by="user")
    matrix = sp.csr_matrix(split.train.csr().scipy())
    matrix.data[:] = 1
    rows = []
    for dim in (64, 128):
        for lr in (0.01, 0.05):
            for threads in (1, 2):
                ours, theirs, mine, other = _measure(split, matrix, dim, lr, threads)
                rows.append(
                    [
                        name,
                        str(dim),
                        f"{lr:g}",
                        str(threads),
                        f"{ours:.3f}",
                        f"{theirs:.3f}",
                        f"**{theirs / ours:.2f}**",
                        f"{mine:.4f}",
                        f"{other:.4f}",
                    ]
                )
    header = ["data", "dim", "lr", "threads", "corank s/epoch", "implicit s/epoch", "ratio", "AUC", "implicit AUC"]
    return Table(
        "BPR epoch",
        header,
        rows,
        f"Shortest of {REPEATS} runs of {EPOCHS} epochs, with the objective that corank reports; AUC of the held-out "
        "tenth of each user's rows in a full ranking. implicit draws negatives by popularity, corank uniformly.",
    )


def _measure(split: cr.Split, matrix: Any, dim: int, lr: float, threads: int) -> tuple[float, float, float, float]:
    """(our seconds an epoch, theirs, our AUC, theirs)."""
    cr.set_threads(threads)
    ours, theirs = float("inf"), float("inf")
    for _ in range(REPEATS):
        model = cr.BPR(dim=dim, lr=lr, decay=1.0, reg=REG, epochs=EPOCHS).fit(split.train)
        ours = min(ours, model.history_[-1]["seconds"] / EPOCHS)
        peer = BayesianPersonalizedRanking(
            factors=dim, learning_rate=lr, regularization=REG, iterations=EPOCHS, num_threads=threads, random_state=0
        )
        start = time.perf_counter()
        peer.fit(matrix, show_progress=False)
        theirs = min(theirs, (time.perf_counter() - start) / EPOCHS)
    cr.set_threads(None)
    mine = _auc(model, split)
    # implicit keeps an item's bias as one more column, against a column of ones.
    model.user_factors_, model.item_factors_ = np.array(peer.user_factors), np.array(peer.item_factors)
    model.item_bias_ = np.zeros(len(model.item_factors_), np.float32)
    return ours, theirs, mine, _auc(model, split)


def _auc(model: cr.Model, split: cr.Split) -> float:
    return float(cr.evaluate(model, split, ["auc"], protocol="full", bootstrap=0)["auc"])
