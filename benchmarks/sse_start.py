"""Why SSE gains so much in the authors' MF and so little in ours: their vectors start as N(0, 1).

Their SGD (ratings drawn with replacement, constant steps of 0.01, lambda 0.1, rank 100, no biases) on their split of
MovieLens-1M, from vectors of that size and from vectors a tenth as long, with and without SSE-SE of 0.008. The page
docs/mf.md quotes the table.

python -m benchmarks.sse_start          prints it; about two minutes
"""

from __future__ import annotations

import os
from pathlib import Path

import numba
import numpy as np

import corank as cr
from corank.data import Array

from .tools import ROOT, Table

RANK, LR, REG, SSE = 100, np.float32(0.01), np.float32(0.1), 0.008
PARTS = (3_000_000, 12_000_000, 15_000_000)  # steps between two evaluations; the published 0.910 is after 15 million


def run() -> Table:
    split = cr.datasets.load_split(
        "ml-1m-wu-200", root=Path(os.environ.get("CORANK_DATA") or ROOT.parent / "shared" / "data")
    )
    rows = []
    for start in (1.0, 0.1):
        for sse in (0.0, SSE):
            found = _errors(split, start, sse)
            rows.append([f"{start:g}", f"{sse:g}", *(f"{error:.4f}" for error in found)])
    header = ["standard deviation at the start", "SSE", *(f"RMSE after {steps:,} steps" for steps in np.cumsum(PARTS))]
    return Table("SSE and the start of MF", header, rows, "One run each. Items without training ratings are counted.")


def _errors(split: cr.Split, start: float, sse: float) -> list[float]:
    rng = np.random.default_rng(0)
    train, test = split.train, split.test
    users = (start * rng.standard_normal((len(train.users), RANK))).astype(np.float32)
    items = (start * rng.standard_normal((len(train.items), RANK))).astype(np.float32)
    found = []
    for part, steps in enumerate(PARTS):
        _descend(users, items, train.user, train.item, train.value, steps, sse, part)
        predicted = np.einsum("nd,nd->n", users[test.user], items[test.item], optimize=True)
        found.append(float(np.sqrt(np.mean((test.value - predicted) ** 2))))
    return found


@numba.njit(fastmath=True)
def _descend(
    users: Array, items: Array, user: Array, item: Array, value: Array, steps: int, sse: float, seed: int
) -> None:
    np.random.seed(seed)
    for _ in range(steps):
        row = np.random.randint(user.size)
        u, i = user[row], item[row]
        if sse > 0 and np.random.random() < sse:
            u = np.random.randint(users.shape[0])
        if sse > 0 and np.random.random() < sse:
            i = np.random.randint(items.shape[0])
        error = value[row]
        for k in range(users.shape[1]):
            error -= users[u, k] * items[i, k]
        for k in range(users.shape[1]):
            x, y = users[u, k], items[i, k]
            users[u, k] = x + LR * (error * y - REG * x)
            items[i, k] = y + LR * (error * x - REG * y)


if __name__ == "__main__":
    print(run())
