"""The rows of a text file one after the other, in plain Python: slower than `text_columns`, and exact for any file.

Lines end with a line feed, a carriage return, or both. A field that begins with " ends with the next " that is not
doubled, and may hold separators and line breaks; inside of other fields " is a letter. Blank lines and rows of empty
fields are skipped.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, TypeVar

from ..errors import CorankError, shorten
from .packed import opened_text

LONGEST = 1 << 24  # characters of a line
LETTERS = ("\t", "|")  # separators of files that often hold " as a letter: ill-formed quotes are letters there
Row = tuple[int, list[str]]  # the number of the line where it begins, from 1 on; the fields
T = TypeVar("T")


class Malformed(CorankError):
    """Quotes that do not enclose fields."""

    def __init__(self, path: Path, line: int, ended: bool, why: str) -> None:
        what = "has a quote that ends inside of a field"
        if "end of data" in why:  # in the words of the csv module
            what = "opens a quote that is never closed"
        elif "limit" in why:
            what = f"opens a quote that is not closed within {csv.field_size_limit():,} characters"
        super().__init__(
            f"line {line:,} of file '{path}' {what}: enclose whole fields in quotes, double each quote inside of "
            "them, or remove the quote"
        )
        self.ended = ended  # at the end of the text


def lines(file: IO[str], path: Path) -> Iterator[str]:
    """The lines of a text that was opened with newline='' and errors='surrogateescape', with their ends."""
    number = 0
    while line := file.readline(LONGEST + 1):
        number += 1
        if len(line) > LONGEST:
            raise too_long(path, f"line {number:,}")
        if "\0" in line:
            raise not_text(path, f"line {number:,} has zero bytes: binary or damaged, or UTF-16 without its first mark")
        if not line.isascii():
            _check_text(line, number, path)
        yield line


def _check_text(line: str, number: int, path: Path) -> None:
    try:
        line.encode()
    except UnicodeEncodeError as error:
        byte = ord(line[error.start]) & 0xFF
        raise not_text(path, f"a byte is 0x{byte:02x}, in line {number:,}") from None
    if line.startswith("\ufeff"):
        raise second_mark(path, number)


def second_mark(path: Path, line: int) -> CorankError:
    return CorankError(
        f"line {line:,} of file '{path}' begins with a byte order mark, as where two files were joined: remove the "
        "mark, and the header after it if there is one"
    )


def split(text: Iterable[str], separator: str, path: Path, quotes: bool = True) -> Iterator[Row]:
    """The rows of some lines."""
    if separator == " ":
        text = map(squeezed, text)
    source = iter(text)
    number = 1
    for line in source:
        begin, number = number, number + 1
        if separator == "::" or not quotes or '"' not in line:
            fields = line.rstrip("\r\n").split(separator)
        else:
            reader = csv.reader(itertools.chain([line], source), delimiter=separator, strict=True)
            try:
                fields = next(reader)
            except csv.Error as error:
                raise Malformed(path, begin, next(source, None) is None, str(error)) from None
            number = begin + reader.line_num
        if any(field and not field.isspace() for field in fields):
            yield begin, fields


def file_lines(path: Path) -> Iterator[str]:
    """The lines of a file."""
    with opened_text(path) as text:
        yield from lines(text, path)


def file_rows(path: Path, separator: str, skip: int, quotes: bool = True) -> Iterator[Row]:
    """The rows of a file below its first lines."""
    return (row for row in split(file_lines(path), separator, path, quotes) if row[0] > skip)


def with_quotes(read: Callable[[bool], T], plain: Callable[[], Iterable[str]], separator: str) -> T:
    """`read(True)`; where the quotes are ill-formed and the separator allows it, `read(False)`, " being a letter.

    plain : the lines again. A field that is wholly quoted proves that quotes have their meaning.
    """
    try:
        return read(True)
    except Malformed:
        whole = re.compile(
            f'(?:^|{re.escape(separator)})"[^{re.escape(separator)}]*"(?:$|[\r\n{re.escape(separator)}])'
        )
        if separator not in LETTERS or any('"' in line and whole.search(line) for line in plain()):
            raise
        return read(False)


def squeezed(text: str) -> str:
    """The text with single blanks between fields and none at the ends of lines."""
    return re.sub(r"(?m)^ | (?=\r?$)", "", re.sub(r"[ \t]+", " ", text))


def too_long(path: Path, what: str) -> CorankError:
    return CorankError(f"{what} of file '{path}' is longer than {LONGEST:,} characters: it is not a table of rows")


def not_text(path: Path, why: str) -> CorankError:
    return CorankError(
        f"file '{path}' is not UTF-8 text ({shorten(why, 100)}): save it as UTF-8 (for example with iconv) and try "
        "again"
    )
