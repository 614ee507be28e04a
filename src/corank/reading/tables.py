"""Datasets from CSV and similar text files and from Parquet files; item titles from text files."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from os import PathLike
from typing import Any

from ..data import Dataset, Duplicates, Values, from_arrays
from ..data.columns import convert, row_number, text_kind
from ..data.values import as_counts
from ..errors import CorankError, shorten, suggest
from .column_names import ROLES, Columns, choose, means_counts
from .csv_format import columns_of, sniff
from .ids import clean_ids, note_alike
from .item_lists import FORMS, Form, Lists, assumed, detect, read_lists
from .parquet import is_parquet, parquet_columns, parquet_names, parquet_sample
from .text_columns import read_text
from .text_files import existing_file

log = logging.getLogger("corank.reading")


def read_csv(
    path: str | PathLike[str],
    *,
    user: str | None = None,
    item: str | None = None,
    value: str | None = None,
    time: str | None = None,
    separator: str | None = None,
    header: bool | None = None,
    layout: Form | None = None,
    duplicates: Duplicates = "last",
    values: Values = "auto",
    **options: Any,
) -> Dataset:
    """A dataset from a text file: .csv, .tsv, .txt, .dat, .data, plain or packed as .gz, .zst or .zip.

    user, item, value, time : column names, or positions ("0", "1", ...) where the file has no header. Columns that are
        not given are guessed (see `guess_columns`; the guess is logged); `value=""` or `time=""` means no such column.
    separator : one character or '::'; blanks may repeat. Detected by default, as is `header`.
    layout : 'rows', one interaction per line, or 'lists', one user per line: `user item item ...`, with any of the
        usual separators. Detected by default: lists have lines of different lengths, all of ids, and no user twice.
    duplicates, values, options : as in `from_arrays`; the values of a column called plays, count, ... are counts.

    Ids are integers if all of them are written as integers in the shortest form, else strings ("007" stays "007"). A
    few other ids among integers are reported, with the first line. ISO dates become unix seconds (fractions are
    dropped, times without a zone are UTC); numeric times keep their unit, because only their order and span matter.
    """
    wanted = {"user": user, "item": item, "value": value, "time": time}
    lists = _lists(path, wanted, separator, header, layout)
    if lists is not None:
        log.info("%s: %s", path, lists)
        found = read_lists(existing_file(path), lists)
        line = found["line"]
        user_ids, item_ids = (
            clean_ids(found[role], f"'{path}': {role}", lambda row: f"line {line[row]:,}") for role in ("user", "item")
        )
        data = from_arrays(user=user_ids, item=item_ids, duplicates=duplicates, values=values, **options)
        note_alike(data, f"'{path}'")
        return data
    table = sniff(path, separator=separator, header=header, given=[n for n in wanted.values() if n])
    columns = columns_of(table, wanted)
    log.info("%s: %s", path, columns)
    names = {role: f"column {name!r} of '{path}'" for role, name in columns.roles().items()}
    series, where = read_text(table, columns)
    data = from_arrays(**convert(series, names, where), duplicates=duplicates, values=values, **options)
    note_alike(data, f"'{path}'")
    return as_counts(data) if values == "auto" and means_counts(columns.value) else data


def _lists(
    path: str | PathLike[str], wanted: Mapping[str, str | None], separator: str | None, header: bool | None, asked: Any
) -> Lists | None:
    """The form of a file with one line per user, as asked for or detected; None for one interaction per line."""
    if asked is not None and asked not in FORMS:
        raise CorankError(f"layout={asked!r} is not known{suggest(str(asked), FORMS)}")
    named = [role for role, name in wanted.items() if name]
    if asked == "lists":
        if named:
            raise CorankError(f"{named[0]}= names a column, and a file with one line per user has none: leave it out")
        return assumed(existing_file(path), separator)
    if asked == "rows" or named or header is not None or separator == "::":
        return None
    return detect(existing_file(path), separator)


def read_parquet(
    path: str | PathLike[str],
    *,
    user: str | None = None,
    item: str | None = None,
    value: str | None = None,
    time: str | None = None,
    duplicates: Duplicates = "last",
    values: Values = "auto",
    **options: Any,
) -> Dataset:
    """A dataset from a Parquet file; columns are given or guessed as in `read_csv`."""
    file = existing_file(path)
    columns = guess_columns(file, user=user, item=item, value=value, time=time)
    log.info("%s: %s", path, columns)
    roles = columns.roles()
    frame = parquet_columns(file, roles.values())
    if not frame.height:
        raise CorankError(f"file '{path}' has no rows: there is nothing to read")
    names = {role: f"column {name!r} of '{path}'" for role, name in roles.items()}
    series = {role: frame[name] for role, name in roles.items()}
    data = from_arrays(**convert(series, names, row_number), duplicates=duplicates, values=values, **options)
    note_alike(data, f"'{path}'")
    return as_counts(data) if values == "auto" and means_counts(columns.value) else data


def guess_columns(
    source: str | PathLike[str] | Sequence[str],
    *,
    user: str | None = None,
    item: str | None = None,
    value: str | None = None,
    time: str | None = None,
    separator: str | None = None,
    header: bool | None = None,
) -> Columns:
    """The columns that `read_csv` or `read_parquet` would use; `source` is a path, or a list of column names.

    Names are compared ignoring case, spaces and underscores: user, userId, reviewerID, customer_id, ...; item, movieId,
    asin, product, track, ...; rating, stars, count, plays, ...; timestamp, date, unixReviewTime, .... In a file, other
    columns whose names end like bought_at, order_date or clickTime are the time if their values look like times.
    Without a header the columns are user, item, value, time from left to right.
    """
    wanted = {"user": user, "item": item, "value": value, "time": time}
    if not isinstance(source, str | PathLike):
        return Columns(**choose(list(source), wanted, "the table"), header=True)
    path = existing_file(source)
    if is_parquet(path):
        names = parquet_names(path)
        return Columns(**choose(names, wanted, f"file '{path}'", sample=partial(parquet_sample, path)), header=True)
    layout = sniff(path, separator=separator, header=header, given=[n for n in wanted.values() if n])
    return columns_of(layout, wanted)


def table_form(
    path: str | PathLike[str],
    *,
    layout: Form | None = None,
    duplicates: Any = None,
    values: Any = None,
    **given: Any,
) -> str:
    """How a table would be read, as a line of text: files with equal ones can be read as one table."""
    file = existing_file(path)
    if not is_parquet(file):
        wanted = {role: given.get(role) for role in ROLES}
        lists = _lists(file, wanted, given.get("separator"), given.get("header"), layout)
        if lists is not None:
            return str(lists)
    return str(guess_columns(file, **given))


def read_titles(
    path: str | PathLike[str], *, item: str | None = None, title: str | None = None, separator: str | None = None
) -> tuple[list[Hashable], list[str]]:
    """Item ids and their titles, from any text table that has both (movies.csv, movies.dat, u.item, ...).

    The id is the column with the name of an item column, else the first; the title is the column with such a name, or
    the second where there is no header. Files that are not UTF-8 are read as Latin-1, like the older MovieLens files.
    """
    layout = sniff(
        path,
        separator=separator,
        given=[n for n in (item, title) if n],
        expected=("item", "title"),
        encodings=("utf-8-sig", "latin-1"),
        whole=True,
    )
    names = layout.names
    chosen = {"item": names[0], "title": names[1]}
    if layout.header:
        guess = choose(names, {"title": title}, f"file '{path}'")
        if "title" not in guess:
            raise CorankError(
                f"cannot tell which column of '{path}' is the title: it has {shorten(', '.join(names), 400)}; "
                "call it title in the first line, or say title=... in Python"
            )
        try:
            chosen = choose(names, {"item": item, **guess}, f"file '{path}'")
        except CorankError:
            if item is not None:
                raise
            chosen = {"item": names[0], **guess}
    else:
        given = {"item": item, "title": title}
        chosen |= choose(names, given, f"file '{path}'", header=False)
    ids, titles = layout.column(chosen["item"]), layout.column(chosen["title"])
    if len(ids) != len(titles) or len(ids) != len(layout.sample):
        raise CorankError(f"some lines of '{path}' have fewer than {len(names)} fields: repair them first")
    longest = max(layout.sample, key=len)
    if len(longest) > len(names):
        raise CorankError(
            f"some lines of '{path}' have more than {len(names)} fields (the longest begins with "
            f"{shorten(layout.separator.join(longest))!r}): enclose titles that hold {layout.separator!r} in quotes"
        )
    whole = text_kind(ids) == "int" and all(ids)
    return [int(i) for i in ids] if whole else list(ids), titles
