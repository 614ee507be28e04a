"""Rows that are read into files are those that are read into memory, and so are the models."""

from __future__ import annotations

import dataclasses
import errno

import numpy as np
import polars as pl
import pytest

import corank as cr
from corank.cli import main
from corank.data import on_disk
from corank.reading import partitions


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch):
    """Many pieces of every kind, of rows that would fit into one."""
    monkeypatch.setattr(partitions, "CHUNK", 97)
    monkeypatch.setattr(partitions, "FEWEST", 50)
    monkeypatch.setattr(on_disk, "BLOCK", 101)


def table(seed, n=700, *, text=False):
    rng = np.random.default_rng(seed)
    ids = {"user": rng.integers(0, 90, n), "item": (60 * rng.random(n) ** 2).astype(int)}
    frame = pl.DataFrame(ids | {"rating": rng.integers(1, 6, n) * 1.0, "time": rng.integers(0, 50, n)})
    return frame.with_columns(pl.format("u{}", "user").alias("user")) if text else frame


def written(folder, *tables, name="part-{}.parquet"):
    folder.mkdir()
    for number, one in enumerate(tables):
        path = folder / name.format(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        one.write_parquet(path, row_group_size=64)
    return folder


def both(tmp_path, source, **options):
    place = tmp_path / "sorted"
    place.mkdir()
    return cr.datasets.open_any(source, **options), cr.read_partitions(source, place, **options)


def check_same(memory, disk):
    assert disk.on_disk
    assert memory.users == disk.users
    assert memory.items == disk.items
    assert memory.values == disk.values
    for side in ("user", "item"):
        for mine, other in zip(memory.csr(side), disk.csr(side), strict=True):
            np.testing.assert_array_equal(mine, other)
    assert on_disk.folder_of(disk.csr("item").index) is not None


@pytest.mark.parametrize("rule", ["last", "first", "sum", "mean", "max"])
def test_the_rows_are_those_in_memory(tmp_path, rule):
    source = written(tmp_path / "in", table(0), table(1))
    check_same(*both(tmp_path, source, duplicates=rule))


def test_ids_as_text_and_mixed(tmp_path):
    source = written(tmp_path / "in", table(0, text=True), table(1))
    check_same(*both(tmp_path, source))


def test_the_kind_of_the_values(tmp_path, monkeypatch):
    monkeypatch.setattr("corank.data.values._SAMPLE", 50)
    rng = np.random.default_rng(0)
    plays = table(0).with_columns(pl.Series("rating", np.ceil(np.exp(2.5 * rng.standard_normal(700)))))
    check_same(*both(tmp_path, written(tmp_path / "counts", plays)))
    (tmp_path / "sorted").rename(tmp_path / "first")
    check_same(*both(tmp_path, written(tmp_path / "none", table(1).select("user", "item")), duplicates="sum"))
    (tmp_path / "sorted").rename(tmp_path / "second")
    check_same(*both(tmp_path, tmp_path / "counts", values="none"))


def test_partitioned_folders(tmp_path):
    source = written(tmp_path / "in", table(0), table(1), name="day={}/part-0.parquet")
    memory, disk = both(tmp_path, source)
    assert len(memory) == len(disk) > 700
    check_same(memory, disk)


MODELS = [
    cr.WMF(dim=8, epochs=2),
    cr.WMF(dim=8, epochs=2, alpha=2.0, reg_power=0.5, solver="exact"),
    cr.BPR(dim=8, epochs=2),
    cr.BPR(dim=8, epochs=2, sse_item=0.1),
    cr.PrimalCR(dim=8, epochs=2),
    cr.PrimalCR(dim=8, epochs=1, reg_bias=1.0),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: repr(model)[:40])
def test_models_are_those_of_rows_in_memory(tmp_path, model):
    memory, disk = both(tmp_path, written(tmp_path / "in", table(0), table(1)))
    # A folder in which nothing else is written: what a fit needs beside the rows has no name there.
    names = sorted(path.name for path in (tmp_path / "sorted").iterdir())
    one, other = model._copy().fit(memory), model._copy().fit(disk)
    assert sorted(path.name for path in (tmp_path / "sorted").iterdir()) == names
    for name, mine in one._learned().items():
        if isinstance(mine, np.ndarray) and mine.dtype.kind == "f" and isinstance(model, cr.WMF):  # products by BLAS
            np.testing.assert_allclose(getattr(other, name), mine, rtol=1e-4, atol=1e-6)
        elif isinstance(mine, np.ndarray):
            np.testing.assert_array_equal(getattr(other, name), mine)
    other.save(tmp_path / "m.corank")
    want = one.recommend(k=3).scores
    np.testing.assert_allclose(cr.load(tmp_path / "m.corank").recommend(k=3).scores, want, rtol=1e-4, atol=1e-6)


def test_what_is_made_of_it_is_in_memory(tmp_path):
    memory, disk = both(tmp_path, written(tmp_path / "in", table(0)))
    part = disk.take(disk.user < 5)
    assert not part.on_disk
    np.testing.assert_array_equal(part.csr().index, memory.take(memory.user < 5).csr().index)
    assert not dataclasses.replace(disk, item_labels={"year": np.zeros(len(disk.items))}).on_disk
    users, items = np.arange(3, 40, 2), np.arange(0, 50, 3)
    mine, other = (cr.data.restricted(data, users, items).csr() for data in (memory, disk))
    np.testing.assert_array_equal(mine.index, other.index)


def test_estimates_do_not_count_rows_in_files(tmp_path):
    memory, disk = both(tmp_path, written(tmp_path / "in", table(0, 3000)))
    for model in (cr.WMF(dim=4), cr.BPR(dim=4), cr.PrimalCR(dim=4)):
        assert model.estimate(disk).memory < model.estimate(memory).memory


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"duplicates": "keep"}, "duplicates='keep' is for rows in memory"),
        ({"duplicates": "lst"}, "is not a rule; did you mean 'last'"),
        ({"duplicates": "error"}, "user 0 and item .* occur together more than once"),
        ({"user": "customer"}, "customer"),
    ],
)
def test_mistakes_are_sentences(tmp_path, options, message):
    with pytest.raises(cr.CorankError, match=message):
        cr.read_partitions(written(tmp_path / "in", table(0)), tmp_path, **options)


