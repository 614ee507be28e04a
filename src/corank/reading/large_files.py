"""The columns of large text files that are regular: tables of numbers by a kernel, other tables by polars.

These readers take only what they are sure to read like `records`, which decides what a file means: a file that is not
regular from the first to the last byte is left to it.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.columns import Where, text_kind
from .csv_format import SEPARATORS, Layout
from .packed import content, encoding_of, is_packed, opened
from .records import LONGEST, file_rows, too_long

if TYPE_CHECKING:
    import polars as pl

BLOCK = 1 << 24  # bytes that the kernels are given at once
PIECES = 16  # of a block, for several threads
MARK = codecs.BOM_UTF8
UNIT = b"\x1f"  # stands for '::' where a reader knows separators of one byte alone


def read_large(layout: Layout, roles: Mapping[str, str]) -> tuple[dict[str, pl.Series], Where] | None:
    """The columns of a regular file; None for any other one."""
    if not layout.separator.isascii():
        return None
    with opened(layout.path) as file:
        if encoding_of(file.peek(4)[:4]) not in (None, "utf-8-sig"):  # type: ignore[attr-defined]
            return None
        above = [file.readline() for _ in range(layout.skip)]
    if any(b"\r" in line.removesuffix(b"\n").removesuffix(b"\r") for line in above):
        return None  # other line ends, of which the blocks below know nothing
    kinds = {role: text_kind(layout.column(name)) for role, name in roles.items()}
    plain = all(kind == "int" or (role == "value" and kind == "float") for role, kind in kinds.items())
    found = _numbers(layout, roles) if plain and layout.separator in SEPARATORS else None
    return found or _polars(layout, roles, kinds)


def _blocks(layout: Layout) -> Iterator[bytes]:
    """The lines below the header as blocks of whole lines."""
    with opened(layout.path) as file:
        if file.peek(3)[:3] == MARK:  # type: ignore[attr-defined]
            file.read(3)
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
            skip_lines=layout.skip,
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
    double = separator if len(separator) > 1 else None
    for block in blocks:
        if double:  # " is a letter in such files
            block, separator = block.replace(double, UNIT).replace(b'"', b"'"), UNIT
        if not block.isascii() and MARK in block:
            return None
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
    doubtful = kept[kernels.ENCLOSED] or (kept[kernels.QUOTED] and kept[kernels.INNER])
    if not kept[kernels.RECORDS] or kept[kernels.STATE] or doubtful:
        return None
    return int(kept[kernels.RECORDS]), bool(kept[kernels.QUOTED]), bool(kept[kernels.BROKEN])


def _line_of(layout: Layout, row: int) -> str:
    """The line of a row in a file with quoted line breaks."""
    for at, (line, _) in enumerate(file_rows(layout.path, layout.separator, layout.skip)):
        if at == row:
            return f"line {line:,}"
    return f"row {row:,}"
