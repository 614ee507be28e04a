"""What a text file of interactions looks like: its separator, whether it has a header, and which column is which.

Only the first megabyte is looked at. Everything that is guessed ends in a `Columns`, which prints as one line, so that
a wrong guess is seen and can be overruled by name.
"""

from __future__ import annotations

import csv
import dataclasses
import gzip
import io
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from ..errors import CorankError, shorten, suggest

HEAD = 1 << 20  # bytes to look at
SAMPLE = 10_000  # rows to look at
SEPARATORS = ("::", ",", "\t", ";", "|", " ")
ROLES = ("user", "item", "value", "time")

# The words that name a column, best first; "movie", "movie_id", "MovieID" and "movie_id:token" are one word here.
_WORDS = {
    "user": "user uid userid username reviewer customer visitor client account member person player listener reader "
    "viewer buyer u session sid",
    "item": "item iid itemid movie film product asin track song artist album book isbn article news poi venue location "
    "place business restaurant hotel recipe game app video anime sku content course job beer joke i",
    "value": "rating value score stars overall bookrating userrating count plays playcount weight listens listencount "
    "clicks views quantity frequency preference hours label",
    "time": "timestamp when unixtimestamp unixreviewtime time ts datetime date createdat created eventtime "
    "eventtimestamp reviewtime reviewdate ratingtime checkintime utctime tdat day",
    "title": "title name movietitle booktitle itemtitle producttitle itemname productname moviename trackname songname "
    "artistname englishtitle label description",
}
_ENDINGS = ("", "id", "index", "idx", "key", "code", "number")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE)
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")


@dataclass(frozen=True)
class Wording:
    """How sentences speak of a table: they are about interactions unless told otherwise."""

    rows: str = "interactions"
    least: str = "a user and an item"  # what a row must have
    roles: Mapping[str, str] = dataclasses.field(default_factory=dict)  # role -> its name here, where that differs
    to: str = ""  # where to say a separator or a column, if not in the call at hand

    def role(self, role: str) -> str:
        return self.roles.get(role, role)


INTERACTIONS = Wording()


@dataclass(frozen=True)
class Columns:
    """Which column plays which part, by name (by position, "0", "1", ..., where the file has no header)."""

    user: str
    item: str
    value: str | None = None
    time: str | None = None
    separator: str | None = None  # None: not a text file
    header: bool = True

    def __str__(self) -> str:
        parts = [f"{role}={getattr(self, role)}" for role in ROLES if getattr(self, role) is not None]
        if self.separator is not None:
            parts.append(f"(separator {self.separator!r}, {'header' if self.header else 'no header'})")
        return " ".join(parts)

    def roles(self) -> dict[str, str]:
        """The columns that are there: role -> name."""
        return {role: getattr(self, role) for role in ROLES if getattr(self, role) is not None}


@dataclass(frozen=True)
class Layout:
    """How to read a text file, with the rows that were looked at."""

    path: Path
    separator: str
    header: bool
    names: tuple[str, ...]
    quoted: bool  # whether a field that starts with " was seen
    squeeze: bool  # fields are apart by more than one space
    skip: int  # lines before the first row
    sample: list[list[str]]
    wording: Wording = INTERACTIONS


def sniff(
    path: str | PathLike[str],
    *,
    separator: str | None = None,
    header: bool | None = None,
    given: Sequence[str] = (),
    expected: tuple[str, str] = ("user", "item"),
    encodings: Sequence[str] = ("utf-8-sig",),
    whole: bool = False,
    wording: Wording = INTERACTIONS,
) -> Layout:
    """Find out how a file is laid out.

    given : column names that the caller knows, so that a header can be told by them
    expected : the roles that a header of unknown columns must show
    encodings : to try in turn
    whole : look at every row instead of the first ones
    """
    path = Path(path)
    text, complete = _head(path, encodings, whole)
    if not text.strip():
        raise CorankError(f"file '{path}' is empty: a row is at least {wording.least}")
    if separator is None:
        choices = [s for s in SEPARATORS if s in text]
        separator = max(choices, key=lambda s: _fitness(text, s, complete), default=None)
        if separator is None or _fitness(text, separator, complete)[1] == 0:
            raise _one_column(path, text, "none of the known separators splits it", wording)
    elif separator in ("\\t", "tab"):
        separator = "\t"
    if len(separator) != 1 and separator != "::":
        raise CorankError(f"separator {separator!r} is not supported: give one character or '::'")
    rows = _records(text, separator, complete, None if whole else SAMPLE + 1)
    lead = len(text) - len(text.lstrip("\r\n"))
    if len(rows[0]) < 2:
        raise _one_column(path, text, f"the separator {separator!r} does not split it", wording)
    if header is None:
        header = _has_header(rows, given, expected)
    names = tuple(f.strip() for f in rows[0]) if header else tuple(str(i) for i in range(len(rows[0])))
    body = rows[1:] if header else rows
    if not body:
        shown = shorten(", ".join(names))
        raise CorankError(f"file '{path}' has a header ({shown}) and no rows: there is nothing to read")
    skip = text[:lead].count("\n") + header
    if not whole:
        for at, row in enumerate(body):
            if len(row) != len(names):
                raise ragged(path, at + 1 + skip, len(row), len(names), separator, wording)
    return Layout(
        path,
        separator,
        header,
        names,
        quoted='"' in text and re.search(f'(^|{re.escape(separator)})"', text, re.MULTILINE) is not None,
        squeeze=separator == " " and squeezed(text) != text,
        skip=skip,
        sample=body,
        wording=wording,
    )


