"""Folders and archives of anybody's tables: the parts of a given split, one table in several files, or one file."""

from __future__ import annotations

import glob
import logging
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..data import Dataset, settle_duplicates
from ..data.given import align, stack
from ..data.split import Split
from ..errors import CorankError, shorten
from ..reading.packed import is_table, is_zip, members
from ..reading.parquet import is_parquet
from ..reading.tables import read_csv, read_parquet, table_form

log = logging.getLogger("corank.datasets")

PARTS = {
    "train": ("train", "training", "base"),
    "valid": ("valid", "validation", "val", "dev"),
    "test": ("test", "testing"),
}
_GLOB = re.compile(r"[*?\[]")


def tables_in(place: Path) -> list[Path]:
    """The tables of a folder or a zip archive, by their names.

    Those in subfolders are looked for only where a folder is partitioned: nothing but folders like `day=2024-05-01`.
    """
    found = members(place) if is_zip(place) else sorted(p for p in place.iterdir() if p.is_file())
    if not found and place.is_dir():
        found = sorted(p for p in place.glob("*=*/**/*") if p.is_file())
    return [path for path in found if is_table(path)]


def parts_in(place: Path) -> dict[str, Path]:
    """The files `train.*`, `test.*` and perhaps `valid.*` (validation, val, dev) of a given split; {} if there is none.

    The names may have words in common around the part: ml_train.csv and ml_test.csv, trainData.txt and testData.txt.
    """
    if not (place.is_dir() or is_zip(place)):
        return {}
    groups: dict[tuple[str, ...], dict[str, list[Path]]] = defaultdict(lambda: defaultdict(list))
    for path in tables_in(place):
        words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+", path.name.split(".")[0])]
        words += [word.lower() for word in path.name.split(".")[1:-1]]
        for part, names in PARTS.items():
            if len(own := [word for word in words if word in names]) == 1:
                words.remove(own[0])
                groups[(str(path.parent), *words)][part].append(path)
    whole = [parts for parts in groups.values() if {"train", "test"} <= set(parts)]
    if len(whole) != 1:
        return {}
    for part, paths in whole[0].items():
        if len(paths) > 1:
            shown = " and ".join(path.name for path in paths)
            raise CorankError(f"{place} holds several files for the {part} part ({shown}): keep one, or give the files")
    return {part: whole[0][part][0] for part in PARTS if part in whole[0]}


def read_parts(place: Path, parts: Mapping[str, Path], options: dict[str, Any]) -> Split:
    """The given split that `parts_in` found; other tables beside it are named."""
    read = {part: read_table(file, options) for part, file in parts.items()}
    unused = [path.name for path in tables_in(place) if path not in parts.values()]
    if unused:
        log.info("%s: %s not read: not a part of the split", place, shorten(", ".join(unused), 200))
    return align(read["train"], read["test"], read.get("valid"), name=given_name(place, parts))


def given_name(place: Path, parts: Mapping[str, Path]) -> str:
    return f"given split of {place.name} ({', '.join(file.name for file in parts.values())})"


def read_tables(place: Path, options: dict[str, Any]) -> Dataset | None:
    """The only table of a folder or archive, or several files with the same columns as one; None if there is none."""
    tables = pieces_of_one(place)
    return read_together(tables, options) if tables else None


def pieces_of_one(place: Path) -> list[Path]:
    """The only table of a folder or archive, or several whose names differ in digits alone."""
    tables = tables_in(place)
    if len({re.sub(r"[0-9]+", "0", path.name) for path in tables}) > 1:
        shown = shorten(", ".join(path.name for path in tables), 200)
        raise CorankError(f"{place} holds {len(tables)} tables ({shown}): give one of them, as in '{tables[0]}'")
    return tables


def matching(pattern: str) -> list[Path]:
    """The files that a pattern with * matches; [] where it is no pattern, or a file has that name."""
    if not _GLOB.search(pattern) or Path(pattern).exists():
        return []
    return [path for path in map(Path, sorted(glob.glob(str(Path(pattern).expanduser())))) if path.is_file()]


def read_together(tables: Sequence[Path], options: dict[str, Any]) -> Dataset:
    """Several files with the same columns as one table, in the order of their names."""
    if len(tables) == 1:
        return read_table(tables[0], options)
    check_forms(tables, options)
    rule = options.get("duplicates", "last")
    data = stack([read_table(path, {**options, "duplicates": "keep"}) for path in tables])
    log.info("%d files read as one table, %s to %s", len(tables), tables[0].name, tables[-1].name)
    return settle_duplicates(data, rule, tell=True)


def check_forms(tables: Sequence[Path], options: dict[str, Any]) -> None:
    """Raise if these files would not be read in the same way."""
    first = table_form(tables[0], **options)
    for path in tables[1:]:
        form = table_form(path, **options)
        if form != first:
            raise CorankError(
                f"'{tables[0]}' ({first}) and '{path}' ({form}) cannot be one table: their columns differ; give one of "
                "them, or name the columns"
            )


def read_table(path: Path, options: dict[str, Any]) -> Dataset:
    """A text or Parquet table."""
    if not is_parquet(path):
        return read_csv(path, **options)
    for given in ("separator", "header", "layout"):
        if given in options:
            raise CorankError(f"{given}= is for text files and {str(path)!r} is Parquet: leave it out")
    return read_parquet(path, **options)
