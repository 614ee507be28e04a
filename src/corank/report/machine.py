"""What a figure was made with besides its settings: versions, commit and processor, printed on every page."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from .. import __version__

PARTS = ("numpy", "scipy", "numba", "polars", "torch", "optuna", "matplotlib")
SOURCE = Path(__file__).resolve().parents[1]
DIRTY = "with uncommitted changes"


def versions() -> str:
    """Those of corank and of the libraries that figures can depend on."""
    python = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    return f"corank {__version__}, {', '.join(_installed())}; {python}"


def _installed() -> Iterator[str]:
    for name in PARTS:
        try:
            yield f"{name} {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            continue


@cache
def processor() -> str:
    """The model of the processor and the number of CPUs."""
    name = platform.processor()
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            named = (line.partition(":")[2].strip() for line in file if line.startswith("model name"))
            name = next(named, name)
    except OSError:  # not Linux
        pass
    return f"{name or platform.machine() or 'unknown'}, {os.cpu_count()} CPUs"


def commit() -> str:
    """The commit of the sources where they are a checkout, marked if they were changed since."""
    if SOURCE.parent.name != "src" or not (SOURCE.parents[1] / ".git").exists():
        return "not recorded: not run from a checkout"
    try:
        found = _git("rev-parse", "--short=12", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", "src", "experiments")
    except (OSError, subprocess.SubprocessError):
        return "not recorded: git cannot be run"
    return f"{found} {DIRTY}" if changed else found


def _git(*words: str) -> str:
    asked = ["git", "-C", str(SOURCE.parents[1]), *words]
    return subprocess.run(asked, capture_output=True, text=True, timeout=20, check=True).stdout.strip()


def machine_facts() -> str:
    """Versions, commit and processor, in a sentence."""
    return f"{versions()}; commit {commit()}; {processor()}."
