"""The columns of a text file, read by polars: all cores, only the columns that are needed, no Python strings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.columns import Where, text_kind
from ..errors import CorankError, shorten
from .column_names import Columns
from .csv_format import Layout, first_ragged
from .text_files import damaged, decompress, not_text, squeezed

if TYPE_CHECKING:
    import polars as pl


def read_text(layout: Layout, columns: Columns) -> dict[str, pl.Series]:
    """The column of each role, with the type of the first rows, or as text where a later row does not fit it."""
    import polars as pl

    roles = columns.roles()
    typed: dict[str, Any] = {}
    for role, name in roles.items():
        kind = text_kind(layout.column(name))
        numbers = {"int": pl.Int64, "float": pl.Float64 if role == "time" else pl.String}
        typed[role] = pl.Float32 if role == "value" else numbers.get(kind, pl.String)
    quoted = layout.quoted or layout.separator in ",;"
    try:
        return _scan(layout, roles, typed, squeeze=layout.squeeze, quoted=quoted)
    except OSError:
        raise damaged(layout.path) from None
    except pl.exceptions.PolarsError:
        pass
    text = dict.fromkeys(roles, pl.String)
    try:
        series = _scan(layout, roles, text, squeeze=layout.separator == " ", quoted=quoted)
    except pl.exceptions.PolarsError as error:
        if layout.quoted or not quoted:
            raise _unreadable(layout, str(error)) from None
        try:  # a " inside a field (7" single) is an ordinary character where no field is quoted
            series = _scan(layout, roles, text, squeeze=False, quoted=False)
        except pl.exceptions.PolarsError:
            raise _unreadable(layout, str(error)) from None
    for role in ("user", "item"):
        digits = series[role].str.strip_chars(" ")
        if digits.str.contains(r"^(0|-?[1-9][0-9]{0,18})$").all():
            whole = digits.cast(pl.Int64, strict=False)
            series[role] = whole if whole.null_count() == digits.null_count() else series[role]
    return series


def _scan(
    layout: Layout, roles: Mapping[str, str], types: Mapping[str, Any], *, squeeze: bool, quoted: bool
) -> dict[str, pl.Series]:
    import polars as pl

    source: Path | bytes = layout.path
    if squeeze:
        raw = decompress(layout.path.read_bytes(), layout.path)
        try:
            source = squeezed(raw.decode("utf-8-sig")).encode()
        except UnicodeDecodeError as error:
            raise not_text(layout.path, f"byte {error.start:,} is 0x{raw[error.start]:02x}") from None
    step = len(layout.separator)  # '::' is read as ':' with an empty column between any two
    schema: dict[str, Any] = {str(i): pl.String for i in range(step * (len(layout.names) - 1) + 1)}
    at = {role: step * layout.names.index(name) for role, name in roles.items()}
    schema.update({str(i): types[role] for role, i in at.items()})
    frame = pl.read_csv(
        source,
        has_header=False,
        skip_rows=layout.skip,
        separator=layout.separator[0],
        quote_char='"' if quoted else None,
        schema=schema,
        columns=sorted(set(at.values())),
        glob=False,
    )
    return {role: frame[str(i)] for role, i in at.items()}


def _unreadable(layout: Layout, why: str) -> CorankError:
    path = layout.path
    if "utf-8" in why.lower():
        return not_text(path, "a byte after the first megabyte does not decode")
    ragged = first_ragged(layout)
    if ragged is not None:
        return ragged
    return CorankError(
        f"file '{path}' cannot be read as a table: {shorten(why.splitlines()[0], 200)}; check its quotes"
    )


def drop_blank(series: dict[str, pl.Series]) -> tuple[dict[str, pl.Series], np.ndarray[Any, Any] | None]:
    """The columns without blank lines (all fields empty), and the positions of the other rows if there were any."""
    if any(s.null_count() == 0 for s in series.values()):
        return series, None
    kept = np.zeros(len(series["user"]), np.bool_)
    for s in series.values():
        kept |= s.is_not_null().to_numpy()
    if kept.all():
        return series, None
    return {role: s.filter(kept) for role, s in series.items()}, np.flatnonzero(kept)


def line_number(layout: Layout, lines: np.ndarray[Any, Any] | None) -> Where:
    """How messages refer to a row of a text file; `lines` as `drop_blank` returns them."""
    return lambda row: f"line {(row if lines is None else int(lines[row])) + 1 + layout.skip:,}"
