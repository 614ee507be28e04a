"""A reader of tables that is slow and obviously right: one character after the other, all in Python.

It knows the format of the file (the trials made it), so it shows what a file means and not how that is found out. It
shares no code with corank.
"""

from __future__ import annotations

import datetime
import gzip
import re
from pathlib import Path

import numpy as np

INTEGER = re.compile(r"0|-?[1-9][0-9]*")
DATE = re.compile(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?:[T ](\d{1,2}):(\d{2})(?::(\d{2}))?)?")
Rows = list[tuple[object, object, float, int | None]]


class Refused(Exception):
    """The file has no meaning that everybody would agree on."""


def text_of(path: Path) -> str:
    """The characters of a file."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError) as error:
            raise Refused("damaged") from error
    for mark, encoding in ((b"\xff\xfe\0\0", "utf-32"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            return data.decode(encoding)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refused("not UTF-8") from error
    if "\0" in text or "\ufeff" in text:
        raise Refused("zero bytes, or a byte order mark inside")
    return text


def fields_of(text: str, separator: str, quotes: bool) -> list[list[str]]:
    """The fields of each line that has any."""
    records: list[list[str]] = [[]]
    at = 0
    while at < len(text):
        field = ""
        if text[at] == '"' and quotes:
            at += 1
            while True:
                if at == len(text):
                    raise Refused("a quote that is never closed")
                if text[at] == '"' and text[at + 1 : at + 2] == '"':
                    field += '"'
                    at += 2
                elif text[at] == '"':
                    at += 1
                    break
                else:
                    field += text[at]
                    at += 1
            if at < len(text) and text[at] not in separator + "\r\n":
                raise Refused("text after a quote")
        else:
            while at < len(text) and text[at] not in "\r\n" and not text.startswith(separator, at):
                field += text[at]
                at += 1
        records[-1].append(field)
        if at < len(text) and text.startswith(separator, at):
            at += len(separator)
            if at == len(text) or text[at] in "\r\n":
                records[-1].append("")
        if at < len(text) and text[at] in "\r\n":
            at += 2 if text.startswith("\r\n", at) else 1
            records.append([])
    return [record for record in records if any(field.strip() for field in record)]


def ids_of(column: list[str]) -> list[object]:
    """Integers if all of them are written as such."""
    if not all(text.strip() for text in column):
        raise Refused("an id is missing")
    while all(text.startswith(" ") for text in column):
        column = [text[1:] for text in column]
    if all(INTEGER.fullmatch(text) and -(2**63) <= int(text) < 2**63 for text in column):
        return [int(text) for text in column]
    return list(column)


def value_of(text: str) -> float:
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text.strip()):
        raise Refused("not a number")
    with np.errstate(over="ignore"):
        number = float(np.float32(text))
    if not np.isfinite(number):
        raise Refused("not finite")
    return number


def times_of(column: list[str]) -> list[int]:
    """Unix seconds of dates, numbers as they are."""
    if all(re.fullmatch(r"[+-]?[0-9]+", text.strip()) for text in column):
        numbers = [int(text) for text in column]
        units = {k for k in range(4) for n in numbers if 10**8 * 1000**k <= n < 10**10 * 1000**k}
        if min(numbers) >= 10**8 and len(units) > 1:
            raise Refused("two units")
        return numbers
    out = []
    for text in column:
        parts = DATE.fullmatch(text.strip())
        if parts is None:
            raise Refused("no date")
        try:
            when = datetime.datetime(*(int(part or 0) for part in parts.groups()), tzinfo=datetime.UTC)
        except ValueError as error:
            raise Refused("no such time") from error
        out.append(int(when.timestamp()))
    return out


def twin_rows(path: Path, separator: str, header: list[str] | None) -> Rows:
    """The rows (user, item, value, time) of a table; columns beyond those four are ignored."""
    text = text_of(path)
    try:
        records = fields_of(text, separator, quotes=separator != "::")
    except Refused:
        plain = fields_of(text, separator, quotes=False)
        whole = any(len(field) > 1 and field[0] == field[-1] == '"' for record in plain for field in record)
        if separator != "\t" or whole:  # quotes may be letters in files with tabs, unless some are not
            raise
        records = plain
    names = header or ["user", "item", "value", "time"][: len(records[0])]
    if header is not None:
        if records[0] != header:
            raise Refused("another header")
        records = records[1:]
        if any(record[:2] == header[:2] for record in records):
            raise Refused("the header again")
    if any(len(record) != len(names) for record in records):
        raise Refused("lines of different width")
    column = {name: [record[k] for record in records] for k, name in enumerate(names)}
    users, items = ids_of(column["user"]), ids_of(column["item"])
    values = [value_of(text) for text in column["value"]]
    times = times_of(column["time"]) if "time" in column else [None] * len(users)
    return list(zip(users, items, values, times, strict=True))


def twin_lists(path: Path, separator: str) -> Rows:
    """The rows of a file with one line per user."""
    users, items = [], []
    for line in re.split(r"\r\n|\r|\n", text_of(path)):
        if not line.strip():
            continue
        # Only blanks and tabs: `str.split` would also split at control characters, which may be part of an id.
        fields = re.findall(r"[^ \t]+", line) if separator == " " else map(str.strip, line.split(separator))
        user, *rest = fields
        rest = [item for item in rest if item]
        users += [user] * len(rest)
        items += rest
    return [(user, item, 1.0, None) for user, item in zip(ids_of(users), ids_of(items), strict=True)]
