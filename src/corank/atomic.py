"""Files that are whole or not there: written beside the target, renamed into place."""

from __future__ import annotations

import contextlib
import glob
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from .errors import CorankError

STALE = 3600  # seconds


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A path to write to; it takes the place of `path` when the block ends well, and disappears when it does not."""
    path = Path(path)
    if path.is_dir():
        raise CorankError(f"{path} is a folder: give a file name in it")
    part: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        os.close(handle)
        part = Path(name)
        yield part
        part.chmod(0o644)
        with part.open("rb") as file:
            os.fsync(file.fileno())  # the name must not point at data that a power cut loses
        part.replace(path)
        _sweep(path)
    except OSError as why:
        raise CorankError(f"cannot write {path}: {why.strerror}; choose a folder that can be written to") from None
    finally:
        if part is not None:
            part.unlink(missing_ok=True)


def _sweep(path: Path) -> None:
    """Remove partial files left by killed saves to the same name: those not modified for an hour."""
    for stale in path.parent.glob(f".{glob.escape(path.name)}.{'?' * 8}.part"):  # eight: the letters of `mkstemp`
        with contextlib.suppress(OSError):  # another process may be sweeping too
            if time.time() - stale.stat().st_mtime > STALE:
                stale.unlink()


def write_text(path: str | Path, text: str) -> None:
    """Write a text file in one go."""
    with replacing(path) as part:
        part.write_text(text, "utf-8", errors="replace", newline="\n")
