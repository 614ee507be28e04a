"""Parquet columns of every type, and files that are damaged."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

import corank as cr
from rows import rows_of


def written(folder: Path, **columns: object) -> Path:
    path = folder / "x.parquet"
    pl.DataFrame(columns).write_parquet(path)
    return path


def test_columns_of_other_types(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        user=pl.Series(["b", "a"], dtype=pl.Categorical),
        item=pl.Series([Decimal(7), Decimal(8)]),
        rating=pl.Series([Decimal("1.5"), Decimal("2.5")]),
        date=pl.Series(["2020-01-01", "2020-01-02"], dtype=pl.Categorical),
    )
    assert rows_of(cr.read_parquet(path)) == [("b", 7, 1.5, 1577836800), ("a", 8, 2.5, 1577923200)]
    wide = written(tmp_path, user=pl.Series([2**70, 1], dtype=pl.Int128), item=[1, 2])
    assert cr.read_parquet(wide).users.ids.tolist() == ["1", str(2**70)]


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"user": [[1], [2]], "item": [1, 2]}, r"holds List\(Int64\), and ids must be integers or strings"),
        ({"user": [{"a": 1}, {"a": 2}], "item": [1, 2]}, "holds Struct"),
        ({"user": [None, None], "item": [1, 2]}, "has 2 missing entries, the first in row 0"),
        ({"user": ["a", " "], "item": [1, 2]}, "row 1 of column 'user' .* is blank"),
        ({"user": [1.5, 2.0], "item": [1, 2]}, "ids must be integers or strings, got 1.5"),
        ({"user": pl.Series([], dtype=pl.Int64), "item": pl.Series([], dtype=pl.Int64)}, "has no rows"),
        ({"user": [1, 2], "item": [1, 2], "time": [1_700_000_000, 1_700_000_000_000]}, "row 1 has 1700000000000"),
    ],
)
def test_what_is_refused(tmp_path: Path, columns: dict[str, object], sentence: str) -> None:
    with pytest.raises(cr.CorankError, match=sentence):
        cr.read_parquet(written(tmp_path, **columns))


def test_damaged_files_are_one_sentence_of_ours(tmp_path: Path) -> None:
    path = written(tmp_path, user=list(range(2_000)), item=[f"i{k % 70}" for k in range(2_000)])
    data = path.read_bytes()
    rng = random.Random(0)
    said = []
    for _ in range(60):
        broken = bytearray(data)
        for _ in range(rng.randrange(1, 9)):
            broken[rng.randrange(4, len(data))] = rng.randrange(256)
        path.write_bytes(broken[: rng.choice([len(data), rng.randrange(5, len(data))])])
        try:
            cr.read_parquet(path)
        except cr.CorankError as error:
            said.append(str(error))
    assert len(said) > 20
    assert not [text for text in said if "polars" in text.lower() or "\n" in text]
