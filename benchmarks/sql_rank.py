"""One epoch of SQL-Rank beside one of BPR that looks at as many sampled items, on one-class data with lists of 50.

SQL-Rank appends `rho` random items to each list; BPR draws one for each row, so `rho` of its epochs see as many.
"""

from __future__ import annotations

import corank as cr

from .tools import Table, movielens

EPOCHS, REPEATS = 10, 3


def run() -> Table:
    name, data = movielens()
    train = cr.fixed_per_user(data, train=50).train
    rows = []
    for dim in (64, 100):
        for threads in (1, 2):
            cr.set_threads(threads)
            times = {"sql": float("inf"), "authors": float("inf"), "bpr": float("inf")}
            for _ in range(REPEATS):
                sql = {"dim": dim, "rho": 3.0, "feedback": "implicit", "epochs": EPOCHS}
                for key, model in (
                    ("sql", cr.SQLRank(**sql)),
                    ("authors", cr.SQLRank(**sql, solver="authors")),
                    ("bpr", cr.BPR(dim=dim, epochs=3 * EPOCHS)),
                ):
                    model.fit(train)
                    times[key] = min(times[key], model.history_[-1]["seconds"] / EPOCHS)
            shown = [f"{times[k]:.3f}" for k in ("sql", "authors", "bpr")]
            ratios = [f"**{times['bpr'] / times[k]:.2f}**" for k in ("sql", "authors")]
            rows.append([name, str(dim), str(threads), *shown, *ratios])
    cr.set_threads(None)
    header = ["data", "dim", "threads", "newton s", "authors s", "3 BPR epochs s", "newton ratio", "authors ratio"]
    note = f"50 rows a user, three random items for each; shortest of {REPEATS} runs of {EPOCHS} epochs."
    return Table("SQL-Rank epoch beside BPR", header, rows, note)
