"""The files of one dataset in a folder or a zip archive, plain or gzipped, read in place without unpacking."""

from __future__ import annotations

import gzip
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO

from ..errors import CorankError

BLOCK_BYTES = 32_000_000  # of text at a time, for files that should not be held in memory as a whole


class Files:
    """The files of a folder, or the members of a zip archive, whatever the top folder in the archive is."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._members: list[str] | None = None
        if place.is_file():
            with self._readable(place.name), zipfile.ZipFile(place) as archive:
                self._members = [m for m in archive.namelist() if not m.startswith("__MACOSX")]

    def find(self, pattern: str) -> list[str]:
        """The sorted names that match a name or glob pattern; of 'a or b', the first pattern with a match."""
        for wanted in pattern.split(" or "):
            for ending in ("", ".gz"):
                names = self._matching(wanted + ending)
                if names:
                    return names
        return []

    def holds(self, patterns: tuple[str, ...]) -> bool:
        return all(self.find(pattern) for pattern in patterns)

    def require(self, pattern: str) -> str:
        names = self.find(pattern)
        if not names:
            raise CorankError(f"{self.place} has no {pattern}: put the file there, as the publisher names it")
        return names[0]

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """A stream of the decompressed content."""
        with self._readable(name):
            if self._members is not None:
                with zipfile.ZipFile(self.place) as archive, archive.open(name) as member:
                    if name.endswith(".gz"):
                        with gzip.open(member) as text:
                            yield text  # type: ignore[misc]
                    else:
                        yield member
            elif name.endswith(".gz"):
                with gzip.open(self.place / name) as text:
                    yield text  # type: ignore[misc]
            else:
                with open(self.place / name, "rb") as text:
                    yield text

    def read(self, pattern: str) -> bytes:
        with self.open(self.require(pattern)) as stream:
            return stream.read()

    def source(self, pattern: str) -> Path | bytes:
        """What a table reader takes: the path of a plain file, so that it is not held in memory, else the content."""
        name = self.require(pattern)
        plain = self._members is None and not name.endswith(".gz")
        return self.place / name if plain else self.read(name)

    def first_line(self, pattern: str) -> bytes:
        with self.open(self.require(pattern)) as stream:
            return stream.readline(1_000_000).rstrip(b"\r\n")

    def text(self, pattern: str) -> str:
        """The text as UTF-8, or as Latin-1 where it is not UTF-8, like the older MovieLens tables."""
        content = self.read(pattern)
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError:
            return content.decode("latin-1")

    def records(self, pattern: str, separator: str) -> list[list[str]]:
        """The fields of each line of a small table, for separators of several characters and for Latin-1 text."""
        # Not splitlines: it also splits at characters that Latin-1 text may contain.
        return [line.rstrip("\r").split(separator) for line in self.text(pattern).split("\n") if line.strip()]

    def blocks(self, names: list[str]) -> Iterator[bytes]:
        """The text of the files, one after the other, in blocks of complete lines."""
        rest = b""
        for name in names:
            with self.open(name) as stream:
                while piece := stream.read(max(BLOCK_BYTES - len(rest), 1)):
                    rest += piece
                    if len(rest) >= BLOCK_BYTES:
                        cut = rest.rfind(b"\n") + 1
                        if cut:
                            yield rest[:cut]
                            rest = rest[cut:]
            if rest and not rest.endswith(b"\n"):
                rest += b"\n"
        if rest:
            yield rest

    def _matching(self, wanted: str) -> list[str]:
        if self._members is not None:
            return sorted(m for m in self._members if fnmatchcase(m, wanted) or fnmatchcase(m, "*/" + wanted))
        if "*" in wanted:
            return sorted(p.relative_to(self.place).as_posix() for p in self.place.glob(wanted))
        return [wanted] if (self.place / wanted).is_file() else []

    @contextmanager
    def _readable(self, name: str) -> Iterator[None]:
        """Turn damaged archives and unreadable files into a `CorankError`."""
        try:
            yield
        except (zipfile.BadZipFile, zlib.error, EOFError, gzip.BadGzipFile, NotImplementedError, RuntimeError) as error:
            where = self.place if self.place.is_file() else self.place / name
            raise CorankError(
                f"{where} is damaged or not an archive that can be read ({error}): get it again"
            ) from error
        except OSError as error:
            raise CorankError(f"{self.place / name} cannot be read: {error.strerror or error}") from error
