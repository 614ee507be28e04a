"""Fits from partitioned Parquet with the rows in files: seconds and memory of each step.

Everything is written to a temporary folder, which is removed afterwards (set TMPDIR to a disk with 120 bytes per row).
"""

from __future__ import annotations

import resource
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import corank as cr
from corank.cost import Size
from corank.report import md_table
from corank.system.memory import free_bytes

from ._used import Used

ORDER = 30
SIZES = {"20 M rows": 20_000_000, "50 M rows": 50_000_000, "200 M rows": 200_000_000}
CASES = tuple(SIZES)
PART = 10_000_000  # rows of a file
DIM = 32
MODELS = {
    "wmf": cr.WMF(dim=DIM, epochs=2),
    "bpr": cr.BPR(dim=DIM, epochs=2, negatives=1),
    "primal_cr": cr.PrimalCR(dim=DIM, epochs=2, steps=5),
}


def generate(folder: Path, rows: int) -> None:
    """Ratings of rows / 100 users and rows / 1,000 items in Parquet files; few items have most of the rows."""
    users, items = max(rows // 100, 1000), max(rows // 1000, 1000)
    for number, at in enumerate(range(0, rows, PART)):
        n, rng = min(PART, rows - at), np.random.default_rng([0, number])
        user = (users * rng.random(n, np.float32) ** 1.3).astype(np.int32)
        item = (items * rng.random(n, np.float32) ** 3).astype(np.int32)
        # Users and items of the same group go together, so that there is something to learn.
        rating = 1 + (user % 7 == item % 7).astype(np.int8) * 2 + rng.integers(0, 3, n, np.int8)
        table = pl.DataFrame(
            {"user": user, "item": item, "rating": rating, "time": rng.integers(1, 10**8, n, np.int32)}
        )
        table.write_parquet(folder / f"part-{number:03}.parquet")


def measure(case: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="corank-scale-") as name:
        source, place = Path(name, "ratings"), Path(name, "sorted")
        source.mkdir()
        place.mkdir()
        tiny = Path(name, "tiny")
        tiny.mkdir()
        generate(tiny, 20_000)
        _steps(tiny, tiny)  # code that is compiled is not measured
        with Used() as used:
            generate(source, SIZES[case])
        out = {"generate": used.line(), **_steps(source, place)}
        out["files"] = sum(path.stat().st_size for path in place.iterdir()) / 1e9
        out["parquet"] = sum(path.stat().st_size for path in source.iterdir()) / 1e9
    out["free"] = (free_bytes() or 0) / 1e9
    out["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    return out


def _steps(source: Path, place: Path) -> dict[str, Any]:
    with Used() as used:
        data = cr.read_partitions(source / "*.parquet", place)
    out: dict[str, Any] = {"read": used.line()}
    out["size"] = [len(data), len(data.users), len(data.items)]
    for name, model in MODELS.items():
        with Used() as used:
            model.fit(data)
        stated = model._memory(Size.of(data)) / 1e9
        out[name] = {
            **used.line(),
            "stated": stated,
            "epoch": float(np.diff([h["seconds"] for h in model.history_])[0]),
        }
    return out


def section(found: dict[str, dict[str, Any]]) -> str:
    rows = []
    for case in CASES:
        if (line := found.get(case)) is None:
            continue
        for step in ("read", *MODELS):
            used = line[step]
            size, users, items = line["size"]
            about = [f"{size:,}", f"{users:,} x {items:,}"] if step == "read" else ["", ""]
            epoch = f"{used['epoch']:.1f}" if "epoch" in used else ""
            stated = f"{used['stated']:.2f}" if "stated" in used else ""
            rows.append(
                [
                    *about,
                    step,
                    f"{used['seconds']:.1f}",
                    f"{used['processor']:.1f}",
                    epoch,
                    f"{used['anonymous']:.2f}",
                    stated,
                    f"{used['resident']:.1f}",
                ]
            )
    heads = ["rows", "users x items", "step", "s", "processor s", "s of an epoch", "GB", "GB stated", "GB with files"]
    shown = [f"`{model!r}`" for model in MODELS.values()]
    note = (
        "`read_partitions` sorts the rows of Parquet files by user and by item into files, which are then mapped: "
        f"`corank fit MODEL folder/ --on-disk always` does both. Fits are {', '.join(shown)}. GB is the memory that a "
        "step allocated at its peak, which is what it cannot do without, and GB stated what the model declares before "
        "the start; GB with files counts the pages of the mapped files too, which the system keeps in memory as long "
        "as nothing else needs it."
    )
    return "\n\n".join(["## Rows larger than memory", note, md_table(heads, rows)])
