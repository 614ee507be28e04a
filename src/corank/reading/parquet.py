"""The columns of a Parquet file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import CorankError

if TYPE_CHECKING:
    import polars as pl


def is_parquet(path: Path) -> bool:
    """Whether a file is Parquet, by its first bytes or by its name."""
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise CorankError(f"file '{path}' cannot be read: {error.strerror or error}") from None
    return magic == b"PAR1" or path.suffix in (".parquet", ".pq")


def parquet_names(path: Path) -> list[str]:
    """The names of the columns."""
    import polars as pl

    try:
        return list(pl.read_parquet_schema(path))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _unreadable(path, error) from None


def parquet_columns(path: Path, names: Iterable[str]) -> pl.DataFrame:
    """These columns alone."""
    import polars as pl

    try:
        return pl.read_parquet(path, columns=list(dict.fromkeys(names)), glob=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> CorankError:
    return CorankError(f"file '{path}' cannot be read as Parquet: {str(error).splitlines()[0]}")
