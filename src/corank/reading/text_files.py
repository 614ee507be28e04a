"""Text files as text and rows of fields: encodings, quoting, and messages about files that cannot be read."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from ..data.columns import INTERACTIONS, Wording
from ..errors import CorankError, shorten, suggest
from ..system.memory import make_room
from .packed import archive_of, exists, is_table, is_zip, members, opened

LARGE = 64_000_000  # bytes of a file from which the free memory is looked at before it is read
PER_BYTE = 5.0  # bytes of memory per byte of a table, at the peak
HEAD = 1 << 20  # bytes that are read to detect the format


def existing_file(path: str | PathLike[str], wording: Wording = INTERACTIONS) -> Path:
    """The path, if it is that of an existing file; of a zip archive with one table, the path of that table."""
    path = Path(path)
    if path.is_dir():
        raise CorankError(f"'{path}' is a folder: give the file in it that has the {wording.rows}")
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
    if b"\0" in data:
        raise not_text(path, "it has zero bytes: binary, or UTF-16")
    if not complete:
        data = data[: data.rfind(b"\n") + 1]
        if not data:
            raise CorankError(
                f"the first line of file '{path}' is longer than {HEAD:,} bytes: it is not a table of rows"
            )
    for encoding in encodings:
        try:
            return data.decode(encoding), complete
        except UnicodeDecodeError as error:
            why = f"byte {error.start:,} is 0x{data[error.start]:02x}"
    raise not_text(path, why)


def records(text: str, separator: str, complete: bool, limit: int | None) -> list[list[str]]:
    """The first rows of a text, split into fields; blank lines are skipped."""
    if separator == "::":
        return [line.rstrip("\r").split("::") for line in text.split("\n") if line.strip()][:limit]
    if separator == " ":
        text = squeezed(text)
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
            if row:
                rows.append(row)
            if limit is not None and len(rows) > limit:
                break
    except csv.Error:  # a field of more than 128 kB, as after a quote that never ends: keep the rows before it
        pass
    if (not complete or (limit is not None and len(rows) > limit)) and len(rows) > 1:
        rows.pop()  # may be the first half of a quoted field
    return rows or [[text[:100]]]


def squeezed(text: str) -> str:
    """The text with single blanks between fields and none at the ends of lines."""
    return re.sub(r"(?m)^ | (?=\r?$)", "", re.sub(r"[ \t]+", " ", text))


def not_text(path: Path, why: str) -> CorankError:
    return CorankError(
        f"file '{path}' is not UTF-8 text ({why}): save it as UTF-8 (for example with iconv) and try again"
    )
