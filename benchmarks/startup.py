"""From prompt to prompt: `import corank` against `import numpy`, and `corank fit wmf` on 100,000 rows with warm and
cold kernels.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl

import corank as cr

from .tools import ROOT, Table


def run() -> Table:
    rows = []
    numpy = _seconds([sys.executable, "-c", "import numpy"], 9)
    ours = _seconds([sys.executable, "-c", "import corank"], 9)
    rows += [["import numpy", f"{numpy:.3f}"], ["import corank", f"{ours:.3f}"]]
    with tempfile.TemporaryDirectory() as folder:
        path = _table(Path(folder))
        fit = [sys.executable, "-m", "corank", "fit", "wmf", str(path), "-o", f"{folder}/m.corank"]
        cold = {**os.environ, "NUMBA_CACHE_DIR": f"{folder}/cache"}
        rows.append([f"`corank fit wmf {path.name}`, first run ever", f"{_seconds(fit, 1, cold):.2f}"])
        rows.append([f"`corank fit wmf {path.name}`, kernels cached", f"{_seconds(fit, 5, cold):.2f}"])
        ask = [sys.executable, "-m", "corank", "recommend", f"{folder}/m.corank", "--user", "1"]
        rows.append(["`corank recommend m.corank --user 1`", f"{_seconds(ask, 5, cold):.2f}"])
    return Table("Start-up, seconds", ["what", "seconds"], rows, "Whole processes; shortest of several.")


def _table(folder: Path) -> Path:
    real = Path(os.environ.get("CORANK_DATA") or ROOT.parent / "shared" / "data") / "ml-100k" / "u.data"
    if real.exists():
        return real
    data = cr.synthetic.realistic(users=943, items=1_682, rows=100_000).data
    path = folder / "ratings.csv"
    pl.DataFrame({"user": data.user + 1, "item": data.item, "rating": data.value, "time": data.time}).write_csv(path)
    return path


def _seconds(command: list[str], repeats: int, env: dict[str, str] | None = None) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, env=env)
        best = min(best, time.perf_counter() - start)
    return best
