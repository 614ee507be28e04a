"""The rules that `benchmarks.defaults` compares: per task and model, the default first, then settings beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Rules = Mapping[str, Sequence[Mapping[str, Any]]]

IMPLICIT: Rules = {
    "wmf": (
        {},
        {"rho": 0.3, "reg": 0.005, "dim": 64},  # the default before there were rules
        {"dim": 64},
        {"dim": 256},
        {"rho_scale": 30.0},
        {"reg_scale": 0.06},
        {"reg_scale": 0.25},
    ),
    "implicit ALS": ({},),
    "bpr": (
        {},
        {"lr": 0.2, "epochs": 40, "negatives": 3},  # the default before
        {"dim": 64, "lr": 0.1, "epochs": 30, "negatives": 1, "reg": 0.01},  # and the one before that
        {"lr": 0.4},
        {"reg": 0.01},
        {"reg": 0.04},
    ),
    "implicit BPR": ({},),
    "item_knn": (
        {},
        {"neighbors": 100, "weighting": "none", "shrink": 10.0},  # the default before
        {"neighbors": 500},
        {"shrink": 10.0},
        {"shrink": 50.0},
    ),
    "ease": ({}, {"reg": 50.0}, {"reg": 1000.0}),
    "sparse_ease": ({}, {"reg": 50.0}, {"reg": 500.0}, {"neighbors": 50}, {"neighbors": 400}, {"rounds": 4}),
    "sql_rank": ({}, {"reg_scale": 0.4}, {"epochs": 40}),
    "grwmf": (
        {},
        {"reg_graph": 0.0},  # wmf
        {"form": "ties"},  # the default before: Graph DNA of depth 2, as published
        {"reg_graph": 1.0},
    ),
}
_SCALES = ({}, {"reg_scale": 0.3}, {"reg_scale": 3.0})
EXPLICIT: Rules = {
    "als": ({}, {"reg": 0.04}, {"reg": 0.3}),
    "mf": ({}, {"reg": 0.03}, {"reg": 0.15}),
    "primal_cr": _SCALES,
    "list_mf": _SCALES,
    "cofirank": _SCALES,
    "collrank": _SCALES,
    "sql_rank": _SCALES,
    "grmf": ({}, {"reg_graph": 0.0}, {"form": "ties"}),
}
SEQUENTIAL: Rules = {
    "sasrec": ({}, {"dropout": 0.2, "loss": "softmax", "batch_size": 128, "epochs": 100}, {"dropout": 0.3}),
    "sse_pt": ({}, {"dropout": 0.3}),
}
RULES: Mapping[str, Rules] = {"implicit": IMPLICIT, "explicit": EXPLICIT, "sequential": SEQUENTIAL}
