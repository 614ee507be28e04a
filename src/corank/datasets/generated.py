"""What the generators of synthetic data return, and the parts that they share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Array, Dataset, Vocab, from_scipy
from ..data.split import Split
from ..errors import CorankError
from ..system.memory import make_room
from .oracles import Oracle


@dataclass(frozen=True, eq=False)
class Synthetic:
    """Synthetic data with its ground truth.

    data : the rows.
    oracle : a model that knows the truth and is used like any other; `oracle.fit(split.train)` tells it only which ids
        there are.
    truth : the arrays behind the data, named in the generator's docstring. Row u is user id u, row i is item id i.
    split : train, valid and test, where the generator itself defines them.
    """

    data: Dataset
    oracle: Oracle
    truth: dict[str, Array]
    split: Split | None = None


def range_vocab(size: int) -> Vocab:
    """The integer ids 0 to size - 1."""
    return Vocab(np.arange(size, dtype=np.int64))


def symmetric_graph(a: Array, b: Array, nodes: int) -> CSR:
    """Symmetric 0/1 adjacency matrix of the edges a-b; self-loops and repeated edges are dropped."""
    from scipy.sparse import coo_array

    a, b = a[a != b], b[a != b]
    both = (np.concatenate([a, b]), np.concatenate([b, a]))
    graph = from_scipy(coo_array((np.ones(2 * a.size, np.float32), both), shape=(nodes, nodes)))
    return graph._replace(value=np.ones_like(graph.value))


def mean_with_neighbours(graph: CSR, x: Array, weight: float) -> NDArray[np.float64]:
    """weight * mean of the neighbours' rows + (1 - weight) * own row; nodes without neighbours keep their row."""
    degree = np.diff(graph.indptr)[:, None]
    mean = (graph.scipy() @ x) / np.maximum(degree, 1)
    return np.where(degree > 0, weight * mean + (1 - weight) * x, x)


def check_sizes(**named: Any) -> None:
    """Each must be an integer of at least 1; of a pair (value, least), of at least the second."""
    for name, given in named.items():
        value, least = given if isinstance(given, tuple) else (given, 1)
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not whole or not least <= value < 2**31:
            raise CorankError(f"{name}={value!r} must be a whole number of at least {least} (and below 2^31)")


def check_room(numbers: float) -> None:
    """Raise before so many numbers, of eight bytes each, are generated and do not fit."""
    make_room(8 * numbers, "synthetic data of this size", "ask for fewer users, items or rows")


def check_shares(**named: float) -> None:
    """Each must lie between 0 and 1."""
    for name, value in named.items():
        if not isinstance(value, int | float | np.number) or not 0 <= value <= 1:
            raise CorankError(f"{name}={value!r} is a share or probability: it must lie between 0 and 1")


def check_number(name: str, value: float, *, high: float, low: float = 0) -> None:
    if not isinstance(value, int | float | np.number) or not low <= value <= high:
        raise CorankError(f"{name}={value!r} must be a number between {low:g} and {high:g}")
