"""The reader of the Netflix Prize on small files in both published layouts."""

from __future__ import annotations

from pathlib import Path

import pytest

import corank.datasets.archive
from corank.datasets import netflix
from corank.datasets.archive import Files
from corank.errors import CorankError
from rows import rows_of

NETFLIX = "1:\n1488844,3,2005-09-06\n822109,5,2005-05-13\n2:\n822109,1,1999-11-11\n"
NETFLIX_ROWS = [
    (1488844, 1, 3.0, 1125964800),
    (822109, 1, 5.0, 1115942400),
    (822109, 2, 1.0, 942278400),
    (7, 3, 4.0, 0),
]


@pytest.mark.parametrize("block", [1, 30, 10**6])
def test_netflix_in_both_forms_whatever_the_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(corank.datasets.archive, "BLOCK_BYTES", block)
    kaggle = tmp_path / "kaggle"
    kaggle.mkdir()
    (kaggle / "combined_data_1.txt").write_text(NETFLIX)
    (kaggle / "combined_data_2.txt").write_text("3:\n7,4,1970-01-01")
    (kaggle / "movie_titles.csv").write_bytes(b"1,2003,Dinosaur Planet\n2,NULL,Isle of Man, Th\xe9\n")
    data = netflix.ratings(Files(kaggle))
    assert rows_of(data) == NETFLIX_ROWS
    assert data.item_labels["title"].tolist() == ["Dinosaur Planet", "Isle of Man, Thé", ""]
    assert data.item_labels["year"].tolist() == ["2003", "", ""]

    single = tmp_path / "prize" / "training_set"
    single.mkdir(parents=True)
    head, tail = NETFLIX.split("2:\n")
    for n, text in enumerate([head, "2:\n" + tail, "3:\n7,4,1970-01-01\n"], 1):
        (single / f"mv_{n:07d}.txt").write_text(text)
    assert rows_of(netflix.ratings(Files(tmp_path / "prize"))) == NETFLIX_ROWS


@pytest.mark.parametrize(
    "text",
    ["1:\n5,3\n", "5,3,2005-09-06\n", "1:\n5,3,yesterday\n", "1:\nx,3,2005-09-06\n", "1:\n2000000000,3,2005-09-06\n"],
)
def test_netflix_unlike_the_published_files(tmp_path: Path, text: str) -> None:
    (tmp_path / "combined_data_1.txt").write_text(text)
    with pytest.raises(CorankError, match="not in the published layout"):
        netflix.ratings(Files(tmp_path))


def test_netflix_empty(tmp_path: Path) -> None:
    (tmp_path / "combined_data_1.txt").write_text("")
    with pytest.raises(CorankError, match="no ratings"):
        netflix.ratings(Files(tmp_path))
