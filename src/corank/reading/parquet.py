"""The columns of a Parquet file."""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import CorankError
from .packed import for_polars, opened

if TYPE_CHECKING:
    import polars as pl


def is_parquet(path: Path) -> bool:
    """Whether a file is Parquet, by its first bytes or by its name."""
    with opened(path) as file:
        magic = file.read(4)
    return magic == b"PAR1" or path.suffix in (".parquet", ".pq")


def parquet_names(path: Path) -> list[str]:
    """The names of the columns."""
    import polars as pl

    try:
        return list(pl.read_parquet_schema(_source(path)))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _unreadable(path, error) from None


def parquet_columns(path: Path, names: Iterable[str]) -> pl.DataFrame:
    """These columns alone."""
    import polars as pl

    try:
        return pl.read_parquet(_source(path), columns=list(dict.fromkeys(names)), glob=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _unreadable(path, error) from None


def _source(path: Path) -> Path | BytesIO:
    source = for_polars(path)
    return BytesIO(source) if isinstance(source, bytes) else source


def _unreadable(path: Path, error: Exception) -> CorankError:
    return CorankError(f"file '{path}' cannot be read as Parquet: {str(error).splitlines()[0]}")
