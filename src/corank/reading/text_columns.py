"""The columns of a text file: tables of numbers by a kernel, other large tables by polars, the rest row by row.

The fast readers take only what they are sure to read like `records`, which decides what a file means: a file that is
not regular from the first to the last byte is read by it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.columns import Where, text_kind
from ..errors import CorankError
from .column_names import Columns
from .csv_format import SEPARATORS, Layout, ragged
from .ids import clean_ids
from .packed import content, encoding_of, is_packed, opened, opened_text
from .records import LONGEST, Row, lines, split, too_long, with_quotes
from .text_files import LINE_ENDS

if TYPE_CHECKING:
    import polars as pl

log = logging.getLogger("corank.reading")
BLOCK = 1 << 24  # bytes that the kernels are given at once
SMALL = 1 << 22  # bytes up to which rows are read one by one, without loading the kernels
PIECES = 16  # of a block, for several threads
CHUNK = 1 << 17  # rows that are Python strings at the same time
UNIT = b"\x1f"  # stands for '::' where a reader knows separators of one byte alone


def read_text(layout: Layout, columns: Columns) -> tuple[dict[str, pl.Series], Where]:
    """The column of each role, and how messages refer to a row; ids are integers if all of them are."""
    roles = columns.roles()
    series, where = read_fields(layout, roles)
    ids = {role: layout.wording.role(role) for role in ("user", "item")}
    if layout.header:
        _no_second_header(series, roles, layout, where)
    clean = {role: clean_ids(series[role], f"'{layout.path}': {name}", where) for role, name in ids.items()}
    return series | clean, where


def read_fields(layout: Layout, roles: Mapping[str, str]) -> tuple[dict[str, pl.Series], Where]:
    """Columns by role -> name, as text or, where every field is a number, as numbers; how messages refer to a row."""
    before = _stamp(layout.path)
    found = _fast(layout, roles) if _is_large(layout.path) else None
    series, where = found or _exact(layout, roles)
    if _stamp(layout.path) != before:
        raise CorankError(f"file '{layout.path}' has changed while it was read: try again when it is complete")
    return series, where


def _stamp(path: Path) -> tuple[int, int] | None:
    """The size and time of a file; None for a member of an archive."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_size, found.st_mtime_ns


def _is_large(path: Path) -> bool:
    with opened(path) as file:
        return len(file.read(SMALL + 1)) > SMALL


def _no_second_header(series: Mapping[str, pl.Series], roles: Mapping[str, str], layout: Layout, where: Where) -> None:
    """Raise where a row repeats the names of the columns, as where two files were joined."""
    import polars as pl

    if any(series[role].dtype != pl.String for role in ("user", "item")):
        return
    same = (series["user"] == roles["user"]) & (series["item"] == roles["item"])
    if same.any():
        raise CorankError(
            f"{where(int(same.arg_max() or 0))} of file '{layout.path}' repeats the header, as where two files were "
            "joined: remove it"
        )


# ---- row by row ----


def _exact(layout: Layout, roles: Mapping[str, str]) -> tuple[dict[str, pl.Series], Where]:
    """Columns of text, for any file."""
    import polars as pl

    at = [layout.names.index(name) for name in roles.values()]
    width = len(layout.names)

    def read(quotes: bool) -> tuple[dict[str, pl.Series], Where]:
        parts: list[pl.DataFrame] = []
        chunk: list[list[str | None]] = []
        numbers: list[int] = []
        doubted = False

        def keep() -> None:
            frame = pl.DataFrame(chunk, schema=dict.fromkeys(roles, pl.String), orient="row")
            parts.append(frame.with_columns(pl.Series("line", numbers, pl.Int64)))
            chunk.clear()
            numbers.clear()

        for line, fields in _rows(layout, quotes):
            if len(fields) != width:
                raise ragged(layout.path, line, len(fields), width, layout.separator, layout.wording)
            if not doubted and (last := _enclosed(fields, layout.separator)):
                doubted = True
                log.warning(
                    "line %s of file '%s' opens a quote that encloses what looks like rows, up to line %s: remove it "
                    "if this is an error",
                    *(f"{line:,}", layout.path, f"{line + last:,}"),
                )
            chunk.append([fields[i] or None for i in at])
            numbers.append(line)
            if len(chunk) == CHUNK:
                keep()
        keep()
        table = pl.concat(parts)
        starts = table["line"].to_numpy()
        return {role: table[role] for role in roles}, lambda row: f"line {starts[row]:,}"

    return with_quotes(read, lambda: _lines(layout.path), layout.separator)


