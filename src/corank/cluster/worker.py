"""A worker: it holds a shard, and runs what the driver asks for until it needs something of the other workers."""

from __future__ import annotations

import logging
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ..cost import Size
from ..errors import NO_MEMORY, CorankError
from ..models import find as find_model
from ..system.memory import free_bytes, no_room, ran_out
from . import store
from .loading import load
from .method import find
from .parts import Parts
from .shard import Shard
from .steps import Exchange, Place, Steps, gather

Kind = Literal["exchange", "gather", "done", "mistake"]
Log = tuple[int, str]  # level and text


class Message(NamedTuple):
    """Why a worker has stopped: it has parts for the others, or it is done, or there is a mistake to tell."""

    kind: Kind
    content: Any
    logs: list[Log]


class Worker:
    """One of `place.size` workers that train the model of this name with these hyper-parameters."""

    def __init__(self, place: Place, threads: int, name: str, params: dict[str, Any]) -> None:
        from ..kernels.threads import set_threads

        set_threads(threads)
        self.place, self.name, self.params = place, name, params
        self.logs = _Collected()
        self.reported: dict[str, float] = {}
        self.done = 0  # epochs

    def begin(self, what: str, *args: Any) -> Message:
        """Start one of the tasks below, whose name this is."""
        self.running: Steps[Any] = getattr(self, f"task_{what}")(*args)
        return self._go_on(None)

    def advance(self, received: list[Any]) -> Message:
        """Continue with what the others have sent."""
        return self._go_on(received)

    def _go_on(self, received: Any) -> Message:
        with self.logs.collected() as logs:
            try:
                step = self.running.send(received)
            except StopIteration as end:
                return Message("done", end.value, logs)
            except CorankError as why:
                return Message("mistake", str(why), logs)
            except (MemoryError, OSError) as why:
                if not ran_out(why):
                    raise
                where = f"worker {self.place.rank + 1} of {self.place.size} on {platform.node()}"
                return Message("mistake", f"{where}: {NO_MEMORY.split(':')[0]}: use more workers", logs)
            if isinstance(step, Exchange):
                return Message("exchange", step.parts, logs)
            return Message("gather", step.part, logs)

    # ---- tasks: generators, which the driver starts on all workers together ------------------------------------------

    def task_take(self, shard: Shard) -> Steps[None]:
        """Learn from these rows."""
        yield from self._hold(shard)

    def task_load(self, parts: Parts) -> Steps[dict[str, Any]]:
        """Learn from files, of which each worker reads some; returns what a model keeps of the rows of its users."""
        shard = yield from load(self.place, parts)
        rows = shard.data.csr()
        kept = find_model(self.name)(**self.params)
        kept._begin(shard.data, rows)
        learned = kept._learned()
        seen = {name: value for name, value in learned.items() if name.startswith("seen_")}
        yield from self._hold(shard)
        ids = {"users": shard.data.users.ids, "items": shard.data.items.ids if self.place.rank == 0 else None}
        return {**seen, **ids}

    def _hold(self, shard: Shard) -> Steps[None]:
        model = find_model(self.name)(**self.params)
        nodes = yield from gather(self.place, platform.node())
        size, free = Size.of(shard.data), free_bytes()
        here = nodes.count(nodes[self.place.rank])
        if free is not None and (need := here * model._memory(size)) > free:
            what = f"{self.name} with {here} workers on {platform.node()}"
            raise CorankError(no_room(need, free, what, "use more machines, or a smaller dim"))
        self.method = find(self.name)(model, shard)
        yield from self.method.start()
        del self.method.shard  # the rows are sorted by now, and their first form is not needed any more

    def task_epoch(self, number: int) -> Steps[dict[str, float]]:
        """Epoch `number`, once: asked again for one that is done, the worker repeats what it has reported."""
        if number == self.done + 1:
            self.reported = yield from self.method.epoch()
            self.done = number
        if number != self.done:
            raise RuntimeError(f"epoch {number} was asked for after epoch {self.done}")
        return self.reported

    def task_sees(self, file: str, text: str) -> Steps[str]:
        """The name of this node, if a file that the driver wrote is not there; else nothing."""
        yield from ()
        path = Path(file)
        return "" if path.exists() and path.read_text("utf-8") == text else platform.node()

    def task_keep(self, folder: str) -> Steps[None]:
        """Write the state after the last epoch."""
        yield from ()
        store.write_part(Path(folder), self.place, self.name, self.params, self.done, self.method.arrays())

    def task_restore(self, folder: str, epoch: int) -> Steps[None]:
        """Continue from the state after an epoch."""
        yield from ()
        store.read_part(Path(folder), self.place, epoch, self.method.arrays())
        self.done = epoch

    def task_finish(self) -> Steps[None]:
        """All epochs are done."""
        yield from self.method.finish()

    def task_learned(self) -> Steps[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
        """The arrays of the own users; of the first worker also the shared ones, and numbers and words."""
        yield from ()
        arrays, own, first = self.method.arrays(), self.method.own, self.place.rank == 0
        shared = {name: arrays[name] for name in self.method.shared} if first else {}
        return {name: arrays[name] for name in own}, shared, self.method.plain() if first else {}

    def task_about(self) -> Steps[tuple[str, str, int]]:
        """The name of the node, the version of corank, and the process."""
        from .. import __version__

        yield from ()
        return platform.node(), __version__, os.getpid()


class _Collected(logging.Handler):
    """Keeps what is logged, for the driver."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[Log] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.levelno, record.getMessage()))

    @contextmanager
    def collected(self) -> Iterator[list[Log]]:
        logger = logging.getLogger("corank")
        self.lines, level = [], logger.level
        logger.addHandler(self)
        logger.setLevel(logging.INFO)
        try:
            yield self.lines
        finally:
            logger.removeHandler(self)
            logger.setLevel(level)
