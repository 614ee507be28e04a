"""Full-ranking evaluation of all users: ranks of the held-out items among the whole catalogue, bootstrap intervals
included.
"""

from __future__ import annotations

import corank as cr

from .tools import Table, best_of, movielens


def run() -> Table:
    name, data = movielens()
    rows = []
    for split in (cr.leave_last_out(data), cr.holdout(data, by="user")):
        model = cr.WMF(dim=64, epochs=2).fit(split.train)
        work = {
            "ndcg@10, recall@10": lambda s=split, m=model: cr.evaluate(m, s, ["ndcg@10", "recall@10"]),
            "the default metrics": lambda s=split, m=model: cr.evaluate(m, s),
        }
        for what, seconds in best_of(work, 5).items():
            rows.append([name, split.name, f"{len(split.users):,}", f"{len(split.test):,}", what, f"{seconds:.2f}"])
    header = ["data", "split", "users", "test rows", "metrics", "seconds"]
    return Table("Full-ranking evaluation, dim 64, 2 threads", header, rows, "Shortest of 5 runs.")
