"""Logs of the service: one JSON object per line on standard error, without queries, bodies, users, items or tokens."""

from __future__ import annotations

import datetime
import logging
import sys
import time
from typing import IO, Any

from ..errors import shorten
from .encoding import dump

LATER = 0.2  # seconds for which lines about requests may wait to be written together


class Log:
    """Writes lines; those about requests are collected and written a few times per second."""

    def __init__(self, stream: IO[str] | None = None, requests: bool = True) -> None:
        self.stream = stream
        self.requests = requests
        self._lines: list[bytes] = []
        self._flush_at = 0.0

    def request(self, **fields: Any) -> None:
        """One line for an answer."""
        if self.requests:
            self._lines.append(_line("request", fields))
            now = time.monotonic()
            if now >= self._flush_at:
                self.flush()
                self._flush_at = now + LATER

    def event(self, event: str, **fields: Any) -> None:
        """One line for something that happened, written at once."""
        self._lines.append(_line(event, fields))
        self.flush()

    def flush(self) -> None:
        lines, self._lines = self._lines, []
        if not lines:
            return
        stream = self.stream or sys.stderr
        try:
            stream.write(b"".join(lines).decode("utf-8", "replace"))
            stream.flush()
        except (OSError, ValueError):  # a full disk or a closed stream must not cost an answer
            return


class ToLog(logging.Handler):
    """Sends what libraries log, and corank's warnings, to the log of the service."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self.log = log

    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, Any] = {"logger": record.name, "level": record.levelname.lower()}
        if record.exc_info and record.exc_info[1] is not None:
            fields["error"] = type(record.exc_info[1]).__name__
        self.log.event("log", message=shorten(record.getMessage(), 1000), **fields)


def take_over(log: Log) -> None:
    """Route the loggers of corank and uvicorn to the log."""
    handler = ToLog(log)
    for name in ("corank", "corank.kernels", "uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers = [handler] if name in ("corank", "uvicorn") else []
        logger.propagate = name not in ("corank", "uvicorn")
    logging.getLogger("corank").setLevel(logging.WARNING)
    logging.getLogger("corank.rules").setLevel(logging.ERROR)  # about values of a request, which the answer tells
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger("uvicorn.access").disabled = True


def _line(event: str, fields: dict[str, Any]) -> bytes:
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
    return dump({"time": now, "event": event, **fields}) + b"\n"
