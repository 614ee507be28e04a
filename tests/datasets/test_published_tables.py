"""Tables that are and are not in the published layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from corank.datasets.archive import Files
from corank.datasets.published_tables import small_table, table
from corank.errors import CorankError


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"1 2\n", "the first line has 2"),
        (b"1 2 3\n4 x 5\n", "x"),
        (b"1 2 3\n4 5\n", "row 2 has no value"),
        (b"", "the first line has 1"),
    ],
)
def test_a_table_unlike_the_published_one(tmp_path: Path, text: bytes, says: str) -> None:
    (tmp_path / "a").write_bytes(text)
    with pytest.raises(CorankError, match=f"not in the published layout.*{says}"):
        table(Files(tmp_path), "a", " ", ("user", "item", "value"))


def test_blank_lines_and_windows_line_ends(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1 2\r\n\r\n3 4\r\n\r\n")
    assert table(Files(tmp_path), "a", " ", ("user", "item")).rows() == [(1, 2), (3, 4)]


def test_a_small_table_with_a_short_line(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1|b|c\n2|b\n")
    with pytest.raises(CorankError, match="line 2 has 2"):
        small_table(Files(tmp_path), "a", "|", 3)
