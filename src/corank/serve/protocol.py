"""Connections: too many of them are refused politely, and those that send no request in time are closed."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .problems import MEDIA, unavailable

_BUSY = unavailable("all connections of this service are in use: try again later").body()
REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: %b\r\ncontent-length: %d\r\nretry-after: 1\r\n"
    b"connection: close\r\n\r\n%b" % (MEDIA.encode(), len(_BUSY), _BUSY)
)


class Connection(HttpToolsProtocol):
    """uvicorn's protocol with a limit on sockets and a deadline for the head of a request."""

    most: ClassVar[int] = 1_000
    patience: ClassVar[float] = 20.0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.most:
            transport.write(REFUSAL)
            transport.close()
            return
        self._deadline = self.loop.call_later(self.patience, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_time()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.patience, self._too_slow)

    def on_headers_complete(self) -> None:
        self._on_time()
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        if not self.transport.is_closing():
            super().data_received(data)

    def _on_time(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self.transport.close()


def connection_class(most: int, patience: float) -> type[Connection]:
    """The protocol with these limits."""
    limits: dict[str, Any] = {"most": most, "patience": patience}
    return type("LimitedConnection", (Connection,), limits)
