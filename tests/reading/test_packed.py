"""Packed files: gzip, Zstandard, zip archives with one table, and members of archives."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import pytest

import corank as cr
from corank.reading.packed import _zstd_size

TEXT = "user,item,rating\n" + "".join(f"{u},{i},{(u * i) % 5 + 1}\n" for u in range(1, 9) for i in range(1, 9))


def test_every_packing_gives_the_same_rows(tmp_path: Path) -> None:
    import polars as pl

    arrow = pytest.importorskip("pyarrow", reason="needs pyarrow to write Zstandard")
    (tmp_path / "a.csv").write_text(TEXT)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(TEXT.encode()))
    with arrow.CompressedOutputStream(str(tmp_path / "a.csv.zst"), "zstd") as out:
        out.write(TEXT.encode())
    pl.read_csv(tmp_path / "a.csv").write_parquet(tmp_path / "a.parquet")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("deep/a.csv", TEXT)
        archive.writestr("README.txt", "words, words")
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a.csv.gz", gzip.compress(TEXT.encode()))
        archive.write(tmp_path / "a.parquet", "b.parquet")
    plain = cr.read_csv(tmp_path / "a.csv")
    for name in ("a.csv.gz", "a.csv.zst", "a.zip", "a.zip/deep/a.csv", "two.zip/a.csv.gz", "two.zip/b.parquet"):
        data = cr.datasets.open_any(tmp_path / name, duplicates="last")
        assert data.value.tolist() == plain.value.tolist(), name
    with pytest.raises(cr.CorankError, match=r"holds 2 tables \(a\.csv\.gz, b\.parquet\)"):
        cr.read_csv(tmp_path / "two.zip")
    with pytest.raises(cr.CorankError, match=r"has no file 'deep/b\.csv'; did you mean 'a\.csv'"):
        cr.read_csv(tmp_path / "a.zip" / "deep" / "b.csv")


def test_damaged_files_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(TEXT.encode() * 50)[:100])
    (tmp_path / "a.zip").write_bytes(b"PK\x03\x04rest")
    (tmp_path / "a.csv.zst").write_bytes(b"\x28\xb5\x2f\xfdrest")
    for name in ("a.csv.gz", "a.zip", "a.csv.zst"):
        with pytest.raises(cr.CorankError, match="ends early or is damaged"):
            cr.read_csv(tmp_path / name)


def test_what_unpacks_to_more_than_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corank.reading.packed.free_bytes", lambda: 10**7)
    text = b"1,2,3\n" * 2_000_000
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text))
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", text)
    for name in ("a.csv.gz", "a.zip"):
        with pytest.raises(cr.CorankError, match=r"unpacks to more than 0\.0 GB, which is all the memory that is free"):
            cr.read_csv(tmp_path / name)


def test_zstandard_tells_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrow = pytest.importorskip("pyarrow", reason="needs pyarrow to write Zstandard")
    path = tmp_path / "a.csv.zst"
    for size in (10, 1_000, 100_000, 12_000_000):
        path.write_bytes(arrow.Codec("zstd").compress(b"1,2,3\n" * (size // 6), asbytes=True))
        assert _zstd_size(path.read_bytes()) == size // 6 * 6
    monkeypatch.setattr("corank.reading.packed.free_bytes", lambda: 10**7)
    with pytest.raises(cr.CorankError, match="unpacks to more than"):
        cr.read_csv(path)


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", TEXT)
    data = bytearray(path.read_bytes())
    data[6] |= 1  # the flag of encryption, before the member and in the list of members
    data[data.find(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(cr.CorankError, match="cannot be unpacked, as it is encrypted: unpack it first"):
        cr.read_csv(path)
