"""Named public datasets, read from their published files in a local folder.

    datasets.names()                    the known names
    datasets.info("ml-1m")              title, citation, terms, address
    datasets.load("ml-1m")              all rows
    datasets.load_split("douban")       train and test as published, for datasets with a published split
    datasets.open_split("my-folder")    the split that a folder, archive or name comes with, if any

The root folder is `root`, else the environment variable CORANK_DATA, else `corank` in the user's cache folder.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from ..data import Dataset, settle_duplicates
from ..data.split import Split
from ..data.values import declared
from ..errors import CorankError, shorten
from ..reading.packed import exists, is_zip, ordinary
from . import folders
from .catalogue import CATALOGUE, info
from .entry import Info
from .location import holding, locate, published_name, read_entry, read_split

log = logging.getLogger("corank.datasets")

TABLES = (".csv", ".tsv", ".parquet", ".pq")


def names() -> list[str]:
    """The names that `load` knows, sorted."""
    return sorted(CATALOGUE)


def load(name: str, root: str | Path | None = None) -> Dataset:
    """All rows of a named dataset (training and test together where it comes with a split)."""
    entry = info(name)
    return read_entry(entry, locate(entry, root))


def load_split(name: str, root: str | Path | None = None) -> Split:
    """The published split of a dataset; none of them has a validation part, so `valid` is empty (`with_validation`)."""
    entry = info(name)
    if entry.read_split is None:
        with_split = [known.name for known in CATALOGUE.values() if known.read_split is not None]
        raise CorankError(
            f"dataset {name!r} comes without a published split: load it and split it, with leave_last_out or holdout "
            f"for example; with a split come {', '.join(sorted(with_split))}"
        )
    return read_split(entry, locate(entry, root))


def open_any(path: str | Path, **options: Any) -> Dataset:
    """A dataset from any one of: a table, several tables with the same columns (a folder or a pattern with *), the name
    of a known dataset, or the folder or archive of one. All rows, where it comes with a split.

    options : `user`, `item`, `value`, `time`, `separator` ... for tables, as in `read_csv`; `duplicates` and `values`
        for all.
    """
    options = {key: value for key, value in options.items() if value is not None}
    if several := folders.matching(str(path)):
        return folders.read_together(several, options)
    place = Path(path).expanduser()
    ordinary(place)
    if exists(place) and not is_zip(place):
        known = None if options.keys() - {"values"} else _read_known(place)
        return folders.read_table(place, options) if known is None else declared(known, options.get("values", "auto"))
    if (parts := _own_parts(place)) is not None:
        return folders.read_parts(place, parts, options).all_rows()
    duplicates, values = options.get("duplicates"), options.get("values", "auto")
    if place.exists() and (entries := _recognise(place)):
        _no_options(path, options)
        data = _read_first(entries, place)
    elif str(path) in CATALOGUE:
        _no_options(path, options)
        data = load(str(path))
    elif place.exists():
        made = folders.read_tables(place, options)
        if made is None:
            inside = ", ".join(sorted(p.name for p in place.iterdir() if p.is_dir())) if place.is_dir() else ""
            if inside:
                raise CorankError(f"{place} holds no table, but folders: give one of {shorten(inside, 200)}")
            if place.is_dir() and not any(place.iterdir()):
                raise CorankError(f"{place} is an empty folder: give one that holds a table (.csv, .tsv, .parquet)")
            raise CorankError(
                f"{place} is not laid out like any known dataset: give the table in it (.csv, .tsv, .parquet), "
                "or rename the files as their publisher does"
            )
        return made
    else:
        raise _nothing_there(place)
    return declared(data if duplicates is None else settle_duplicates(data, duplicates, tell=True), values)


def require_source(path: str | Path) -> None:
    """Raise early if there is no such file, folder or dataset; whether it can be read is found when it is opened."""
    place = Path(path).expanduser()
    try:
        there = str(path) in CATALOGUE or exists(place) or place.exists() or bool(folders.matching(str(path)))
    except OSError as why:  # a name of thousands of characters
        raise CorankError(f"{shorten(str(path))!r} cannot be a file: {why.strerror}") from None
    if not there:
        raise _nothing_there(place)


def open_split(path: str | Path, *, ordered: bool = False, **options: Any) -> Split | None:
    """The split that a source comes with, if any: the published one of a known dataset, or train.* and test.* (and
    valid.*) of a folder or archive.

    ordered : the task depends on the order of the rows, so that a split of rows at random beside a dataset with times
        (ml-100k) does not count.
    options : as in `open_any`, for the tables of a folder.
    """
    found = _find_split(path, ordered, {key: value for key, value in options.items() if value is not None})
    return None if found is None else found[1]()


def split_name(path: str | Path) -> str | None:
    """The name of the split that a source comes with, if any, without reading it."""
    found = _find_split(path, False, {})
    return None if found is None else found[0]


def _find_split(path: str | Path, ordered: bool, options: dict[str, Any]) -> tuple[str, Callable[[], Split]] | None:
    """The name of the split that a source comes with, and what reads it; see `open_split`."""
    place = Path(path).expanduser()
    if exists(place) and not is_zip(place):  # a file that holds both parts
        own = [] if options or place.suffix in TABLES else [e for e in _recognise(place) if e.read is None]
        held = [(e, files) for e in own if len(e.files) == 1 and (files := holding(e, place.parent)) is not None]
    elif (parts := _own_parts(place)) is not None:
        return folders.given_name(place, parts), lambda: folders.read_parts(place, parts, options)
    else:
        known = _recognise(place) if place.exists() else [CATALOGUE[n] for n in (str(path),) if n in CATALOGUE]
        if len({entry.files for entry in known}) > 1:
            return None  # `open_any` says which ones to choose from
        own = [e for e in known if e.read_split is not None and not (ordered and e.read is not None)]
        held = [(e, files) for e in own if (files := holding(e, place) if place.exists() else locate(e)) is not None]
    for entry, files in held:
        if files.holds(entry.split_files):
            _no_options(path, options)
            return published_name(entry), partial(read_split, entry, files, options.get("duplicates"))
    return None


def _own_parts(place: Path) -> dict[str, Path] | None:
    """The files of a given split in a folder or archive; None if there is none, or it is that of a known dataset.

    Files called train.txt and test.txt are anybody's, unless the folder has the name of the dataset, and no other part.
    """
    parts = folders.parts_in(place) if place.exists() else {}
    if not parts or ("valid" not in parts and any(_is_place(e, place) for e in _recognise(place))):
        return None
    return parts


def _no_options(path: str | Path, options: dict[str, Any]) -> None:
    """Options for tables are never ignored."""
    for given in options:
        if given not in ("duplicates", "values"):
            raise CorankError(f"{given}= is for CSV and Parquet files and {str(path)!r} is not one: leave it out")


def _read_known(path: Path) -> Dataset | None:
    """A single file as the known dataset whose file name it has; None if its lines are in another format."""
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
    """The known datasets whose files are in a folder or archive, or beside a file; those of its name alone, if any."""
    if path.is_file() and path.suffix != ".zip":
        plain = path.name.removesuffix(".gz")
        # The file must be the whole dataset: one half of a published split is a table like any other.
        whole = [e for e in CATALOGUE.values() if e.read is not None or len(e.files) == 1]
        entries = [e for e in whole if _named(plain, e.files[0]) and holding(e, path.parent)]
        for entry in () if entries else whole:
            if any(_named(plain, file) for file in entry.files[1:]) and _is_place(entry, path.parent):
                raise CorankError(f"{path} belongs to the ratings of {entry.name}: give {path.parent}, its folder")
        folder = path.parent
    else:
        entries = [e for e in CATALOGUE.values() if holding(e, path)]
        folder = path
    return [e for e in entries if _is_place(e, folder)] or entries


def _named(name: str, pattern: str) -> bool:
    """Whether a file has a name of the catalogue: 'a or b', where * stands for anything."""
    return any(fnmatchcase(name, one) for one in pattern.split(" or "))


def _is_place(entry: Info, folder: Path) -> bool:
    """Whether a folder or archive has the name of a dataset, or of a folder that it is published in."""
    folder = folder.with_suffix("") if folder.suffix == ".zip" else folder
    return any(folder.resolve().match(place) for place in entry.places)


def _read_first(entries: list[Info], path: Path) -> Dataset:
    """Datasets with equal file names differ in their line format: the first reader that accepts the lines is right."""
    if len({entry.files for entry in entries}) > 1:
        raise CorankError(f"{path} holds several datasets: name one of {', '.join(e.name for e in entries)}")
    problem: CorankError | None = None
    place = path.parent if path.is_file() and path.suffix != ".zip" else path
    for entry in entries:
        files = holding(entry, place)
        assert files is not None  # `_recognise` has checked it
        try:
            return read_entry(entry, files, path)
        except CorankError as error:
            problem = problem or error
    assert problem is not None
    raise problem


def _nothing_there(path: Path) -> CorankError:
    beside = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, [*CATALOGUE, *beside], n=1, cutoff=0.75)
    if near:
        return CorankError(f"there is no file and no dataset {str(path)!r}; did you mean {near[0]!r}?")
    return CorankError(f"there is no file {str(path)!r}; `corank data list` names the public datasets")
