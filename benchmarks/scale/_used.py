"""Seconds and memory of a piece of work."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from corank.training import clock

OFTEN = 0.02  # seconds between two looks at the memory


class Used:
    """`with Used() as used: ...` measures wall and processor seconds (without compilation) and the growth of memory.

    anonymous : memory that the work allocated at its peak, in bytes. resident : pages of mapped files too, which the
        system keeps in memory as long as nothing else needs it.
    """

    def __enter__(self) -> Self:
        self._before, self._stop = _memory(), threading.Event()
        self.anonymous = self.resident = 0
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        self._began = clock(), time.process_time()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.seconds, self.processor = clock() - self._began[0], time.process_time() - self._began[1]
        self._stop.set()
        self._thread.join()
        self._look()

    def _watch(self) -> None:
        while not self._stop.wait(OFTEN):
            self._look()

    def _look(self) -> None:
        anonymous, resident = _memory()
        self.anonymous = max(self.anonymous, anonymous - self._before[0])
        self.resident = max(self.resident, resident - self._before[1])

    def line(self) -> dict[str, float]:
        """What was used, for the record."""
        return {
            "seconds": round(self.seconds, 2),
            "processor": round(self.processor, 2),
            "anonymous": self.anonymous / 1e9,
            "resident": self.resident / 1e9,
        }


def _memory() -> tuple[int, int]:
    """Bytes of anonymous memory and of all resident memory of this process."""
    with open("/proc/self/status", encoding="ascii") as file:
        found = dict(line.split(":", 1) for line in file)
    return int(found["RssAnon"].split()[0]) * 1024, int(found["VmRSS"].split()[0]) * 1024