def _enclosed(fields: Sequence[str], separator: str) -> int:
    """The line breaks in a field whose inner lines have as many separators as a row, 0 if there is no such field."""
    for field in fields:
        inner = LINE_ENDS.split(field)[1:-1] if "\n" in field or "\r" in field else []
        if inner and all(text.count(separator) == len(fields) - 1 for text in inner):
            return len(inner) + 1
    return 0


def _lines(path: Path) -> Iterator[str]:
    with opened_text(path) as text:
        yield from lines(text, path)


def _rows(layout: Layout, quotes: bool) -> Iterator[Row]:
    """The rows below the header."""
    rows = split(_lines(layout.path), layout.separator, layout.path, quotes)
    return (row for row in rows if row[0] > layout.skip)


# ---- large files ----


def _fast(layout: Layout, roles: Mapping[str, str]) -> tuple[dict[str, pl.Series], Where] | None:
    """The columns of a regular file; None for any other one."""
    if not layout.separator.isascii():
        return None
    with opened(layout.path) as file:
        if encoding_of(file.peek(4)[:4]) not in (None, "utf-8-sig"):  # type: ignore[attr-defined]
            return None
    kinds = {role: text_kind(layout.column(name)) for role, name in roles.items()}
    plain = all(kind == "int" or (role == "value" and kind == "float") for role, kind in kinds.items())
    found = _numbers(layout, roles) if plain and layout.separator in SEPARATORS else None
    return found or _polars(layout, roles, kinds)


def _blocks(layout: Layout) -> Iterator[bytes]:
    """The lines below the header as blocks of whole lines."""
    with opened(layout.path) as file:
        for _ in range(layout.skip):
            file.readline()
        rest = b""
        while data := file.read(BLOCK):
            cut = data.rfind(b"\n") + 1
            if cut:
                yield rest + data[:cut]
                rest = data[cut:]
            else:
                rest += data
            if len(rest) > 4 * LONGEST:
                raise too_long(layout.path, "a line")
        if rest:
            yield rest + b"\n"


