"""Files that are whole or not there: written beside the target, renamed into place.

A part is locked while it is written, and the system releases the lock of a process that is gone. That tells the parts
of killed processes from those that are being written; they are removed when a file beside them is read or written.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import CorankError, NotWritten

fcntl: Any
try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None

PART = re.compile(r"\..*\.corank-[a-z0-9_]{8}\.part", re.DOTALL)  # eight: the letters of `mkstemp`
STALE = 3600  # seconds after which a part is removed where files cannot be locked
LONGEST = 180  # bytes of the target's name in that of its part; a name has at most 255 on most systems
NO_ROOM = {
    errno.ENOSPC: "make room, or choose a folder on another disk",
    errno.EDQUOT: "make room, or choose a folder on another disk",
    errno.EFBIG: "raise the limit on the size of files (ulimit -f)",
}
# The words of libraries in other languages for the number of a system error (safetensors, polars).
_NUMBER = re.compile(r"os error (\d+)|\[Errno (\d+)\]")


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A path to write to; it takes the place of `path` when the block ends well, and disappears when it does not.

    A failure of the system (a full disk, missing rights), whichever library reports it, is raised as `NotWritten`.
    """
    path = Path(path)
    if path.is_dir():
        raise CorankError(f"{path} is a folder: give a file name in it")
    sweep(path.parent)  # before: on a full disk, room is needed now
    part: Path | None = None
    lock: int | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part, lock = _new_part(path)
        yield part
        part.chmod(0o644)
        with part.open("rb") as file:
            os.fsync(file.fileno())  # the name must not point at data that a power cut loses
        part.replace(path)
    except Exception as why:
        failure = system_error(why)
        if failure is None:
            raise
        remedy = NO_ROOM.get(failure.errno or 0, "choose a folder that can be written to")
        raise NotWritten(f"cannot write {path}: {failure.strerror or failure}; {remedy}") from None
    finally:
        if part is not None:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
        if lock is not None:
            os.close(lock)


def system_error(why: Exception) -> OSError | None:
    """The failure of the system that an exception is about, with the number in its text; None if it is about none."""
    if isinstance(why, CorankError):
        return None
    if isinstance(why, OSError) and why.errno is not None:
        return why
    found = _NUMBER.search(str(why))
    if found is None:
        return why if isinstance(why, OSError) else None
    number = int(found[1] or found[2])
    return OSError(number, os.strerror(number))


def sweep(folder: str | Path) -> None:
    """Remove the parts that killed processes left in a folder."""
    try:
        with os.scandir(folder) as entries:
            parts = [entry.path for entry in entries if PART.fullmatch(entry.name)]
    except OSError:
        return
    for part in parts:
        with contextlib.suppress(OSError):  # not ours to remove, or another process is sweeping too
            handle = os.open(part, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
            try:
                free = _lock(handle)
                if free is None:
                    free = time.time() - os.fstat(handle).st_mtime > STALE
                if free:
                    os.unlink(part)
            finally:
                os.close(handle)


def write_text(path: str | Path, text: str) -> None:
    """Write a text file in one go."""
    with replacing(path) as part:
        part.write_text(text, "utf-8", errors="replace", newline="\n")


def _new_part(path: Path) -> tuple[Path, int | None]:
    """An empty file beside `path`, and the handle that holds its lock (None on Windows, which renames no open file)."""
    name = os.fsdecode(os.fsencode(path.name)[:LONGEST])
    while True:
        handle, part = tempfile.mkstemp(dir=path.parent, prefix=f".{name}.corank-", suffix=".part")
        try:
            if fcntl is None:
                os.close(handle)
                return Path(part), None
            # Another process may have seen the file before it was locked, and taken it for one that was left.
            if _lock(handle) is not False and os.path.exists(part):
                return Path(part), handle
            os.close(handle)
        except BaseException:  # Ctrl-C
            os.unlink(part)
            raise


def _lock(handle: int) -> bool | None:
    """Whether the lock of an open file is ours now; None where this system or this disk has no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
