"""The format of a text file of interactions: its separator, whether it has a header, and which column is which.

Only the first megabyte is read. The result is a `Columns`, which is logged as one line, so that a wrong guess is seen
and can be corrected by naming the column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from ..data.columns import INTERACTIONS, NUMBER, Wording, text_kind
from ..errors import CorankError, shorten
from .column_names import ROLES, WORDS, Columns, choose, guess
from .text_files import existing_file, head, records
from .time_columns import are_times

SAMPLE = 10_000  # rows that are read to detect the format
_LISTS = "; layout='lists' (--layout lists) reads lines of `user item item ...`"
SEPARATORS = ("::", ",", "\t", ";", "|", " ")


@dataclass(frozen=True)
class Layout:
    """How to read a text file, with the first rows, from which this was detected."""

    path: Path
    separator: str
    header: bool
    names: tuple[str, ...]
    skip: int  # lines before the first row
    sample: list[list[str]]
    wording: Wording = INTERACTIONS

    def column(self, name: str) -> list[str]:
        """The fields of one column in the first rows."""
        at = self.names.index(name)
        return [row[at] for row in self.sample if len(row) > at]


def sniff(
    path: str | PathLike[str],
    *,
    separator: str | None = None,
    header: bool | None = None,
    given: Sequence[str] = (),
    expected: Sequence[str] = ("user", "item"),
    encodings: Sequence[str] = ("utf-8-sig",),
    whole: bool = False,
    wording: Wording = INTERACTIONS,
) -> Layout:
    """Detect the format of a file.

    given : column names that the caller knows: a first line that has one of them is a header
    expected : the roles that the names of a header must have, where all columns are text
    encodings : tried in this order
    whole : read every row instead of the first ones
    """
    path = existing_file(path, wording)
    text, complete = head(path, encodings, whole)
    if not text.strip():
        raise CorankError(f"file '{path}' is empty: a row is at least {wording.least}")
    if separator is None:
        choices = [s for s in SEPARATORS if s in text]
        separator = max(choices, key=lambda s: _fitness(text, s, complete), default=None)
        if separator is None or _fitness(text, separator, complete)[1] == 0:
            raise _one_column(path, text, "none of the known separators splits it", wording)
    elif separator in ("\\t", "tab"):
        separator = "\t"
    if (len(separator) != 1 and separator != "::") or separator in '"\r\n':
        raise CorankError(f"separator {separator!r} is not supported: give one character or '::'")
    found = records(text, separator, complete, None if whole else SAMPLE + 1, path)
    rows = [fields for _, fields in found]
    if not rows or len(rows[0]) < 2:
        raise _one_column(path, text, f"the separator {separator!r} does not split it", wording)
    if header is None:
        header = _has_header(rows, given, expected)
    names = tuple(f.strip() for f in rows[0]) if header else tuple(str(i) for i in range(len(rows[0])))
    body = rows[1:] if header else rows
    if not body:
        shown = shorten(", ".join(names))
        raise CorankError(f"file '{path}' has a header ({shown}) and no rows: there is nothing to read")
    starts = [line for line, _ in found[header:]]
    if not whole:
        widths = [len(row) for row in body]
        if len(set(widths)) > 2 and widths.count(len(names)) < 0.5 * len(widths):
            raise CorankError(
                f"file '{path}' is no table: its lines have {min(widths)} to {max(widths)} fields (separator "
                f"{separator!r}){_LISTS if wording is INTERACTIONS else ''}"
            )
        for line, row in zip(starts, body, strict=True):
            if len(row) != len(names):
                raise ragged(path, line, len(row), len(names), separator, wording)
    return Layout(path, separator, header, names, skip=starts[0] - 1, sample=body, wording=wording)


def columns_of(layout: Layout, wanted: Mapping[str, str | None]) -> Columns:
    """The columns of a file; without a header they are user, item, value, time from left to right."""
    where = f"file '{layout.path}'"
    chosen = choose(layout.names, wanted, where, header=layout.header, sample=layout.column)
    for role, name in chosen.items():
        if layout.names.count(name) > 1:
            raise CorankError(
                f"{where} has {layout.names.count(name)} columns called {name!r}, and one of them is the {role}: "
                "rename the others in the first line"
            )
    if not layout.header:
        free = [n for n in layout.names if n not in chosen.values()]
        for role in ROLES:
            if role in chosen or not free:
                continue
            if role == "value" and len(free) == 1 and "time" not in chosen and are_times(layout.column(free[0])):
                continue
            place = free.pop(0)  # a column that is not wanted still takes its position
            if wanted.get(role) != "":
                chosen[role] = place
        if not any(wanted.values()) and _is_graph(layout, chosen):
            raise CorankError(
                f"{where} looks like a graph (node, relation, node), not like interactions: name the columns with "
                "user=... and item=... (--user, --item) if it has users and items"
            )
        if "item" not in chosen or "user" not in chosen:
            raise CorankError(
                f"{where} has no column left for {'item' if 'user' in chosen else 'user'}: say which is which"
            )
    return Columns(**chosen, separator=layout.separator, header=layout.header)


def ragged(path: Path, line: int, width: int, first: int, separator: str, wording: Wording) -> CorankError:
    return CorankError(
        f"line {line:,} of file '{path}' has {width} field{'s' * (width != 1)} and the first line has {first}: "
        f"every line must have the same columns; repair it, or say another separator than {separator!r}{wording.to}"
        f"{_LISTS if wording is INTERACTIONS else ''}"
    )


def _fitness(text: str, separator: str, complete: bool) -> tuple[bool, float, bool, int]:
    """How well a separator fits the first lines: known column names, then rows of equal width, then not a blank."""
    end = 0
    for _ in range(3):  # lines may be long
        end = text.find("\n", end) + 1 or len(text)
    start = text[: max(1 << 16, end)]
    try:
        rows = [fields for _, fields in records(start, separator, complete and len(start) == len(text), 100, Path())]
    except CorankError:  # no table with this separator, or one that is refused later, with the number of the line
        rows = [line.split(separator) for line in start.splitlines()[:100] if line.strip()]
    if not rows:
        return False, 0.0, False, 0
    width = len(rows[0])
    known = sum(guess(rows[0], role) is not None for role in WORDS)
    # Rounded, so that one bad line in a hundred does not make the separator inside of dates win.
    share = round(sum(len(row) == width for row in rows) / len(rows), 1) if width > 1 else 0.0
    return known >= 2 and width > 1, share, separator != " ", width


def _has_header(rows: Sequence[Sequence[str]], given: Sequence[str], expected: Sequence[str]) -> bool:
    top, body = [f.strip() for f in rows[0]], rows[1:]
    if any(name in top and not name.isdigit() for name in given):
        return True
    if any(NUMBER.fullmatch(field) for field in top):
        return False
    for at, field in enumerate(top):
        below = [row[at] for row in body if len(row) > at and row[at].strip()]
        if field and below and text_kind(below) != "text":
            return True
    # All columns are text: a header must have known names, and one is not enough ("alice,book" is a row).
    return all(guess(top, role) is not None for role in expected)


def _is_graph(layout: Layout, chosen: Mapping[str, str]) -> bool:
    """Whether the columns are integers, a few words, and integers that are too many to be ratings."""
    if set(chosen) != {"user", "item", "value"}:
        return False
    node, relation, other = (layout.column(chosen[role]) for role in ("user", "item", "value"))
    words = text_kind(relation) == "text" and len(set(relation)) <= 0.01 * len(relation)
    return words and text_kind(node) == text_kind(other) == "int" and len(set(other)) > 0.1 * len(other)


def _one_column(path: Path, text: str, why: str, wording: Wording) -> CorankError:
    shown = shorten(text.lstrip("\r\n").split("\n", 1)[0].strip())
    return CorankError(
        f"only one column was found in file '{path}', whose first line is {shown!r}, as {why}: "
        + (wording.split or f"say separator=...{wording.to or ' (on the command line --separator ...)'}")
    )
