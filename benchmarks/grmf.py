"""GRMF: seconds of an epoch by what is made of the graph, beside ALS.

Ratings and graph have the shape of Douban; the graph is that of the benchmark of Graph DNA. G^4 of it would have some
nine billion entries, 70 GB, so it is written down on the shape of the smallest size only, beside the same with Graph
DNA: on larger ones the ratio is larger, since the entries of G^4 grow with the square of the nodes and the bits do not.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

import corank as cr

from .graph import heavy_tailed
from .tools import Table

DOUBAN = (129_490, 58_541, 9_803_098, 1_711_780)  # users, items, ratings, entries of the graph
DIM = 10  # the dissertation's rank
EPOCHS = 3
POWERS = "0.1,0.01,0.001"  # of G^2, G^3, G^4


def run() -> Table:
    rows = []
    for share, explicit in ((1.0, False), (0.15, True)):
        data = _shaped(*(round(share * size) for size in DOUBAN))
        what: dict[str, cr.Model] = {"ALS": cr.ALS(dim=DIM, epochs=EPOCHS), "GRMF, no graph": _model("none")}
        what |= {"GRMF, G": _model("g"), "GRMF, DNA-1": _model("dna-1"), "GRMF, DNA-2": _model("dna-2")}
        what["GRMF, G^4, never written down"] = _model("g4", graph_weights=POWERS)
        what |= {f"GRMF, {kind.upper()}, shared vectors": _model(kind, form="shared") for kind in ("g", "dna-2")}
        if explicit:
            what["GRMF, G^4, written down"] = _model("g4", graph_weights=POWERS, threshold=1e-30)
        seconds = {name: _epoch(model, data) for name, model in what.items()}
        for name, took in seconds.items():
            ratio = f"{took / seconds['ALS']:.2f}"
            against = f"**{took / seconds['GRMF, DNA-2']:.1f}**" if name.endswith(", written down") else ""
            rows.append([f"{len(data.users):,} users", name, f"{took:.2f}", ratio, against])
    header = ["Douban's shape", "what", "s/epoch", "times ALS", "times DNA-2"]
    note = f"Shortest of {EPOCHS} epochs, all threads, dim {DIM}, 4,796 bits, {_model('g').steps} steps a half-step."  # type: ignore[attr-defined]
    return Table("GRMF epoch", header, rows, note)


def _model(kind: str, **options: Any) -> cr.Model:
    return cr.GRMF(dim=DIM, epochs=EPOCHS, user_graph=kind, reg_graph=0.01, **options)


def _shaped(users: int, items: int, ratings: int, entries: int) -> cr.Dataset:
    made = cr.synthetic.realistic(users=users, items=items, rows=ratings, friends=0).data
    return dataclasses.replace(made, user_graph=heavy_tailed(users, entries))


def _epoch(model: cr.Model, data: cr.Dataset) -> float:
    """The shortest epoch, the objective and its report included."""
    history = model.fit(data).history_
    return float(np.diff([0.0, *(entry["seconds"] for entry in history)])[1:].min())
