"""A short form of the hostile tables, and the twin reader itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.reliability import tables, twin_reader


def test_hostile_tables_are_read_like_the_twin_or_refused(tmp_path: Path) -> None:
    out = tables.hostile_tables(25, 7, tmp_path, lambda done, of: None)
    assert out.tried == 25
    assert not out.failures


def test_a_wrong_reading_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.csv"
    path.write_text("user,item,value,time,note\n007,1,2,3,n\n7,1,2,3,n\n")
    assert tables.compared(path, ",", tables.NAMES) == ("", False)
    monkeypatch.setattr(tables, "read_rows", lambda path, separator: [(7, 1, 2.0, 3), (7, 1, 2.0, 3)])
    failure, refused = tables.compared(path, ",", tables.NAMES)
    assert failure == "read (7, 1, 2.0, 3) instead of ('007', 1, 2.0, 3)"
    assert not refused


def test_the_twin_reads_quotes_and_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b'1,"a ""b"",\nc",2.5,2024-01-31 10:00:00\r\r\n2,d,3,2024-01-31')
    assert twin_reader.twin_rows(path, ",", None) == [(1, 'a "b",\nc', 2.5, 1706695200), (2, "d", 3.0, 1706659200)]
    for text in ('1,"a,2,3\n', '1,"a"b,2,3\n', "1,a,2\n1,a,2,3\n", "1,a,inf,3\n", "1,a,1,2024-02-30\n", "1,,1,3\n"):
        path.write_text(text)
        with pytest.raises(twin_reader.Refused):
            twin_reader.twin_rows(path, ",", None)
