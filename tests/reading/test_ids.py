"""Ids from text: integers in their shortest form, wherever in the file another one is, else text."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import corank as cr
from corank.reading import text_columns
from corank.reading.ids import clean_ids
from rows import write

LINES = "".join(f"{10 + row},{row % 7},3\n" for row in range(10_500))  # beyond the rows that are sampled
ODD = ["007", "+1", "-0", " 7", "7 ", "7.0", "1e3", "0x10", "1_000", "9223372036854775808", "00", "\uff17"]


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("odd", ODD)
def test_no_two_ids_become_one(
    tmp_path: Path, odd: str, large: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(text_columns, "SMALL", 1 if large else 1 << 24)
    data = cr.read_csv(write(tmp_path, f"{LINES}7,1,3\n1,1,3\n0,1,3\n{odd},1,3\n"))
    assert data.users.ids[data.user[-4:]].tolist() == ["7", "1", "0", odd]
    assert data.items.ids.tolist() == list(range(7))
    assert "user ids are integers in all but 1 of 10,504 rows" in caplog.text
    assert "in line 10,504), so that all of them are read as text" in caplog.text


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_integers_are_integers(ids: list[int]) -> None:
    read = clean_ids(pl.Series([str(i) for i in ids]), "x", str)
    assert read.dtype == pl.Int64
    assert read.to_list() == ids


def test_blanks_that_every_id_has_are_no_part_of_it() -> None:
    assert clean_ids(pl.Series([" 7", " 12"]), "x", str).to_list() == [7, 12]
    assert clean_ids(pl.Series(["  7", " 7"]), "x", str).to_list() == [" 7", "7"]
    assert clean_ids(pl.Series(["a ", "b "]), "x", str).to_list() == ["a", "b"]


def test_ids_that_look_alike_are_told_and_kept_apart(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="corank"):
        data = cr.read_csv(write(tmp_path, "user,item\nalice,caf\u00e9\nalice ,cafe\u0301\nbob,tea\n"))
    assert (len(data.users), len(data.items)) == (3, 3)
    assert "1 user id differs from another only in blanks or in Unicode form ('alice' and 'alice ')" in caplog.text
    assert r"('cafe\u0301' and 'caf\xe9')" in caplog.text


@pytest.mark.parametrize("blank", ["   ", '""', "\u00a0"])
def test_blank_ids_are_refused(tmp_path: Path, blank: str) -> None:
    with pytest.raises(cr.CorankError, match=r"line 3 of column 'item' of .* is blank|has 1 missing entry.* line 3"):
        cr.read_csv(write(tmp_path, f"user,item\n1,x\n2,{blank}\n"))


def test_more_digits_than_64_bits_are_text() -> None:
    ids = [str(np.iinfo(np.int64).max), str(np.iinfo(np.int64).max + 1)]
    assert clean_ids(pl.Series(ids), "x", str).to_list() == ids
