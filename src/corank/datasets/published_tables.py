"""Tables in the layout of their publisher: columns by position, fields checked, labels matched with a vocabulary."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data import Array, Dataset, Vocab, from_arrays
from ..errors import CorankError, shorten
from .archive import Files

if TYPE_CHECKING:
    import polars as pl

FLOATS = ("value", "latitude", "longitude")  # the columns that are not integers
Parts = tuple[Dataset, NDArray[np.bool_]]  # all rows of a set with a published split, and which of them are test rows


def table(
    files: Files,
    file: str,
    separator: str,
    columns: tuple[str, ...],
    *,
    header: bool = False,
    exact: bool = False,
    text: tuple[str, ...] = ("title", "genres"),
) -> pl.DataFrame:
    """The named columns of a table, by position ('': skip).

    Lines with fewer fields than columns are an error; with `exact`, lines with more too.
    """
    import polars as pl

    name = files.require(file)
    kind = {c: pl.String if c in text else pl.Float64 if c in FLOATS else pl.Int64 for c in columns if c}
    try:
        first = files.first_line(name).decode("latin-1").split(separator)
        if len(first) < len(columns) or (exact and len(first) > len(columns)):
            raise unlike(files, name, f"{len(columns)} fields per line", f"the first line has {len(first)}")
        # By position, for every field of the file: the header is skipped, because its names differ between editions.
        names = [column or f"skip {at}" for at, column in enumerate(columns)]
        names += [f"skip {at}" for at in range(len(columns), len(first))]
        frame = pl.read_csv(
            files.source(name),
            has_header=False,
            skip_rows=int(header),
            separator=separator,
            columns=[names.index(column) for column in kind],
            schema={each: kind.get(each, pl.String) for each in names},
            quote_char='"' if header else None,
        )
    except pl.exceptions.PolarsError as error:
        raise unlike(files, name, ", ".join(c for c in columns if c) + " per line", error) from error
    if frame.null_count().sum_horizontal()[0]:
        frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))  # blank lines
    holes = frame.null_count().row(0)
    if any(holes):
        column = frame.columns[int(np.argmax(np.array(holes) > 0))]
        row = int(frame[column].is_null().arg_max() or 0) + 1
        raise unlike(files, name, ", ".join(kind) + " per line", f"row {row} has no {column}")
    return frame


def small_table(files: Files, file: str, separator: str, fields: int, rest: bool = False) -> list[list[str]]:
    """The first `fields` columns of a small table; with `rest`, one more that joins the other fields of each line."""
    records = files.records(file, separator)
    short = next((at for at, record in enumerate(records) if len(record) < fields), None)
    if short is not None:
        raise unlike(files, file, f"{fields} fields per line", f"line {short + 1} has {len(records[short])}")
    columns = [[record[at] for record in records] for at in range(fields)]
    return [*columns, [separator.join(record[fields:]) for record in records]] if rest else columns


def integers(words: Sequence[str], file: str) -> NDArray[np.int64]:
    try:
        return np.array(words, dtype=str).astype(np.int64) if words else np.zeros(0, np.int64)
    except ValueError as error:
        raise CorankError(f"{file} has text where the published file has integers ({error}): get it again") from error


def unlike(files: Files, name: str, expected: str, found: object) -> CorankError:
    what = str(found).strip().splitlines()[0] if str(found).strip() else type(found).__name__
    return CorankError(
        f"{files.place}: {name} is not in the published layout ({expected}): {shorten(what, 200)}; get the file again"
    )


def from_table(frame: pl.DataFrame) -> Dataset:
    """All rows of a table: published sets either have each pair once or repeat pairs on purpose (sequences)."""
    columns: dict[str, Any] = {c.name: c.to_numpy() if c.dtype.is_numeric() else c for c in frame}
    return from_arrays(**columns, duplicates="keep")


def two_tables(
    files: Files, train: str, test: str, separator: str, columns: tuple[str, ...], text: tuple[str, ...] = ()
) -> Parts:
    """All rows of two tables, and which of them are test rows."""
    import polars as pl

    frames = [table(files, name, separator, columns, text=text) for name in (train, test)]
    data = from_table(pl.concat(frames))
    return data, np.arange(len(data)) >= len(frames[0])


def labels(vocab: Vocab, ids: Any, columns: Mapping[str, Any]) -> dict[str, Array]:
    """Columns keyed by id as arrays over the vocabulary; '', -1 or NaN for ids that are not in the table."""
    codes = vocab.codes(ids)
    known = codes >= 0
    labels = {}
    for name, column in columns.items():
        values = np.asarray(column, object) if isinstance(column, list) else column
        missing: Any = {"O": "", "f": np.nan}.get(values.dtype.kind, -1)
        label = np.full(len(vocab), missing, values.dtype)
        label[codes[known]] = values[known]
        labels[name] = label
    return labels


def with_labels(data: Dataset, users: dict[str, Array], items: dict[str, Array]) -> Dataset:
    return dataclasses.replace(data, user_labels=users, item_labels=items)
