"""Exact half-steps of items whose users are divided among workers: normal equations are added up block by block."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Array
from .steps import Place, Steps, joined, scattered

BLOCK = 64_000_000  # bytes of the equations of a worker that exist at a time


class Entries(NamedTuple):
    """The entries of all items that a worker has, with their weights in the matrix and in the right-hand side."""

    rows: CSR  # (items, users of the worker); the values are not used
    matrix: NDArray[np.float32]  # (n,), or empty where all are 1
    target: NDArray[np.float32]  # (n,)


class Ridge(NamedTuple):
    """What is added to the equations of each item."""

    gram: NDArray[np.float32]  # (size, size)
    reg: NDArray[np.float32]  # (items,)
    last: NDArray[np.float32]  # (items,) of the last unknown
    weight: NDArray[np.float64]  # (items,) constant part of the loss, 0 for items without entries


def solve_items(place: Place, entries: Entries, U: Array, ridge: Ridge, X: Array) -> Steps[float]:
    """Set the rows of X (items, size) to their minimum; size is that of the vectors in U, or one more (a bias).

    Returns this worker's part of the loss.
    """
    from ..kernels.partial import equations, packed_size, solutions
    from ..kernels.threads import run

    rows, matrix, target = entries
    size = X.shape[1]
    packed = packed_size(size)
    step = max(1, BLOCK // (4 * packed))
    total = 0.0
    for start in range(0, len(X), step):
        n = min(step, len(X) - start)
        share = np.empty((n, packed), np.float32)
        cost = rows.indptr[start : start + n + 1] - rows.indptr[start]
        run(equations, n, start, *rows[:2], matrix, target, U, size - U.shape[1], share, cost=cost)
        (mine,) = yield from scattered(place, share)
        own = place.own(n)
        at = slice(start + own.start, start + own.stop)
        found, loss = np.empty((len(mine), size), np.float32), np.empty(len(mine), np.float64)
        settings = (ridge.gram, ridge.reg[at], ridge.last[at], ridge.weight[at])
        run(solutions, len(mine), mine, *settings, found, loss)
        total += float(loss.sum())
        X[start : start + n] = yield from joined(place, found)
    return total
