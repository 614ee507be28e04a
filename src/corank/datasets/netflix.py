"""Reader for the files of the Netflix Prize."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..data import Array, Dataset, Vocab
from ..errors import CorankError
from .archive import Files
from .published_tables import integers, labels, small_table, unlike, with_labels

DAY = 86_400
LARGEST_ID = 10_000_000


def ratings(files: Files) -> Dataset:
    """`combined_data_*.txt` or `training_set/mv_*.txt`: a line `movie:`, then lines `user,rating,date`; titles if any.

    The 100 million rows are read block by block into the narrowest types, so that peak memory is little more than the
    dataset.
    """
    names = files.find("combined_data_*.txt or training_set/mv_*.txt")
    parts: list[tuple[Array, Array, Array, Array]] = []
    movie: int | None = None
    for block in files.blocks(names):
        user, item, rating, day, movie = _read_block(files, block, movie)
        parts.append((user, item, rating, day))
    columns = list(zip(*parts, strict=True))
    if not columns:
        raise CorankError(f"{files.place}: the Netflix files hold no ratings; get them again")
    users, user_codes = _dense_codes(columns[0])
    items, item_codes = _dense_codes(columns[1])
    data = Dataset(
        users,
        items,
        user_codes,
        item_codes,
        np.concatenate(columns[2]).astype(np.float32),
        np.concatenate(columns[3]).astype(np.int64) * DAY,
    )
    if not files.find("movie_titles.txt or movie_titles.csv"):
        return data
    # id,year,title: a title may hold commas, and the year may be NULL.
    ids, year, title = small_table(files, "movie_titles.txt or movie_titles.csv", ",", 2, rest=True)
    about = {"title": title, "year": [y if y != "NULL" else "" for y in year]}
    return with_labels(data, {}, labels(data.items, integers(ids, "movie_titles"), about))


def _read_block(files: Files, block: bytes, movie: int | None) -> tuple[Array, Array, Array, Array, int | None]:
    import polars as pl

    expected = "a line `movie:`, then lines `user,rating,yyyy-mm-dd`"
    try:
        # polars takes the number of fields from the first line, and a block may begin with `movie:`.
        schema = {"user": pl.String, "rating": pl.UInt8, "date": pl.String}
        frame = pl.read_csv(b"0,0,1970-01-01\n" + block, has_header=False, schema=schema, quote_char=None)[1:]
        header = pl.col("user").str.ends_with(":")
        frame = frame.with_columns(
            item=pl.when(header)
            .then(pl.col("user").str.strip_suffix(":"))
            .cast(pl.Int32)
            .forward_fill()
            .fill_null(pl.lit(movie, pl.Int32))
        )
        last = frame["item"][-1]
        frame = frame.filter(~header).select(
            pl.col("user").cast(pl.Int32), "item", "rating", day=pl.col("date").str.to_date("%Y-%m-%d").cast(pl.Int32)
        )
    except pl.exceptions.PolarsError as error:
        raise unlike(files, "a Netflix file", expected, error) from error
    largest = max((frame[name].max() or 0 for name in ("user", "item")), default=0)
    if any(frame.null_count().row(0)) or largest > LARGEST_ID:  # type: ignore[operator]
        raise unlike(files, "a Netflix file", expected, "a line has fewer fields, or an id that is far too large")
    user, item, rating, day = (frame[name].to_numpy() for name in ("user", "item", "rating", "day"))
    return user, item, rating, day, last


def _dense_codes(parts: Sequence[Array]) -> tuple[Vocab, NDArray[np.int32]]:
    """Vocabulary and codes of a column that comes in parts, without an int64 copy of the whole column."""
    present = np.zeros(1 + max(int(part.max(initial=0)) for part in parts), np.bool_)
    for part in parts:
        present[part] = True
    code = np.cumsum(present, dtype=np.int32) - np.int32(1)
    return Vocab(np.flatnonzero(present).astype(np.int64)), np.concatenate([code[part] for part in parts])
