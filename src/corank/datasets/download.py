"""Downloads of named datasets from their publishers, with progress, checksum and resume.

A file is written as `<file>.part` and renamed only when it is complete and its checksum is right: an interrupted or
wrong download never damages a file that is already there.
"""

from __future__ import annotations

import errno
import hashlib
import http.client
import logging
import os
import shutil
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from .. import __version__
from ..errors import CorankError
from .catalogue import info
from .entry import Info
from .location import default_root
from .web import check_scheme, content_length, content_range, opener

log = logging.getLogger("corank")

Progress = Callable[[int, int | None], None]  # bytes so far, total bytes (None: the server does not say)

CHUNK = 1 << 18
LARGEST = 1 << 37  # bytes of a file (137 GB): a server that never stops sending must not fill the disk
TRIES = 5  # failed requests in a row without a single new byte
TIMEOUT = 30.0  # seconds without data
PAUSE = 1.0  # seconds before the second request; doubles with each further one
FULL = (errno.ENOSPC, errno.EDQUOT)
TEMPORARY = (408, 425, 429, 500, 502, 503, 504)  # status codes that are worth a retry


class _TemporaryError(Exception):
    """A failure that may not happen again when the request is repeated."""


def fetch(what: str | Info, root: str | Path | None = None, on_progress: Progress | None = None) -> Path:
    """Download a dataset into a folder of its name under the root; files that are complete are not fetched again.

    Returns the folder, which `datasets.load` and `datasets.open_any` read.
    """
    entry = info(what) if isinstance(what, str) else what
    folder = (Path(root).expanduser() if root is not None else default_root()) / entry.name
    if not entry.sources:
        raise CorankError(
            f"dataset {entry.name!r} has no direct download: get it from {entry.publisher} and put "
            f"{' and '.join(entry.files)} in {folder}"
        )
    for source in entry.sources:
        job = _Job(source.url, folder / source.file, source.checksum, entry.publisher, on_progress)
        job.run()
    return folder


