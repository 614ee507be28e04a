"""The same numbers from the process that compiles the kernels as from those that load them, on one thread or two."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from .part import Outcome, Part, Tell

# The first process finds an empty cache; the others load what it compiled.
PROCESSES = (("compiled, 2 threads", "2"), ("loaded, 2 threads", "2"), ("loaded, 1 thread", "1"))


def learned(cache: Path, threads: str, models: list[str]) -> Any:
    """What `_learned` prints in a process of its own."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "CORANK_THREADS": threads}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.reliability._learned", *models],
        env=environment,
        capture_output=True,
        text=True,
        timeout=3_600,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the process ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout.splitlines()[-1])


def compiled_or_loaded(trials: int, seed: int, folder: Path, tell: Tell, models: list[str] | None = None) -> Outcome:
    """One trial per model, with every choice of its options."""
    out = Outcome()
    found = []
    for k, (_, threads) in enumerate(PROCESSES):
        found.append(learned(folder / "cache", threads, models or []))
        tell(k + 1, len(PROCESSES))
    first = found[0]
    arrays = 0
    for name, variants in first.items():
        differ = [
            f"{variant} {what} ({process})"
            for (process, _), other in zip(PROCESSES[1:], found[1:], strict=True)
            for variant, digests in variants.items()
            for what, value in digests.items()
            if other[name][variant].get(what) != value
        ]
        arrays += sum(len(digests) for digests in variants.values())
        out.trial(f"{name}: other bits in {', '.join(differ[:4])}" if differ else "")
    out.notes.append(f"{arrays:,} arrays and answers compared bit by bit in {len(PROCESSES)} processes")
    return out


PARTS = [
    Part(
        "compiled against cached kernels",
        1,
        compiled_or_loaded,
        "the same bits in the process that compiles and in those that load, on one thread or two",
    ),
]
