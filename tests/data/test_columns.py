"""The type of a column of text."""

from __future__ import annotations

import pytest

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
