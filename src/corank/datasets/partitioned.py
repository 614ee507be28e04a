"""Parquet files that together are one table, read into files where they do not fit into memory."""

from __future__ import annotations

from pathlib import Path
from shutil import disk_usage
from typing import Any

from ..data.on_disk import DatasetOnDisk
from ..errors import CorankError
from ..reading.packed import exists, is_zip
from ..reading.parquet import is_parquet, parquet_rows
from ..reading.partitions import read_on_disk
from ..system.memory import in_gigabytes
from . import folders

IN_MEMORY = 64  # bytes per row while a table is read into memory at once
ON_DISK = 40  # bytes per row while it is sorted in files


def read_partitions(path: str | Path, folder: str | Path, **options: Any) -> DatasetOnDisk:
    """The rows of a Parquet file, of a folder of them (partitioned or not) or of a pattern with *, sorted in files.

    It takes the memory of a sixteenth of the rows, so that tables larger than memory can be read. `wmf`, `bpr` and
    `primal_cr` learn from such rows without more of them in memory, with the same result as from `read_parquet`.

    folder : where the files are written, an existing folder on a disk, best one of its own. They are used while the
        dataset or a model fitted to it is, and nothing removes them.
    options : `user`, `item`, `value`, `time`, `duplicates` and `values`, as in `read_parquet`; the rows have no times,
        which only decide which of repeated pairs is the last.
    """
    tables = partitions(path)
    if not tables:
        raise CorankError(f"{path} is no Parquet file, and no folder or pattern of Parquet files with the same columns")
    place = Path(folder)
    if not place.is_dir():
        raise CorankError(f"folder '{folder}' does not exist: create it, on a disk with room for the rows")
    folders.check_forms(tables, options)
    need, free = ON_DISK * rows_in(tables), disk_usage(place).free
    if need > free:
        raise CorankError(
            f"the rows need {in_gigabytes(need)} in files while they are sorted, and {in_gigabytes(free)} are free in "
            f"'{folder}': choose a folder on another disk"
        )
    return read_on_disk(tables, place, **options)


def partitions(path: str | Path) -> list[Path]:
    """The Parquet files of one table, in the order in which they are read; [] where it is something else."""
    tables = folders.matching(str(path))
    place = Path(path).expanduser()
    if not tables and exists(place) and not is_zip(place):
        tables = [place]
    whole = not tables and place.is_dir()
    if whole:
        tables = folders.tables_in(place)
    if not all(is_parquet(table) for table in tables):
        return []
    if whole and tables:
        return [] if folders.parts_in(place) else folders.pieces_of_one(place)
    return tables


def rows_in(tables: list[Path]) -> int:
    """The number of rows, which Parquet files state."""
    return sum(map(parquet_rows, tables))
