"""Micro-batches: requests that arrive while a batch is being scored become the next batch.

A lane has one thread. Nothing waits for a batch to fill: an idle lane scores a single request at once, and a busy one
scores together all that arrived meanwhile. The event loop only queues and hands out answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")

TOGETHER = 128  # requests of one batch
WAITING = 4_096  # requests of one lane; more are told to come back


class Crowded(Exception):
    """More requests are waiting than a lane takes."""


class Lane(Generic[Q, A]):
    """Answers requests in batches, in a thread of its own."""

    def __init__(self, answer: Callable[[Sequence[Q]], Sequence[A | BaseException]], name: str) -> None:
        """answer : answers a batch, one answer or exception per request; it is called in the thread of the lane."""
        self._answer = answer
        self._waiting: list[tuple[Q, asyncio.Future[A]]] = []
        self._busy = False
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=f"corank-{name}")
        self._idle = asyncio.Event()
        self._idle.set()

    async def ask(self, request: Q) -> A:
        if len(self._waiting) >= WAITING:
            raise Crowded
        loop = asyncio.get_running_loop()
        future: asyncio.Future[A] = loop.create_future()
        self._waiting.append((request, future))
        if not self._busy:
            self._start(loop)
        return await future

    async def run(self, work: Callable[..., Any], *args: Any) -> Any:
        """Other work with the same model, between batches."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work, *args)

    async def close(self) -> None:
        """Wait until everything that was asked is answered; then the thread ends."""
        await self._idle.wait()
        await asyncio.to_thread(self._pool.shutdown)

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        batch, self._waiting = self._waiting[:TOGETHER], self._waiting[TOGETHER:]
        self._busy = True
        self._idle.clear()
        work = self._pool.submit(self._answer, [request for request, _ in batch])
        work.add_done_callback(lambda done: loop.call_soon_threadsafe(self._finish, loop, batch, done))

    def _finish(self, loop: asyncio.AbstractEventLoop, batch: list[tuple[Q, asyncio.Future[A]]], done: Any) -> None:
        why = done.exception()
        answers = [why] * len(batch) if why is not None else done.result()
        if self._waiting:  # first: the thread works while answers are handed out
            self._start(loop)
        else:
            self._busy = False
            self._idle.set()
        for (_, future), answer in zip(batch, answers, strict=True):
            if future.cancelled():
                continue
            if isinstance(answer, BaseException):
                future.set_exception(answer)
            else:
                future.set_result(answer)
