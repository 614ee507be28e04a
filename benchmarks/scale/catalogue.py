"""EASE, its sparse form and ELSA on catalogues of growing size: quality, seconds and memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import corank as cr
from corank.data import CSR
from corank.params import param
from corank.report import md_table
from corank.stored import Stored, floats

from .. import shapes
from ._used import Used

if TYPE_CHECKING:
    from corank.training import Training

ORDER = 10
DATA = (
    "filmtrust",
    "ml-100k",
    "douban",
    "ml-1m",
    "s3rec-beauty",
    "s3rec-sports",
    "games",
    "ciao",
    "1,000 items, 200 rows per user",
    "3,000 items, 20 rows per user",
    "10,000 items, 5 rows per user",
    "30,000 items, 40 rows per user",
    "100,000 items, 20 rows per user",
)
DENSE_UP_TO = 13_000  # items
ELSA_ON = ("filmtrust", "ml-100k", "ml-1m", "s3rec-beauty")
CASES = tuple(
    f"{name} {data}"
    for data in DATA
    for name in ("ease", "sparse_ease", "elsa")
    if not (name == "elsa" and data not in ELSA_ON) and not (name == "ease" and data in shapes.LARGE)
)
REG = (20.0, 100.0, 500.0)
METRIC = "ndcg@10"
EPOCHS, BATCH = 20, 1024  # of ELSA


def measure(case: str) -> dict[str, Any]:
    """The best of three settings on the validation rows, and the seconds and memory of its fit."""
    name, data = case.split(" ", 1)
    split = shapes.split(data, "implicit")
    settings = [Elsa(dim=dim) for dim in (64, 256)] if name == "elsa" else [cr.find(name)(reg=reg) for reg in REG]
    warm = shapes.load("filmtrust") if data != "filmtrust" else split.train
    (settings[0] if name == "elsa" else cr.find(name)()).fit(warm)  # code that is compiled or loaded is not measured
    best: dict[str, Any] = {}
    for model in settings:
        with Used() as used:
            model.fit(split.train)
        valid = cr.evaluate(model, split, [METRIC], part="valid", bootstrap=0)[METRIC]
        if not best or valid > best["valid"]:
            test = cr.evaluate(model, split, [METRIC], bootstrap=0)[METRIC]
            best = {"setting": repr(model), "valid": round(valid, 5), "test": round(test, 5), **used.line()}
    size = {"items": len(split.train.items), "users": len(split.train.users), "rows": len(split.train)}
    return {**size, **best}


def section(found: dict[str, dict[str, Any]]) -> str:
    rows = []
    for data in DATA:
        lines = {name: found.get(f"{name} {data}") for name in ("ease", "sparse_ease", "elsa")}
        for name, line in lines.items():
            if line is None:
                continue
            ease = lines["ease"]
            share = "" if ease is None or name == "ease" else f"{line['test'] / ease['test']:.3f}"
            used = [f"{line['seconds']:.1f}", f"{line['processor']:.1f}", f"{line['anonymous']:.2f}"]
            about = [data if ease is line or ease is None else "", f"{line['items']:,}", f"{line['rows']:,}"]
            quality = [f"{line['valid']:.4f}", f"{line['test']:.4f}", share]
            rows.append([*about, name, *quality, *used])
    heads = ["data", "items", "rows", "model", "NDCG@10 valid", "NDCG@10 test", "/ ease", "s", "processor s", "GB"]
    note = (
        "A fifth of the rows of each user are test rows, at most 4,000 users are ranked. `reg` of `ease` and "
        f"`sparse_ease` is the best of {', '.join(f'{reg:g}' for reg in REG)} on the validation rows, and `dim` of "
        "ELSA the best of 64 and 256; everything else is the default. Seconds and memory are those of the fit of that "
        f"setting. `ease` is measured up to {DENSE_UP_TO:,} items. ELSA (Vančura et al. 2022) is a plain "
        "implementation of this benchmark, 20 epochs of Adam; it is not part of corank."
    )
    return "\n\n".join(["## Large catalogues", note, md_table(heads, rows)])


@dataclass(kw_only=True, eq=False)
class Elsa(cr.Model):
    """Scalable linear shallow autoencoder: scores x A A' - x, rows of A of length 1 (Vančura et al., RecSys 2022)."""

    dim: int = param(256, "columns of A", low=1)
    lr: float = param(0.05, "learning rate of Adam", low=1e-6)

    def _fit(self, data: cr.Dataset, rows: CSR, training: Training) -> None:
        import torch
        from torch.nn.functional import normalize

        first = training.rng.standard_normal((rows.columns, self.dim), np.float32)
        A = torch.nn.Parameter(normalize(torch.from_numpy(first), dim=1))
        adam, users = torch.optim.Adam([A], lr=self.lr), np.flatnonzero(np.diff(rows.indptr))
        for _ in range(EPOCHS):
            order = training.rng.permutation(users)
            for at in range(0, order.size, BATCH):
                x = torch.from_numpy(_dense(rows.take(order[at : at + BATCH])))
                unit = normalize(A, dim=1)
                off = normalize(x, dim=1) - normalize(torch.relu(x @ unit @ unit.T - x), dim=1)
                loss = off.square().sum(1).mean()
                adam.zero_grad()
                loss.backward()
                adam.step()
        self.vectors_ = normalize(A.detach(), dim=1).numpy()

    def _stores(self) -> dict[str, Stored]:
        return super()._stores() | {"vectors_": floats("items", "dim")}

    def _score(self, users: np.ndarray) -> np.ndarray:
        seen = CSR(self.seen_indptr_, self.seen_index_, np.ones(self.seen_index_.size, np.float32), len(self.items_))
        return self._score_histories(seen.take(users))

    def _score_histories(self, histories: CSR) -> np.ndarray:
        return np.asarray(_dense(histories) @ self.vectors_ @ self.vectors_.T)


def _dense(rows: CSR) -> np.ndarray:
    out = np.zeros((rows.rows, rows.columns), np.float32)
    out[np.repeat(np.arange(rows.rows), np.diff(rows.indptr)), rows.index] = 1
    return out
