"""A service in a process of its own, for benchmarks and tests."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

TOKEN = "correct-horse-battery-staple"


def bearer(token: str | None = TOKEN) -> dict[str, str]:
    """The header that holds the token."""
    return {} if token is None else {"Authorization": f"Bearer {token}"}


class ServiceProcess:
    """`corank serve ...` as a process, with a client that holds the token; within the context it is ready."""

    def __init__(self, folder: Path, *words: str, model: str = "a.corank") -> None:
        (folder / "token").write_text(TOKEN)
        self.folder = folder
        self.words: Sequence[str] = ["serve", model, "--port", "0", "--token-file", "token", *words]

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "corank", *self.words],
            cwd=self.folder,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        self.lines: list[str] = []
        self._where = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()
        if not self._where.wait(120) or not self.url:
            self.process.kill()
            raise AssertionError("the service did not start:\n" + "".join(self.lines))
        self.port = int(self.url.rsplit(":", 1)[1])
        self.client = httpx.Client(base_url=self.url, headers=bearer(), timeout=60)
        self._wait_until_ready()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, why: BaseException | None, where: TracebackType | None
    ) -> None:
        self.client.close()
        if self.process.poll() is None:
            self.stop()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait; returns the exit code."""
        self.process.send_signal(number)
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise

    @property
    def log(self) -> str:
        return "".join(self.lines)

    def _listen(self) -> None:
        self.url = ""
        for line in self.process.stderr or ():
            self.lines.append(line)
            found = re.match(r"corank: (http://\S+:\d+)/", line)
            if found:
                self.url = found[1]
                self._where.set()
        self._where.set()

    def _wait_until_ready(self) -> None:
        until = time.monotonic() + 120
        while time.monotonic() < until:
            try:
                if self.client.get("/health/ready").status_code == 200:
                    return
            except httpx.HTTPError:
                pass
            assert self.process.poll() is None, self.log
            time.sleep(0.02)
        raise AssertionError("the service is not ready")
