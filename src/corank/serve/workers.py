"""What the workers of one service share: the table of models, in a small file that each of them keeps reading."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ..system.atomic import write_text

FILE = "serving.json"


class Shared:
    """The table of models in a folder that belongs to one run of a service; without a folder it does nothing."""

    def __init__(self, folder: str | None) -> None:
        self.path = None if folder is None else Path(folder) / FILE
        self._read: tuple[int, int] | None = None  # inode and time of what was read or written last

    def write(self, state: dict[str, Any]) -> None:
        """Tell the other workers what is served now."""
        if self.path is not None:
            write_text(self.path, json.dumps(state))
            self._read = self._stamp()

    def news(self) -> dict[str, Any] | None:
        """What another worker has written since the last time; None if nothing."""
        stamp = self._stamp()
        if self.path is None or stamp is None or stamp == self._read:
            return None
        self._read = stamp
        return dict(json.loads(self.path.read_text("utf-8")))

    def _stamp(self) -> tuple[int, int] | None:
        if self.path is None:
            return None
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns
