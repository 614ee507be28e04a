"""Named public datasets, read in the layout in which they are published, from a folder of yours.

    datasets.names()                    what there is
    datasets.info("ml-1m")              title, citation, terms, address
    datasets.load("ml-1m")              the rows
    datasets.load_split("douban")       train and test as published, for sets that come with a split

The root folder is `root`, else the environment variable CORANK_DATA, else `corank` in the user's cache folder.
"""

from __future__ import annotations

import difflib
import logging
import os
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Dataset, settle_duplicates
from ..data.split import Split
from ..errors import CorankError
from .archive import Files
from .catalogue import CATALOGUE, Info, Source, info

__all__ = ["Info", "Source", "default_root", "info", "load", "load_split", "locate", "names", "open_any"]

log = logging.getLogger("corank.datasets")

TABLES = (".csv", ".tsv", ".parquet", ".pq")


def names() -> list[str]:
    """The datasets that `load` knows, sorted."""
    return sorted(CATALOGUE)


def default_root() -> Path:
    """CORANK_DATA, else `corank` in XDG_CACHE_HOME or ~/.cache."""
    if given := os.environ.get("CORANK_DATA"):
        return Path(given).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "corank"


def load(name: str, root: str | Path | None = None) -> Dataset:
    """All rows of a named dataset (training and test together where it comes with a split)."""
    entry = info(name)
    files = locate(entry, root)
    return _read(entry, files, files.place)


def load_split(name: str, root: str | Path | None = None) -> Split:
    """The split that a dataset is published with; there is no validation part in any of them, so `valid` is empty."""
    entry = info(name)
    if entry.read_split is None:
        with_split = [known.name for known in CATALOGUE.values() if known.read_split is not None]
        raise CorankError(
            f"dataset {name!r} comes without a published split: load it and split it, with leave_last_out or holdout "
            f"for example; with a split come {', '.join(sorted(with_split))}"
        )
    data, is_test = entry.read_split(locate(entry, root))
    nothing = np.zeros(len(data), np.bool_)
    return Split(data.take(~is_test), data.take(nothing), data.take(is_test), f"{name} as published")


def locate(entry: Info, root: str | Path | None = None) -> Files:
    """The folder or archive under the root that holds the files of a dataset."""
    top = Path(root).expanduser() if root is not None else default_root()
    for place in entry.places:
        if found := _holding(entry, top / place):
            return found
    archives = [f"{place}.zip" for place in entry.places] + [s.file for s in entry.sources if s.file.endswith(".zip")]
    for archive in archives:
        if (top / archive).is_file() and (found := _holding(entry, top / archive)):
            return found
    # A root that was named may be the folder of the set itself; the default one is shared by all sets.
    if root is not None and (found := _holding(entry, top)):
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


def open_any(path: str | Path, **options: Any) -> Dataset:
    """What a person means by one word: an archive or a folder of a known set, the name of a set, or a table.

    options : `user`, `item`, `value`, `time`, `separator` ... for tables, as in `read_csv`; `duplicates` for all.
    """
    options = {key: value for key, value in options.items() if value is not None}
    place = Path(path).expanduser()
    if place.is_file() and place.suffix != ".zip":
        known = None if options else _read_known(place)
        return _read_table(place, options) if known is None else known
    duplicates = options.pop("duplicates", None)
    if options:
        given = next(iter(options))
        raise CorankError(f"{given}= is for CSV and Parquet files and {str(path)!r} is not one: leave it out")
    if place.exists() and (entries := _recognise(place)):
        data = _read_first(entries, place)
    elif str(path) in CATALOGUE:
        data = load(str(path))
    elif place.exists():
        raise CorankError(
            f"{place} is not laid out like any known dataset: give the table in it (.csv, .tsv, .parquet), "
            "or rename the files as their publisher does"
        )
    else:
        raise _nothing_there(place)
    return data if duplicates is None else settle_duplicates(data, duplicates, tell=True)


def _read(entry: Info, files: Files, shown: Path) -> Dataset:
    """The rows; what they were taken for is logged, because a file may only happen to have the name of a known one."""
    if entry.read is not None:
        data = entry.read(files)
    else:
        assert entry.read_split is not None  # the catalogue gives every set one of the two
        data = entry.read_split(files)[0]
    log.info("%s: read as %s (%s): %s", shown, entry.name, entry.title, ", ".join(_parts(data)))
    return data


def _parts(data: Dataset) -> list[str]:
    """What the rows of a set tell, in words."""
    parts = ["user", "item"]
    if np.any(data.value != 1):
        parts.append("rating")
    if data.time is not None:
        in_order = np.array_equal(data.time, np.arange(len(data)))
        parts.append("place in the file as time" if in_order else "timestamp")
    return parts + [f"{side} graph" for side in ("user", "item") if getattr(data, f"{side}_graph") is not None]


def _holding(entry: Info, place: Path) -> Files | None:
    """The place itself, or an archive in it, if it has all the files."""
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


def _read_known(path: Path) -> Dataset | None:
    """A single file as the known set whose name it has; None where its lines say that it is something else."""
    entries = [] if path.suffix in TABLES else _recognise(path)
    if not entries:
        return None
    try:
        data = _read_first(entries, path)
    except CorankError:
        log.info("%s: has the name of a file of %s but not its lines: read as a table", path, entries[0].name)
        return None
    log.info("%s: to read it as any other table, name its columns or a rule for duplicates", path)
    return data


def _recognise(path: Path) -> list[Info]:
    """The known datasets that a folder, an archive, or the folder of a file looks like; those with its name first."""
    if path.is_file() and path.suffix != ".zip":
        plain = path.name.removesuffix(".gz")
        # The file must stand for its set: one half of a published split is a table like any other.
        whole = [e for e in CATALOGUE.values() if e.read is not None or len(e.files) == 1]
        entries = [e for e in whole if plain in e.files[0].split(" or ") and _holding(e, path.parent)]
        folder = path.parent
    else:
        entries = [e for e in CATALOGUE.values() if _holding(e, path)]
        folder = path.with_suffix("") if path.suffix == ".zip" else path
    by_name = [e for e in entries if any(folder.resolve().match(p) for p in e.places)]
    return by_name or entries


def _read_first(entries: list[Info], path: Path) -> Dataset:
    """Sets that share their file names differ in the form of the lines: the first reader that accepts them is right."""
    if len({entry.files for entry in entries}) > 1:
        raise CorankError(f"{path} holds several datasets: name one of {', '.join(e.name for e in entries)}")
    problem: CorankError | None = None
    place = path.parent if path.is_file() and path.suffix != ".zip" else path
    for entry in entries:
        files = _holding(entry, place)
        assert files is not None  # `_recognise` has looked
        try:
            return _read(entry, files, path)
        except CorankError as error:
            problem = problem or error
    assert problem is not None
    raise problem


def _read_table(path: Path, options: dict[str, Any]) -> Dataset:
    from ..reading.parquet import is_parquet
    from ..reading.tables import read_csv, read_parquet

    if not is_parquet(path):
        return read_csv(path, **options)
    for given in ("separator", "header"):
        if given in options:
            raise CorankError(f"{given}= is for text files and {str(path)!r} is Parquet: leave it out")
    return read_parquet(path, **options)


def _nothing_there(path: Path) -> CorankError:
    beside = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, [*CATALOGUE, *beside], n=1, cutoff=0.75)
    if near:
        return CorankError(f"there is no file and no dataset {str(path)!r}; did you mean {near[0]!r}?")
    return CorankError(f"there is no file {str(path)!r}; `corank data list` names the public datasets")
