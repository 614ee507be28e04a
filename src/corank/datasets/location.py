"""Where the files of a named dataset are, and how its entry in the catalogue is read from them."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import numpy as np

from ..data import Dataset, Duplicates, settle_duplicates
from ..data.given import noted
from ..data.split import Split
from ..errors import CorankError
from .archive import Files
from .entry import Info

log = logging.getLogger("corank.datasets")


def default_root() -> Path:
    """CORANK_DATA, else `corank` in XDG_CACHE_HOME or ~/.cache."""
    if given := os.environ.get("CORANK_DATA"):
        return Path(given).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "corank"


def locate(entry: Info, root: str | Path | None = None) -> Files:
    """The folder or archive under the root that holds the files of a dataset."""
    top = Path(root).expanduser() if root is not None else default_root()
    for place in entry.places:
        if found := holding(entry, top / place):
            return found
    archives = [f"{place}.zip" for place in entry.places] + [s.file for s in entry.sources if s.file.endswith(".zip")]
    for archive in archives:
        if (top / archive).is_file() and (found := holding(entry, top / archive)):
            return found
    # A given root may be the folder of the dataset itself; the default root is shared by all datasets.
    if root is not None and (found := holding(entry, top)):
        return found
    remedy = (
        f"get it with  corank data fetch {entry.name}"
        if entry.sources
        else f"it has no direct download, so get it from {entry.publisher} and put the files in {top / entry.name}"
    )
    raise CorankError(
        f"dataset {entry.name!r} is not in {top}: expected {' and '.join(entry.files)} in {' or '.join(entry.places)} "
        f"(a folder or a zip archive); {remedy}"
    )


def holding(entry: Info, place: Path) -> Files | None:
    """The files of a dataset in this folder or archive, or in an archive in this folder; None if some are missing."""
    if place.is_file():
        files = Files(place)
        return files if files.holds(entry.files) else None
    if not place.is_dir():
        return None
    files = Files(place)
    if files.holds(entry.files):
        return files
    for archive in sorted(place.glob("*.zip")):
        wanted = {s.file for s in entry.sources} | {f"{p}.zip" for p in entry.places}
        if archive.name in wanted and (files := Files(archive)).holds(entry.files):
            return files
    return None


def read_entry(entry: Info, files: Files, shown: Path | None = None) -> Dataset:
    """All rows; what was read is logged, because a file may have the name of a known one only by accident."""
    if entry.read is not None:
        data = entry.read(files)
    else:
        assert entry.read_split is not None  # every entry has one of the two
        data = entry.read_split(files)[0]
    log.info("%s: read as %s (%s): %s", shown or files.place, entry.name, entry.title, ", ".join(_contents(data)))
    return data


def read_split(entry: Info, files: Files, duplicates: Duplicates | None = None) -> Split:
    """The published split, which is named after the dataset."""
    assert entry.read_split is not None  # the caller has checked it
    data, is_test = entry.read_split(files)
    nothing = np.zeros(len(data), np.bool_)
    parts = [data.take(~is_test), data.take(nothing), data.take(is_test)]
    if duplicates is not None:
        parts = [settle_duplicates(part, duplicates, tell=True) for part in parts]
    log.info("%s: read as %s (%s), with its published split", files.place, entry.name, entry.title)
    train, valid, test = parts
    return noted(Split(train, valid, test, published_name(entry)))


def published_name(entry: Info) -> str:
    beside = f" ({' and '.join(entry.split_files)})" if entry.split_files else ""
    return f"{entry.name} as published{beside}"


def _contents(data: Dataset) -> list[str]:
    """What a dataset contains, in words."""
    parts = ["user", "item"]
    if data.values != "none":
        parts.append("count" if data.values == "counts" else "rating")
    if data.time is not None:
        in_order = np.array_equal(data.time, np.arange(len(data)))
        parts.append("place in the file as time" if in_order else "timestamp")
    return parts + [f"{side} graph" for side in ("user", "item") if getattr(data, f"{side}_graph") is not None]
