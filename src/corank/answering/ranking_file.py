"""Lists of recommendations as files: Parquet, CSV, TSV or JSON lines, written piece by piece."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CorankError
from ..system.atomic import replacing

if TYPE_CHECKING:
    import polars as pl

    from .ranking import Ranking

FORMATS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}


def format_of(path: str | Path) -> tuple[str, bool]:
    """(format, gzipped) by the ending of a file; any other ending is an error."""
    name = Path(path).name.lower()
    packed = name.endswith(".gz")
    ending = Path(name.removesuffix(".gz")).suffix
    if ending not in FORMATS or (packed and FORMATS[ending] == "parquet"):
        why = "Parquet is compressed already" if packed and ending in FORMATS else "the ending says how to write lists"
        raise CorankError(
            f"cannot write lists to '{path}': {why}; end the name in .parquet, .csv, .tsv or .jsonl (text also in .gz)"
        )
    return FORMATS[ending], packed


def write_lists(path: str | Path, parts: Iterable[Ranking]) -> int:
    """Write rankings, one after the other, to one file; returns the number of users.

    Only one piece is in memory at a time. The file is renamed into place when it is complete.
    """
    kind, packed = format_of(path)
    users = 0

    def frames() -> Iterator[pl.DataFrame]:
        nonlocal users
        for part in parts:
            users += len(part)
            yield part.to_frame()

    with replacing(path) as target:
        if kind == "parquet":
            _write_parquet(target, frames())
        else:
            with gzip.open(target, "wb", compresslevel=6) if packed else target.open("wb") as file:
                _write_text(file, frames(), kind)
    return users


def _write_text(file: Any, frames: Iterator[pl.DataFrame], kind: str) -> None:
    for number, frame in enumerate(frames):
        if kind == "jsonl":
            frame.write_ndjson(file)
        else:
            frame.write_csv(file, separator="," if kind == "csv" else "\t", include_header=number == 0)


def _write_parquet(target: Path, frames: Iterator[pl.DataFrame]) -> None:
    import polars as pl
    from polars.io.plugins import register_io_source

    first = next(frames)
    failed: list[BaseException] = []

    def source(*wanted: Any) -> Iterator[pl.DataFrame]:  # the sink wants all columns and rows
        yield first
        try:
            yield from frames
        except BaseException as why:
            failed.append(why)
            raise

    try:
        register_io_source(source, schema=first.schema).sink_parquet(target)
    except pl.exceptions.PolarsError:
        if failed:  # an error of ours, which polars has wrapped in one of its own
            raise failed[0] from None
        raise
