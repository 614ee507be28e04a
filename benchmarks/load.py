"""A load client: many keep-alive connections in one process, each of which asks again as soon as it has its answer.

    python -m benchmarks.load PORT SECONDS CLIENTS RATE PATH [PATH ...]     prints one JSON object

Raw sockets, because a client library would cost several times as much as the server: both share the machine. With a
RATE above 0, requests are sent by the clock at that many per second, and times count from when they were due, so that
a server that stalls is not asked less (no coordinated omission).
"""

from __future__ import annotations

import asyncio
import collections
import json
import random
import sys
import time
from collections.abc import Sequence


class Connection(asyncio.Protocol):
    """One connection: a request at a time."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.buffer = b""
        self.due = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.load.free(self)

    def send(self, due: float) -> None:
        self.due = due
        self.transport.write(random.choice(self.load.requests))  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head = self.buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        at = self.buffer.find(b"content-length: ") + 16
        size = int(self.buffer[at : self.buffer.find(b"\r\n", at)])
        if len(self.buffer) < head + 4 + size:
            return
        status = int(self.buffer[9:12])
        self.buffer = self.buffer[head + 4 + size :]
        self.load.answered(self, status)

    def connection_lost(self, why: Exception | None) -> None:
        self.load.lost += 1


class Load:
    """All connections, and what was measured."""

    def __init__(self, requests: Sequence[bytes], rate: float) -> None:
        self.requests = requests
        self.rate = rate
        self.idle: list[Connection] = []
        self.late: collections.deque[float] = collections.deque()  # requests that are due and wait for a connection
        self.measuring = False
        self.times: list[float] = []
        self.statuses: collections.Counter[int] = collections.Counter()
        self.lost = 0

    def free(self, connection: Connection) -> None:
        if self.rate <= 0:
            connection.send(time.perf_counter())
        elif self.late:
            connection.send(self.late.popleft())
        else:
            self.idle.append(connection)

    def answered(self, connection: Connection, status: int) -> None:
        self.statuses[status] += 1
        if self.measuring:
            self.times.append(time.perf_counter() - connection.due)
        self.free(connection)

    async def by_the_clock(self, seconds: float) -> None:
        """Send requests at the wanted rate, whatever the server does."""
        start, sent = time.perf_counter(), 0
        while (now := time.perf_counter()) - start < seconds:
            while sent < (now - start) * self.rate:
                due = start + sent / self.rate
                sent += 1
                if self.idle:
                    self.idle.pop().send(due)
                else:
                    self.late.append(due)
            await asyncio.sleep(0.0005)


async def run(port: int, seconds: float, clients: int, rate: float, paths: Sequence[str]) -> dict[str, object]:
    """Load a server for a while; the first quarter is not measured."""
    requests = [f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() for path in paths]
    load, loop = Load(requests, rate), asyncio.get_running_loop()
    made = [await loop.create_connection(lambda: Connection(load), "127.0.0.1", port) for _ in range(clients)]
    clock = asyncio.ensure_future(load.by_the_clock(1.25 * seconds)) if rate > 0 else None
    await asyncio.sleep(seconds / 4)
    load.measuring = True
    began = time.perf_counter()
    await asyncio.sleep(seconds)
    took, times = time.perf_counter() - began, sorted(load.times)
    load.measuring = False
    if clock is not None:
        await clock
    lost = load.lost
    for transport, _ in made:
        transport.close()
    quantile = {f"{q:g}": times[min(len(times) - 1, int(q * len(times)))] if times else None for q in (0.5, 0.9, 0.99)}
    statuses = {str(status): count for status, count in load.statuses.items()}
    return {"rate": len(times) / took, "seconds": quantile, "statuses": statuses, "lost": lost}


def main(words: Sequence[str]) -> None:
    port, seconds, clients, rate = int(words[0]), float(words[1]), int(words[2]), float(words[3])
    paths = list(words[4:])
    try:
        import uvloop

        found = uvloop.run(run(port, seconds, clients, rate, paths))
    except ImportError:
        found = asyncio.run(run(port, seconds, clients, rate, paths))
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
