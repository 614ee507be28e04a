"""Columns of text: their type, and times of several formats."""

from __future__ import annotations

import polars as pl
import pytest

import corank as cr
from corank.data.columns import text_kind


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (["1", "-2", "0", "", " 3"], "int"),
        (["007", "1"], "float"),  # a number, but not an integer that could be written back
        (["1.0", "2e5", "nan"], "float"),
        (["9223372036854775807"], "int"),
        (["9223372036854775808"], "float"),
        (["1", "a"], "text"),
        (["-0"], "float"),
        (["1_000"], "text"),
        (["٣"], "text"),
    ],
)
def test_kinds_of_fields(fields: list[str], expected: str) -> None:
    assert text_kind(fields) == expected


@pytest.mark.parametrize(
    ("times", "like"),
    [
        (["2024-01-31", "2024-02-01", "17"], "'17', which is not a date like those of most rows"),
        (["17", "18", "2024-02-01"], "'2024-02-01', which is not a number like those of most rows"),
        (["2024-01-31", "soon"], "'soon', which is not a number or a date like 2024"),
    ],
)
def test_a_time_in_another_format_is_named_with_the_format_of_most(times: list[str], like: str) -> None:
    frame = pl.DataFrame({"u": [1] * len(times), "i": range(len(times)), "t": times})
    with pytest.raises(cr.CorankError, match=like):
        cr.from_frame(frame, user="u", item="i", time="t")
