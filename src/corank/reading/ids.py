"""Ids from text: integers if each of them is written as one in its shortest form, else text, as it is."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np

from ..data.columns import Where
from ..errors import shorten

if TYPE_CHECKING:
    import polars as pl

    from ..data import Dataset

log = logging.getLogger("corank.reading")
INTEGER = r"^(0|-?[1-9][0-9]{0,18})$"
NUMERIC = r"^\s*[+-]?[0-9][0-9.,_]*([eE][+-]?[0-9]+)?\s*$"
STRAY = 0.01  # at most this share of ids that are no integers, among integers, is reported; more if all are numbers
PROBE = 1000  # ids that are looked at before all of them are


def clean_ids(ids: pl.Series, what: str, where: Where) -> pl.Series:
    """The ids of a column; a few that are not integers, among integers, are reported, as they may be typos."""
    import polars as pl

    if ids.dtype != pl.String:
        return ids
    ids = _without_margin(ids)
    first = ids.head(PROBE).str.contains(INTEGER)
    if (first.sum() or 0) < 0.9 * len(first):  # names of any kind: no need to read on
        return ids
    whole = ids.cast(pl.Int64, strict=False)
    if whole.null_count() == ids.null_count() and _shortest(whole.drop_nulls().to_numpy()) == ids.str.len_bytes().sum():
        return whole
    odd = (~ids.str.contains(INTEGER) | whole.is_null()) & ids.is_not_null()
    count = int(odd.sum())
    if count <= max(1, STRAY * len(ids)) or bool(ids.filter(odd).str.contains(NUMERIC).all()):
        row = int(odd.arg_max() or 0)
        log.warning(
            "%s ids are integers in all but %s of %s rows (the first: %r in %s), so that all of them are read as text: "
            "repair %s if this is an error",
            *(what, f"{count:,}", f"{len(ids):,}", shorten(ids[row]), where(row), "it" if count == 1 else "them"),
        )
    return ids


def _shortest(numbers: np.ndarray) -> int:
    """The characters of these integers in their shortest form, which is the only one of its length."""
    size = np.abs(numbers).view(np.uint64)  # of the smallest integer too, whose absolute value has no sign bit left
    total = numbers.size + int(np.count_nonzero(numbers < 0))
    most = int(size.max(initial=0))
    power = 10
    while power <= most:
        total += int(np.count_nonzero(size >= power))
        power *= 10
    return total


def _without_margin(ids: pl.Series) -> pl.Series:
    """The ids without blanks that all of them begin (or end) with, as after the commas of `7, 12`."""
    if ids.null_count() == len(ids):
        return ids
    # One blank at a time: ids that differ in blanks stay different.
    while ids.head(PROBE).str.starts_with(" ").all() and ids.str.starts_with(" ").all():
        ids = ids.str.strip_prefix(" ")
    while ids.head(PROBE).str.ends_with(" ").all() and ids.str.ends_with(" ").all():
        ids = ids.str.strip_suffix(" ")
    return ids


def note_alike(data: Dataset, where: str) -> None:
    """Report ids that differ only in blanks around them or in the Unicode form of their letters."""
    import polars as pl

    for name, vocab in (("user", data.users), ("item", data.items)):
        if not vocab.strings or not len(vocab):
            continue
        ids = pl.Series(vocab.ids, dtype=pl.String)
        same = ids.str.strip_chars().str.normalize("NFC")
        count = len(ids) - same.n_unique()
        if count:
            twins = (
                pl.DataFrame({"id": ids, "same": same}).filter(same.is_duplicated()).sort("same", maintain_order=True)
            )
            first, second = (ascii(shorten(twins["id"][k])) for k in range(2))
            log.warning(
                "%s: %s %s id%s from another only in blanks or in Unicode form (%s and %s): they are kept apart",
                *(where, f"{count:,}", name, " differs" if count == 1 else "s differ", first, second),
            )
