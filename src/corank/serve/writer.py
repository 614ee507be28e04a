"""Writes feedback: events that arrive together become one transaction, in a thread of their own."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Sequence
from typing import NamedTuple

from .store import Event, Store, StoreDown

MOST = 20_000  # events that wait; more are refused until some are written
TOGETHER = 2_000  # events of one transaction


class _Waiting(NamedTuple):
    events: Sequence[Event]
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[None]


class Writer:
    """Takes events from the event loop and writes them; `write` returns when they are on disk."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.waiting = 0  # events
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="corank-writer", daemon=True)
        self._thread.start()

    async def write(self, events: Sequence[Event]) -> None:
        """Store events. Raises `StoreDown`: then none of them was stored."""
        if self.waiting + len(events) > MOST:
            raise StoreDown(f"{self.waiting:,} events are waiting to be written")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self.waiting += len(events)
        self._queue.put(_Waiting(events, loop, done))
        try:
            await asyncio.shield(done)
        finally:
            self.waiting -= len(events)

    def close(self) -> None:
        """Write what is waiting, then stop."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            together, size, last = [first], len(first.events), False
            while size < TOGETHER:
                try:
                    one = self._queue.get_nowait()
                except queue.Empty:
                    break
                if one is None:
                    last = True
                    break
                together.append(one)
                size += len(one.events)
            self._write(together)
            if last:
                return

    def _write(self, together: list[_Waiting]) -> None:
        try:
            self.store.write([event for one in together for event in one.events])
        except BaseException as why:
            if len(together) > 1 and not isinstance(why, StoreDown):  # one of them is what the database refuses
                for one in together:
                    self._write([one])
                return
            for one in together:
                _tell(one, why)
        else:
            for one in together:
                _tell(one, None)


def _tell(one: _Waiting, why: BaseException | None) -> None:
    """Wake up who waits, in the thread of the loop."""

    def tell() -> None:
        if one.done.done():
            return
        if why is None:
            one.done.set_result(None)
        else:
            one.done.set_exception(why)

    with contextlib.suppress(RuntimeError):  # the loop is closed
        one.loop.call_soon_threadsafe(tell)
