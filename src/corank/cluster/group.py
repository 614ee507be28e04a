"""Workers that are driven together, wherever they run: here in one process, or on a cluster (`ray_cluster`)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Protocol

from ..errors import CorankError
from .steps import Place
from .worker import Message, Worker

logger = logging.getLogger("corank.cluster")


class Lost(Exception):
    """A worker is gone: it was killed, its machine was, or it ran out of memory."""

    def __init__(self, why: str, memory: bool = False) -> None:
        super().__init__(why)
        self.memory = memory


class Group(Protocol):
    """Workers in the order of their ranks."""

    size: int

    def send(self, method: str, arguments: Sequence[Sequence[Any]]) -> list[Message]:
        """Call `begin` or `advance` of each worker, with its own arguments; raises `Lost`."""


def call(group: Group, what: str, *arguments: Sequence[Any]) -> list[Any]:
    """Run a task on all workers to its end and return what each of them returns; an argument per worker, or none."""
    messages = group.send("begin", [(what, *own) for own in zip(*arguments, strict=True)] or [(what,)] * group.size)
    while True:
        for rank, message in enumerate(messages):
            for level, text in message.logs:
                if rank == 0 or level >= logging.WARNING:
                    logger.log(level, "worker %d of %d: %s", rank + 1, group.size, text)
        mistakes = [message.content for message in messages if message.kind == "mistake"]
        if mistakes:
            raise CorankError(mistakes[0])
        kinds = {message.kind for message in messages}
        if len(kinds) > 1:
            raise RuntimeError(f"the workers are at different places of the task {what}: {kinds}")
        contents = [message.content for message in messages]
        if kinds == {"done"}:
            return contents
        if kinds == {"exchange"}:
            received = [[parts[rank] for parts in contents] for rank in range(group.size)]
        else:
            received = [contents] * group.size
        messages = group.send("advance", [(parts,) for parts in received])


class Here:
    """Workers in this process, one after another: for tests, and for what one worker does on a cluster."""

    def __init__(self, size: int, threads: int, name: str, params: dict[str, Any]) -> None:
        self.size = size
        self.workers = [Worker(Place(rank, size), threads, name, params) for rank in range(size)]

    def send(self, method: str, arguments: Sequence[Sequence[Any]]) -> list[Message]:
        return [getattr(worker, method)(*own) for worker, own in zip(self.workers, arguments, strict=True)]
