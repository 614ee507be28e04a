"""Top-10 of all users with seen items filtered, against implicit's `recommend` at its best number of threads; same
factors.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from implicit.cpu.als import AlternatingLeastSquares
from threadpoolctl import threadpool_limits

import corank as cr

from .tools import Table, best_of, movielens


def run() -> Table:
    name, data = movielens()
    matrix = sp.csr_matrix(data.csr().scipy())
    rows = []
    for dim in (64, 128):
        model = cr.WMF(dim=dim, epochs=3).fit(data)
        peer = AlternatingLeastSquares(factors=dim, iterations=1)
        peer.user_factors, peer.item_factors = model.user_factors_, model.item_factors_
        everyone = np.arange(matrix.shape[0])

        def theirs(threads: int, peer: AlternatingLeastSquares = peer, everyone: np.ndarray = everyone) -> np.ndarray:
            peer.num_threads = threads
            with threadpool_limits(1):
                return peer.recommend(everyone, matrix, N=10, filter_already_liked_items=True)[0]

        def ours(threads: int, model: cr.Model = model) -> np.ndarray:
            cr.set_threads(threads)
            with threadpool_limits(1):
                return model.recommend(k=10).items

        same = float(np.mean(ours(1) == theirs(1)))
        work = {f"ours {t}": lambda t=t: ours(t) for t in (1, 2)} | {
            f"theirs {t}": lambda t=t: theirs(t) for t in (1, 2)
        }
        best = {k: everyone.size / s for k, s in best_of(work, 7).items()}
        cr.set_threads(None)
        peer_best = max(best["theirs 1"], best["theirs 2"])
        ratio = max(best["ours 1"], best["ours 2"]) / peer_best
        rows.append([name, str(dim), *(f"{v:,.0f}" for v in best.values()), f"**{ratio:.1f}**", f"{same:.1%}"])
    header = [
        "data",
        "dim",
        "corank 1 thread",
        "corank 2",
        "implicit 1",
        "implicit 2",
        "ratio best / best",
        "same items",
    ]
    return Table("Top-10 of all users, users per second", header, rows, "Shortest of 7 runs in turns.")
