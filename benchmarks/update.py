"""Updates against refits: NDCG@10 on the newest tenth of the rows after the newest 1, 5 and 20 % of the others came in.

By time: a model is fitted to the older rows, the newer ones come in by `update`, and the same model is fitted to all of
them. All are evaluated on the same test rows, with the same items excluded.

    python -m benchmarks.update --small     synthetic data and short fits, to see that it works
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import corank as cr

from .tools import Table, movielens

SHARES = (0.01, 0.05, 0.2)
TEST = 0.1
MODELS: Mapping[str, Mapping[str, Any]] = {
    "popularity": {},
    "item_knn": {},
    "ease": {},
    "sparse_ease": {},
    "wmf": {},
    "bpr": {},
    "sql_rank": {"feedback": "implicit"},
    "sasrec": {"epochs": 30},
}
METRIC = "ndcg@10"


def run() -> Table:
    return measured(*movielens())


def measured(name: str, data: cr.Dataset, models: Mapping[str, Mapping[str, Any]] = MODELS) -> Table:
    rows = []
    for model, params in models.items():
        cr.find(model)(**params).fit(data.take(data.time_order()[: len(data) // 50]))  # compiles the kernels
        for share in SHARES:
            rows.append([f"`{model}`", f"{share:.0%}", *_row(data, lambda m=model, p=params: cr.find(m)(**p), share)])
            print(" ".join(rows[-1]), file=sys.stderr, flush=True)
    header = ["model", "new rows", "no update", "update", "refit", "gain kept", "update, s", "refit, s", "ratio"]
    note = (
        f"{name}; {METRIC} of the users of the newest {TEST:.0%} of the rows, full ranking; gain kept: (update - no "
        "update) / (refit - no update), where the refit gains at least 0.001. Models of sequences read the new rows of "
        "a user as history without an update too: an update gives them the new items."
    )
    return Table("New rows: an update against a refit", header, rows, note)


def _row(data: cr.Dataset, make: Callable[[], cr.Model], share: float) -> Sequence[str]:
    """The cells of one model and share."""
    order = data.time_order()
    known, test = np.split(order, [int((1 - TEST) * order.size)])
    old, new = (data.take(rows) for rows in np.split(known, [int((1 - share) * known.size)]))
    split = cr.Split(data.take(known), data.take(order[:0]), data.take(test), "newest rows")
    before, _ = timed(lambda: make().fit(old))
    after, fast = timed(lambda: before.update(new))
    again, slow = timed(lambda: make().fit(split.train))
    none, update, refit = (cr.evaluate(model, split, [METRIC])[METRIC] for model in (before, after, again))
    kept = f"{(update - none) / (refit - none):.0%}" if refit - none > 0.001 else ""
    return [*(f"{v:.4f}" for v in (none, update, refit)), kept, f"{fast:.2f}", f"{slow:.2f}", f"{slow / fast:.0f}x"]


def timed(work: Callable[[], cr.Model]) -> tuple[cr.Model, float]:
    start = time.perf_counter()
    made = work()
    return made, time.perf_counter() - start


def main() -> None:
    if "--small" in sys.argv:
        small = {"wmf": {"dim": 16, "epochs": 3}, "bpr": {"dim": 16, "epochs": 5}, "sasrec": {"dim": 16, "epochs": 2}}
        data = cr.synthetic.realistic(users=400, items=200, rows=8_000).data
        print(measured("synthetic", data, {"popularity": {}, "item_knn": {}, "ease": {}, **small}))
    else:
        print(run())


if __name__ == "__main__":
    main()