@dataclass
class _Job:
    """The download of one file."""

    url: str
    target: Path
    checksum: str | None
    publisher: str
    on_progress: Progress | None
    received: bool = False  # whether any data has arrived

    @property
    def part(self) -> Path:
        return self.target.with_name(self.target.name + ".part")

    @property
    def tag(self) -> Path:
        """A file with the address and the version (ETag or date) that the part was downloaded from."""
        return self.target.with_name(self.target.name + ".part.tag")

    def run(self) -> None:
        check_scheme(self.url)
        try:
            if self.target.is_file() and self.checksum in (None, _digest(self.target, self.checksum)):
                return
            self.target.parent.mkdir(parents=True, exist_ok=True)
            self._until_whole()
            self._settle()
        except OSError as error:
            if error.errno in FULL:
                raise self._no_room(None) from error
            raise CorankError(
                f"{self.part} cannot be written ({error.strerror or error}): choose another root"
            ) from error

    def _until_whole(self) -> None:
        """Repeat requests until the part is complete; only requests without new data count as failures."""
        failures, most = 0, self._have()
        while True:
            try:
                return self._once()
            except _TemporaryError as problem:
                failures = 0 if self._have() > most else failures + 1
                most = max(most, self._have())
                if failures >= TRIES:
                    raise CorankError(
                        f"{self.url} could not be downloaded in {TRIES} attempts ({problem}): the bytes that came are "
                        "kept, so the same command resumes from there"
                    ) from problem
                log.info("%s: %s; trying again", self.url, problem)
                time.sleep(PAUSE * 2 ** max(failures - 1, 0))

    def _once(self) -> None:
        """One request for the missing bytes."""
        have = self._have()
        version = self._version() if have else None
        if have and version is None:
            # Without a version it is unknown whether the rest would fit; a checksum would tell, but only at the end.
            have = 0
        request = urllib.request.Request(self.url, headers={"User-Agent": f"corank/{__version__}"})
        request.add_header("Accept-Encoding", "identity")
        if have:
            request.add_header("Range", f"bytes={have}-")
            request.add_header("If-Range", str(version))
        try:
            with opener().open(request, timeout=TIMEOUT) as answer:
                self._receive(answer, have)
        except CorankError:
            raise
        except (ValueError, OverflowError) as error:  # an address that is none, as of a redirect
            raise CorankError(
                f"{self.url} leads to an address that is not valid ({error}): {self._by_hand()}"
            ) from None
        except urllib.error.HTTPError as error:
            self._refused(error, have)
        except urllib.error.URLError as error:
            self._unreachable(error.reason)
        except (http.client.HTTPException, TimeoutError, ConnectionError) as error:
            raise _TemporaryError(_plain(error)) from error

    def _receive(self, answer: Any, have: int) -> None:
        if answer.status == 206:
            start, total = content_range(answer.headers)
            if start != have:
                self._forget()
                raise _TemporaryError(f"the server sent bytes from {start} instead of {have}")
        else:
            # The server does not support ranges, or the file has changed since: start from the beginning.
            have, total = 0, content_length(answer.headers)
        self._check_size(total)
        self._check_room(None if total is None else total - have)
        version = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
        # A weak ETag does not promise equal bytes, and If-Range does not take it.
        self.tag.write_text(f"{self.url}\n{'' if version.startswith('W/') else version}\n", "utf-8")
        done = have
        # Unbuffered: what has arrived is on disk if the connection breaks, and the next request resumes from there.
        with open(self.part, "ab" if have else "wb", buffering=0) as out:
            self._report(done, total)
            while chunk := _read(answer):
                self._write(out, memoryview(chunk), total)
                self.received = True
                done += len(chunk)
                self._check_size(done)
                self._report(done, total)
        if total is not None and done < total:
            raise _TemporaryError(f"the connection was cut after {done:,} of {total:,} bytes")

    def _write(self, out: IO[bytes], chunk: memoryview, total: int | None) -> None:
        try:
            while len(chunk):
                chunk = chunk[out.write(chunk) :]
        except OSError as error:
            if error.errno in FULL:
                missing = None if total is None else total - self._have()
                if self._version() is None:  # nothing to resume: it would only keep the disk full
                    self._forget()
                raise self._no_room(missing) from error
            raise

    def _settle(self) -> None:
        """Rename the complete part to its target if its checksum is right."""
        if self.checksum is not None:
            found = _digest(self.part, self.checksum)
            if found != self.checksum:
                self._forget()
                raise CorankError(
                    f"the file from {self.url} has the checksum {found} and the published one is {self.checksum}: "
                    f"it was damaged or changed, and thrown away; try again, or look at {self.publisher}"
                )
        with open(self.part, "rb+") as whole:
            os.fsync(whole.fileno())
        os.replace(self.part, self.target)
        self.tag.unlink(missing_ok=True)

    def _have(self) -> int:
        return self.part.stat().st_size if self.part.is_file() else 0

    def _version(self) -> str | None:
        """The version that the part belongs to, if it was downloaded from this address."""
        if not self.tag.is_file():
            return None
        url, version, *_ = [*self.tag.read_text("utf-8").split("\n"), ""]
        return version if url == self.url and version else None

    def _forget(self) -> None:
        self.part.unlink(missing_ok=True)
        self.tag.unlink(missing_ok=True)

    def _report(self, done: int, total: int | None) -> None:
        if self.on_progress is not None:
            self.on_progress(done, total)

    def _check_size(self, size: int | None) -> None:
        if size is not None and size > LARGEST:
            self._forget()
            raise CorankError(
                f"{self.url} sends more than {LARGEST:,} bytes, and no dataset is that large: {self._by_hand()}"
            )

    def _check_room(self, missing: int | None) -> None:
        if missing is not None and missing > shutil.disk_usage(self.part.parent).free:
            raise self._no_room(missing)

    def _no_room(self, missing: int | None) -> CorankError:
        free = shutil.disk_usage(self.part.parent).free
        need = "more bytes than that" if missing is None else f"{missing:,} more bytes"
        return CorankError(
            f"the disk of {self.part.parent} is full: {free:,} bytes are free and {self.target.name} needs {need}; "
            "make room and run the same command again, which resumes the download, or choose another root"
        )

    def _refused(self, error: urllib.error.HTTPError, have: int) -> None:
        error.close()
        if error.code == 416 and have:
            # The part is as long as the file, or longer: in the first case it is complete.
            if error.headers.get("Content-Range", "").rpartition("/")[2] == str(have):
                return
            self._forget()
            raise _TemporaryError("the part did not fit the file") from error
        if error.code in TEMPORARY:
            raise _TemporaryError(f"the server answered {error.code} {error.reason}") from error
        raise CorankError(
            f"{self.url} answered {error.code} {error.reason}: the publisher may have moved the file; {self._by_hand()}"
        ) from error

    def _unreachable(self, reason: object) -> None:
        offline = isinstance(reason, socket.gaierror | ConnectionRefusedError) or (
            isinstance(reason, OSError) and reason.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH)
        )
        certificate = isinstance(reason, OSError) and "CERTIFICATE" in str(reason).upper()
        if (offline and not self.received) or certificate:
            raise CorankError(
                f"{self.url} cannot be reached ({_plain(reason)}): this machine seems to be offline or to be kept from "
                f"that address; {self._by_hand()}"
            ) from None
        raise _TemporaryError(_plain(reason))

    def _by_hand(self) -> str:
        return f"you can get {self.target.name} from {self.publisher} yourself and put it in {self.target.parent}"


def _read(answer: Any) -> bytes:
    """The next chunk; reading and writing are apart, so that a full disk is never taken for a broken connection."""
    try:
        return bytes(answer.read(CHUNK))
    except (http.client.HTTPException, OSError) as error:
        raise _TemporaryError(_plain(error)) from error


def _digest(path: Path, like: str | None) -> str | None:
    """The checksum of a file by the algorithm that `like` names before its colon."""
    if like is None:
        return None
    algorithm = like.partition(":")[0]
    with open(path, "rb") as stream:
        return f"{algorithm}:{hashlib.file_digest(stream, algorithm).hexdigest()}"


def _plain(error: object) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
