"""One epoch of each sequence model against RecBole's of the same name: same rows, targets, sizes, batches and threads.

RecBole lives in an environment of its own, because it asks for older packages: RECBOLE_PYTHON names its interpreter.

    python -m venv recbole && recbole/bin/pip install recbole==1.2.1

RecBole makes a sample of every prefix of a sequence, which is `targets="last"` here, and scores all items
(`loss="softmax"`; the transition models and HGN have one negative and BPR on both sides). The rows are those of every
tenth user of 5-core Beauty. Seconds are those of a second epoch, so that preparing the data counts on no side.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import corank as cr

from .tools import ROOT, Table

DATA, EVERY, DIM, MAX_LEN, BATCH, THREADS = "s3rec-beauty", 10, 64, 50, 256, 2
FULL = {"targets": "last", "loss": "softmax", "batch_size": BATCH, "dropout": 0.5}
# Name here: (name there, hyper-parameters here, there)
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "sasrec": (
        "SASRec",
        {**FULL, "max_len": MAX_LEN, "attention_dropout": 0.5},
        {"hidden_size": DIM, "inner_size": DIM, "n_layers": 2, "n_heads": 1, "loss_type": "CE"},
    ),
    "gru4rec": ("GRU4Rec", {**FULL, "max_len": MAX_LEN}, {"hidden_size": DIM, "num_layers": 1, "loss_type": "CE"}),
    "stamp": ("STAMP", {**FULL, "max_len": MAX_LEN}, {"loss_type": "CE"}),
    "caser": ("Caser", {**FULL, "max_len": 5}, {"n_v": 4, "n_h": 16, "loss_type": "CE", "MAX_ITEM_LIST_LENGTH": 5}),
    "hgn": (
        "HGN",
        {"targets": "last", "loss": "bpr", "negatives": 1, "batch_size": BATCH, "max_len": 5},
        {"loss_type": "BPR", "MAX_ITEM_LIST_LENGTH": 5},
    ),
    "fpmc": ("FPMC", {"negatives": 1}, {}),
    "trans_rec": ("TransRec", {"negatives": 1}, {}),
}

PEER = """
import json, sys, time, warnings
warnings.filterwarnings("ignore")
how = json.loads(sys.argv[1])
import torch
torch.set_num_threads(how["threads"])
from recbole.config import Config
from recbole.data import create_dataset, data_preparation
from recbole.utils import get_model, get_trainer, init_seed

sys.argv = sys.argv[:1]
CE = how["options"].get("loss_type") == "CE"
config = Config(model=how["model"], dataset="rows", config_dict={
    "data_path": how["folder"], "USER_ID_FIELD": "user_id", "ITEM_ID_FIELD": "item_id", "TIME_FIELD": "timestamp",
    "load_col": {"inter": ["user_id", "item_id", "timestamp"]}, "use_gpu": False, "gpu_id": "", "state": "ERROR",
    "embedding_size": how["dim"], "MAX_ITEM_LIST_LENGTH": how["max_len"], "train_batch_size": how["batch"],
    "train_neg_sample_args": None if CE else {"distribution": "uniform", "sample_num": 1},
    "eval_args": {"split": {"LS": "valid_and_test"}, "order": "TO", "group_by": None, "mode": "full"},
    "epochs": 2, "show_progress": False, "worker": 0, "checkpoint_dir": how["folder"], **how["options"],
})
init_seed(1, True)
dataset = create_dataset(config)
train, _, _ = data_preparation(config, dataset)
model = get_model(config["model"])(config, train.dataset)
trainer = get_trainer(config["MODEL_TYPE"], config["model"])(config, model)
model.train()
seconds = []
for epoch in range(2):
    start = time.perf_counter()
    trainer._train_epoch(train, epoch, show_progress=False)
    seconds.append(time.perf_counter() - start)
print(json.dumps({"epoch": seconds[-1], "samples": len(train.dataset)}))
"""


def run() -> Table:
    python = os.environ.get("RECBOLE_PYTHON")
    header = ["model", "corank s/epoch", "RecBole s/epoch", "ratio"]
    if not python:
        note = "Not run: RECBOLE_PYTHON must name an interpreter that has RecBole (see benchmarks/recbole.py)."
        return Table("Epochs of sequence models", header, [], note)
    root = os.environ.get("CORANK_DATA") or ROOT.parent / "shared" / "data"
    data = cr.datasets.load(DATA, root=root)
    data = data.take(data.user % EVERY == 0)
    # Without the users and items that have no rows, which RecBole does not know either.
    data = cr.from_arrays(user=data.user, item=data.item, time=np.arange(len(data)))
    split = cr.leave_last_out(data)
    rows, samples = [], 0
    for name, (there, ours, theirs) in CASES.items():
        here = _ours(split.train, name, ours)
        peer = _theirs(python, data, there, theirs)
        samples = int(peer["samples"])
        rows.append([name, f"{here:.2f}", f"{peer['epoch']:.2f}", f"**{peer['epoch'] / here:.1f}**"])
    return Table(
        "Epochs of sequence models",
        header,
        rows,
        f"Every {EVERY}th user of {DATA}: {len(split.train.users):,} users, {len(split.train.items):,} items, "
        f"{samples:,} prefixes; size {DIM}, batches of {BATCH}, {THREADS} threads (our transition models: one by one "
        "on one thread).",
    )


def _ours(train: cr.Dataset, name: str, options: dict[str, Any]) -> float:
    """Seconds of a second epoch."""
    cr.set_threads(THREADS)
    model = cr.find(name)(dim=DIM, epochs=2, **options)
    cr.find(name)(dim=DIM, epochs=1, **options).fit(train)  # kernels are compiled
    model.fit(train)
    cr.set_threads(None)
    first, second = (entry["seconds"] for entry in model.history_)
    return float(second - first)


def _theirs(python: str, data: cr.Dataset, model: str, options: dict[str, Any]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "rows").mkdir()
        with (Path(folder) / "rows" / "rows.inter").open("w") as stream:
            stream.write("user_id:token\titem_id:token\ttimestamp:float\n")
            stream.writelines(f"{u}\t{i}\t{t}\n" for t, (u, i) in enumerate(zip(data.user, data.item, strict=True)))
        how = {
            "folder": folder,
            "model": model,
            "options": options,
            "threads": THREADS,
            "dim": DIM,
            "max_len": MAX_LEN,
            "batch": BATCH,
        }
        env = {**os.environ, "OMP_NUM_THREADS": str(THREADS), "MKL_NUM_THREADS": str(THREADS)}
        began = time.perf_counter()
        done = subprocess.run(
            [python, "-c", PEER, json.dumps(how)], env=env, cwd=folder, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"RecBole's {model} failed after {time.perf_counter() - began:.0f} s: {done.stderr}")
        return dict(json.loads(done.stdout.strip().splitlines()[-1]))
