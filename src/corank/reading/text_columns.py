"""The columns of a text file: read by the readers of large files where they can, else row by row."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..data.columns import Where
from ..errors import CorankError
from .column_names import Columns
from .csv_format import Layout, ragged
from .ids import clean_ids
from .large_files import read_large
from .packed import opened
from .records import file_lines, file_rows, with_quotes
from .text_files import LINE_ENDS

if TYPE_CHECKING:
    import polars as pl

log = logging.getLogger("corank.reading")
SMALL = 1 << 22  # bytes up to which rows are read one by one, without loading the kernels
CHUNK = 1 << 17  # rows that are Python strings at the same time


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
    found = read_large(layout, roles) if _is_large(layout.path) else None
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

        for line, fields in file_rows(layout.path, layout.separator, layout.skip, quotes):
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

    return with_quotes(read, lambda: file_lines(layout.path), layout.separator)


def _enclosed(fields: Sequence[str], separator: str) -> int:
    """The line breaks in a field whose inner lines have as many separators as a row, 0 if there is no such field."""
    for field in fields:
        inner = LINE_ENDS.split(field)[1:-1] if "\n" in field or "\r" in field else []
        if inner and all(text.count(separator) == len(fields) - 1 for text in inner):
            return len(inner) + 1
    return 0
