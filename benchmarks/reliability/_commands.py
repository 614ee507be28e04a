"""Commands of corank as processes, and small data for them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ..tools import ROOT

# One thread each: these trials are about moments, not about speed, and many run beside each other.
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
    "CORANK_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}
HANGS = 300  # seconds after which a command counts as hanging; busy machines are slow


def start(arguments: list[str], folder: Path, before: Callable[[], object] | None = None) -> subprocess.Popen[str]:
    """A command in its folder, with its output in pipes, and temporary files in `tmp` below it.

    before : called in the new process before the command begins, such as to set limits.
    """

    def prepare() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # shells make what runs in the background ignore it
        if before is not None:
            before()

    pipe = subprocess.PIPE
    (folder / "tmp").mkdir(exist_ok=True)
    environment = ENVIRONMENT | {"TMPDIR": str(folder / "tmp")}
    command = [sys.executable, "-m", "corank", *arguments]
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True, preexec_fn=prepare
    )


def finish(process: subprocess.Popen[str]) -> tuple[int | None, str, str]:
    """Exit code (None if it hangs), output and errors."""
    try:
        out, err = process.communicate(timeout=HANGS)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        return None, out, err
    return process.returncode, out, err


def ratings(path: Path, users: int = 120, items: int = 60, rows: int = 1_500) -> None:
    """A small table of ratings with times."""
    rng = np.random.default_rng(5)
    pairs = rng.permutation(users * items)[:rows]
    lines = [
        f"u{pair // items},i{pair % items},{1 + (pair // items + pair % items) % 5},{1_600_000_000 + at * 60}"
        for at, pair in enumerate(pairs.tolist())
    ]
    path.write_text("user,item,rating,timestamp\n" + "\n".join(lines) + "\n")


def edges(path: Path, nodes: int = 400) -> None:
    """A small table of edges."""
    pairs = np.random.default_rng(6).integers(0, nodes, (4 * nodes, 2)).tolist()
    path.write_text("source,target\n" + "\n".join(f"{a},{b}" for a, b in pairs if a != b) + "\n")


def parts_in(folder: Path) -> list[str]:
    """Parts that were left behind."""
    return [str(p.relative_to(folder)) for p in folder.rglob("*.part")]


def last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1]
