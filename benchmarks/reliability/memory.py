"""Memory: every model at its edge under `ulimit -v`, and what models say that they need against what they take."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .part import Outcome, Part, Tell

TIMEOUT = 600
SMALL, LARGE = 2_600_000_000, 4_500_000_000  # bytes of addresses: libraries take 1.6 GB of them, with torch 2.2 GB
LOW, HIGH = 0.7, 2.0  # of the memory that a fit takes, what its estimate must be


class Edge(NamedTuple):
    """A fit on the command line: the model, its flags, and the table (see `tables`)."""

    model: str
    flags: str = ""
    table: str = "small"


EDGES = [
    Edge("popularity", "", "wide"),
    Edge("item_knn", "--neighbors 1000000", "wide"),
    Edge("ease", "", "wide"),
    Edge("ease", "--max-items 3000", "wide"),
    Edge("sparse_ease", "", "wide"),
    *(Edge("wmf", f"--dim 65536 --solver {solver}") for solver in ("cg", "exact", "blocks")),
    Edge("wmf", "--dim 4000"),
    Edge("wmf", "--dim 65536 --solver blocks --block 65536"),
    Edge("wmf", "--dim 20000", "wide"),
    Edge("als", "--dim 2000", "tiny"),
    Edge("mf", "--dim 4096"),
    Edge("mf", "--dim 4096", "wide"),
    Edge("bpr", "--dim 65536"),
    Edge("bpr", "--dim 65536 --negatives 100000 --sse-user 1.0", "wide"),
    Edge("grmf", "--dim 500", "graph"),
    Edge("grmf", "--dim 1000", "crowd"),
    Edge("grmf", "--dim 300 --user-graph dna-2 --capacity 10000000 --error 0.000001", "graph"),
    Edge("grwmf", "--dim 65536", "graph"),
    Edge("grwmf", "--dim 500 --form ties", "graph"),
    Edge("co_factor", "--dim 500 --zeros 100", "graph"),
    Edge("co_factor", "--dim 4 --user-graph dna-2 --capacity 10000000 --error 0.000001", "crowd"),
    Edge("primal_cr", "--dim 65536"),
    Edge("primal_cr", "--dim 65536", "wide"),
    Edge("collrank", "--dim 65536", "tiny"),
    Edge("collrank", "--dim 65536", "wide"),
    Edge("cofirank", "--dim 65536"),
    Edge("cofirank", "--dim 65536 --loss regression"),
    Edge("sql_rank", "--dim 65536"),
    Edge("sql_rank", "--dim 65536 --feedback implicit --rho 100000", "wide"),
    Edge("list_mf", "--dim 65536"),
    Edge("list_mf", "--dim 65536", "wide"),
    Edge("fmc", "--dim 65536"),
    Edge("fmc", "--dim 65536", "wide"),
    Edge("fpmc", "--dim 65536"),
    Edge("fpmc", "--dim 65536 --negatives 100000", "wide"),
    Edge("trans_rec", "--dim 65536"),
    Edge("trans_rec", "--dim 65536", "wide"),
    Edge("gcmc", "--dim 4096 --hidden 65536"),
    Edge("gcmc", "--levels 5 --accumulate sum --hidden 65536", "wide"),
    Edge("gcmc", "--capacity 10000000 --error 0.000001", "graph"),
    Edge("graph_ae", "--dim 4096 --layers 16"),
    Edge("graph_ae", "--dim 1024 --layers 1"),
    Edge("sasrec", "--dim 4096 --blocks 64"),
    Edge("sasrec", "--max-len 100000 --batch-size 1000000"),
    Edge("sasrec", "--loss bce --negatives 1000000"),
    Edge("sasrec", "--loss softmax --dim 1024", "wide"),
    Edge("sse_pt", "--dim 4096 --blocks 8"),
    Edge("sse_pt", "--dim 256 --dim-user 4096 --blocks 1"),
    Edge("bsarec", "--dim 4096 --blocks 16"),
    Edge("bsarec", "--max-len 100000 --batch-size 1000000"),
    Edge("gru4rec", "--dim 4096 --blocks 16"),
    Edge("gru4rec", "--negatives 10000000 --loss bpr_max"),
    Edge("caser", "--dim 1024 --order 50 --horizontal 64"),
    Edge("hgn", "--dim 4096 --order 50 --batch-size 1000000"),
    Edge("stamp", "--max-len 100000 --batch-size 1000000", "wide"),
    Edge("lru_rec", "--dim 4096 --blocks 16"),
    Edge("lru_rec", "--max-len 100000 --batch-size 1000000"),
]
FOLD_IN = """
import sys, corank as cr
model = cr.load(sys.argv[1])
try:
    model.recommend(histories=[[0, 1, 2]] * 8, k=5)
    model.recommend(k=10**9)
    model.similar_items(list(range(20)), k=10**9)
