"""Rows that workers read from files: the dataset of one machine, and one sentence for what cannot be one table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import corank as cr
from corank.cluster.parts import find_parts
from corank.datasets import open_any
from corank.errors import CorankError
from corank.experiment.source import open_rows
from groups import close, fit_here


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    """Ratings with repeated pairs, of users that are in several files."""
    rng = np.random.default_rng(0)
    n = 3_000
    return pl.DataFrame(
        {
            "user": rng.integers(0, 100, n) * 7,
            "item": rng.zipf(1.5, n) % 60,
            "rating": rng.integers(1, 6, n).astype(np.float64),
            "time": rng.integers(0, 10**6, n),
        }
    )


def write(table: pl.DataFrame, folder: Path, form: str, parts: int = 5) -> Path:
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(table)), parts)):
        part = table[rows]
        if form == "csv":
            part.write_csv(folder / f"part-{number}.csv")
        else:
            part.write_parquet(folder / f"part-{number}.parquet")
    return folder


@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.parametrize("ids", ["numbers", "words"])
@pytest.mark.parametrize("options", [{}, {"positive": 3.0}, {"duplicates": "sum"}, {"time": "", "duplicates": "keep"}])
def test_same_as_one_machine(table: pl.DataFrame, tmp_path: Path, form: str, ids: str, options: dict[str, Any]) -> None:
    if ids == "words":
        table = table.with_columns(pl.format("u{}", "user").alias("user"), pl.format("é{}", "item").alias("item"))
    folder = write(table, tmp_path / "rows", form)
    model = cr.ALS(dim=3, epochs=2)
    fit_here(model, find_parts(folder, **options), 3)
    close(model, cr.ALS(dim=3, epochs=2).fit(open_rows(folder, **options)))
    model.save(tmp_path / "m.corank")
    found = cr.load(tmp_path / "m.corank").recommend(k=3)
    np.testing.assert_array_equal(found.items, model.recommend(k=3).items)


def test_folders_in_a_folder_and_urls(table: pl.DataFrame, tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    place = tmp_path / "rows"
    write(table, place, "parquet", 2)
    write(table, place / "day=2", "parquet", 2)
    (place / "_SUCCESS").write_text("")
    (place / "_logs").mkdir()
    (place / "_logs" / "more.csv").write_text("user,item\n1,2\n")
    model = fit_here(cr.WMF(dim=3, epochs=1), find_parts(place), 2)
    other = fit_here(cr.WMF(dim=3, epochs=1), find_parts(f"file://{place}"), 2)
    assert len(find_parts(place).paths) == 4
    np.testing.assert_array_equal(model.item_factors_, other.item_factors_)
    np.testing.assert_array_equal(model.seen_index_, open_any(place / "part-*.parquet").csr().index)


def test_counts_by_the_name_of_a_column(table: pl.DataFrame, tmp_path: Path) -> None:
    folder = write(table.rename({"rating": "plays"}), tmp_path / "rows", "parquet")
    model = fit_here(cr.WMF(dim=3, epochs=1, alpha=1.0), find_parts(folder), 2)
    assert model.confidence_ == cr.WMF(dim=3, epochs=1, alpha=1.0).fit(open_any(folder)).confidence_ == "log"


def test_files_without_rows(table: pl.DataFrame, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = write(table, tmp_path / "rows", "parquet", 2)
    table.clear().write_parquet(folder / "part-9.parquet")
    with caplog.at_level("INFO"):
        model = fit_here(cr.WMF(dim=3, epochs=1), find_parts(folder), 2)
    assert "part-9.parquet' has no rows: it is left out" in caplog.text
    np.testing.assert_array_equal(model.seen_index_, open_any(folder / "part-[01].parquet").csr().index)
    for path in folder.glob("*"):
        table.clear().write_parquet(path)
    with pytest.raises(CorankError, match="none of the 3 files has rows"):
        fit_here(cr.WMF(dim=3, epochs=1), find_parts(folder), 2)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.drop("time"), "cannot be one table: their columns differ"),
        (lambda t: t.rename({"user": "person"}), "cannot be one table: their columns differ"),
        (lambda t: t.with_columns(pl.col("user").cast(pl.String)), "the user ids of .* are of type Int64 and those of"),
        (lambda t: t.with_columns(rating=pl.lit(None, pl.Float64)), "part-1.parquet' .* has .* missing entries"),
        (lambda t: None, "part-1.parquet' cannot be read as Parquet"),
    ],
)
def test_a_part_that_is_different(table: pl.DataFrame, tmp_path: Path, change: Any, said: str) -> None:
    folder = write(table, tmp_path / "rows", "parquet", 3)
    changed = change(table)
    if changed is None:
        (folder / "part-1.parquet").write_bytes(b"PAR1 is how it begins")
    else:
        changed.write_parquet(folder / "part-1.parquet")
    model = cr.ALS(dim=3, epochs=1)
    with pytest.raises(CorankError, match=said):
        fit_here(model, find_parts(folder), 2)
    assert not model._learned()


def test_csv_ids_of_two_kinds_are_text(table: pl.DataFrame, tmp_path: Path) -> None:
    folder = write(table, tmp_path / "rows", "csv", 2)
    (folder / "part-9.csv").write_text("user,item,rating,time\nada,1,5,3\nada,2,4,4\n")
    assert fit_here(cr.WMF(dim=3, epochs=1), find_parts(folder), 2).users_.strings


@pytest.mark.parametrize(
    ("place", "options", "said"),
    [
        ("nowhere", {}, "there is no file or folder"),
        (".", {}, "holds no table"),
        (".", {"layout": "lists"}, "layout= is not an option of tables that workers read"),
        ("nothing://bucket/x", {}, "cannot open nothing://bucket/x"),
        ("file:///nowhere/at/all", {}, "holds no table"),
    ],
)
def test_places(place: str, options: dict[str, Any], said: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CorankError, match=said):
        find_parts(place, **options)


def test_more_workers_than_users(tmp_path: Path) -> None:
    folder = write(pl.DataFrame({"user": [1, 1, 2], "item": [1, 2, 1]}), tmp_path / "rows", "parquet", 1)
    with pytest.raises(CorankError, match="4 workers are too many for 2 users"):
        fit_here(cr.WMF(dim=2, epochs=1), find_parts(folder), 4)
    with pytest.raises(CorankError, match="no row has a value of 9 or more"):
        fit_here(cr.WMF(dim=2, epochs=1), find_parts(folder, positive=9.0), 1)
