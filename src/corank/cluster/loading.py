"""From files to shards: workers read the files, agree on the vocabularies, and send each row to the worker of its user.

No process ever holds all rows. Items are known to all workers, so their ids are gathered; the ids of users are not:
each worker gets a range of them, chosen so that the ranges cost about the same, and numbers its own.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data import Dataset, Vocab, restricted, settle_duplicates
from ..data.values import as_counts, declared, detect, sampled
from ..errors import CorankError
from ..reading.column_names import Columns, means_counts
from .parts import Parts, form_of, read_part
from .shard import USER, Shard
from .steps import Exchange, Place, Steps, gather, total

if TYPE_CHECKING:
    import polars as pl

log = logging.getLogger("corank.reading")
MARKS = 1024  # ids that each worker names, between which its rows cost about the same


def load(place: Place, parts: Parts) -> Steps[Shard]:
    """Read the files and return the rows of the users of this worker."""
    import polars as pl

    frame, value_column = yield from _read(place, parts)
    values = parts.options.get("values", "auto")
    kind = yield from _kind(place, frame)
    items = pl.concat((yield from gather(place, frame["item"].unique().sort()))).unique().sort()
    frame = frame.with_columns(item=_codes(frame["item"], items))
    splitters = yield from _splitters(place, frame["user"])
    received = yield from _exchanged(place, frame, splitters)
    del frame
    users, user_codes = Vocab.build(received["user"], "user")
    vocab = Vocab(items.to_numpy().astype(object) if items.dtype == pl.String else items.to_numpy())
    data = Dataset(
        users,
        vocab,
        user_codes,
        received["item"].to_numpy(),
        received["value"].to_numpy(),
        received["time"].to_numpy() if "time" in received.columns else None,
        values=kind,
    )
    data = yield from _settled(place, data, parts.options.get("duplicates", "last"))
    data = declared(data, values)
    if values == "auto" and means_counts(value_column):
        negative = yield from gather(place, bool((data.value < 0).any()))
        data = data if any(negative) else as_counts(data)
    if (low := parts.options.get("positive")) is not None:
        data = yield from _at_least(place, data, low)
    some = yield from gather(place, len(data.users))
    if not all(some):
        raise CorankError(
            f"{place.size} workers are too many for {sum(some):,} users, of whom each needs some: use fewer workers"
        )
    return Shard(data, place, sum(some[: place.rank]), sum(some))


def _settled(place: Place, data: Dataset, rule: Any) -> Steps[Dataset]:
    """The rows without repeated pairs, all of which are on one worker; the first one tells how many there were."""
    settled = settle_duplicates(data, rule)
    before, after = np.sum((yield from gather(place, (len(data), len(settled)))), axis=0)
    if before > after and place.rank == 0:
        log.info("%s of %s rows repeat a (user, item) pair (duplicates=%r)", f"{before - after:,}", f"{before:,}", rule)
    return settled


def _at_least(place: Place, data: Dataset, low: float) -> Steps[Dataset]:
    """The rows of this value or more, with the users and items that remain."""
    data = data.take(data.value >= low)
    used = yield from total(place, np.bincount(data.item, minlength=len(data.items)))
    if not used.any():
        raise CorankError(f"no row has a value of {low:g} or more: lower positive")
    return restricted(data, np.unique(data.user), np.flatnonzero(used))


def _codes(ids: pl.Series, known: pl.Series) -> pl.Series:
    """The position of each id among the sorted known ones, which it is one of."""
    import polars as pl

    if ids.dtype == pl.String:
        return ids.cast(pl.Enum(known)).to_physical().cast(pl.Int32)
    return pl.Series(np.searchsorted(known.to_numpy(), ids.to_numpy()), dtype=pl.Int32)


def _read(place: Place, parts: Parts) -> Steps[tuple[pl.DataFrame, str | None]]:
    """The rows of this worker's files, in their order, and the name of the column of values; the columns are the same
    on all workers."""
    import polars as pl

    paths = parts.of(place.rank, place.size)
    forms = [(path, form_of(path, parts.options)) for path in paths]
    first: tuple[str, Columns] | None = None
    for path, form in (pair for pairs in (yield from gather(place, forms)) for pair in pairs):
        first = first or (path, form)
        if str(form) != str(first[1]):
            raise CorankError(
                f"'{first[0]}' ({first[1]}) and '{path}' ({form}) cannot be one table: their columns differ; write "
                "them with the same columns, or name the columns"
            )
    frames = [(path, frame) for path in paths if (frame := read_part(path, parts.options)).height]
    kinds = [(path, {side: str(frame[side].dtype) for side in ("user", "item")}) for path, frame in frames]
    columns = yield from gather(place, (kinds, frames[0][1].columns if frames else []))
    every = [pair for pairs, _ in columns for pair in pairs]
    if not every:
        raise CorankError(f"none of the {len(parts.paths)} files has rows: there is nothing to read")
    found = [frame for _, frame in frames]
    for side in ("user", "item"):
        odd = next((path for path, kind in every if kind[side] != every[0][1][side]), None)
        if odd is None:
            continue
        if any(path.endswith((".parquet", ".pq")) for path, _ in every):  # their types are those that were written
            raise CorankError(
                f"the {side} ids of '{every[0][0]}' are of type {every[0][1][side]} and those of '{odd}' are not: "
                "write all files with the same type"
            )
        found = [frame.with_columns(pl.col(side).cast(pl.String)) for frame in found]
    kind_of = {
        side: pl.String if any(kind[side] == "String" for _, kind in every) else pl.Int64 for side in every[0][1]
    }
    names = next(names for _, names in columns if names)
    schema = {name: kind_of.get(name, pl.Int64 if name == "time" else pl.Float32) for name in names}
    frame = pl.concat([pl.DataFrame(schema=schema), *(part.cast(schema) for part in found)])
    assert first is not None
    return frame if "value" in names else frame.with_columns(value=pl.lit(1, pl.Float32)), first[1].value


def _kind(place: Place, frame: pl.DataFrame) -> Steps[Any]:
    """The kind of the values, from the sample of all rows that one machine would look at."""
    value = frame["value"].to_numpy()
    about = (value.size, float(value.min(initial=np.inf)), float(value.max(initial=-np.inf)))
    counts, lowest, highest = zip(*(yield from gather(place, about)), strict=True)
    if min(lowest) == max(highest):
        return "none"
    sample = yield from gather(place, sampled(value, sum(counts), sum(counts[: place.rank])))
    found = np.concatenate(sample)
    if found.min() == found.max():  # the others are too rare to be in the sample
        found = np.append(found, np.array([min(lowest), max(highest)], np.float32))
    return detect(found)


def _splitters(place: Place, users: pl.Series) -> Steps[pl.Series]:
    """The ids at which the users are cut: the first user of each worker but the first."""
    import polars as pl

    own, counts = np.unique(users.to_numpy(), return_counts=True) if len(users) else (users.to_numpy(), np.zeros(0))
    ends = np.cumsum(counts + USER)
    at = np.searchsorted(ends, np.linspace(0, ends[-1], MARKS + 1)[1:]) if len(ends) else np.zeros(0, np.int64)
    weight = float(ends[-1]) / MARKS if len(ends) else 0.0
    marks = pl.DataFrame({"id": pl.Series(own[at], dtype=users.dtype), "weight": np.full(len(at), weight)})
    every: pl.DataFrame = pl.concat((yield from gather(place, marks))).sort("id")
    reached = every["weight"].cum_sum().to_numpy()
    cuts = np.searchsorted(reached, reached[-1] * np.arange(1, place.size) / place.size)
    return every["id"].gather(cuts)


def _exchanged(place: Place, frame: pl.DataFrame, splitters: pl.Series) -> Steps[pl.DataFrame]:
    """The rows of this worker's users, in the order of the files."""
    import polars as pl

    if place.size == 1:
        return frame
    owner = splitters.search_sorted(frame["user"], side="right")
    parts = [frame.filter(owner == rank) for rank in range(place.size)]
    received: list[pl.DataFrame] = yield Exchange(parts)
    return pl.concat(received)
