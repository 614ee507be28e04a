"""Free memory: what cannot fit raises an error before the operating system kills the process."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from ..errors import CorankError
from .limits import address_space, groups

UNLIMITED = 1 << 60  # cgroup v1 writes a number of this size where there is no limit
FILES = {  # of a control group: its limit, what it uses, and the line of memory.stat with pages that can be given up
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    2: ("memory.max", "memory.current", "inactive_file"),
}
# Addresses that are taken beside what is counted: stacks and heaps of threads, machine code, buffers of BLAS.
UNCOUNTED = 256_000_000
# Addresses that libraries reserve when they are loaded and first used, most of them never touched. Some of them end the
# process where `ulimit -v` leaves fewer, so that is asked before they are loaded.
ADDRESSES = {"polars": 1_300_000_000, "numba": 450_000_000, "torch": 800_000_000}
OUT_OF_MEMORY = ("can't allocate memory", "cannot allocate memory", "not enough memory", "can't start new thread")


def free_bytes() -> int | None:
    """Memory that can be allocated without swapping, or hitting a container's limit or `ulimit`; None if unknown."""
    known = [free for free in (_system(), _container(), _addresses()) if free is not None]
    return min(known, default=None)


def _system() -> int | None:
    meminfo = Path("/proc/meminfo")  # Linux; elsewhere the total memory is used instead
    if meminfo.exists():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return None


def _container() -> int | None:
    """What the limits of this process's control groups (Docker, Kubernetes, systemd) leave; None without a limit."""
    left = []
    for folder, version in groups("memory"):
        limit, used, cache = FILES[version]
        try:
            most = (folder / limit).read_text().strip()
            if most == "max" or int(most) >= UNLIMITED:
                continue
            stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
            # Pages of files that were read are counted as used, and given up when memory is needed.
            left.append(int(most) - int((folder / used).read_text()) + int(stat.get(cache, 0)))
        except (OSError, ValueError):
            continue
    return max(0, min(left)) if left else None


def _addresses() -> int | None:
    left = address_space()
    return None if left is None else max(0, left - UNCOUNTED)


def make_room(need: float, what: str, remedy: str) -> None:
    """Raise an error if `need` exceeds the free memory (bytes)."""
    free = free_bytes()
    if free is not None and need > free:
        raise CorankError(no_room(need, free, what, remedy))


def room_for(*libraries: str) -> None:
    """Raise an error if `ulimit -v` leaves too few addresses to load those of these libraries that are not loaded."""
    need, left = sum(ADDRESSES[name] for name in libraries if name not in sys.modules), address_space()
    if need and left is not None and left < need + UNCOUNTED:
        raise CorankError(
            f"the limit on addresses (ulimit -v) leaves {_in_units(left)}, and {' and '.join(libraries)} reserve "
            f"{_in_units(need + UNCOUNTED)}: raise the limit, or limit the memory of a container instead"
        )


def no_room(need: float, free: float, what: str, remedy: str) -> str:
    """Why something does not fit, and what to do."""
    return f"{what} needs {_in_units(need)} and {_in_units(free)} are free: {remedy}"


@contextlib.contextmanager
def one_sentence(what: str, remedy: str | Callable[[], str]) -> Iterator[None]:
    """Where memory runs out all the same within this block, an error that says so in place of a `MemoryError`."""
    try:
        yield
    except (MemoryError, RuntimeError, OSError, ImportError) as why:
        if not ran_out(why):
            raise
        said = remedy if isinstance(remedy, str) else remedy()
        free = free_bytes()
        left = "" if free is None else f" ({_in_units(free)} are free)"
        raise CorankError(f"{what} ran out of memory{left}: {said}") from None


def ran_out(why: BaseException) -> bool:
    """Whether an error says that memory, addresses or threads ran out; torch and the loader of libraries use others."""
    if isinstance(why, MemoryError):
        return True
    text = str(why).lower()
    return any(words in text for words in OUT_OF_MEMORY) or "failed to map segment" in text


def _in_units(size: float) -> str:
    if size >= 0.1e9:
        return f"{size / 1e9:,.1f} GB"
    return f"{size / 1e6:,.0f} MB" if size >= 1e6 or size == 0 else f"{size / 1e3:,.0f} kB"


def in_gigabytes(size: float) -> str:
    """Bytes as an estimate is told."""
    return f"{size / 1e9:.1f} GB" if size >= 0.05e9 else "under 0.1 GB"
