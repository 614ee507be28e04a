"""Results that took long are kept elsewhere where they cannot be written, and the error says where."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ..errors import NotWritten

AGAIN = 0.5  # seconds until the second attempt


def keep(what: str, path: Path, write: Callable[[Path], object]) -> None:
    """Call `write(path)`, twice if need be, and then for other folders: `NotWritten` unless `path` is written."""
    try:
        write(path)
        return
    except NotWritten:
        time.sleep(AGAIN)  # somebody may have made room, or a network disk may be back
    try:
        write(path)
        return
    except NotWritten as why:
        reason = str(why)
    tried = []
    for folder in _others():
        own = None
        try:
            own = tempfile.mkdtemp(prefix="corank-", dir=folder)
            write(Path(own) / path.name)
        except (NotWritten, OSError):
            tried.append(folder)
            if own is not None:
                with contextlib.suppress(OSError):
                    os.rmdir(own)
        else:
            raise NotWritten(f"{reason}; the {what} is kept in {Path(own) / path.name}")
    raise NotWritten(f"{reason}; the {what} could not be kept elsewhere either ({', '.join(tried)})")


def _others() -> Iterator[str]:
    """Folders that may have room where the one that was asked for has none."""
    seen = set()
    for find in (tempfile.gettempdir, Path.home, Path.cwd):
        with contextlib.suppress(OSError, RuntimeError):  # no folder is writable, no home, a folder that was removed
            folder = str(find())
            if folder not in seen:
                seen.add(folder)
                yield folder
