"""Lists as files: every format holds the same rows, and a file is whole or not there."""

from __future__ import annotations

import dataclasses
import gzip
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import corank as cr
from corank.answering.ranking_file import write_lists
from corank.data import Vocab

READ = {
    "lists.parquet": pl.read_parquet,
    "lists.pq": pl.read_parquet,
    "LISTS.CSV": pl.read_csv,
    "lists.tsv": lambda path: pl.read_csv(path, separator="\t"),
    "lists.csv.gz": pl.read_csv,
    "lists.jsonl": pl.read_ndjson,
    "lists.ndjson.gz": lambda path: pl.read_ndjson(gzip.decompress(Path(path).read_bytes())),
}


@pytest.fixture
def ranking() -> cr.Ranking:
    rng = np.random.default_rng(0)
    items = np.argsort(rng.random((25, 6)), axis=1)[:, :4].astype(np.int32)
    items[3, 2:] = -1
    scores = np.where(items < 0, -np.inf, -np.sort(rng.random((25, 4)), axis=1)).astype(np.float32)
    titles = ["Heat, the film", 'say "yes"', "", "Ünïcode", "tab\tin it", "=1+1"]
    return cr.Ranking(np.arange(25) * 7, items, scores, Vocab(np.array([*"abcdef"], object)), titles)


@pytest.mark.parametrize("name", READ)
def test_a_file_holds_what_the_frame_holds(ranking: cr.Ranking, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    ranking.write(path)
    frame = READ[name](path)
    assert frame.columns == ["user", "rank", "item", "score", "title"]
    assert frame.with_columns(pl.col("score").cast(pl.Float32)).equals(ranking.to_frame())
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", READ)
def test_pieces_make_the_same_file(ranking: cr.Ranking, name: str, tmp_path: Path) -> None:
    assert write_lists(tmp_path / name, ranking.parts(users=4)) == 25
    ranking.write(tmp_path / f"whole-{name}")
    assert READ[name](tmp_path / name).equals(READ[name](tmp_path / f"whole-{name}"))


@pytest.mark.parametrize("name", ["lists.csv", "lists.parquet", "lists.jsonl"])
def test_a_write_that_fails_leaves_the_old_file(ranking: cr.Ranking, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text("old")

    def parts():
        yield from ranking.parts(users=10)
        raise cr.CorankError("the model broke")

    with pytest.raises(cr.CorankError, match=r"^the model broke$"):
        write_lists(path, parts())
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["lists.xlsx", "lists", "lists.gz", "lists.json", "lists.parquet.gz"])
def test_another_ending_is_one_sentence(ranking: cr.Ranking, name: str, tmp_path: Path) -> None:
    with pytest.raises(cr.CorankError, match=r"end the name in \.parquet, \.csv, \.tsv or \.jsonl"):
        ranking.write(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_no_lists_is_a_table_without_rows(ranking: cr.Ranking, tmp_path: Path) -> None:
    empty = dataclasses.replace(ranking, users=ranking.users[:0], items=ranking.items[:0], scores=ranking.scores[:0])
    for name in ("e.parquet", "e.csv"):
        empty.write(tmp_path / name)
        assert READ[f"lists.{name[2:]}" if name != "e.csv" else "LISTS.CSV"](tmp_path / name).shape == (0, 5)


def test_a_json_line_has_the_names(ranking: cr.Ranking, tmp_path: Path) -> None:
    ranking.write(tmp_path / "l.jsonl")
    first = json.loads((tmp_path / "l.jsonl").read_text().splitlines()[0])
    assert list(first) == ["user", "rank", "item", "score", "title"]
