"""Files as streams of bytes, whatever they are packed in: gzip, Zstandard, or a member of a zip archive.

A member of an archive has a path like any file, `archive.zip/folder/ratings.csv`.
"""

from __future__ import annotations

import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ..errors import CorankError
from ..system.memory import free_bytes

GZIP, ZSTD, ZIP = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"
TABLES = (".csv", ".tsv", ".txt", ".dat", ".data", ".base", ".test", ".inter", ".ratings", ".parquet", ".pq")
_PACKED = (".gz", ".zst", ".zstd")
# Byte order marks; that of UTF-32 begins like that of UTF-16.
_MARKS = (
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
)
_TEXTS = re.compile(r"readme|licen[cs]e|changelog|citation|copying|notice|about|summary", re.IGNORECASE)


def is_table(path: Path) -> bool:
    """Whether a file has the name of a table: by its ending, and not a README."""
    name = path.name
    for ending in _PACKED:
        name = name.removesuffix(ending)
    return not name.startswith(".") and name.lower().endswith(TABLES) and not _TEXTS.match(name)


def ordinary(path: Path) -> None:
    """Raise for what is there and neither a file nor a folder."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise CorankError(
            f"'{path}' is a pipe, a socket or a device, and tables are read twice: save it as a file first"
        )


def is_zip(path: Path) -> bool:
    return starts_with(path, ZIP)


def starts_with(path: Path, magic: bytes) -> bool:
    """Whether a file exists and begins with these bytes."""
    try:
        with path.open("rb") as file:
            return file.read(len(magic)) == magic
    except OSError:
        return False


def archive_of(path: Path) -> Path | None:
    """The zip archive that a path leads into, if it does."""
    for parent in path.parents:
        if parent.is_file():
            return parent if is_zip(parent) else None
    return None


def members(archive: Path) -> list[Path]:
    """The paths of the files in a zip archive, sorted."""
    with _readable(archive), zipfile.ZipFile(archive) as stored:
        names = [m.filename for m in stored.infolist() if not m.is_dir() and not m.filename.startswith("__MACOSX")]
    return [archive / name for name in sorted(names)]


def exists(path: Path) -> bool:
    """Whether there is such a file, in a folder or in an archive."""
    if (archive := archive_of(path)) is not None:
        return path in members(archive)
    return path.is_file()


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The unpacked bytes of a file."""
    archive = archive_of(path)
    with _readable(path):
        if archive is None:
            with path.open("rb") as raw, _unpacked(raw, path) as file:
                yield file
        else:
            name = path.relative_to(archive).as_posix()
            with zipfile.ZipFile(archive) as stored, stored.open(name) as member:
                raw = io.BufferedReader(_Bounded(member, path), 1 << 17)
                with _unpacked(raw, path) as file:
                    yield file


@contextmanager
def opened_text(path: Path) -> Iterator[IO[str]]:
    """The text of a file: UTF-8, or what its byte order mark says; bytes that are not text become surrogates."""
    with opened(path) as file:
        encoding = encoding_of(file.peek(4)[:4])  # type: ignore[attr-defined]
        text = io.TextIOWrapper(file, encoding or "utf-8", "surrogateescape", newline="")
        try:
            yield text
        except UnicodeDecodeError:
            raise CorankError(f"file '{path}' is damaged {encoding} text: save it as UTF-8 and try again") from None
        finally:
            text.detach()


def encoding_of(start: bytes) -> str | None:
    """The encoding that the first bytes of a file name, if they do."""
    return next((name for mark, name in _MARKS if start.startswith(mark)), None)


def content(path: Path) -> bytes:
    """All unpacked bytes of a file."""
    with opened(path) as file:
        return file.read()


def is_packed(path: Path) -> bool:
    """Whether the bytes of a file are not those of its text."""
    return archive_of(path) is not None or any(starts_with(path, magic) for magic in (GZIP, ZSTD, ZIP))


class _Bounded(io.RawIOBase):
    """The bytes of a stream, up to those that memory has room for: a few kilobytes may unpack to terabytes."""

    def __init__(self, stream: Any, path: Path) -> None:
        self._stream, self._path = stream, path
        self._most = self._left = free_bytes() or 1 << 40

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self._left -= len(data)
        if self._left < 0:
            raise too_large(self._path, self._most)
        return len(data)


@contextmanager
def _unpacked(raw: io.BufferedReader, path: Path) -> Iterator[IO[bytes]]:
    start = raw.peek(4)[:4]
    if start.startswith(GZIP):
        with gzip.open(raw) as file, io.BufferedReader(_Bounded(file, path), 1 << 17) as bounded:
            yield bounded
    elif start == ZSTD:
        yield io.BufferedReader(io.BytesIO(_from_zstd(raw.read(), path)))
    else:
        yield raw


def _from_zstd(data: bytes, path: Path) -> bytes:
    """Text from Zstandard, which Python reads from version 3.14 on, by polars: all lines, ended alike."""
    import polars as pl

    free = free_bytes()
    if free is not None and _zstd_size(data) > free:
        raise too_large(path, free)
    try:
        # A separator that text does not contain: each line is one field.
        lines = pl.read_csv(
            data, has_header=False, separator="\x1f", quote_char=None, infer_schema=False, eol_char="\n"
        )
    except (pl.exceptions.PolarsError, OSError):
        raise CorankError(
            f"file '{path}' ends early or is damaged inside its compression, or is not UTF-8 text: get it again, or "
            "unpack it first"
        ) from None
    if lines.width != 1:
        raise CorankError(f"file '{path}' holds control characters (0x1f), and is no text: unpack it and repair it")
    text: str = lines.to_series().fill_null("").str.join("\n").item()
    return text.encode() + b"\n"


def _zstd_size(data: bytes) -> int:
    """The unpacked size that the header of a Zstandard frame tells, 0 if it does not (RFC 8878, 3.1.1.1)."""
    flags = data[4] if len(data) > 4 else 0
    single = flags >> 5 & 1
    width = (single, 2, 4, 8)[flags >> 6]
    start = 5 + (not single) + (0, 1, 2, 4)[flags & 3]
    return int.from_bytes(data[start : start + width], "little") + 256 * (width == 2)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn damaged archives and unreadable files into a `CorankError`."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error, zipfile.BadZipFile):
        raise damaged(path) from None
    except KeyError:
        raise CorankError(f"there is no file '{path}' in that archive: check the name") from None
    except (RuntimeError, NotImplementedError) as error:
        why = "it is encrypted" if "encrypted" in str(error) else "its compression is not known here"
        raise CorankError(f"file '{path}' cannot be unpacked, as {why}: unpack it first") from None
    except OSError as error:
        raise CorankError(f"file '{path}' cannot be read: {error.strerror or error}") from None


def too_large(path: Path, free: int) -> CorankError:
    return CorankError(
        f"file '{path}' unpacks to more than {free / 1e9:.1f} GB, which is all the memory that is free: give a part of "
        "it"
    )


def damaged(path: Path) -> CorankError:
    return CorankError(f"file '{path}' ends early or is damaged inside its compression: get it again")
