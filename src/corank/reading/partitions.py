"""Tables that are larger than memory: Parquet files, read in two passes into rows that are sorted in files.

The first pass collects the ids and the kind of the values, the second writes the rows as codes. These are then sorted
by ranges of users, and by ranges of items, each of which fits into memory. The rows are those that `read_parquet` gives
for one file, and a folder for several: in the order of the file names, with the same rule for repeated pairs.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..data import (
    CSR,
    DUPLICATES,
    Array,
    Dataset,
    Duplicates,
    Values,
    Vocab,
    on_disk,
    row_ends,
    settle_duplicates,
    tally,
)
from ..data.columns import convert, row_number
from ..data.given import union
from ..data.on_disk import DatasetOnDisk
from ..data.values import check_values, counts_only, detect, sampled
from ..errors import CorankError, suggest
from .column_names import means_counts
from .parquet import parquet_rows, parquet_slice
from .tables import guess_columns

log = logging.getLogger("corank.reading")
CHUNK = 1 << 22  # rows of a file that are read at a time
RANGES = 16  # of users and of items that are sorted at a time ...
FEWEST = 1 << 22  # ... unless these are few rows
SIDES = ("user", "item")


@dataclass
class Table:
    """One file, after the first pass."""

    path: Path
    roles: Mapping[str, str]  # role -> name of the column
    rows: int
    vocabs: dict[str, Vocab]
    values: Values
    low: float  # the smallest value

    def chunks(self) -> Iterator[dict[str, Any]]:
        """Its columns as `convert` gives them, some rows at a time."""
        names = {role: f"column {name!r} of '{self.path}'" for role, name in self.roles.items()}
        for at in range(0, self.rows, CHUNK):
            frame = parquet_slice(self.path, self.roles.values(), at, CHUNK)
            series = {role: frame[name] for role, name in self.roles.items()}
            yield convert(series, names, lambda row, at=at: row_number(at + row))  # type: ignore[misc]


def read_on_disk(
    tables: Sequence[Path],
    folder: Path,
    *,
    user: str | None = None,
    item: str | None = None,
    value: str | None = None,
    time: str | None = None,
    duplicates: Duplicates = "last",
    values: Values = "auto",
) -> DatasetOnDisk:
    """The rows of Parquet files as files in `folder`, 20 bytes per row, twice as many while they are written."""
    check_values(values)
    if duplicates not in DUPLICATES:
        raise CorankError(f"duplicates={duplicates!r} is not a rule{suggest(str(duplicates), DUPLICATES)}")
    if duplicates == "keep":
        raise CorankError("duplicates='keep' is for rows in memory: choose 'last', 'first', 'sum', 'mean' or 'max'")
    wanted = {"user": user, "item": item, "value": value, "time": time}
    found = [_first_pass(path, wanted, values) for path in tables]
    vocabs = {side: union([table.vocabs[side] for table in found], side)[0] for side in SIDES}
    kind: Values = next((table.values for table in found if table.values != "none"), "none")
    if values == "counts":
        counts_only(min(table.low for table in found))
    timed = all("time" in table.roles for table in found)
    with on_disk.writing(folder):
        counts = _second_pass(found, vocabs, folder, timed=timed)
        rows = sum(table.rows for table in found)
        log.info("%d files, %s rows: sorted by user and by item in %s", len(found), f"{rows:,}", folder)
        by_user, kind = _by_user(folder, counts, vocabs, duplicates, kind, timed=timed)
        if repeated := rows - by_user.index.size:
            log.info(
                "%s of %s rows repeat a (user, item) pair (duplicates=%r)", f"{repeated:,}", f"{rows:,}", duplicates
            )
        if values == "none":
            by_user.value[:] = 1
        owner = on_disk.mapped(folder / "owner", np.int32)
        by_item = _by_item(folder, by_user, owner)
    return DatasetOnDisk.of(
        vocabs["user"], vocabs["item"], by_user, by_item, owner, kind if values == "auto" else values
    )


def _first_pass(path: Path, wanted: Mapping[str, Any], values: Values) -> Table:
    """The ids of a file, and the kind of its values."""
    columns = guess_columns(path, **wanted)
    log.info("%s: %s", path, columns)
    table = Table(path, columns.roles(), parquet_rows(path), {}, "none", 1.0)
    if not table.rows:
        raise CorankError(f"file '{path}' has no rows: there is nothing to read")
    ids: dict[str, list[Vocab]] = {side: [] for side in SIDES}
    seen: list[Array] = []
    low, high, at = np.inf, -np.inf, 0
    for chunk in table.chunks():
        for side in SIDES:
            ids[side].append(Vocab.build(chunk[side], side)[0])
            if sum(map(len, ids[side])) > 4 * CHUNK:
                ids[side] = [union(ids[side], side)[0]]
        if "value" in chunk:
            value = chunk["value"]
            low, high = min(low, float(value.min())), max(high, float(value.max()))
            seen.append(sampled(value, table.rows, at))
            at += value.size
    table.vocabs = {side: union(ids[side], side)[0] for side in SIDES}
    if seen and low != high:
        sample = np.concatenate(seen)
        table.low, kind = low, detect(sample)
        table.values = "ratings" if kind == "none" else kind  # a sample of equal values
        if values == "auto" and table.values == "ratings" and low >= 0 and means_counts(columns.value):
            table.values = "counts"
    return table


def _second_pass(tables: Sequence[Table], vocabs: Mapping[str, Vocab], folder: Path, *, timed: bool) -> Array:
    """Write the rows as codes, values and times, in the order of the files; returns the rows of each user."""
    counts = np.zeros(len(vocabs["user"]), np.int64)
    with (
        (folder / "user").open("wb") as users,
        (folder / "item").open("wb") as items,
        (folder / "value").open("wb") as values,
        (folder / "time").open("wb") as times,
    ):
        for table in tables:
            for chunk in table.chunks():
                for side, file in zip(SIDES, (users, items), strict=True):
                    own, codes = Vocab.build(chunk[side], side)
                    whole = vocabs[side]
                    ids = own.ids.astype(str).astype(object) if whole.strings and not own.strings else own.ids
                    codes = whole.codes(ids)[codes]
                    if side == "user":
                        counts += np.bincount(codes, minlength=counts.size)
                    on_disk.append(file, codes)
                value = chunk.get("value")
                on_disk.append(values, np.ones(codes.size, np.float32) if value is None else value)
                if timed:
                    on_disk.append(times, np.asarray(chunk["time"], np.int64))
    return counts


def _by_user(
    folder: Path, counts: Array, vocabs: Mapping[str, Vocab], rule: Duplicates, kind: Values, *, timed: bool
) -> tuple[CSR, Values]:
    """The rows of each user, sorted by item and without repeated pairs, and the kind of the values after the rule."""
    columns = {"user": np.int32, "item": np.int32, "value": np.float32, **({"time": np.int64} if timed else {})}
    flat = {name: on_disk.mapped(folder / name, dtype) for name, dtype in columns.items()}
    users, items, lengths, kinds = vocabs["user"].ids, vocabs["item"], [], set()
    with (
        (folder / "index").open("wb") as index,
        (folder / "weight").open("wb") as weight,
        (folder / "owner").open("wb") as owner,
    ):
        for low, high in _ranges(counts):
            at = _within(flat["user"], low, high)
            columns_of: dict[str, Any] = {name: array[at] for name, array in flat.items()}
            columns_of["user"] -= np.int32(low)
            part = Dataset(Vocab(users[low:high]), items, **columns_of, values=kind)
            part = settle_duplicates(part, rule)
            rows = part.csr()
            kinds.add(part.values)
            lengths.append(np.diff(rows.indptr))
            on_disk.append(index, rows.index)
            on_disk.append(weight, rows.value)
            on_disk.append(owner, np.repeat(np.arange(low, high, dtype=np.int32), lengths[-1]))
    del flat
    for name in ("user", "item", "value", "time"):
        (folder / name).unlink()
    rows = CSR(
        row_ends(np.concatenate(lengths)),
        on_disk.mapped(folder / "index", np.int32),
        on_disk.mapped(folder / "weight", np.float32),
        len(items),
    )
    return rows, next((other for other in kinds if other != kind), kind)


def _by_item(folder: Path, by_user: CSR, owner: Array) -> CSR:
    """The same rows by item, sorted by user."""
    counts = tally(by_user.index, by_user.columns)
    everyone = Vocab(np.arange(by_user.rows))
    with (folder / "item_index").open("wb") as index, (folder / "item_weight").open("wb") as weight:
        for low, high in _ranges(counts):
            at = _within(by_user.index, low, high)
            item = by_user.index[at] - np.int32(low)
            part = Dataset(everyone, Vocab(np.arange(low, high)), owner[at], item, by_user.value[at], values="none")
            rows = part.csr("item")
            on_disk.append(index, rows.index)
            on_disk.append(weight, rows.value)
    return CSR(
        row_ends(counts),
        on_disk.mapped(folder / "item_index", np.int32),
        on_disk.mapped(folder / "item_weight", np.float32),
        by_user.rows,
    )


def _ranges(counts: Array) -> list[tuple[int, int]]:
    """Ranges of codes with about as many rows each; counts : the rows of each code."""
    ends = np.cumsum(counts)
    most = max(FEWEST, int(ends[-1]) // RANGES)
    cuts = np.unique([0, *(np.searchsorted(ends, np.arange(most, ends[-1], most)) + 1), counts.size])
    return [(int(a), int(b)) for a, b in itertools.pairwise(cuts)]


def _within(codes: Array, low: int, high: int) -> Array:
    """Positions of the codes in low..high - 1."""
    found = []
    for part in on_disk.blocks(codes.size):
        block = codes[part]
        found.append(np.flatnonzero((block >= low) & (block < high)) + part.start)
    return np.concatenate(found)
