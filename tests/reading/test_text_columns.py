"""The readers of large files read what the exact one reads, and files that are not regular are left to it."""

from __future__ import annotations

import gzip
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corank as cr
from corank.reading import large_files, text_columns
from corank.reading.column_names import Columns
from corank.reading.csv_format import columns_of, sniff
from rows import rows_of, write


def table(rows: int = 3_000, separator: str = ",", ids: str = "", quote: str = "") -> str:
    rng = random.Random(0)
    lines = []
    for _ in range(rows):
        value = rng.choice(["1", "2.5", "0.1"])
        lines.append([f"{ids}{rng.randrange(500)}", str(rng.randrange(90)), value, str(rng.randrange(10**9))])
    return "".join(separator.join(f"{quote}{field}{quote}" for field in line) + "\n" for line in lines)


def both(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """What the readers of large and of small files make of a file: rows, or what they say."""

    def read(small: int) -> Any:
        monkeypatch.setattr(text_columns, "SMALL", small)
        monkeypatch.setattr(large_files, "BLOCK", 1 << 12)
        try:
            return rows_of(cr.read_csv(path, duplicates="keep"))
        except cr.CorankError as error:
            return str(error)

    return read(1), read(1 << 24)


@pytest.mark.parametrize("separator", [",", "\t", ";", "::", "|", " "])
@pytest.mark.parametrize("ids", ["", "u"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_large_files_are_read_like_small_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, separator: str, ids: str, quote: str
) -> None:
    path = write(tmp_path, table(separator=separator, ids=ids, quote=quote if separator != "::" else ""))
    layout = sniff(path)
    wanted = dict.fromkeys(("user", "item", "value", "time"))
    assert large_files.read_large(layout, columns_of(layout, wanted).roles()) is not None
    fast, exact = both(path, monkeypatch)
    assert len(exact) == 3_000
    assert fast == exact


@pytest.mark.parametrize(
    "tail",
    [
        "1,2,3\n",
        "1,2,3,4,5\n",
        "1,2,3,4,5\n1,2,3\n",
        "\n\n",
        "\n1,2,3,4\n",
        ",,,\n",
        "1,2,,4\n",
        ",2,3,4\n",
        "1,2,-3,-4\n",
        "1,2,1e2,4\n",
        "1,2,.5,4\n",
        "1,2,5.,4\n",
        "1,2,-,4\n",
        "-0,2,1,4\n",
        "1,2,3,4\r1,2,3,4\r",
        "1,2,3,4",
        "1,2,3,4\r\n",
        '1,"2",3,4\n',
        '1,"2,3,4\n',
        '1,"2\n2",3,4\n',
        '"1","a\n1,2,3,4\nb",3,4\n',
        '1,2"2,3,4\n',
        '1,2"2,3,4\n1,"x",3,4\n',
        "1,2,3,4\0\n",
        "1,\xe9,3,4\n",
        "\ufeff1,2,3,4\n",
        "1,2,123456789012345678,4\n",
        "1,2,1234567890123456789,4\n",
        "99999999999999999999,2,3,4\n",
        "1,2,0.12345678901234567,4\n",
        "1,2,3,1700000000000\n",
        "1 ,2,3,4\n",
        "x,2,3,4\n",
        "1,2,nan,4\n",
        "1,2,16777217,4\n",
        "1,2,3.,04\n",
        "1,2,..5,4\n",
        "1,2,1.2.3,4\n",
        "1,2,--1,4\n",
        "1,2,3,4,\n",
    ],
)
@pytest.mark.parametrize("ids", ["", "u"])
def test_what_is_odd_at_the_end_is_the_same_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tail: str, ids: str
) -> None:
    fast, exact = both(write(tmp_path, table(2_600, ids=ids) + tail), monkeypatch)
    assert fast == exact


def test_latin_1_at_the_end_is_refused_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(table(2_600, ids="u").encode() + b"1,\xe9,3,4\n")
    fast, exact = both(path, monkeypatch)
    assert fast == exact
    assert "0xe9, in line 2,601" in exact


def test_decimals_are_rounded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(1)
    texts = [f"{rng.random() * 10 ** rng.randrange(-3, 6):.{rng.randrange(9)}f}" for _ in range(5_000)]
    monkeypatch.setattr(text_columns, "SMALL", 1)
    data = cr.read_csv(write(tmp_path, "".join(f"1,2,{text}\n" for text in texts)), duplicates="keep")
    assert data.value.tolist() == np.array([float(text) for text in texts]).astype(np.float32).tolist()


def test_a_packed_large_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.csv.gz"
    for ids in ("", "u"):
        path.write_bytes(gzip.compress(table(ids=ids).encode()))
        fast, exact = both(path, monkeypatch)
        assert fast == exact
        assert len(fast) == 3_000


def test_a_file_that_grows_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "user,item\n1,2\n")
    real = text_columns._exact

    def growing(*args: Any) -> Any:
        found = real(*args)
        with path.open("a") as file:
            file.write("3,4\n")
        return found

    monkeypatch.setattr(text_columns, "_exact", growing)
    with pytest.raises(cr.CorankError, match="has changed while it was read"):
        cr.read_csv(path)


def test_the_line_of_a_row_below_quoted_line_breaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, 'user,item,note\nx,y,"a\nb"\n' + "u,v,c\n" * 11_000 + "u,,c\n")
    fast, exact = both(path, monkeypatch)
    assert fast == exact
    assert "the first in line 11,004" in exact


def test_rows_between_quotes_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cr.read_csv(write(tmp_path, 'user,item,note\n1,2,"a\n2,3,b\n4,5,c"\n6,7,d\n'))
    assert "line 2 of file" in caplog.text
    assert "encloses what looks like rows, up to line 4" in caplog.text


def test_columns_are_positions(tmp_path: Path) -> None:
    layout = sniff(write(tmp_path, "a,b,c\n1,2,3\n"))
    series, where = text_columns.read_text(layout, Columns("c", "a"))
    assert (series["user"].to_list(), series["item"].to_list(), where(0)) == ([3], [1], "line 2")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_pipes_and_devices_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        for read in (cr.read_csv, cr.datasets.open_any):
            with pytest.raises(cr.CorankError, match="is a pipe, a socket or a device"):
                read(path)


@pytest.mark.parametrize(("first", "rest"), [("\r", "\r"), ("\r", "\n"), ("\r\n", "\n"), ("\n", "\r"), ("\n", "\r\n")])
@pytest.mark.parametrize("ids", ["", "u"])
def test_line_ends_of_large_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, rest: str, ids: str
) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(("user,item,rating,time" + first + table(3_000, ids=ids).replace("\n", rest)).encode())
    fast, exact = both(path, monkeypatch)
    assert fast == exact
    assert len(exact) == 3_000
