"""The journal of a search: an append-only file that a kill or a full disk leaves readable."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from typing import Any

from optuna.storages.journal import JournalFileBackend

fcntl: Any
try:
    import fcntl
except ModuleNotFoundError:  # Windows: Optuna's own lock, which outlives a killed process by half a minute
    fcntl = None

logger = logging.getLogger("corank")


class _Lock:
    """A lock that the system releases when its process is gone."""

    def __init__(self, path: str) -> None:
        self.path = path

    def acquire(self) -> bool:
        self.handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        fcntl.flock(self.handle, fcntl.LOCK_EX)
        return True

    def release(self) -> None:
        os.close(self.handle)


class Journal(JournalFileBackend):
    """Optuna's journal file, whose last line is cut off where it is not whole.

    After a failed write the search goes on in memory: an interrupted one resumes from what was written before.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path, None if fcntl is None else _Lock(path))  # type: ignore[arg-type]
        self._memory: list[dict[str, Any]] | None = None
        self._lock.acquire()
        try:
            self._cut(_whole(path))
        finally:
            self._lock.release()

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        if self._memory is None:
            size = os.path.getsize(self._file_path)
            try:
                return super().append_logs(logs)
            except OSError as why:
                self._cut(size)
                self._memory = list(super().read_logs(0))
                logger.warning(
                    "the state of the search cannot be written to %s (%s): it goes on in memory",
                    self._file_path,
                    why.strerror,
                )
        self._memory += logs

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:  # type: ignore[override]
        if self._memory is None:
            return super().read_logs(log_number_from)
        return iter(self._memory[log_number_from:])

    def _cut(self, size: int) -> None:
        if size < os.path.getsize(self._file_path):
            os.truncate(self._file_path, size)


def _whole(path: str) -> int:
    """The bytes of a file up to the end of its last whole line."""
    with open(path, "rb") as file:
        end = file.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - (1 << 16))
            file.seek(start)
            found = file.read(end - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            end = start
    return 0
