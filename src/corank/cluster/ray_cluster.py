"""`corank.Ray`: where a fit on a cluster runs, and its workers as Ray actors.

Workers keep their state between the steps of an epoch, so they are actors. What they send each other goes through
Ray's object store, from machine to machine: the driver passes on references and small messages only.
"""

from __future__ import annotations

import importlib
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data import Dataset
from ..errors import CorankError, MissingExtra, shorten
from ..training import OnEpoch
from .group import Group, Lost, call
from .session import checked, fit
from .steps import Place
from .worker import Message, Worker

if TYPE_CHECKING:
    from ..model import Model

logger = logging.getLogger("corank.cluster")
ANSWER = 5.0  # seconds in which the address of a cluster must answer
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",  # Ray reports usage to its makers unless it is told not to
    "RAY_NUM_REDIS_GET_RETRIES": "1",  # of some 40 s each, where something answers that is no Ray cluster
}
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # else Ray uses the address of this machine for 127.0.0.1
OWN = {"RAY_AUTH_MODE": "token"}  # the default of a new cluster, without its message


@dataclass(frozen=True, kw_only=True)
class Ray:
    """A Ray cluster on which models are fitted: `WMF().fit(data, cluster=Ray(workers=4))`.

    Each worker has the rows and the vectors of some of the users, and the vectors of all items. The model is that of
    one machine up to rounding, and the same bits for the same number of workers. It needs `corank[ray]`, on all
    machines in the same version. See docs/cluster.md.

    Parameters
    ----------
    workers : number of workers (default: one per machine).
    address : of a running cluster: "auto" for the one that this machine belongs to, or host:port of its head. By
        default a cluster is started on this machine, for this fit.
    threads : threads per worker (default: as many as the machines have processors for).
    wait : seconds that are waited for processors, when others use them or a machine is lost.
    """

    workers: int | None = None
    address: str | None = None
    threads: int | None = None
    wait: float = 60.0

    def fit(
        self,
        model: Model,
        data: Any,
        valid: Dataset | None = None,
        on_epoch: OnEpoch | None = None,
        on_progress: OnEpoch | None = None,
        checkpoint: str | Path | None = None,
    ) -> None:
        """What `Model.fit(..., cluster=self)` does; `on_progress` is not called, as workers tell of whole epochs."""
        self._check()
        data = checked(model, data, valid, self.workers)
        with self._connected() as ray:
            workers, threads = self._share(ray)
            checked(model, data, valid, workers)
            groups = partial(_group, ray, workers, threads, self.wait)
            fit(model, data, workers, groups, valid=valid, on_epoch=on_epoch, checkpoint=checkpoint)

    def _check(self) -> None:
        for name in ("workers", "threads"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise CorankError(f"Ray({name}={value!r}): it must be a whole number of at least 1")
        if not isinstance(self.wait, int | float) or not self.wait >= 0:
            raise CorankError(f"Ray(wait={self.wait!r}): it must be a number of seconds")

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """Ray, connected to the cluster; what was not connected before is disconnected in the end."""
        ray = _ray(self.address)
        if ray.is_initialized():  # by the caller, who has chosen the cluster then
            yield ray
            return
        options: dict[str, Any] = {"log_to_driver": False, "configure_logging": False, "logging_level": "error"}
        if self.address is None:
            options |= {"num_cpus": max((self.workers or 1) * (self.threads or 1), _processors())}
            options |= {"address": "local", "include_dashboard": False}  # not one that happens to run here
        else:
            _require_answer(self.address)
            options |= {"address": self.address}
        with _own_signals():
            logging.getLogger("ray").setLevel(logging.ERROR)
            try:
                ray.init(**options)
            except ConnectionError:
                where = "runs on this machine" if self.address == "auto" else f"is at {self.address}"
                raise CorankError(
                    f"no Ray cluster {where}: start one with `ray start --head`, or leave the address out (--ray "
                    "local) for one of its own"
                ) from None
            except Exception as why:  # whatever stops it, the user is told in a sentence
                said = shorten(" ".join(str(why).split()), 300)
                where = f"connect to the Ray cluster at {self.address}" if self.address else "start Ray on this machine"
                raise CorankError(
                    f"cannot {where} ({said}): it must have the same Ray and Python, and the same token if "
                    "it asks for one (RAY_AUTH_MODE)"
                ) from None
        try:
            yield ray
        finally:
            ray.shutdown()

    def _share(self, ray: Any) -> tuple[int, int]:
        """The number of workers, and of threads of each."""
        machines = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
        workers = self.workers or max(1, len([cpus for cpus in machines if cpus]))
        threads = self.threads or _threads(machines, workers)
        room = sum(cpus // threads for cpus in machines)
        if room < workers:
            each = f" of {threads} threads" if threads > 1 else ""
            raise CorankError(
                f"the Ray cluster has {sum(machines)} processors on {len(machines)} machine"
                f"{'s' * (len(machines) > 1)}, which is room for {room} workers{each} and not for {workers}: use fewer "
                "workers, or add machines"
            )
        return workers, threads


def _threads(machines: Sequence[int], workers: int) -> int:
    """The most threads per worker with which all workers find room on machines with so many processors."""
    fitting = [n for n in range(1, max(machines, default=1) + 1) if sum(cpus // n for cpus in machines) >= workers]
    return max(fitting, default=1)


def _ray(address: str | None) -> Any:
    """The module `ray`; settings that it reads from the environment when it is imported are made first."""
    here = address is None or address.rpartition(":")[0] in ("127.0.0.1", "localhost")
    settings = ENVIRONMENT | (LOOPBACK if here else {}) | (OWN if address is None else {})
    for name, value in settings.items():
        os.environ.setdefault(name, value)
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError:
        raise MissingExtra("training on a cluster", "ray") from None


def _processors() -> int:
    from ..system.limits import cores

    return cores()


def _require_answer(address: str) -> None:
    """Raise an error if nothing answers at host:port; Ray itself would try for a minute."""
    host, _, port = address.rpartition(":")
    if address == "auto":
        return
    if not host or not port.isdecimal():
        raise CorankError(f"Ray(address={address!r}): give 'auto', or host:port of the head, such as 10.0.0.1:6379")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER).close()
    except (OSError, OverflowError) as why:
        raise CorankError(
            f"no Ray cluster answers at {address} ({why}): start one with `ray start --head`, or check the address"
        ) from None


@contextmanager
def _own_signals() -> Iterator[None]:
    """Ray installs handlers of signals; those that were there before are put back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _RayWorker(Worker):
    """A worker whose parts go through the object store."""

    def begin(self, what: str, *args: Any) -> Message:
        return self._stored(super().begin(what, *args))

    def advance(self, received: list[Any]) -> Message:
        ray = importlib.import_module("ray")
        return self._stored(super().advance(ray.get(received)))

    def _stored(self, message: Message) -> Message:
        ray = importlib.import_module("ray")
        if message.kind == "exchange":
            return message._replace(content=[ray.put(part) for part in message.content])
        if message.kind == "gather":
            return message._replace(content=ray.put(message.content))
        return message


class _Actors:
    """Workers as actors, which may be lost."""

    def __init__(self, ray: Any, actors: list[Any]) -> None:
        self.ray, self.actors, self.size = ray, actors, len(actors)

    def send(self, method: str, arguments: Sequence[Sequence[Any]]) -> list[Message]:
        errors = self.ray.exceptions
        try:
            sent = [getattr(actor, method).remote(*own) for actor, own in zip(self.actors, arguments, strict=True)]
            return list(self.ray.get(sent))
        except errors.RayTaskError as why:
            if isinstance(why.cause, errors.RayError):  # a part of a worker that is gone
                raise Lost(_said(why.cause)) from None
            if isinstance(why, errors.OutOfMemoryError):
                raise Lost(_said(why), memory=True) from None
            raise
        except errors.RayError as why:
            text = str(why)
            memory = isinstance(why, errors.OutOfMemoryError) or "out of memory" in text.lower() or "OOM" in text
            raise Lost(_said(why), memory) from None


def _said(why: Exception) -> str:
    """The first sentence of an error of Ray."""
    return shorten(" ".join(str(why).split()).split(". ")[0], 200)


@contextmanager
def _group(ray: Any, size: int, threads: int, wait: float, name: str, params: dict[str, Any]) -> Iterator[Group]:
    """Workers as actors that are spread over the machines; they end with the block."""
    from ray.util import placement_group, remove_placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    room = placement_group([{"CPU": threads}] * size, strategy="SPREAD")
    actors: list[Any] = []
    try:
        _require_room(ray, room, size, threads, wait)
        worker = ray.remote(_RayWorker)
        for rank in range(size):
            where = PlacementGroupSchedulingStrategy(room, placement_group_bundle_index=rank)
            options = {"num_cpus": threads, "scheduling_strategy": where, "max_restarts": 0, "max_task_retries": 0}
            actors.append(worker.options(**options).remote(Place(rank, size), threads, name, params))
        group = _Actors(ray, actors)
        _require_versions(group)
        yield group
    finally:
        for actor in actors:
            with suppress(Exception):  # it may be gone already
                ray.kill(actor)
        with suppress(Exception):
            remove_placement_group(room)


def _require_room(ray: Any, room: Any, size: int, threads: int, wait: float) -> None:
    """Wait until there are processors for all workers."""
    end = time.monotonic() + wait
    told = False
    while not room.wait(timeout_seconds=1):
        if time.monotonic() > end:
            free = ray.available_resources().get("CPU", 0)
            raise CorankError(
                f"the Ray cluster has {free:g} free processors, and {size} workers of {threads} need "
                f"{size * threads}: wait for the others who use it, add machines, or use fewer workers"
            )
        if not told:
            logger.warning("waiting up to %g s for processors of the Ray cluster", wait)
            told = True


def _require_versions(group: Group) -> None:
    """Raise an error if a machine has another corank, or none."""
    from .. import __version__

    try:
        about = call(group, "about")
    except Exception as why:
        if "ModuleNotFoundError" in str(why) or "No module named" in str(why):
            raise CorankError(
                "a machine of the Ray cluster cannot import corank: install the same corank[ray] on all of them"
            ) from None
        raise
    for node, version, _ in about:
        if version != __version__:
            raise CorankError(
                f"{node} has corank {version} and this machine {__version__}: install the same version on all machines"
            )
    logger.info("%d workers on %s", group.size, ", ".join(sorted({node for node, _, _ in about})))
