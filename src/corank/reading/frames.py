"""Datasets from data frames of any library that narwhals knows: pandas, polars, pyarrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..data import Dataset, Values, from_arrays
from ..data.columns import convert, row_number
from ..data.values import as_counts
from ..errors import CorankError
from .column_names import choose, means_counts

if TYPE_CHECKING:
    import polars as pl


def from_frame(
    frame: Any,
    *,
    user: str,
    item: str,
    value: str | None = None,
    time: str | None = None,
    values: Values = "auto",
    **options: Any,
) -> Dataset:
    """A dataset from a pandas, polars or pyarrow table; dates become unix seconds.

    values, options : as in `from_arrays`; the values of a column called plays, count, ... are counts.
    """
    columns = frame_columns(frame, user=user, item=item, value=value, time=time)
    data = from_arrays(**columns, values=values, **options)
    return as_counts(data) if values == "auto" and means_counts(value) else data


def frame_columns(
    frame: Any, *, user: str, item: str, value: str | None = None, time: str | None = None
) -> dict[str, Any]:
    """The columns of a pandas, polars or pyarrow table for `from_arrays`: strings as polars Series, numbers as arrays.

    Datetimes become unix seconds; numeric times keep their unit.
    """
    table = _narwhals(frame)
    wanted = {"user": user, "item": item, "value": value or "", "time": time or ""}
    columns = {str(c): c for c in table.columns}  # pandas names columns by numbers too
    chosen = choose(list(columns), wanted, "the table")
    names = {role: f"column {name!r}" for role, name in chosen.items()}
    series = {role: _polars(table.get_column(columns[name]), names[role]) for role, name in chosen.items()}
    return convert(series, names, row_number)


def polars_columns(frame: Any) -> pl.DataFrame:
    """All columns of a pandas, polars or pyarrow table."""
    import polars as pl

    table = _narwhals(frame)
    return pl.DataFrame({str(c): _polars(table.get_column(c), f"column {str(c)!r}") for c in table.columns})


def _narwhals(frame: Any) -> Any:
    import narwhals as nw

    try:
        return nw.from_native(frame, eager_only=True)
    except TypeError:
        hint = "collect() it first" if type(frame).__name__ == "LazyFrame" else "give a pandas, polars or pyarrow table"
        raise CorankError(f"a {type(frame).__name__} is not a data frame that can be read here: {hint}") from None


def _polars(column: Any, name: str) -> pl.Series:
    """A narwhals column as a polars one; a column of Python objects of several types is an error."""
    import polars as pl

    try:
        series: pl.Series = column.to_polars()
    except ImportError:  # pandas without pyarrow
        series = pl.Series(column.to_list())
    except Exception:  # each backend has its own error for it
        kinds = sorted({type(v).__name__ for v in column.to_list()})
        raise CorankError(f"{name} mixes types ({', '.join(kinds)}): make it all integers or all strings") from None
    return series.cast(pl.String) if series.dtype in (pl.Categorical, pl.Enum) else series
