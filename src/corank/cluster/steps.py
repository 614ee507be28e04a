"""What workers do together, as generators: they yield a message, and continue with what the others have sent.

Two messages are enough: each worker sends a part to each other one (`Exchange`), or all get all parts (`Gather`). Sums
are added up in the order of the workers, so that the same workers give the same bits in every run.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..data import Array


class Exchange(NamedTuple):
    """One part for each worker; the answer is the list of the parts that are meant for this one."""

    parts: list[Any]


class Gather(NamedTuple):
    """The same part for all; the answer is the list of all parts, in the order of the workers."""

    part: Any


T = TypeVar("T")
Steps = Generator[Exchange | Gather, list[Any], T]


class Place(NamedTuple):
    """Which of the workers this one is."""

    rank: int
    size: int

    def own(self, rows: int) -> slice:
        """The rows of an array that this worker adds up and updates: consecutive ones, as many as the others have."""
        cuts = np.linspace(0, rows, self.size + 1).astype(np.int64)
        return slice(int(cuts[self.rank]), int(cuts[self.rank + 1]))


def gather(place: Place, part: Any) -> Steps[list[Any]]:
    """The parts of all workers."""
    return [part] if place.size == 1 else (yield Gather(part))


def joined(place: Place, own: Array) -> Steps[Array]:
    """The rows of all workers in one array."""
    return own if place.size == 1 else np.concatenate((yield Gather(own)))


def total(place: Place, part: Array) -> Steps[Array]:
    """The sum over the workers of a small array, the same on all of them."""
    return part if place.size == 1 else _added((yield Gather(part)))


def scattered(place: Place, *parts: Array) -> Steps[list[Array]]:
    """Of the sums over the workers of large arrays of equal length, the rows that this worker owns."""
    if place.size == 1:
        return list(parts)
    cuts = [Place(rank, place.size).own(len(parts[0])) for rank in range(place.size)]
    received = yield Exchange([[np.ascontiguousarray(part[cut]) for part in parts] for cut in cuts])
    return [_added([arrays[i] for arrays in received]) for i in range(len(parts))]


def _added(parts: list[Array]) -> Array:
    out = parts[0].copy()  # what another process has sent is read-only
    for part in parts[1:]:
        out += part
    return out