def choose(
    names: Sequence[str], wanted: Mapping[str, str | None], where: str, *, header: bool = True
) -> dict[str, str]:
    """Role -> column name: what was asked for where it was asked for, guessed elsewhere; "" asks for none.

    Raises where a name does not exist, or where the user or the item column cannot be guessed.
    """
    chosen: dict[str, str] = {}
    for role, name in wanted.items():
        if name and name not in names:
            positions = "" if header else f" (it has no header: columns are numbered 0 to {len(names) - 1})"
            raise CorankError(
                f"{where} has no column {name!r} for {role}{positions}{shorten(suggest(name, names), 400)}"
            )
        if name and name in chosen.values():
            raise CorankError(f"column {name!r} of {where} cannot be two things: name another column for {role}")
        if name:
            chosen[role] = name
    for role, name in wanted.items():
        free = [n for n in names if n not in chosen.values()]
        found = _guess(free, role) if name is None and header else None
        if found is not None:
            chosen[role] = found
    lost = [role for role in wanted if role in ("user", "item") and role not in chosen]
    if lost and header:
        raise CorankError(
            f"cannot tell which column of {where} is the {' and the '.join(lost)}: "
            f"it has {shorten(', '.join(names), 400)}; "
            f"say {', '.join(f'{r}=...' for r in lost)} (on the command line {' '.join(f'--{r} ...' for r in lost)})"
        )
    return chosen


def columns_of(layout: Layout, wanted: Mapping[str, str | None]) -> Columns:
    """The columns of a sniffed file; without a header they are user, item, value, time from the left."""
    where = f"file '{layout.path}'"
    chosen = choose(layout.names, wanted, where, header=layout.header)
    if not layout.header:
        free = [n for n in layout.names if n not in chosen.values()]
        for role in ROLES:
            if role in chosen or not free:
                continue
            if role == "value" and len(free) == 1 and "time" not in chosen and _looks_like_time(layout, free[0]):
                continue
            place = free.pop(0)  # a column that is not wanted keeps its place
            if wanted.get(role) != "":
                chosen[role] = place
        if "item" not in chosen or "user" not in chosen:
            raise CorankError(
                f"{where} has no column left for {'item' if 'user' in chosen else 'user'}: say which is which"
            )
    return Columns(**chosen, separator=layout.separator, header=layout.header)


def kind(fields: Sequence[str]) -> str:
    """'int', 'float' or 'text': the narrowest that holds every field; empty fields say nothing. "007" is text."""
    fields = [f.strip(" ") for f in fields]
    fields = [f for f in fields if f]
    if all(_INTEGER.fullmatch(f) and -(2**63) <= int(f) < 2**63 for f in fields):
        return "int"
    return "float" if all(_NUMBER.fullmatch(f) for f in fields) else "text"


def column(layout: Layout, name: str) -> list[str]:
    """The fields of one column in the rows that were looked at."""
    at = layout.names.index(name)
    return [row[at] for row in layout.sample if len(row) > at]


def squeezed(text: str) -> str:
    """Runs of blanks made one, and none at the ends of lines."""
    return re.sub(r"(?m)^ | (?=\r?$)", "", re.sub(r"[ \t]+", " ", text))


def decompress(raw: bytes, path: Path) -> bytes:
    """The bytes of a whole file, unpacked where it is gzipped."""
    try:
        return gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw
    except (EOFError, OSError, zlib.error):
        raise damaged(path) from None


def damaged(path: Path) -> CorankError:
    return CorankError(f"file '{path}' ends early or is damaged inside its gzip compression: get it again")


def not_text(path: Path, why: str) -> CorankError:
    return CorankError(
        f"file '{path}' is not UTF-8 text ({why}): save it as UTF-8 (for example with iconv) and try again"
    )


def ragged(path: Path, line: int, width: int, first: int, separator: str, wording: Wording) -> CorankError:
    return CorankError(
        f"line {line:,} of file '{path}' has {width} field{'s' * (width != 1)} and the first line has {first}: "
        f"every line must have the same columns; repair it, or say another separator than {separator!r}{wording.to}"
    )


def first_ragged(layout: Layout) -> CorankError | None:
    """The sentence about the first row of the whole file that is not as wide as the first line."""
    text, _ = _head(layout.path, ("utf-8-sig", "latin-1"), whole=True)
    for at, row in enumerate(_records(text, layout.separator, True, None)):
        if len(row) != len(layout.names):
            line, width = at + 1 + layout.skip - layout.header, len(layout.names)
            return ragged(layout.path, line, len(row), width, layout.separator, layout.wording)
    return None