def _pieces(block: bytes) -> np.ndarray[Any, Any]:
    """int64[pieces + 1], where the pieces of a block begin and the last one ends."""
    cuts = {block.find(b"\n", len(block) * k // PIECES) + 1 for k in range(1, PIECES)}
    return np.array(sorted({0, *cuts, len(block)}), np.int64)


def _numbers(layout: Layout, roles: Mapping[str, str]) -> tuple[dict[str, pl.Series], Where] | None:
    """The columns of a table of plain numbers; None where anything is not one."""
    import polars as pl

    from ..kernels.text import numbers
    from ..kernels.threads import run

    columns = len(layout.names)
    slot = np.full(columns, -1, np.int8)
    for k, name in enumerate(roles.values()):
        slot[layout.names.index(name)] = k
    decimal = np.array([role == "value" for role in roles])
    parts: dict[str, list[np.ndarray[Any, Any]]] = {role: [] for role in roles}
    for block in _blocks(layout):
        cuts = _pieces(block)
        room = len(block) // (2 * columns) + 1
        out, places = np.empty((len(roles), room), np.int64), np.empty(room, np.uint8)
        counts = np.empty(cuts.size - 1, np.int64)
        text = np.frombuffer(block, np.uint8)
        separator = layout.separator.encode()
        run(numbers, counts.size, text, cuts, separator[0], len(separator), slot, decimal, out, places, counts)
        if (counts < 0).any():
            return None
        for first, count in zip(cuts // (2 * columns), counts, strict=False):
            rows = slice(first, first + count)
            for k, role in enumerate(roles):
                # Divided here, as kernels may replace a division by a product, which is rounded otherwise.
                made = (out[k, rows] / 10.0 ** places[rows]).astype(np.float32) if decimal[k] else out[k, rows].copy()
                parts[role].append(made)
    if not all(parts.values()):
        return None
    series = {role: pl.Series(np.concatenate(parts.pop(role))) for role in roles}
    return series, lambda row: f"line {row + 1 + layout.skip:,}"


def _polars(
    layout: Layout, roles: Mapping[str, str], kinds: Mapping[str, str]
) -> tuple[dict[str, pl.Series], Where] | None:
    """The columns of a table with text, read by polars if the whole file is regular."""
    import polars as pl

    path, separator = layout.path, layout.separator.encode()
    source: Path | bytes = content(path) if is_packed(path) or len(separator) > 1 else path
    if len(separator) > 1:
        assert isinstance(source, bytes)
        if UNIT in source:
            return None
        source, separator = source.replace(separator, UNIT), UNIT
    shape = _shape(_blocks(layout), layout.separator.encode(), len(layout.names))
    if shape is None:
        return None
    records, quoted, broken = shape
    at = {role: layout.names.index(name) for role, name in roles.items()}
    schema: dict[str, Any] = {str(i): pl.String for i in range(len(layout.names))}
    schema |= {str(i): pl.Float32 for role, i in at.items() if role == "value" and kinds[role] != "text"}
    schema |= {str(i): pl.Int64 for role, i in at.items() if role == "time" and kinds[role] == "int"}
    try:
        frame = pl.read_csv(
            source,
            has_header=False,
            skip_rows=layout.skip,
            separator=separator.decode(),
            quote_char='"' if quoted else None,
            schema=schema,
            columns=sorted(set(at.values())),
            glob=False,
        ).head(records)
    except (pl.exceptions.PolarsError, OSError):
        return None
    empty = np.ones(len(frame), np.bool_)
    for name in frame.columns:
        empty &= frame[name].is_null().to_numpy()
    if len(frame) != records or empty.any():
        return None
    if broken:
        return {role: frame[str(i)] for role, i in at.items()}, lambda row: _line_of(layout, row)
    return {role: frame[str(i)] for role, i in at.items()}, lambda row: f"line {row + 1 + layout.skip:,}"


def _shape(blocks: Iterator[bytes], separator: bytes, columns: int) -> tuple[int, bool, bool] | None:
    """The number of records, whether fields are quoted, and whether line breaks are; None if a file is not regular."""
    from ..kernels import text as kernels
    from ..kernels.threads import run

    kept = np.zeros(10, np.int64)
    if len(separator) > 1:
        blocks, separator = (block.replace(separator, UNIT).replace(b'"', b"'") for block in blocks), UNIT
    for block in blocks:
        text = np.frombuffer(block, np.uint8)
        easy = not kept[kernels.STATE] and not kept[kernels.BLANK] and b'"' not in block and b"\0" not in block
        if easy and block.count(b"\r") == block.count(b"\r\n"):
            cuts = _pieces(block)
            counts = np.empty(cuts.size - 1, np.int64)
            run(kernels.even, counts.size, text, cuts, separator[0], columns, counts)
            if (counts >= 0).all():
                kept[kernels.RECORDS] += counts.sum()
                continue
        if not kernels.shape(text, separator[0], columns, kept):
            return None
    if kept[kernels.STATE] or kept[kernels.ENCLOSED] or (kept[kernels.QUOTED] and kept[kernels.INNER]):
        return None
    return int(kept[kernels.RECORDS]), bool(kept[kernels.QUOTED]), bool(kept[kernels.BROKEN])


def _line_of(layout: Layout, row: int) -> str:
    """The line of a row in a file with quoted line breaks."""
    for at, (line, _) in enumerate(_rows(layout, True)):
        if at == row:
            return f"line {line:,}"
    return f"row {row:,}"
