"""Estimates before work: the seconds and the memory that a fit will need.

A model declares how its cost grows with the data (`Model._cost`, in rough seconds) and the bytes it will hold
(`Model._memory`). The seconds are then measured: a short fit of the same model to a sample of the users (of the items
too, where their number decides) says how long the declared cost takes on this machine. Constants of a machine are
stored nowhere.
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .cost import Cost, Size
from .data import Dataset, restricted, tally
from .errors import CorankError
from .system.memory import free_bytes, in_gigabytes
from .training import check_fit, clock

if TYPE_CHECKING:
    from .model import Model

SMALL = 2.0  # rough seconds below which nothing is probed
EPOCHS = 3  # of a probe
PROBE = 0.25  # rough seconds of the fit to a sample; it is enlarged until it takes ENOUGH
ENOUGH = 0.2  # measured seconds of a probe that overheads no longer decide
TOO_LONG = 1.5  # measured seconds after which a probe ends with its epoch
FEWEST = 256  # users or items of a sample


@dataclass(frozen=True)
class Estimate:
    """What a fit will need."""

    seconds: float  # without compilation, on a machine that has nothing else to do
    memory: int  # bytes beside the data
    compiling: float = 0.0  # seconds for which the probe compiled kernels, once per machine
    probed: bool = False  # measured; else the declared cost, which is small or could not be probed

    def times(self, fits: int) -> Estimate:
        """The same for several fits, one after the other."""
        return dataclasses.replace(self, seconds=fits * self.seconds)

    def __str__(self) -> str:
        return f"{in_words(self.seconds)}, {in_gigabytes(self.memory)}"


def in_words(seconds: float) -> str:
    """Seconds as an estimate is told: no more digits than it has."""
    if seconds < 5:
        return "a few seconds"
    if seconds < 100:
        return f"about {round(seconds) if seconds < 9.5 else 5 * round(seconds / 5)} s"
    return f"about {seconds / 60:.0f} min" if seconds < 100 * 60 else f"about {seconds / 3600:.2g} h"


def estimate(model: Model, data: Dataset, users: int = 0) -> Estimate:
    """Estimate the fit of `model` to `data`, and its scores of all items for `users` users."""
    check_fit(model, data, data if getattr(model, "patience", None) is not None else None, warn=False)
    size, model = Size.of(data), model.settled(data, data.csr())
    epochs = int(model.params().get("epochs", 1))
    cost, memory = model._cost(size), int(model._memory(size))
    declared = cost.total(epochs)
    free = free_bytes()
    if declared < SMALL or (free is not None and memory > free):  # what does not fit is not tried either
        return Estimate(declared, memory)
    before = _compile_seconds()
    try:
        seconds = _probed(model, data, size, cost, epochs, users)
    except CorankError:  # a sample may lack what the data has: two ratings that differ, an edge
        seconds = None
    compiling = _compile_seconds() - before
    if seconds is None:
        return Estimate(declared, memory, compiling)
    return Estimate(seconds, memory, compiling, probed=True)


def _probed(model: Model, data: Dataset, size: Size, cost: Cost, epochs: int, users: int) -> float:
    """Seconds of the whole, from a fit to a sample."""
    from .kernels.threads import blas_threads, one_blas_thread

    limit, warm = PROBE, False
    while True:
        chosen = _sample_size(model, size, limit)
        sample = _sample(data, *chosen)
        with _silence(), one_blas_thread():
            if not warm:  # what is loaded or compiled at the first call is not part of the rate
                tiny = _sample(sample, min(32, chosen[0]), min(FEWEST, chosen[1]))
                _small_fit(model, tiny, 1)
                warm = True
            fits = [
                _small_fit(model, sample, min(EPOCHS, epochs)) for _ in range(1 if "epochs" in model.params() else 2)
            ]
            fitted, setup, epoch = min(fits, key=lambda fit: fit[1] + fit[2])
        took = setup + EPOCHS * epoch
        if took >= ENOUGH or chosen == (size.users, size.items):
            break
        limit *= max(2.0, min(16.0, ENOUGH / max(took, 1e-3)))
    own = model._cost(Size.of(sample))
    # A probe has one BLAS thread: on a busy machine, threads that wait for each other in short products waste seconds.
    whole = cost.setup - cost.dense + cost.dense / blas_threads()
    seconds = setup * (whole / own.setup if own.setup else 1.0)
    if own.epoch:
        seconds += epochs * epoch * cost.epoch / own.epoch
    if users:
        asked = np.arange(min(64, len(sample.users)), dtype=np.int32)
        with one_blas_thread():
            start = _now()
            fitted._score(asked)
            score = _elapsed(start, _now())
        seconds += score / asked.size * users * size.items / chosen[1]
    return seconds


def _small_fit(model: Model, sample: Dataset, epochs: int) -> tuple[Model, float, float]:
    """The model after a short fit, with the measured seconds: once, and per epoch."""
    params = model.params()
    changes: dict[str, Any] = {"epochs": epochs} if "epochs" in params else {}
    if "patience" in params:
        changes["patience"] = None
    small = model._copy(**changes)
    start = _now()
    ends = [start]

    def watch(entry: dict[str, Any]) -> bool:
        ends.append(_now())
        return _elapsed(start, ends[-1]) < TOO_LONG

    small.fit(sample, on_epoch=watch)
    took = _elapsed(start, _now())
    if len(ends) == 1:
        return small, took, 0.0
    epoch = min(_elapsed(*pair) for pair in itertools.pairwise(ends[1:] if len(ends) > 2 else ends))
    return small, max(0.0, took - epoch * (len(ends) - 1)), epoch


def _now() -> tuple[float, float]:
    return clock(), time.process_time()


def _elapsed(start: tuple[float, float], end: tuple[float, float]) -> float:
    """Seconds, on a machine that has nothing else to do.

    A probe is so short that on a busy machine it may wait most of the time, or not at all. Where others have the
    processors, the seconds that the fit itself was running are the better measure, although several threads add up.
    """
    return min(end[0] - start[0], end[1] - start[1])


def _sample_size(model: Model, size: Size, limit: float) -> tuple[int, int]:
    """Numbers of users and items for which a probe is declared to take `limit` rough seconds at most.

    Users are halved first: with all items, a sample has their factors, their popularity and so the cache misses of the
    whole. Items are halved where that helps more, as in a model that costs their cube; then users are too, until their
    share of the cost is no larger than in the whole: what is measured must be what is scaled.
    """
    users, items = size.users, size.items

    def declared(users: int, items: int) -> float:
        return model._cost(size.thinned(users, items)).total(EPOCHS)

    def of_users(users: int, items: int) -> float:
        """The share of the cost that half of the users have."""
        return 1 - declared(max(1, users // 2), items) / max(declared(users, items), 1e-12)

    share = of_users(users, items)
    while users > FEWEST or items > FEWEST:
        fewer_users, fewer_items = max(min(users, FEWEST), users // 2), max(min(items, FEWEST), items // 2)
        if users > FEWEST and of_users(users, items) > share + 0.1:
            users = fewer_users
        elif declared(users, items) <= limit:
            break
        elif users == fewer_users or declared(users, fewer_items) < 0.7 * declared(fewer_users, items):
            items = fewer_items
        else:
            users = fewer_users
    return users, items


def _sample(data: Dataset, users: int, items: int) -> Dataset:
    """The rows of some random users (neighbours in a graph, where there is one) and of the most popular items."""
    if (users, items) == (len(data.users), len(data.items)):
        return data
    rng = np.random.default_rng(0)
    popular = np.argsort(-tally(data.item, len(data.items)), kind="stable")
    order = rng.permutation(np.flatnonzero(tally(data.user, len(data.users))))
    if data.user_graph is not None and order.size:
        # Random users would have almost no edges in common.
        from scipy.sparse.csgraph import breadth_first_order

        near = breadth_first_order(data.user_graph.scipy(), int(order[0]), directed=False, return_predecessors=False)
        order = np.concatenate([near, order[~np.isin(order, near)]])
    return restricted(data, np.sort(order[:users]), np.sort(popular[:items]))


def _compile_seconds() -> float:
    from .kernels.threads import compile_seconds

    return compile_seconds()


@contextmanager
def _silence() -> Iterator[None]:
    """No warnings of a fit to a sample: the fit to the data will give them."""
    logger = logging.getLogger("corank")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before
