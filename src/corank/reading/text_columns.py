"""The columns of a text file, read by polars: all cores, only the columns that are needed, no Python strings."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.columns import Where, text_kind
from ..errors import CorankError, shorten
from .column_names import Columns
from .csv_format import Layout, first_ragged
from .packed import content, damaged, for_polars
from .text_files import not_text, squeezed

if TYPE_CHECKING:
    import polars as pl

log = logging.getLogger("corank.reading")
INTEGER = r"^(0|-?[1-9][0-9]{0,18})$"
STRAY = 0.01  # at most this share of ids that are no integers, among integers, is reported
PROBE = 1000  # ids that are looked at before all of them are


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
        return _with_integers(_scan(layout, roles, typed, squeeze=layout.squeeze, quoted=quoted), layout)
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
    return _with_integers(series, layout)


def _with_integers(series: dict[str, pl.Series], layout: Layout) -> dict[str, pl.Series]:
    ids = {role: layout.wording.role(role) for role in ("user", "item")}
    where = line_number(layout, None)
    return series | {role: integer_ids(series[role], f"'{layout.path}': {name}", where) for role, name in ids.items()}


def integer_ids(ids: pl.Series, what: str, where: Where) -> pl.Series:
    """Ids as integers if all of them are; a few that are not, among integers, are reported, as they may be typos."""
    import polars as pl

    if ids.dtype != pl.String:
        return ids
    plain = ids.str.strip_chars(" ")
    first = plain.head(PROBE).str.contains(INTEGER)
    if first.sum() < 0.9 * len(first):  # names of any kind: no need to read on
        return ids
    fits = plain.str.contains(INTEGER)
    odd = ~fits.fill_null(True)
    count = int(odd.sum())
    if count == 0:
        whole = plain.cast(pl.Int64, strict=False)
        return whole if whole.null_count() == plain.null_count() else ids
    if count <= max(1, STRAY * len(ids)):
        row = int(odd.arg_max() or 0)
        log.warning(
            "%s ids are integers in all but %s of %s rows (the first: %r in %s), so that all of them are read as text: "
            "repair %s if this is an error",
            *(what, f"{count:,}", f"{len(ids):,}", shorten(ids[row]), where(row), "it" if count == 1 else "them"),
        )
    return ids


def _scan(
    layout: Layout, roles: Mapping[str, str], types: Mapping[str, Any], *, squeeze: bool, quoted: bool
) -> dict[str, pl.Series]:
    import polars as pl

    source = for_polars(layout.path)
    if squeeze:
        raw = content(layout.path)
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
