"""Named public datasets, read from their published files in a local folder.

    datasets.names()                    the known names
    datasets.info("ml-1m")              title, citation, terms, address
    datasets.load("ml-1m")              all rows
    datasets.load_split("douban")       train and test as published, for datasets with a published split

The root folder is `root`, else the environment variable CORANK_DATA, else `corank` in the user's cache folder.
"""

from __future__ import annotations

import difflib
import logging
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Dataset, settle_duplicates
from ..data.split import Split
from ..data.values import declared
from ..errors import CorankError
from .catalogue import CATALOGUE, info
from .entry import Info
from .location import holding, locate, read_entry

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
    """The published split of a dataset; none of them has a validation part, so `valid` is empty."""
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


def open_any(path: str | Path, **options: Any) -> Dataset:
    """A dataset from any one of: a table, the name of a known dataset, or the folder or archive of one.

    options : `user`, `item`, `value`, `time`, `separator` ... for tables, as in `read_csv`; `duplicates` and `values`
        for all.
    """
    options = {key: value for key, value in options.items() if value is not None}
    place = Path(path).expanduser()
    if place.is_file() and place.suffix != ".zip":
        known = None if options.keys() - {"values"} else _read_known(place)
        return _read_table(place, options) if known is None else declared(known, options.get("values", "auto"))
    duplicates, values = options.pop("duplicates", None), options.pop("values", "auto")
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
    return declared(data if duplicates is None else settle_duplicates(data, duplicates, tell=True), values)


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
        entries = [e for e in whole if plain in e.files[0].split(" or ") and holding(e, path.parent)]
        folder = path.parent
    else:
        entries = [e for e in CATALOGUE.values() if holding(e, path)]
        folder = path.with_suffix("") if path.suffix == ".zip" else path
    by_name = [e for e in entries if any(folder.resolve().match(p) for p in e.places)]
    return by_name or entries


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