def test_partitions_that_do_not_go_together(tmp_path):
    source = written(tmp_path / "in", table(0), table(1).rename({"rating": "weight"}))
    with pytest.raises(cr.CorankError, match="cannot be one table: their columns differ"):
        cr.read_partitions(source, tmp_path)
    with pytest.raises(cr.CorankError, match="no Parquet file"):
        cr.read_partitions(tmp_path / "nothing", tmp_path)
    with pytest.raises(cr.CorankError, match="has no rows"):
        cr.read_partitions(written(tmp_path / "empty", table(0).head(0)), tmp_path)
    with pytest.raises(cr.CorankError, match=r"nowhere' does not exist"):
        cr.read_partitions(source, tmp_path / "nowhere")


def test_no_room_on_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr("corank.datasets.partitioned.ON_DISK", 1e18)
    with pytest.raises(cr.CorankError, match="choose a folder on another disk"):
        cr.read_partitions(written(tmp_path / "in", table(0)), tmp_path)


def test_the_command_line_keeps_the_rows_beside_the_model(tmp_path, capsys, monkeypatch):
    source = written(tmp_path / "in", table(0), table(1))
    monkeypatch.chdir(tmp_path)
    line = ["fit", "bpr", str(source), "--dim", "4", "--epochs", "2"]
    assert main([*line, "-o", "a.corank", "--on-disk", "never"]) == 0
    assert "sorted in files" not in capsys.readouterr().err
    assert main([*line, "-o", "b.corank", "--on-disk", "always"]) == 0
    assert "rows, under 0.1 GB in memory, so they are sorted in files" in capsys.readouterr().err
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["a.corank", "b.corank", "in"]  # the files are gone
    one, other = cr.load(tmp_path / "a.corank"), cr.load(tmp_path / "b.corank")
    np.testing.assert_array_equal(one.item_factors_, other.item_factors_)
    monkeypatch.setattr("corank.cli.on_disk.free_bytes", lambda: 2 * 64 * 1400 - 1)  # 1,400 rows are over half of it
    assert main([*line, "-o", "c.corank"]) == 0
    assert "sorted in files" in capsys.readouterr().err
    monkeypatch.setattr("corank.cli.on_disk.free_bytes", lambda: 2 * 64 * 1400)
    assert main([*line, "-o", "d.corank"]) == 0
    assert "sorted in files" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fit ease in -o m.corank --on-disk always", "ease needs its rows in memory"),
        ("fit wmf in -o m.corank --on-disk always --positive 3", "--positive needs the rows in memory"),
        ("fit sasrec in -o m.corank --on-disk always", "sasrec needs its rows in memory"),
        ("fit wmf nowhere -o m.corank --on-disk always", "nowhere is no Parquet file"),
    ],
)
def test_what_needs_the_rows_in_memory_says_so(tmp_path, capsys, monkeypatch, line, message):
    written(tmp_path / "in", table(0))
    monkeypatch.chdir(tmp_path)
    assert main(line.split()) == 2
    assert message in capsys.readouterr().err


def test_a_full_disk_is_a_sentence(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    memory, disk = both(tmp_path, written(tmp_path / "in", table(0)))
    monkeypatch.setattr(on_disk.os, "posix_fallocate", full)
    with pytest.raises(cr.CorankError, match=r"rows cannot be written to '.*sorted': No space left on device; choose"):
        cr.BPR(dim=4, epochs=1).fit(disk)
    cr.BPR(dim=4, epochs=1).fit(memory)
    monkeypatch.setattr(on_disk, "append", full)
    with pytest.raises(cr.CorankError, match="rows cannot be written to"):
        cr.read_partitions(tmp_path / "in", tmp_path / "sorted")
