"""The limits of the container, or of the shell, that a process runs in: its control groups, processors and `ulimit`."""

from __future__ import annotations

import contextlib
import functools
import math
import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
USED = Path("/proc/self/statm")  # pages: of the address space first, of private data sixth


def groups(controller: str) -> list[tuple[Path, int]]:
    """The folders of this process's control groups and of those above them, with the version (1 or 2) of their files.

    controller : 'memory' or 'cpu'.
    """
    try:
        lines = MEMBERSHIP.read_text().splitlines()
    except OSError:
        return []
    out = []
    for line in lines:
        number, names, path = [*line.split(":", 2), "", ""][:3]
        if names and controller not in names.split(","):
            continue
        version = 1 if names else 2
        root = CGROUP
        if names:  # 'cpu' is often mounted together with 'cpuacct', under both names
            root = next(
                (CGROUP / name for name in (controller, names) if (CGROUP / name).is_dir()), CGROUP / controller
            )
        elif number == "0" and (CGROUP / "unified").is_dir():  # both versions side by side
            root = CGROUP / "unified"
        folder = root / path.lstrip("/")
        # Inside a container the path is that of the host, and the root of what is mounted is the group itself.
        out += [(place, version) for place in (folder, *folder.parents) if place.is_relative_to(root)]
    return out


def cores() -> int:
    """Processors that this process may use: those it is bound to, or as many as its control groups pay for."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    return max(1, math.ceil(min(bound, _quota())))


@functools.cache
def _quota() -> float:
    """Processors' worth of time that the control groups allow; infinite without a limit. Read once per process."""
    allowed = [math.inf]
    for folder, version in groups("cpu"):
        with contextlib.suppress(OSError, ValueError):
            if version == 2:
                quota, period = (folder / "cpu.max").read_text().split()
            else:
                quota, period = ((folder / f"cpu.cfs_{name}_us").read_text().strip() for name in ("quota", "period"))
            if quota not in ("max", "-1") and int(period) > 0:
                allowed.append(int(quota) / int(period))
    return min(allowed)


def address_space() -> int | None:
    """Bytes that `ulimit -v` (addresses) and `ulimit -d` (data) leave; None without such a limit."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    left = []
    for limit, field in ((resource.RLIMIT_AS, 0), (resource.RLIMIT_DATA, 5)):
        most = resource.getrlimit(limit)[0]
        if most == resource.RLIM_INFINITY:
            continue
        try:
            used = int(USED.read_text().split()[field]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ValueError, IndexError):
            used = 0
        left.append(most - used)
    return max(0, min(left)) if left else None
