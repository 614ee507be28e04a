"""The columns of a Parquet file."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import CorankError
from .packed import content, is_packed, opened

if TYPE_CHECKING:
    import polars as pl

log = logging.getLogger("corank.reading")


def is_parquet(path: Path) -> bool:
    """Whether a file is Parquet, by its first bytes or by its name."""
    with opened(path) as file:
        magic = file.read(4)
    return magic == b"PAR1" or path.suffix in (".parquet", ".pq")


def parquet_names(path: Path) -> list[str]:
    """The names of the columns."""
    import polars as pl

    with _readable(path):
        return list(pl.read_parquet_schema(_source(path)))


def parquet_columns(path: Path, names: Iterable[str]) -> pl.DataFrame:
    """These columns alone."""
    import polars as pl

    with _readable(path):
        return pl.read_parquet(_source(path), columns=list(dict.fromkeys(names)), glob=False)


def parquet_rows(path: Path) -> int:
    """The number of rows, from the end of the file."""
    import polars as pl

    with _readable(path):
        return int(pl.scan_parquet(_source(path), glob=False).select(pl.len()).collect().item())


def parquet_slice(path: Path, names: Iterable[str], first: int, rows: int) -> pl.DataFrame:
    """These columns of some rows: only the groups of rows that hold them are read."""
    import polars as pl

    with _readable(path):
        return (
            pl.scan_parquet(_source(path), glob=False).select(list(dict.fromkeys(names))).slice(first, rows).collect()
        )


def parquet_sample(path: Path, name: str, rows: int = 10_000) -> list[str]:
    """The first fields of a column as text, "" where there is none."""
    import polars as pl

    with _readable(path):
        column = pl.read_parquet(_source(path), columns=[name], n_rows=rows, glob=False)[name]
    return [] if column.dtype.is_nested() else column.cast(pl.String, strict=False).fill_null("").to_list()


def _source(path: Path) -> Path | BytesIO:
    return BytesIO(content(path)) if is_packed(path) else path


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn what polars says of a file that it cannot read into a sentence."""
    import polars as pl

    try:
        yield
    # Bytes that make no sense may stop polars with a panic, which is no Exception.
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, MemoryError) as error:
        log.debug("%s: %s", path, error)
        raise CorankError(
            f"file '{path}' cannot be read as Parquet, as it is damaged, cut off, encrypted or something else: write "
            "it again, or give it as CSV"
        ) from None
