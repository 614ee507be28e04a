"""Training on a Ray cluster against Spark, against one machine, and with nodes killed: `python -m benchmarks.cluster`.

Spark MLlib and corank on Ray read the same Parquet files, with two workers of one thread and `local[2]`. Each piece is
recorded when it is done (see `records`), so that a run goes on where it was stopped; the page is written from what is
recorded. `--rows 2000000` is a short form.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import corank as cr
from corank.datasets import open_any
from corank.report import md_table

from . import records
from .spark_als import ALPHA, REG
from .tools import versions

DIM, ITERATIONS, PARTS, KILLS = 64, 6, 8, 20
SHAPES = {2_000_000: (20_000, 10_000), 20_000_000: (138_000, 20_000)}
PIECES = ("spark implicit", "spark explicit", "ray cg", "ray exact", "ray als", "alone", "one", "kills")
SETTINGS: dict[str, Callable[[], Any]] = {
    "cg": lambda: _wmf("cg"),
    "exact": lambda: _wmf("exact"),
    "als": lambda: cr.ALS(dim=DIM, epochs=ITERATIONS, reg=REG, biases=False),
}


def _wmf(solver: str) -> cr.Model:
    # The confidence of Spark's implicit form is 1 + alpha for rows of value 1.
    options = {"rho": 1.0, "alpha": ALPHA, "confidence": "linear", "reg": REG, "reg_power": 0.0}
    return cr.WMF(dim=DIM, epochs=ITERATIONS, solver=solver, **options)


def folders(state: Path, rows: int) -> dict[str, Path]:
    """Parquet files of implicit (all values 1) and explicit rows, written once."""
    found = {kind: state / f"{kind}-{rows}" for kind in ("implicit", "explicit")}
    if not (found["explicit"] / "done").exists():
        users, items = SHAPES[rows]
        table = cr.synthetic.realistic(users=users, items=items, rows=rows).data.to_frame()
        for kind, folder in found.items():
            folder.mkdir(parents=True, exist_ok=True)
            part = table.select("user", "item", "value" if kind == "explicit" else pl.lit(1.0).alias("value"))
            for number, cut in enumerate(np.array_split(np.arange(len(part)), PARTS)):
                part[int(cut[0]) : int(cut[-1]) + 1].write_parquet(folder / f"part-{number}.parquet")
        (found["explicit"] / "done").touch()
    return found


def losses(folder: Path, U: pl.DataFrame, V: pl.DataFrame) -> dict[str, float]:
    """The squared error of ratings, and the weighted one of implicit feedback over all pairs, without penalties.

    U, V : columns id and features, as Spark writes them.
    """
    (users, X), (items, Y) = (
        (side["id"].to_numpy(), np.stack(side["features"].to_numpy())) for side in (U.sort("id"), V.sort("id"))
    )
    X, Y = X.astype(np.float64), Y.astype(np.float64)
    implicit, explicit = float(np.sum((X.T @ X) * (Y.T @ Y))), 0.0
    for path in sorted(folder.glob("*.parquet")):
        rows = pl.read_parquet(path)
        u, i = np.searchsorted(users, rows["user"].to_numpy()), np.searchsorted(items, rows["item"].to_numpy())
        value = rows["value"].to_numpy()
        for at in range(0, len(rows), 500_000):
            part = slice(at, at + 500_000)
            score = np.einsum("nf,nf->n", X[u[part]], Y[i[part]])
            implicit += float(((1 + ALPHA) * (1 - score) ** 2 - score * score).sum())
            explicit += float(((value[part] - score) ** 2).sum())
    return {"implicit": implicit, "explicit": explicit}


def spark(kind: str, folder: Path, state: Path) -> dict[str, Any]:
    """Seconds per iteration of Spark and the loss of its factors."""
    out = state / f"spark-{folder.name}"
    words = [str(folder), kind, str(DIM), str(ITERATIONS), str(out)]
    done = subprocess.run([sys.executable, "-m", "benchmarks.spark_als", *words], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    line = json.loads(done.stdout.strip().splitlines()[-1])
    loss = losses(folder, *(pl.read_parquet(out / side / "*.parquet") for side in ("user", "item")))
    return {"seconds": line["seconds"], "fit": line["fit"], "loss": loss[kind]}


def corank(which: str, folder: Path, cluster: cr.Ray | None) -> dict[str, Any]:
    """Seconds per iteration of corank (the median) and the loss of its factors."""
    start = time.perf_counter()
    if cluster is None:
        cr.set_threads(1)
    model = SETTINGS[which]().fit(open_any(folder) if cluster is None else str(folder), cluster=cluster)
    whole = time.perf_counter() - start
    seconds = float(np.median(np.diff([entry["seconds"] for entry in model.history_])))
    sides = (
        pl.DataFrame({"id": vocab.ids, "features": vectors})
        for vocab, vectors in ((model.users_, model.user_factors_), (model.items_, model.item_factors_))
    )
    kind = "explicit" if which == "als" else "implicit"
    return {"seconds": seconds, "fit": whole, "loss": losses(folder, *sides)[kind]}


FITS = """
import hashlib, sys, tempfile
from pathlib import Path
import corank as cr
data = cr.synthetic.realistic(users=2_000, items=1_000, rows=100_000).data
cluster, over = cr.Ray(workers=2, address=sys.argv[1]), Path(sys.argv[2])
while not over.exists():
    with tempfile.TemporaryDirectory() as folder:
        model = cr.WMF(dim=16, epochs=30).fit(data, cluster=cluster, checkpoint=Path(folder) / "state")
    digest = hashlib.sha256(model.user_factors_.tobytes() + model.item_factors_.tobytes()).hexdigest()
    with open(sys.argv[3], "a") as file:
        print(digest, file=file)
