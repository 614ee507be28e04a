"""Tables in: CSV and its relatives, Parquet, and any data frame, as columns for `data.from_arrays`.

Polars reads, on every core, only the columns that are needed; strings stay in its memory and never become Python
objects.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data import Dataset, Duplicates, from_arrays
from ..data.columns import convert
from ..errors import CorankError, shorten
from . import csv_format as layouts
from .csv_format import Columns, Layout

if TYPE_CHECKING:
    import polars as pl

log = logging.getLogger("corank.reading")


def read_csv(
    path: str | PathLike[str],
    *,
    user: str | None = None,
    item: str | None = None,
    value: str | None = None,
    time: str | None = None,
    separator: str | None = None,
    header: bool | None = None,
    duplicates: Duplicates = "last",
    **options: Any,
) -> Dataset:
    """A dataset from a text file with a row a line: .csv, .tsv, .txt, .dat, .data, gzipped or not.

    user, item, value, time : column names, or positions ("0", "1", ...) where the file has no header. What is left out
        is guessed (see `guess_columns`; the guess is logged); `value=""` or `time=""` says that there is none.
    separator : one character or '::'; blanks may repeat. Guessed by default, as is `header`.
    duplicates, options : as in `from_arrays`.

    Ids are integers where all of them look like plain integers, else strings ("007" stays "007"; zeros are looked for
    in the first 10,000 rows). ISO dates become unix seconds (parts of a second are dropped, and what has no zone is
    UTC); numeric times stay the numbers that they are, in whatever unit: only their order and span matter.
    """
    wanted = {"user": user, "item": item, "value": value, "time": time}
    layout = layouts.sniff(path, separator=separator, header=header, given=[n for n in wanted.values() if n])
    columns = layouts.columns_of(layout, wanted)
    log.info("%s: %s", path, columns)
    names = {role: f"column {name!r} of '{path}'" for role, name in columns.roles().items()}
    series, lines = drop_blank(read_text(layout, columns))
    return from_arrays(**convert(series, names, line_number(layout, lines)), duplicates=duplicates, **options)


def read_parquet(
    path: str | PathLike[str],
    *,
    user: str | None = None,
    item: str | None = None,
    value: str | None = None,
    time: str | None = None,
    duplicates: Duplicates = "last",
    **options: Any,
) -> Dataset:
    """A dataset from a Parquet file; columns are given or guessed as in `read_csv`."""
    import polars as pl

    columns = guess_columns(layouts.existing_file(path), user=user, item=item, value=value, time=time)
    log.info("%s: %s", path, columns)
    roles = columns.roles()
    try:
        frame = pl.read_parquet(Path(path), columns=list(dict.fromkeys(roles.values())), glob=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise not_parquet(path, error) from None
    names = {role: f"column {name!r} of '{path}'" for role, name in roles.items()}
    series = {role: frame[name] for role, name in roles.items()}
    return from_arrays(**convert(series, names, row_number), duplicates=duplicates, **options)


def guess_columns(
    source: str | PathLike[str] | Sequence[str],
    *,
    user: str | None = None,
    item: str | None = None,
    value: str | None = None,
    time: str | None = None,
    separator: str | None = None,
    header: bool | None = None,
) -> Columns:
    """What `read_csv` or `read_parquet` would read as what; `source` is a path, or the list of the column names.

    Names are compared without case, blanks and underscores: user, userId, reviewerID, customer_id, ...; item, movieId,
    asin, product, track, ...; rating, stars, count, plays, ...; timestamp, date, unixReviewTime, .... Without a header
    the columns are user, item, value, time from the left.
    """
    wanted = {"user": user, "item": item, "value": value, "time": time}
    if not isinstance(source, str | PathLike):
        return Columns(**layouts.choose(list(source), wanted, "the table"), header=True)
    path = layouts.existing_file(source)
    if is_parquet(path):
        import polars as pl

        try:
            names = list(pl.read_parquet_schema(path))
        except (pl.exceptions.PolarsError, OSError) as error:
            raise not_parquet(path, error) from None
        return Columns(**layouts.choose(names, wanted, f"file '{path}'"), header=True)
    layout = layouts.sniff(path, separator=separator, header=header, given=[n for n in wanted.values() if n])
    return layouts.columns_of(layout, wanted)


def is_parquet(path: Path) -> bool:
    """Whether a file is Parquet, by its first bytes or by its name."""
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise CorankError(f"file '{path}' cannot be read: {error.strerror or error}") from None
    return magic == b"PAR1" or path.suffix in (".parquet", ".pq")


def read_titles(
    path: str | PathLike[str], *, item: str | None = None, title: str | None = None, separator: str | None = None
) -> tuple[list[Hashable], list[str]]:
    """Item ids and their titles, from any text table that has both (movies.csv, movies.dat, u.item, ...).

    The id is the column that is called like one, else the first; the title is the column called so, or the second
    where there is no header. Files that are not UTF-8 are taken for Latin-1, as the older MovieLens files are.
    """
    layout = layouts.sniff(
        path,
        separator=separator,
        given=[n for n in (item, title) if n],
        expected=("item", "title"),
        encodings=("utf-8-sig", "latin-1"),
        whole=True,
    )
    names = layout.names
    chosen = {"item": names[0], "title": names[1]}
    if layout.header:
        guess = layouts.choose(names, {"title": title}, f"file '{path}'")
        if "title" not in guess:
            raise CorankError(
                f"cannot tell which column of '{path}' is the title: it has {shorten(', '.join(names), 400)}; "
                "say title=..."
            )
        try:
            chosen = layouts.choose(names, {"item": item, **guess}, f"file '{path}'")
        except CorankError:
            if item is not None:
                raise
            chosen = {"item": names[0], **guess}
    else:
        given = {"item": item, "title": title}
        chosen |= layouts.choose(names, given, f"file '{path}'", header=False)
    ids, titles = layouts.column(layout, chosen["item"]), layouts.column(layout, chosen["title"])
    if len(ids) != len(titles) or len(ids) != len(layout.sample):
        raise CorankError(f"some lines of '{path}' have fewer than {len(names)} fields: repair them first")
    whole = layouts.kind(ids) == "int" and all(ids)
    return [int(i) for i in ids] if whole else list(ids), titles


def frame_columns(
    frame: Any, *, user: str, item: str, value: str | None = None, time: str | None = None
) -> dict[str, Any]:
    """The columns of a pandas, polars or pyarrow table, for `from_arrays`: strings as polars Series, numbers as arrays.

    Datetimes become unix seconds; numeric times are taken as they are, in whatever unit.
    """
    import narwhals as nw

    try:
        table = nw.from_native(frame, eager_only=True)
    except TypeError:
        hint = "collect() it first" if type(frame).__name__ == "LazyFrame" else "give a pandas, polars or pyarrow table"
        raise CorankError(f"a {type(frame).__name__} is not a data frame that can be read here: {hint}") from None
    wanted = {"user": user, "item": item, "value": value or "", "time": time or ""}
    columns = {str(c): c for c in table.columns}  # pandas names columns by numbers too
    chosen = layouts.choose(list(columns), wanted, "the table")
    names = {role: f"column {name!r}" for role, name in chosen.items()}
    series = {role: _polars(table.get_column(columns[name]), names[role]) for role, name in chosen.items()}
    return convert(series, names, row_number)


def row_number(row: int) -> str:
    return f"row {row:,}"


def line_number(layout: Layout, lines: np.ndarray[Any, Any] | None) -> Callable[[int], str]:
    """What a row is called that stands in a text file; `lines` as `drop_blank` gives them."""
    return lambda row: f"line {(row if lines is None else int(lines[row])) + 1 + layout.skip:,}"


def not_parquet(path: object, error: Exception) -> CorankError:
    return CorankError(f"file '{path}' cannot be read as Parquet: {str(error).splitlines()[0]}")


def _polars(column: Any, name: str) -> pl.Series:
    """A narwhals column as a polars one; what holds Python objects of several types cannot be one."""
    import polars as pl

    try:
        series: pl.Series = column.to_polars()
    except ImportError:  # pandas without pyarrow
        series = pl.Series(column.to_list())
    except Exception:  # each backend has its own error for it
        kinds = sorted({type(v).__name__ for v in column.to_list()})
        raise CorankError(f"{name} mixes types ({', '.join(kinds)}): make it all integers or all strings") from None
    return series.cast(pl.String) if series.dtype in (pl.Categorical, pl.Enum) else series


def read_text(layout: Layout, columns: Columns) -> dict[str, pl.Series]:
    """Each role's column, typed by the rows that were looked at, or as text where a later row breaks that."""
    import polars as pl

    roles = columns.roles()
    typed: dict[str, Any] = {}
    for role, name in roles.items():
        kind = layouts.kind(layouts.column(layout, name))
        numbers = {"int": pl.Int64, "float": pl.Float64 if role == "time" else pl.String}
        typed[role] = pl.Float32 if role == "value" else numbers.get(kind, pl.String)
    quoted = layout.quoted or layout.separator in ",;"
    try:
        return _scan(layout, roles, typed, squeeze=layout.squeeze, quoted=quoted)
    except OSError:
        raise layouts.damaged(layout.path) from None
    except pl.exceptions.PolarsError:
        pass
    text = dict.fromkeys(roles, pl.String)
    try:
        series = _scan(layout, roles, text, squeeze=layout.separator == " ", quoted=quoted)
    except pl.exceptions.PolarsError as error:
        if layout.quoted or not quoted:
            raise _unreadable(layout, str(error)) from None
        try:  # a " in the middle of a field (7" single) is a letter where nothing is quoted
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
        raw = layouts.decompress(layout.path.read_bytes(), layout.path)
        try:
            source = layouts.squeezed(raw.decode("utf-8-sig")).encode()
        except UnicodeDecodeError as error:
            raise layouts.not_text(layout.path, f"byte {error.start:,} is 0x{raw[error.start]:02x}") from None
    step = len(layout.separator)  # '::' is read as ':' with an empty column between every two
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
        return layouts.not_text(path, "a byte after the first megabyte does not decode")
    ragged = layouts.first_ragged(layout)
    if ragged is not None:
        return ragged
    return CorankError(
        f"file '{path}' cannot be read as a table: {shorten(why.splitlines()[0], 200)}; check its quotes"
    )


def drop_blank(series: dict[str, pl.Series]) -> tuple[dict[str, pl.Series], np.ndarray[Any, Any] | None]:
    """Without the rows where every column is empty (blank lines), and the positions of those that stay if any went."""
    if any(s.null_count() == 0 for s in series.values()):
        return series, None
    kept = np.zeros(len(series["user"]), np.bool_)
    for s in series.values():
        kept |= s.is_not_null().to_numpy()
    if kept.all():
        return series, None
    return {role: s.filter(kept) for role, s in series.items()}, np.flatnonzero(kept)
