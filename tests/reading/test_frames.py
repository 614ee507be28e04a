"""Frames of three libraries, and the types that their columns may have."""

from __future__ import annotations

import datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import corank as cr
from corank.reading.frames import frame_columns
from rows import rows_of

LIBRARIES = pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])


@LIBRARIES
def test_frames_of_every_library_give_the_same(library: Any) -> None:
    zone = ZoneInfo("Europe/Paris")
    when = [datetime.datetime(2020, 1, d, 1, tzinfo=zone) for d in (1, 2, 3)]
    frame = library({"who": ["b", "ä", "b"], "what": [3, 1, 2], "much": [1.0, 2.5, 4.0], "when": when})
    data = cr.from_frame(frame, user="who", item="what", value="much", time="when")
    assert rows_of(data) == [("b", 3, 1.0, 1_577_836_800), ("ä", 1, 2.5, 1_577_923_200), ("b", 2, 4.0, 1_578_009_600)]
    assert isinstance(frame_columns(frame, user="who", item="what")["user"], pl.Series)
    assert cr.from_frame(frame, user="what", item="who", duplicates="error").users.ids.tolist() == [1, 2, 3]


@LIBRARIES
def test_missing_entries_of_frames_are_counted(library: Any) -> None:
    frame = library({"u": ["a", None, None], "i": [1, 2, 3], "j": [1, 2, 3], "v": [1.0, 2.0, None], "n": [1, None, 3]})
    with pytest.raises(cr.CorankError, match=r"column 'u' \(user\) has 2 missing entries, the first in row 1: drop or"):
        cr.from_frame(frame, user="u", item="i")
    with pytest.raises(cr.CorankError, match=r"column 'v' \(value\) has 1 missing entry, the first in row 2"):
        cr.from_frame(frame, user="i", item="j", value="v")
    with pytest.raises(cr.CorankError, match=r"column 'n' \(item\) has 1 missing"):
        cr.from_frame(frame, user="i", item="n")
    with pytest.raises(cr.CorankError, match=r"column 'n' \(time\) has 1 missing"):
        cr.from_frame(frame, user="i", item="j", time="n")


@LIBRARIES
def test_bad_frames_are_one_sentence(library: Any) -> None:
    frame = library({"user": [1, 2], "item": ["x", "y"], "text": ["4", "many"], "day": [datetime.date(2020, 1, 1)] * 2})
    with pytest.raises(cr.CorankError, match=r"the table has no column 'usr' for user; did you mean 'user'\?"):
        cr.from_frame(frame, user="usr", item="item")
    with pytest.raises(cr.CorankError, match=r"row 1 of column 'text' is 'many', which is not a number \(1 such row\)"):
        cr.from_frame(frame, user="user", item="item", value="text")
    with pytest.raises(cr.CorankError, match="column 'day' holds Date, and values must be numbers"):
        cr.from_frame(frame, user="user", item="item", value="day")
    with pytest.raises(cr.CorankError, match="column 'day' holds Date, and ids must be integers or strings"):
        cr.from_frame(frame, user="day", item="item")


def test_kinds_of_columns_in_frames() -> None:
    frame = pd.DataFrame(
        {
            "mixed": pd.Series([1, "a"], dtype=object),
            "words": pd.Series(["x", "y"], dtype="category"),
            "codes": pd.Series([30, 10], dtype="category"),
            "whole": [2.0, 1.0],
            "fraction": [2.5, 1.0],
            "seconds": [5.9, -5.9],
            "flag": [True, False],
        }
    )
    with pytest.raises(cr.CorankError, match=r"column 'mixed' mixes types \(int, str\): make it all integers or"):
        cr.from_frame(frame, user="mixed", item="codes")
    data = cr.from_frame(frame, user="words", item="codes", value="flag", time="seconds")
    assert rows_of(data) == [("x", 30, 1.0, 5), ("y", 10, 0.0, -5)]
    assert cr.from_frame(frame, user="whole", item="flag").users.ids.tolist() == [1, 2]
    with pytest.raises(cr.CorankError, match=r"user ids must be integers or strings, got 2\.5"):
        cr.from_frame(frame, user="fraction", item="codes")
    milliseconds = pl.DataFrame({"u": [1], "i": [2], "t": [1_577_836_800_123]})
    assert rows_of(cr.from_frame(milliseconds, user="u", item="i", time="t"))[0][3] == 1_577_836_800_123
    prices = pl.DataFrame({"u": [1], "i": [2], "v": ["1.25"], "t": ["7.75"]})
    prices = prices.with_columns(pl.col("v", "t").cast(pl.Decimal(5, 2)))
    assert rows_of(cr.from_frame(prices, user="u", item="i", value="v", time="t")) == [(1, 2, 1.25, 7)]
    huge = pl.DataFrame({"u": pl.Series([2**64 - 1], dtype=pl.UInt64), "i": [1], "j": [1]})
    with pytest.raises(cr.CorankError, match="does not fit in a signed 64-bit integer: give ids as strings"):
        cr.from_frame(huge, user="u", item="i")
    with pytest.raises(cr.CorankError, match="a time must fit in 64 bits"):
        cr.from_frame(huge, user="i", item="j", time="u")
    numbered = pd.DataFrame(np.array([[1, 10], [2, 20]]))
    assert rows_of(cr.from_frame(numbered, user="1", item="0")) == [(10, 1, 1.0, None), (20, 2, 1.0, None)]


def test_what_is_no_frame_is_refused() -> None:
    with pytest.raises(cr.CorankError, match=r"a dict is not a data frame .* give a pandas, polars or pyarrow table"):
        cr.from_frame({"u": [1]}, user="u", item="u")
    with pytest.raises(cr.CorankError, match=r"a LazyFrame is not a data frame .* collect\(\) it first"):
        cr.from_frame(pl.LazyFrame({"u": [1]}), user="u", item="u")
