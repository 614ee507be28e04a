"""What stochastic shared embeddings cost: an epoch with them over an epoch without, all else being equal."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

import corank as cr

from .tools import ROOT, Table, movielens

REPEATS = 3
EPOCHS = {False: 8, True: 2}  # a fit, by whether order matters: an epoch of a transformer takes long enough
SETTINGS = (
    (cr.MF, {"dim": 64}, {"sse_user": 0.01, "sse_item": 0.01}),
    (cr.BPR, {"dim": 64}, {"sse_user": 0.1, "sse_item": 0.01}),
    (cr.SASRec, {"dim": 50, "loss": "bce", "negatives": 1}, {"sse_item": 0.1, "sse_target": 0.1}),
    (cr.SSEPT, {"dim": 50, "dim_user": 50, "loss": "bce", "negatives": 1}, {"sse_user": 0.9, "sse_item": 0.1}),
)


def run() -> Table:
    name, ratings = movielens()
    root = os.environ.get("CORANK_DATA") or ROOT.parent / "shared" / "data"
    try:
        sequences, called = cr.datasets.load("games", root=root), "games"
    except cr.CorankError:
        sequences, called = ratings, name
    rows = []
    for cls, plain, sse in SETTINGS:
        ordered = cls.order_matters
        data, of = (sequences, called) if ordered else (ratings, name)
        more = {"max_len": 50} if ordered else {}
        for threads in (1,) if ordered else (1, 2):
            cr.set_threads(threads)
            off = {key: 0.0 for key in cls().params() if key in ("sse_user", "sse_item", "sse_target")}
            settings = [{**plain, **more, **off}, {**plain, **more, **off, **sse}]
            without, with_it = _epochs(cls, settings, data)
            rows.append(
                [cls.__name__, of, str(threads), f"{without:.3f}", f"{with_it:.3f}", f"**{with_it / without:.3f}**"]
            )
    cr.set_threads(None)
    return Table(
        "Cost of stochastic shared embeddings",
        ["model", "data", "threads", "s/epoch without", "s/epoch with", "ratio"],
        rows,
        f"Shortest epoch of {REPEATS} fits each, in turns; the first epoch of a fit, which prepares, does not count.",
    )


def _epochs(cls: type[cr.Model], settings: list[dict[str, Any]], data: cr.Dataset) -> list[float]:
    """The shortest epoch of each setting but for the first ones."""
    best = [float("inf")] * len(settings)
    for _ in range(REPEATS):
        for at, setting in enumerate(settings):
            history = cls(**setting, epochs=EPOCHS[cls.order_matters]).fit(data).history_
            best[at] = min(best[at], *np.diff([entry["seconds"] for entry in history]))
    return best