except cr.CorankError as why:
    sys.exit(f"corank: {why}")
"""


def tables(folder: Path) -> dict[str, list[str]]:
    """Files of ratings, as arguments of the command line."""
    rng = np.random.default_rng(0)
    out: dict[str, list[str]] = {}
    shapes = {"tiny": (12, 3, 4), "small": (1500, 60, 60), "crowd": (9000, 3000, 60), "wide": (60_000, 300, 40_000)}
    for name, (rows, users, items) in shapes.items():
        columns = rng.integers(0, users, rows), rng.integers(0, items, rows), rng.integers(1, 6, rows), np.arange(rows)
        lines = ["user,item,rating,time", *(",".join(map(str, row)) for row in zip(*columns, strict=True))]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
        out[name] = [str(folder / f"{name}.csv")]
    for name, ratings, users in (("graph", "small", 60), ("crowd", "crowd", 2000)):
        pairs = [f"{a},{b}" for a, b in rng.integers(0, users, (4 * users, 2)) if a != b]
        (folder / f"{name}-edges.csv").write_text("\n".join(["a,b", *pairs]) + "\n")
        out[name] = [*out[ratings], "--user-edges", str(folder / f"{name}-edges.csv")]
    return out


def limited(command: list[str], most: int) -> subprocess.CompletedProcess[str]:
    """Run a command that has at most so many bytes of addresses."""
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most)),
        env=os.environ | {"CORANK_THREADS": "2"},
    )


def verdict(command: list[str], most: int) -> tuple[bool, str]:
    """(whether it was done, what went wrong)."""
    try:
        done = limited(command, most)
    except subprocess.TimeoutExpired:
        return False, f"no end after {TIMEOUT} s"
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    if done.returncode == 0:
        return True, ""
    if "Traceback" in done.stderr or done.returncode not in (1, 2) or not lines:
        return False, f"exit {done.returncode}, {done.stderr.strip()[-300:]!r}"
    if not lines[-1].startswith("corank: ") or not any(word in lines[-1] for word in ("memory", "GB", "MB")):
        return False, f"exit {done.returncode} with {lines[-1]!r}"
    return False, ""


def edges(trials: int, seed: int, folder: Path, tell: Tell) -> Outcome:
    """Each edge under a small and under a larger limit, or `trials` of these."""
    out, files = Outcome(), tables(folder)
    every = [(edge, most) for most in (SMALL, LARGE) for edge in EDGES]
    order = np.random.default_rng(seed).permutation(len(every))[:trials] if trials < len(every) else range(len(every))
    fitted = 0
    for number, at in enumerate(order):
        edge, most = every[int(at)]
        epochs = [] if edge.model in ("popularity", "item_knn", "ease", "sparse_ease") else ["--epochs", "1"]
        command = [sys.executable, "-m", "corank", "fit", edge.model, *files[edge.table], *edge.flags.split(), *epochs]
        done, wrong = verdict([*command, "-o", str(folder / "m.corank")], most)
        fitted += done
        out.trial(f"{edge.model} {edge.flags} ({edge.table}) under {most / 1e9:.1f} GB: {wrong}" if wrong else "")
        tell(number + 1, len(order))
    if trials >= len(every):  # answers of a model that was fitted where there was more memory
        command = [sys.executable, "-m", "corank", "fit", "wmf", *files["small"], "--dim", "6000", "--epochs", "1"]
        subprocess.run([*command, "-o", str(folder / "m.corank")], check=True, capture_output=True, timeout=TIMEOUT)
        for most in (1_000_000_000, 1_400_000_000, SMALL, LARGE):
            _, wrong = verdict([sys.executable, "-c", FOLD_IN, str(folder / "m.corank")], most)
            out.trial(f"answers of wmf --dim 6000 under {most / 1e9:.1f} GB: {wrong}" if wrong else "")
    out.notes.append(f"{fitted} fitted, {len(order) - fitted - len(out.failures)} ended with one sentence")
    return out


class Size(NamedTuple):
    """A fit whose memory is measured: rows, users, items, edges between users, hyper-parameters."""

    model: str
    shape: tuple[int, ...]
    params: Mapping[str, Any] = {}


SIZES = [
    Size("popularity", (3_000_000, 300_000, 50_000)),
    Size("item_knn", (1_000_000, 100_000, 20_000)),
    Size("ease", (100_000, 20_000, 4_000)),
    Size("sparse_ease", (300_000, 20_000, 20_000)),
    Size("wmf", (1_000_000, 100_000, 20_000)),
    Size("wmf", (2_000, 60, 60), {"dim": 6000}),
    Size("wmf", (200, 8, 8), {"dim": 2000, "solver": "exact"}),
    Size("wmf", (5_000, 300, 100), {"dim": 3000, "solver": "blocks"}),
    Size("als", (2_000_000, 100_000, 20_000)),
    Size("als", (100, 4, 4), {"dim": 3000}),
    Size("mf", (1_000_000, 100_000, 20_000)),
    Size("bpr", (1_000_000, 100_000, 20_000)),
    Size("grmf", (300_000, 30_000, 5_000, 100_000)),
    Size("grwmf", (300_000, 30_000, 5_000, 100_000), {"dim": 32, "form": "ties"}),
    Size("co_factor", (100_000, 10_000, 2_000, 30_000)),
    Size("primal_cr", (1_000_000, 50_000, 10_000)),
    Size("collrank", (200_000, 4_000, 2_000), {"dim": 16}),
    Size("cofirank", (500_000, 50_000, 10_000)),
    Size("sql_rank", (1_000_000, 50_000, 10_000)),
    Size("list_mf", (1_000_000, 50_000, 10_000)),
    Size("fmc", (1_000_000, 100_000, 20_000)),
    Size("fpmc", (1_000_000, 100_000, 20_000)),
    Size("trans_rec", (1_000_000, 100_000, 20_000)),
    Size("gcmc", (300_000, 30_000, 5_000)),
    Size("graph_ae", (300_000, 30_000, 5_000)),
    Size("sasrec", (60_000, 600, 40_000), {"loss": "softmax"}),
    Size("sse_pt", (200_000, 20_000, 5_000)),
    Size("bsarec", (60_000, 2_000, 5_000)),
    Size("gru4rec", (100_000, 1_000, 5_000)),
    Size("caser", (100_000, 5_000, 5_000)),
    Size("hgn", (100_000, 5_000, 5_000)),
    Size("stamp", (200_000, 1_000, 5_000), {"max_len": 200}),
    Size("lru_rec", (100_000, 1_000, 5_000)),
]
MEASURE = """
import ctypes, json, sys
import numpy as np
import corank as cr
from corank.cost import Size