def existing_file(path: str | PathLike[str], wording: Wording = INTERACTIONS) -> Path:
    """The path, if it is a file that is there."""
    path = Path(path)
    if path.is_dir():
        raise CorankError(f"'{path}' is a folder: give the file in it that has the {wording.rows}")
    if not path.exists():
        near = suggest(path.name, [p.name for p in path.parent.iterdir()]) if path.parent.is_dir() else ""
        raise CorankError(f"file '{path}' does not exist: check the path{near if 'did you mean' in near else ''}")
    return path


def _head(path: Path, encodings: Sequence[str], whole: bool) -> tuple[str, bool]:
    """The text at the start of a file (whole lines), and whether that is all of it."""
    existing_file(path)
    try:
        with path.open("rb") as raw:
            packed = raw.peek(2)[:2] == b"\x1f\x8b"
            with gzip.open(raw) if packed else raw as file:
                data: bytes = file.read(-1 if whole else HEAD)
                complete = whole or not file.read(1)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise damaged(path) from None
    except OSError as error:
        raise CorankError(f"file '{path}' cannot be read: {error.strerror or error}") from None
    for magic, name, remedy in (
        (b"PK\x03\x04", "a zip archive, not text", "unpack it and give the file inside"),
        (b"PAR1", "a Parquet file, not text", "use read_parquet"),
        (b'{"', "JSON, not a table", "write it as CSV, a row a line"),
        (b"[{", "JSON, not a table", "write it as CSV, a row a line"),
    ):
        if data.startswith(magic):
            raise CorankError(f"file '{path}' is {name}: {remedy}")
    if b"\0" in data:
        raise not_text(path, "it has zero bytes: binary, or UTF-16")
    if not complete:
        data = data[: data.rfind(b"\n") + 1]
        if not data:
            raise CorankError(
                f"the first line of file '{path}' is longer than {HEAD:,} bytes: that is no table of rows"
            )
    for encoding in encodings:
        try:
            return data.decode(encoding), complete
        except UnicodeDecodeError as error:
            why = f"byte {error.start:,} is 0x{data[error.start]:02x}"
    raise not_text(path, why)


def _records(text: str, separator: str, complete: bool, limit: int | None) -> list[list[str]]:
    """The first rows of a text, split into fields; blank lines are left out."""
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
    except csv.Error:  # a field of more than 128 kB: a quote that never ends; what was read until there stands
        pass
    if (not complete or (limit is not None and len(rows) > limit)) and len(rows) > 1:
        rows.pop()  # may be the first half of a quoted field
    return rows or [[text[:100]]]


def _fitness(text: str, separator: str, complete: bool) -> tuple[bool, float, bool, int]:
    """How well a separator explains the first lines: known names, then rows of one width, then anything but a blank."""
    rows = _records(text[: 1 << 16], separator, complete and len(text) <= 1 << 16, 100)
    width = len(rows[0])
    known = sum(_guess(rows[0], role) is not None for role in _WORDS)
    # Rounded, so that one bad line in a hundred does not hand the file to a separator inside of dates.
    share = round(sum(len(row) == width for row in rows) / len(rows), 1) if width > 1 else 0.0
    return known >= 2 and width > 1, share, separator != " ", width


def _has_header(rows: Sequence[Sequence[str]], given: Sequence[str], expected: Sequence[str]) -> bool:
    top, body = [f.strip() for f in rows[0]], rows[1:]
    if any(name in top and not name.isdigit() for name in given):
        return True
    if any(_NUMBER.fullmatch(field) for field in top):
        return False
    for at, field in enumerate(top):
        below = [row[at] for row in body if len(row) > at and row[at].strip()]
        if field and below and kind(below) != "text":
            return True
    # All text: only names that we know make a header, and one is not enough ("alice,book" is a row).
    return all(_guess(top, role) is not None for role in expected)


def _guess(names: Sequence[str], role: str) -> str | None:
    plain = {re.sub(r"[\W_]", "", name.split(":")[0].lower()): name for name in reversed(names)}
    for word in _WORDS[role].split():
        for ending in _ENDINGS:
            if word + ending in plain:
                return plain[word + ending]
    return None


def _looks_like_time(layout: Layout, name: str) -> bool:
    """Unix times or dates, where ratings could stand too (user, item, time without a header)."""
    fields = [f for f in column(layout, name) if f]
    if kind(fields) == "text":
        return all(re.match(r"[0-9]{4}[-/][0-9]{1,2}[-/]", f.strip()) for f in fields)
    return all(float(f) >= 1e8 for f in fields)


def _one_column(path: Path, text: str, why: str, wording: Wording) -> CorankError:
    shown = shorten(text.lstrip("\r\n").split("\n", 1)[0].strip())
    return CorankError(
        f"only one column was found in file '{path}', whose first line is {shown!r}, as {why}: say separator=..."
        f"{wording.to or ' (on the command line --separator ...)'}"
    )
