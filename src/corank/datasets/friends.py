"""Readers for ratings with a graph of friends: the full Douban and Flixster data of the dissertation.

Written from descriptions of the files; the files themselves were not at hand. Friendship has no direction, and an edge
may be listed once or twice: both directions are in the graph, with weight 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..data import Array, Dataset
from .archive import Files
from .published_tables import table, unlike
from .publishers import social

if TYPE_CHECKING:
    import polars as pl


def douban(files: Files) -> Dataset:
    """`uir.index` (user, item, rating) and `social.index` (user, friend), separated by tabs or blanks."""
    ratings = table(files, "uir.index", _separator(files, "uir.index"), ("user", "item", "value"))
    links = table(files, "social.index", _separator(files, "social.index"), ("user", "friend"))
    user, item, value = (ratings[name].to_numpy() for name in ("user", "item", "value"))
    return social(user, item, value, None, _both_ways(links.to_numpy()))


def flixster(files: Files) -> Dataset:
    """`Ratings.timed.txt` (user, movie, rating, date, with a header, as UTF-16) and `links.txt` (user, friend).

    Only users with ratings are kept, as in the dissertation: most of the people in `links.txt` have none.
    """
    ratings = _timed(files, "Ratings.timed.txt or ratings.timed.txt")
    links = table(files, "links.txt", _separator(files, "links.txt"), ("user", "friend")).to_numpy()
    user, item, value, time = (ratings[name].to_numpy() for name in ("user", "item", "value", "time"))
    known = np.isin(links, user).all(axis=1)
    return social(user, item, value, time, _both_ways(links[known]))


def _separator(files: Files, name: str) -> str:
    return "\t" if b"\t" in files.first_line(name) else " "


def _both_ways(links: Array) -> Array:
    links = links[links[:, 0] != links[:, 1]]
    return np.concatenate([links, links[:, ::-1]])


def _timed(files: Files, pattern: str) -> pl.DataFrame:
    import polars as pl

    name = files.require(pattern)
    content = files.read(name)
    expected = "a header, then user, movie, rating and date, separated by tabs"
    try:
        if content.startswith((b"\xff\xfe", b"\xfe\xff")):
            content = content.decode("utf-16").encode()
        content = content.replace(b"\x00", b"")  # editions without a byte order mark
        schema = {"user": pl.Int64, "item": pl.Int64, "value": pl.Float64, "date": pl.String}
        frame = pl.read_csv(content, has_header=False, skip_rows=1, separator="\t", schema=schema, quote_char=None)
        frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))  # blank lines
        day = pl.col("date").str.slice(0, 10).str.to_date("%Y-%m-%d")
        frame = frame.with_columns(time=day.cast(pl.Datetime("us")).dt.epoch("s"))
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        raise unlike(files, name, expected, error) from error
    if any(frame.null_count().row(0)):
        raise unlike(files, name, expected, "a line has fewer fields")
    return frame
