"""Folders and archives: what is found, what is read, and what a damaged one says."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import pytest

import corank.datasets.archive
from corank.datasets.archive import Files
from corank.datasets.published_tables import table
from corank.errors import CorankError


@pytest.fixture(params=["folder", "gzipped", "zip"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    """The same two files in the three forms."""
    texts = {"a.txt": b"1 2 3\n4 5 6\n", "deep/b.txt": b"x\n"}
    if request.param == "zip":
        with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
            archive.writestr("__MACOSX/set/a.txt", b"junk")
            for name, text in texts.items():
                archive.writestr(f"set/{name}", text)
        return Files(tmp_path / "set.zip")
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        if request.param == "gzipped":
            path.with_name(path.name + ".gz").write_bytes(gzip.compress(text))
        else:
            path.write_bytes(text)
    return Files(tmp_path)


def test_reads_the_same_from_folder_gzip_and_zip(files: Files) -> None:
    assert files.read("a.txt") == b"1 2 3\n4 5 6\n"
    assert files.first_line("a.txt") == b"1 2 3"
    assert files.holds(("a.txt", "deep/b.txt"))
    assert not files.holds(("a.txt", "c.txt"))
    assert len(files.find("c.txt or deep/*.txt")) == 1
    assert table(files, "a.txt", " ", ("user", "", "item")).rows() == [(1, 3), (4, 6)]


def test_a_file_that_is_not_there(files: Files) -> None:
    with pytest.raises(CorankError, match=r"has no c\.txt"):
        files.read("c.txt")


def test_blocks_end_with_lines_and_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corank.datasets.archive, "BLOCK_BYTES", 50)
    text = [b"".join(b"%d,%d\n" % (n, i) for i in range(n * 7)) for n in range(1, 6)]
    for n, each in enumerate(text):
        (tmp_path / f"{n}.txt").write_bytes(each.rstrip(b"\n") if n == 2 else each)
    blocks = list(Files(tmp_path).blocks([f"{n}.txt" for n in range(5)]))
    assert len(blocks) > 5
    assert all(block.endswith(b"\n") and len(block) < 80 for block in blocks)
    assert b"".join(blocks) == b"".join(text)


def test_a_line_longer_than_a_block_is_kept_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corank.datasets.archive, "BLOCK_BYTES", 10)
    (tmp_path / "a").write_bytes(b"x" * 95 + b"\ny\n")
    assert b"".join(Files(tmp_path).blocks(["a"])) == b"x" * 95 + b"\ny\n"


def test_latin_1_where_it_is_not_utf_8(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes("1::Misérables\r\n".encode("latin-1"))
    (tmp_path / "new").write_bytes("1::Misérables\n".encode())
    for name in ("old", "new"):
        assert Files(tmp_path).records(name, "::") == [["1", "Misérables"]]


def test_damaged_archives_say_so(tmp_path: Path) -> None:
    (tmp_path / "not.zip").write_bytes(b"<html>not found</html>")
    with pytest.raises(CorankError, match=r"not\.zip is damaged or not an archive"):
        Files(tmp_path / "not.zip")
    whole = gzip.compress(bytes(range(256)) * 400)
    (tmp_path / "cut.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CorankError, match=r"cut\.gz is damaged"):
        Files(tmp_path).read("cut")


def test_a_bit_flip_in_a_zip_member_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("a.txt", b"1 2 3\n" * 100)
    raw = bytearray(path.read_bytes())
    raw[100] ^= 1
    path.write_bytes(raw)
    with pytest.raises(CorankError, match=r"a\.zip is damaged"):
        Files(path).read("a.txt")
