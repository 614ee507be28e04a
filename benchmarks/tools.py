"""What the benchmarks share: data, the best of several timings, tables, and measuring in a process of its own."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import corank as cr
from corank.report import palette, svg
from corank.report.machine import processor

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Table:
    """Rows of text under a header, and perhaps pictures; prints as Markdown."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str
    pictures: Mapping[str, str] = field(default_factory=dict)  # SVG by name

    def __str__(self) -> str:
        lines = [self.header, ["---"] * len(self.header), *self.rows]
        table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        shown = [f"![{self.title}: {name}](speed-{name}.svg)" for name in self.pictures]
        return "\n\n".join([f"## {self.title}", table, self.note, *shown]) + "\n"


def best_of(work: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """The shortest of several timings of each piece of work, taken in turns: a busy moment then hits all alike."""
    best = dict.fromkeys(work, float("inf"))
    for _ in range(repeats):
        for name, call in work.items():
            start = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def growth_picture(name: str, what: str, spent: str, found: list[tuple[int, float]], exponent: float) -> str:
    """Seconds `spent` against `what` on logarithmic axes, beside a line of exponent 1; SVG."""
    x, y = np.array(found).T

    def paint(ax: Any) -> None:
        ax.plot(x, y[0] * x / x[0], color=palette.FAINT, lw=1, zorder=0)
        ax.plot(x, y, color=palette.BLUE, marker="o", ms=5, lw=1.8)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.text(0.04, 0.9, f"exponent {exponent:.2f} (grey: 1)", transform=ax.transAxes)
        svg.log_ticks(ax, lambda v: f"{v:g} s", "y")
        svg.log_ticks(ax, lambda n: f"{n / 1e6:g} M" if n >= 1e5 else f"{n:,.0f}")
        ax.set_xlabel(what)
        ax.set_ylabel(spent)

    return svg.draw(name, paint, f"{spent.capitalize()} against {what}", 2.6)


def movielens() -> tuple[str, cr.Dataset]:
    """MovieLens-1M where it is, else made-up data of its shape."""
    root = os.environ.get("CORANK_DATA") or ROOT.parent / "shared" / "data"
    try:
        return "ML-1M", cr.datasets.load("ml-1m", root=root)
    except cr.CorankError:
        made = cr.synthetic.realistic(users=6_040, items=3_706, rows=1_000_000)
        return "synthetic, ML-1M shape", made.data


def twenty_million() -> tuple[str, cr.Dataset]:
    """Made-up data of the shape of MovieLens-20M."""
    made = cr.synthetic.realistic(users=138_000, items=20_000, rows=20_000_000)
    return "synthetic, 138,000 x 20,000, 20 M rows", made.data


def in_process(code: str, **environment: str) -> dict[str, Any]:
    """Run `code`, which prints one JSON object last, in a fresh interpreter."""
    env = {**os.environ, **environment}
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def versions() -> str:
    """The machine and the versions of what is measured."""
    parts = [f"{name} {version(name)}" for name in ("corank", "numpy", "numba", "implicit")]
    return f"{processor()}, Python {platform.python_version()}, {', '.join(parts)}."


def machine() -> str:
    """What was measured where."""
    return f"{versions()} Ratios above 1: corank is faster."
