"""Small things that tests of reading share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import corank as cr


def rows_of(data: cr.Dataset) -> list[tuple[Any, ...]]:
    """Each row as (user, item, value, time), with the ids that went in."""
    times = [None] * len(data) if data.time is None else data.time.tolist()
    ids = data.users.ids[data.user].tolist(), data.items.ids[data.item].tolist()
    return list(zip(*ids, data.value.tolist(), times, strict=True))


def write(folder: Path, text: str, name: str = "data.csv") -> Path:
    """A file with exactly this text; its path."""
    path = folder / name
    path.write_bytes(text.encode())
    return path
