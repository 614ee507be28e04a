"""Free memory: what cannot fit raises an error before the operating system kills the process."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import CorankError

CGROUP = Path("/sys/fs/cgroup")
UNLIMITED = 1 << 60  # cgroup v1 writes a number of this size where there is no limit


def free_bytes() -> int | None:
    """Memory that can be allocated without swapping or hitting a container's limit; None where nothing reports it."""
    known = [free for free in (_system(), _container()) if free is not None]
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
    for folder, limit, used, cache in _groups():
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


def _groups() -> list[tuple[Path, str, str, str]]:
    """The folders of this process's memory groups and of those above them, with the names of their files."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    out = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root = CGROUP / "memory" if controllers else CGROUP
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        if not controllers:
            names = ("memory.max", "memory.current", "inactive_file")
        folder = root / path.lstrip("/")
        # Inside a container the path is that of the host, and the root of what is mounted is the group itself.
        out += [(place, *names) for place in (folder, *folder.parents) if place.is_relative_to(root)]
    return out


def make_room(need: float, what: str, remedy: str) -> None:
    """Raise an error if `need` exceeds the free memory (bytes)."""
    free = free_bytes()
    if free is not None and need > free:
        raise CorankError(no_room(need, free, what, remedy))


def no_room(need: float, free: float, what: str, remedy: str) -> str:
    """Why something does not fit, and what to do."""
    return f"{what} needs {need / 1e9:.1f} GB and {free / 1e9:.1f} GB are free: {remedy}"


def in_gigabytes(size: float) -> str:
    """Bytes as an estimate is told."""
    return f"{size / 1e9:.1f} GB" if size >= 0.05e9 else "under 0.1 GB"
