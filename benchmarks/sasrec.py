"""One epoch of SASRec against RecTools': same rows, sizes, loss, batches, epochs and threads; then validation NDCG@10.

RecTools lives in an environment of its own, because it asks for an older numpy: RECTOOLS_PYTHON names its interpreter.

    python -m venv rectools && rectools/bin/pip install -c constraints.txt 'rectools[torch]==0.19.0'

Two differences remain. RecTools pads every sequence to the longest allowed, which is what is measured; and its
negatives are uniform over all items, where ours leave out what the user has. Seconds of an epoch are the difference
between a fit of some epochs and a fit of one, so that preparing the data and starting a trainer count on no side.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import corank as cr

from .tools import ROOT, Table

EPOCHS, DIM = 2, 50
CASES = (("games", 50, 0.5), ("ml-1m-sequences", 200, 0.2))

PEER = """
import json, sys, time, warnings, logging
warnings.filterwarnings("ignore")
logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
import numpy as np, pandas as pd, torch
from rectools import Columns
from rectools.dataset import Dataset
from rectools.models import SASRecModel

how = json.loads(sys.argv[1])
torch.set_num_threads(how["threads"])
rows = np.load(how["rows"])
frame = pd.DataFrame({Columns.User: rows[0], Columns.Item: rows[1], Columns.Weight: 1.0})
frame[Columns.Datetime] = pd.to_datetime(rows[2], unit="s")
data = Dataset.construct(frame)

def make(epochs):
    return SASRecModel(
        n_factors=how["dim"], n_blocks=2, n_heads=1, session_max_len=how["max_len"], dropout_rate=how["dropout"],
        loss=how["loss"], n_negatives=1, lr=1e-3, batch_size=128, epochs=epochs, train_min_user_interactions=2,
        dataloader_num_workers=0, verbose=0, deterministic=True,
    )

def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start

short = seconds(lambda: make(1).fit(data))
model = make(how["epochs"])
long = seconds(lambda: model.fit(data))
users, counts = np.unique(rows[0], return_counts=True)
users = users[counts > 1]  # the others are not learned from, and it has no answer for them
found = []
took = seconds(lambda: found.append(model.recommend(users=users, dataset=data, k=10, filter_viewed=True)))
top = found[0]
top.to_csv(how["out"], index=False)
print(json.dumps({"epoch": (long - short) / (how["epochs"] - 1), "users": len(users) / took}))
"""


def run() -> Table:
    root = os.environ.get("CORANK_DATA") or ROOT.parent / "shared" / "data"
    python = os.environ.get("RECTOOLS_PYTHON")
    if not python:
        note = "Not run: RECTOOLS_PYTHON must name an interpreter that has RecTools (see benchmarks/sasrec.py)."
        return Table("SASRec epoch and top ten", ["data"], [], note)
    rows = []
    for name, max_len, dropout in CASES:
        split = cr.leave_last_out(cr.datasets.load(name, root=root))
        for loss, threads in (("bce", 2),):
            sizes = {"max_len": max_len, "dropout": dropout}
            ours, theirs = _ours(split, loss, threads, **sizes), _theirs(python, split, loss, threads, **sizes)
            rows.append(
                [
                    name,
                    loss,
                    str(threads),
                    f"{ours['epoch']:.2f}",
                    f"{theirs['epoch']:.2f}",
                    f"**{theirs['epoch'] / ours['epoch']:.2f}**",
                    f"{ours['ndcg']:.4f}",
                    f"{theirs['ndcg']:.4f}",
                    f"{ours['users']:.0f}",
                    f"{theirs['users']:.0f}",
                    f"**{ours['users'] / theirs['users']:.1f}**",
                ]
            )
    header = ["data", "loss", "threads", "corank s/epoch", "RecTools s/epoch", "ratio", "NDCG@10", "RecTools NDCG@10"]
    header += ["corank users/s", "RecTools users/s", "ratio"]
    return Table(
        "SASRec epoch and top ten",
        header,
        rows,
        f"dim {DIM}, 2 blocks, 1 head, batches of 128 users, {EPOCHS} epochs; validation NDCG@10 in a full ranking. "
        "Users a second: the ten best items of all users, from their histories. RecTools' blocks are pre-norm too.",
    )


def _ours(split: cr.Split, loss: str, threads: int, **sizes: Any) -> dict[str, float]:
    import time

    cr.set_threads(threads)
    model = cr.SASRec(dim=DIM, loss=loss, negatives=1, epochs=EPOCHS, **sizes).fit(split.train)
    first, last = (model.history_[at]["seconds"] for at in (0, -1))
    model.recommend(k=10)  # kernels are compiled
    start = time.perf_counter()
    ranking = model.recommend(k=10)
    took = time.perf_counter() - start
    cr.set_threads(None)
    codes = np.arange(len(split.train.users))
    return {
        "epoch": (last - first) / (EPOCHS - 1),
        "users": len(ranking) / took,
        "ndcg": _ndcg(split, {int(u): ranking.items[u].tolist() for u in codes}),
    }


def _theirs(python: str, split: cr.Split, loss: str, threads: int, **sizes: Any) -> dict[str, float]:
    import polars as pl

    train = split.train
    order = np.argsort(train.time, kind="stable") if train.time is not None else np.arange(len(train))
    with tempfile.TemporaryDirectory() as folder:
        # RecTools sorts by time: the place in the order stands for it, so that both read the same sequences.
        np.save(Path(folder) / "rows.npy", np.stack([train.user[order], train.item[order], np.arange(len(train))]))
        how = {
            "rows": f"{folder}/rows.npy",
            "out": f"{folder}/top.csv",
            "threads": threads,
            "dim": DIM,
            "loss": "BCE" if loss == "bce" else "softmax",
            "epochs": EPOCHS,
            **sizes,
        }
        env = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
        done = subprocess.run(
            [python, "-c", PEER, json.dumps(how)], env=env, cwd=folder, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        out = dict(json.loads(done.stdout.strip().splitlines()[-1]))
        top = pl.read_csv(Path(folder) / "top.csv")
    lists: dict[int, list[int]] = {}
    for user, item in top.sort("user_id", "rank").select("user_id", "item_id").iter_rows():
        lists.setdefault(int(user), []).append(int(item))
    return {**out, "ndcg": _ndcg(split, lists)}


def _ndcg(split: cr.Split, lists: dict[int, list[int]]) -> float:
    """Mean NDCG@10 of lists of item codes by user code, one validation item a user."""
    gains = []
    for user, item in zip(split.valid.user.tolist(), split.valid.item.tolist(), strict=True):
        found = lists.get(user, [])
        gains.append(1 / np.log2(found.index(item) + 2) if item in found else 0.0)
    return float(np.mean(gains))