"""


def kills() -> dict[str, Any]:
    """Fits in another process, one after another, while a node is killed at random times, 20 times in all.

    The first fit is over before the first kill: all others must give the same bits.
    """
    os.environ.update(RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0", RAY_USAGE_STATS_ENABLED="0", RAY_AUTH_MODE="disabled")
    from ray.cluster_utils import Cluster

    rng, start, killed = random.Random(0), time.perf_counter(), 0
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    second = nodes.add_node(num_cpus=1)
    try:
        with tempfile.TemporaryDirectory() as folder:
            over, digests = Path(folder) / "over", Path(folder) / "digests"
            words = [sys.executable, "-c", FITS, nodes.address, str(over), str(digests)]
            fits = subprocess.Popen(words, stdout=subprocess.DEVNULL)  # Ray tells of dead nodes there
            while not digests.exists() and fits.poll() is None:
                time.sleep(1)
            while killed < KILLS and fits.poll() is None:
                time.sleep(rng.uniform(5, 30))
                nodes.remove_node(second, allow_graceful=False)
                second = nodes.add_node(num_cpus=1)
                killed += 1
            over.touch()
            fits.wait()
            undisturbed, *others = digests.read_text().split()
    finally:
        nodes.shutdown()
    equal = not fits.returncode and all(digest == undisturbed for digest in others)
    return {"kills": killed, "fits": len(others), "equal": equal, "seconds": time.perf_counter() - start}


def _file(piece: str, rows: int) -> Path:
    """Where a piece is recorded."""
    return records.path(records.ROOT / "cluster", *([piece] if piece == "kills" else [piece, str(rows)]))


def run(piece: str, rows: int, state: Path) -> dict[str, Any]:
    """One piece, from the record where it is done."""
    file = _file(piece, rows)
    if done := records.read(file):
        return done[-1]
    if piece == "kills":
        return records.append(file, kills())
    found = folders(state, rows)
    first, _, second = piece.partition(" ")
    if first == "spark":
        line = spark(second, found[second], state)
    elif first == "ray":
        line = corank(second, found["explicit" if second == "als" else "implicit"], cr.Ray(workers=2, threads=1))
    else:
        line = corank("cg", found["implicit"], None if first == "alone" else cr.Ray(workers=1, threads=1))
    return records.append(file, line)


def page(rows: int) -> str:
    """What is recorded, as a page."""
    files = {name: _file(name, rows) for name in PIECES if name != "kills"}
    found = {name: lines[-1] for name, file in files.items() if (lines := records.read(file))}
    text = [
        "# Training on a cluster, measured",
        f"`python -m benchmarks.cluster --rows {rows}` wrote this page. {versions()} {records.commits(found.values())}",
    ]
    if {"spark implicit", "spark explicit", "ray cg", "ray exact", "ray als"} <= found.keys():
        against = {"ray cg": "spark implicit", "ray exact": "spark implicit", "ray als": "spark explicit"}
        lines = []
        for mine, other in against.items():
            one, two = found[mine], found[other]
            ratios = [f"**{two['seconds'] / one['seconds']:.1f}**", f"{one['loss'] / two['loss']:.4f}"]
            lines.append([other, f"{two['seconds']:.2f}", mine, f"{one['seconds']:.2f}", *ratios])
        head = ["Spark", "s/iteration", "corank on Ray", "s/iteration", "times faster", "loss corank / Spark"]
        about = (
            f"{rows:,} rows of {SHAPES[rows][0]:,} users and {SHAPES[rows][1]:,} items in {PARTS} Parquet files, rank "
            f"{DIM}, {ITERATIONS} iterations; Spark with local[2], Ray with two workers of one thread. The loss is the "
            "weighted squared error over all pairs (implicit) or the squared error of the ratings (explicit), without "
            "the penalties; a ratio of at most 1 means that corank's is no higher."
        )
        text += ["## Against Spark MLlib", about, md_table(head, lines)]
    if {"alone", "one", "ray cg"} <= found.keys():
        alone, one, two = (found[name]["seconds"] for name in ("alone", "one", "ray cg"))
        cells = [["one machine, one thread", f"{alone:.2f}", ""]]
        cells += [["one worker of one thread", f"{one:.2f}", f"{one / alone - 1:+.0%} over one machine"]]
        cells += [["two workers of one thread", f"{two:.2f}", f"{one / two:.2f} times one worker"]]
        text += [
            "## Overhead",
            "WMF with conjugate gradient, median of the epochs.",
            md_table(["", "s/epoch", ""], cells),
        ]
    if lines := records.read(_file("kills", rows)):
        line = lines[-1]
        said = "the same bits as" if line["equal"] else "**other bits than**"
        text += [
            "## Nodes that are killed",
            f"{line['kills']} times, at random, one of two nodes was killed and another one added, during "
            f"{line['fits']} fits with a checkpoint that took {line['seconds']:.0f} s: all models have {said} that of "
            "an undisturbed fit.",
        ]
    return "\n\n".join(text) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("pieces", nargs="*", default=PIECES, help=f"of {', '.join(PIECES)} (default: all)")
    parser.add_argument("--rows", type=int, default=20_000_000, choices=tuple(SHAPES))
    parser.add_argument("--state", default="out/cluster", help="folder for the data")
    parser.add_argument("-o", "--out", default="docs/results/cluster.md", help="the page")
    args = parser.parse_args()
    for piece in args.pieces:
        print(piece, run(piece, args.rows, Path(args.state)), file=sys.stderr, flush=True)
    Path(args.out).write_text(page(args.rows), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
