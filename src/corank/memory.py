"""Free memory: what cannot fit raises an error before the operating system kills the process."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import CorankError


def free_bytes() -> int | None:
    """Memory that can be allocated without swapping; None where the system does not report it."""
    meminfo = Path("/proc/meminfo")  # Linux; elsewhere the total memory is used instead
    if meminfo.exists():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return None


def make_room(need: float, what: str, remedy: str) -> None:
    """Raise an error if `need` exceeds the free memory (bytes)."""
    free = free_bytes()
    if free is not None and need > free:
        raise CorankError(f"{what} needs {need / 1e9:.1f} GB and {free / 1e9:.1f} GB are free: {remedy}")
