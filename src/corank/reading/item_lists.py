"""Text files with one line per user, `user item item ...`: detected by their content, read by polars.

The usual forms are one separator throughout (`7 12 40 3`, `7,12,40`) and two of them (`7: 12, 40`, `7<tab>12,40`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from .text_files import LINE_ENDS, head, whole_lines

if TYPE_CHECKING:
    import polars as pl

Form = Literal["rows", "lists"]  # of a text file: one interaction per line, or one user per line
FORMS = ("rows", "lists")
SAMPLE = 10_000  # lines that are read to detect the form
_ALIKE = (" ", "\t", ",", ";", "|")
_APART = tuple(
    (user, item) for user in (":", "\t", " ", ",", ";", "|") for item in (" ", ",", ";", "|") if user != item
)
_ID = re.compile(r"[A-Za-z_-]*[0-9][A-Za-z0-9_-]*")  # words without a digit may be a sentence, and are never taken
_INTEGER = re.compile(r"[0-9]+")
WIDE = 10  # columns of integers without a header, all users different: too many to be a table of interactions


@dataclass(frozen=True)
class Lists:
    """How the lines are divided: the separator after the user, that between items, and lines before the first user."""

    outer: str
    inner: str
    skip: int = 0

    def __str__(self) -> str:
        mark = f"separator {self.outer!r}" if self.outer == self.inner else f"separators {self.outer!r}, {self.inner!r}"
        return f"one line per user: user item item ... ({mark}{', header' if self.skip else ''})"

    def divide(self, line: str) -> list[str]:
        """The user and the items of a line."""
        user, _, rest = line.strip().partition(self.outer)
        if self.outer == self.inner == " ":
            return line.split()
        items = rest.split() if self.inner == " " else [word.strip() for word in rest.split(self.inner)]
        return [user.strip(), *(items if items != [""] else [])]


def detect(path: Path, separator: str | None = None) -> Lists | None:
    """The form of the lines if they are `user item item ...`, else None; only the first megabyte is read.

    All of these must hold: every field is an id (with a digit and without a decimal point), no user has two lines, and
    the number of items differs between the lines.
    """
    text, complete = head(path, ("utf-8-sig",), False)
    lines = [line for line in LINE_ENDS.split(text)[: SAMPLE + 1] if line.strip()]
    if not complete and len(lines) > 1:
        lines.pop()
    for form in _candidates(separator):
        for skip in (0, 1):
            if _fits(form, lines[skip:]) and (not skip or _is_header(lines[0])):
                return Lists(form.outer, form.inner, skip)
    return None


def assumed(path: Path, separator: str | None = None) -> Lists:
    """The form of a file that is known to have one line per user: the separators that give the most fields."""
    text, _ = head(path, ("utf-8-sig",), False)
    lines = [line for line in LINE_ENDS.split(text)[:100] if line.strip()]
    forms = list(_candidates(separator))
    return max(forms, key=lambda form: sum(len(form.divide(line)) for line in lines if form.outer in line.strip()))


def read_lists(path: Path, form: Lists) -> dict[str, pl.Series]:
    """The users and items, one entry per item, in the order of the file, with the numbers of their lines."""
    import polars as pl

    lines = whole_lines(path).str.strip_chars()
    if " " in (form.outer, form.inner):
        lines = lines.str.replace_all(r"[ \t]+" if "\t" not in (form.outer, form.inner) else r" +", " ")
    kept = pl.DataFrame({"text": lines}).with_row_index("line", offset=1).filter(pl.col("text") != "").slice(form.skip)
    apart = kept["text"].str.splitn(form.outer, 2).struct.unnest()
    user = apart["field_0"].str.strip_chars()
    items = apart["field_1"].fill_null("").str.split(form.inner)
    table = pl.DataFrame({"user": user, "item": items, "line": kept["line"]}).explode("item")
    table = table.with_columns(pl.col("item").str.strip_chars()).filter(pl.col("item") != "")
    return {name: table[name] for name in ("user", "item", "line")}


def _candidates(separator: str | None) -> Sequence[Lists]:
    alike = [Lists(mark, mark) for mark in _ALIKE]
    apart = [Lists(outer, inner) for outer, inner in _APART if outer != inner]
    wanted = "\t" if separator in ("\\t", "tab") else separator
    found = [form for form in (*alike, *apart) if wanted is None or wanted in (form.outer, form.inner)]
    return found or [Lists(separator or " ", separator or " ")]


def _is_header(line: str) -> bool:
    """Whether a first line names users and items; three names or more are those of a table's columns."""
    words = re.split(r"[\s,;:|]+", line.strip())
    return len(words) < 3 and not any(map(_ID.fullmatch, words))


def _fits(form: Lists, lines: Sequence[str]) -> bool:
    if len(lines) < 3:
        return False  # too few to tell lists from a damaged table
    id_of_item = _ID if form.outer == form.inner else _INTEGER
    rows = []
    for line in lines:
        row = form.divide(line)
        if row and not row[-1]:
            row.pop()  # a separator at the end of the line
        if not row or not _ID.fullmatch(row[0]) or not all(map(id_of_item.fullmatch, row[1:])):
            return False
        rows.append(row)
    if len({row[0] for row in rows}) < len(rows):
        return False
    widths = Counter(map(len, rows))
    usual, times = widths.most_common(1)[0]
    if max(widths) < 3:
        return False  # pairs, some of them broken
    if len(widths) == 1:
        integers = all(_INTEGER.fullmatch(word) for row in rows for word in row)
        return integers and (usual >= WIDE or form.outer != form.inner)
    # A few lines that differ from all others are a damaged table.
    return times <= 0.8 * len(rows) if len(widths) == 2 else times <= 0.95 * len(rows)
