"""Text files as text and rows of fields: encodings, quoting, and messages about files that cannot be read."""

from __future__ import annotations

import codecs
import io
import itertools
import re
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from ..data.columns import INTERACTIONS, Wording
from ..errors import CorankError, shorten, suggest
from ..system.memory import make_room
from .packed import archive_of, content, encoding_of, exists, is_table, is_zip, members, opened, ordinary
from .records import Malformed, Row, lines, not_text, second_mark, split, with_quotes

if TYPE_CHECKING:
    import polars as pl

LARGE = 64_000_000  # bytes of a file from which the free memory is looked at before it is read
PER_BYTE = 5.0  # bytes of memory per byte of a table, at the peak
LINE_ENDS = re.compile(r"\r\n|\r|\n")
HEAD = 1 << 20  # bytes that are read to detect the format


def existing_file(path: str | PathLike[str], wording: Wording = INTERACTIONS) -> Path:
    """The path, if it is that of an existing file; of a zip archive with one table, the path of that table."""
    path = Path(path)
    if path.is_dir():
        raise CorankError(f"'{path}' is a folder: give the file in it that has the {wording.rows}")
    ordinary(path)
    if not exists(path):
        if (archive := archive_of(path)) is not None:
            near = suggest(path.name, [member.name for member in members(archive)])
            raise CorankError(f"archive '{archive}' has no file '{path.relative_to(archive)}'{near}")
        near = suggest(path.name, [p.name for p in path.parent.iterdir()]) if path.parent.is_dir() else ""
        raise CorankError(f"file '{path}' does not exist: check the path{near if 'did you mean' in near else ''}")
    if is_zip(path):
        tables = [member for member in members(path) if is_table(member)]
        if len(tables) != 1:
            shown = shorten(", ".join(str(table.relative_to(path)) for table in tables), 200)
            held = f"holds {len(tables)} tables ({shown})" if tables else "holds no table"
            raise CorankError(f"archive '{path}' {held}: name the file inside, such as '{path}/ratings.csv'")
        return tables[0]
    if path.is_file() and (size := path.stat().st_size) > LARGE:
        make_room(PER_BYTE * size, f"reading '{path}'", "divide the file, or write it as Parquet with fewer columns")
    return path


def head(path: Path, encodings: Sequence[str], whole: bool) -> tuple[str, bool]:
    """The text at the start of a file (whole lines), and whether that is all of it."""
    with opened(path) as file:
        data: bytes = file.read(-1 if whole else HEAD)
        complete = whole or not file.read(1)
    for magic, name, remedy in (
        (b"PAR1", "a Parquet file, not text", "use read_parquet"),
        (b"MATLAB ", "a MATLAB file, not text", "give the folder of a known dataset, or write it as CSV"),
        (b'{"', "JSON, not a table", "write it as CSV, one row per line"),
        (b"[{", "JSON, not a table", "write it as CSV, one row per line"),
    ):
        if data.startswith(magic):
            raise CorankError(f"file '{path}' is {name}: {remedy}")
    if data[8:10] == b'{"' and b"\0" in data[:8]:
        raise CorankError(f"file '{path}' is a model file, not a table: give the file that has the rows")
    if data.lstrip()[:9].lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        raise CorankError(
            f"file '{path}' is a web page or XML, not a table: download the data itself, or write it as CSV"
        )
    marked = encoding_of(data[:4])
    if b"\0" in data and marked in (None, "utf-8-sig"):
        line = 1 + data.count(b"\n", 0, data.index(b"\0"))
        raise not_text(path, f"line {line:,} has zero bytes: binary or damaged, or UTF-16 without its first mark")
    for encoding in [marked] if marked else encodings:
        # What is cut off at the end is no error: the start of a character, or of a line.
        decoder = codecs.getincrementaldecoder(encoding)()
        try:
            text = decoder.decode(data, complete)
            break
        except UnicodeDecodeError as error:
            line = 1 + data.count(b"\n", 0, error.start)
            why = f"byte {error.start:,} is 0x{data[error.start]:02x}, in line {line:,}"
    else:
        raise not_text(path, why)
    if not complete:
        text = text[: max(text.rfind("\n"), text.rfind("\r", 0, -1)) + 1]
        if not text:
            raise CorankError(
                f"the first line of file '{path}' is longer than {HEAD:,} bytes: it is not a table of rows"
            )
    return text, complete


def records(text: str, separator: str, complete: bool, limit: int | None, path: Path) -> list[Row]:
    """The first rows of a text, without a row at its end that may be the first half of one."""

    def source() -> Iterator[str]:
        return lines(io.StringIO(text, newline=""), path)

    def read(quotes: bool) -> list[Row]:
        rows: list[Row] = []
        try:
            rows.extend(itertools.islice(split(source(), separator, path, quotes), limit))
        except Malformed as error:
            if complete or not error.ended:
                raise
            return rows
        return rows if complete or (limit is not None and len(rows) == limit) or len(rows) < 2 else rows[:-1]

    return with_quotes(read, source, separator)


def whole_lines(path: Path) -> pl.Series:
    """All lines of a file as strings, blank ones too, in one column of polars."""
    import polars as pl

    data = content(path)
    encoding = encoding_of(data[:4])
    if encoding not in (None, "utf-8-sig"):
        data = head(path, (encoding,), True)[0].encode()
    if b"\0" in data:
        line = 1 + data.count(b"\n", 0, data.index(b"\0"))
        raise not_text(path, f"line {line:,} has zero bytes: binary or damaged")
    if data.count(b"\r") > data.count(b"\r\n"):
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    # A separator that the text does not contain: each line is one string.
    separator = next((mark for mark in "\x1f\x1e\x1d\x1c\x01\x02" if mark.encode() not in data), None)
    if separator is None:
        raise CorankError(f"file '{path}' holds control characters, and is no text: repair it")
    lead = len(data) - len(data.lstrip(b"\n"))  # polars would look for columns in blank lines at the start
    try:
        text = pl.read_csv(data[lead:], has_header=False, separator=separator, quote_char=None, infer_schema=False)
    except pl.exceptions.PolarsError:
        head(path, ("utf-8-sig",), True)  # says which byte is not UTF-8
        raise CorankError(f"file '{path}' cannot be read as lines of text: save it as UTF-8 and try again") from None
    lines = text.to_series().fill_null("")
    mark = lines.str.starts_with("\ufeff")
    if mark.any():
        raise second_mark(path, int(mark.arg_max() or 0) + 1 + lead)
    return pl.concat([pl.Series("", [""] * lead, pl.String), lines.alias("")]) if lead else lines