def status(name):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(name + ":"))

def make(rows, users, items, edges=0):
    rng = np.random.default_rng(0)
    user, item, graph = rng.integers(0, users, rows), rng.integers(0, items, rows), None
    user[:users], item[:items] = np.arange(users)[:rows], np.arange(items)[:rows]
    if edges:
        from scipy.sparse import coo_array
        a, b = rng.integers(0, users, (2, edges))
        graph = coo_array((np.ones(2 * edges), (np.r_[a, b], np.r_[b, a])), shape=(users, users)).tocsr()
        graph.data[:] = 1
    return cr.from_arrays(user=user, item=item, value=rng.integers(1, 6, rows), time=np.arange(rows), user_graph=graph)

name, shape, params = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
cls = cr.find(name)
params = ({"epochs": 1} if "epochs" in cls().params() else {}) | params
words = {k: v for k, v in params.items() if isinstance(v, str) or k == "epochs"}
cls(**words).fit(make(500, 50, 40, 60 if len(shape) > 3 else 0))  # loads kernels and torch
data = make(*shape)
ctypes.CDLL(None).malloc_trim(0)
open("/proc/self/clear_refs", "w").write("5")  # the peak is measured anew
before = status("VmRSS")
model = cls(**params).fit(data)
grown = status("VmHWM") - before
print(json.dumps([model.settled(data, data.csr())._memory(Size.of(data)), grown]))
"""


def estimates(trials: int, seed: int, folder: Path, tell: Tell) -> Outcome:
    """The estimate of each fit against the growth of the process."""
    out = Outcome()
    chosen = np.random.default_rng(seed).permutation(len(SIZES))[:trials] if trials < len(SIZES) else range(len(SIZES))
    for number, at in enumerate(chosen):
        size = SIZES[int(at)]
        command = [sys.executable, "-c", MEASURE, size.model, json.dumps(size.shape), json.dumps(dict(size.params))]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT, env=os.environ | {"CORANK_THREADS": "2"}
        )
        tell(number + 1, len(chosen))
        what = " ".join([size.model, *(f"{k}={v}" for k, v in size.params.items())])
        if done.returncode:
            out.trial(f"{what}: exit {done.returncode}, {done.stderr.strip()[-300:]!r}")
            continue
        stated, grown = json.loads(done.stdout.splitlines()[-1])
        said = f"{what} {stated / 1e6:,.0f} of {grown / 1e6:,.0f} MB"
        out.trial("" if LOW * grown <= stated <= HIGH * grown else said)
        out.notes.append(said)
    return out


PARTS = [
    Part(
        "memory at the edge, every model",
        2 * len(EDGES),
        edges,
        "it fits, or ends with one sentence: never killed, no traceback, no hang",
    ),
    Part(
        "memory estimates, every model",
        len(SIZES),
        estimates,
        "the estimate is 0.7 to 2 times what the fit takes at its peak",
    ),
]
