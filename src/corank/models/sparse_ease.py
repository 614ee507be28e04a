"""Sparse EASE: ridge regression of each item on the few others that explain it best."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..answering.explain import Reasons
from ..answering.update import Growth, owners
from ..cost import KERNEL, SCATTERED, SORTED, Cost, Size, rows_memory, scratch_memory
from ..data import CSR, Array, Dataset, from_scipy, row_ends
from ..errors import CorankError
from ..params import param
from ..stored import Stored, floats
from ..system.memory import free_bytes
from ._item_weights import ItemWeights

if TYPE_CHECKING:
    from ..training import Training


@dataclass(kw_only=True, eq=False)
class SparseEASE(ItemWeights):
    """EASE for large catalogues: ridge regression of each item on at most `neighbors` others.

    Objective: |X - X B|^2 + reg |B|^2 with a zero diagonal of B and at most `neighbors` entries in each of its columns.
    The regressors of an item are chosen in `rounds` batches: first those with the most users in common (relative to
    their own), then those that correlate most, positively or negatively, with what the first ones leave unexplained.
    With `neighbors` as large as the catalogue it is EASE. Values are ignored.

    Reference: the objective of Steck, "Embarrassingly shallow autoencoders for sparse data", WWW 2019, with columns of
    bounded length as in Ning and Karypis, "SLIM", ICDM 2011.

    Use it where `EASE` takes too long or too much memory, from some 10,000 items on: it costs
    items * neighbors * (neighbors^2 / 6 + mean number of items with common users) operations, and memory for the pairs
    of items that have a user in common.
    """

    reg: float = param(150.0, "ridge added to the co-occurrence counts", low=1e-3, search=(10.0, 5000.0), log=True)
    neighbors: int = param(
        200, "items on which each item is regressed, at most", low=1, high=2000, search=(20, 400), log=True
    )
    rounds: int = param(2, "batches in which they are chosen", low=1, high=20, search=(1, 4))

    by_default: ClassVar[bool] = False  # compared in place of `ease` where the catalogue is large
    starts: ClassVar[Sequence[Mapping[str, Any]]] = ({"reg": 50.0}, {"reg": 500.0}, {"reg": 15.0})

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        rows = rows._replace(value=np.ones(rows.index.size, np.float32))
        total = self._seconds(Size.of(data))
        graph = self._counts(
            rows,
            data.csr(by="item"),
            lambda share: training.progress(share * total[0], sum(total), "counting pairs of items"),
        )
        targets = np.arange(rows.columns, dtype=np.int32)
        chosen, weight, self.error_ = self._regress(
            graph,
            rows,
            targets,
            lambda share: training.progress(total[0] + share * total[1], sum(total), "regressing items"),
        )
        self._keep_weights(_by_regressor(chosen, weight, targets, rows.columns))

    def _stores(self) -> dict[str, Stored]:
        return super()._stores() | {"error_": floats("items", low=0)}

    def _counts(self, rows: CSR, columns: CSR, progress: Any = None) -> CSR:
        """For each item the others that have users in common with it, and how many."""
        from ..kernels import sparse_ease as kernels
        from ..kernels.threads import run

        parts = (columns.indptr, columns.index, rows.indptr, rows.index)
        length = np.empty(rows.columns, np.int64)
        half, rest = (
            None if progress is None else (lambda done, of, first=first: progress(first + 0.5 * done / of))
            for first in (0.0, 0.5)
        )
        run(kernels.row_lengths, rows.columns, *parts, length, cost=columns.indptr, progress=half)
        indptr = row_ends(length)
        need, free = 8 * int(indptr[-1]), free_bytes()
        if free is not None and need > free:
            raise CorankError(
                f"sparse_ease: {indptr[-1] // 2:,} pairs of items have a user in common, which takes {need / 1e9:.1f} "
                f"GB, and {free / 1e9:.1f} GB are free: leave out the longest histories, or use item_knn or wmf"
            )
        index, count = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
        run(kernels.counts, rows.columns, *parts, indptr, index, count, cost=columns.indptr, progress=rest)
        return CSR(indptr, index, count, rows.columns)

    def _regress(self, graph: CSR, rows: CSR, targets: Array, progress: Any = None) -> tuple[Array, Array, Array]:
        """(regressors, weights, objective) of the targets."""
        from ..kernels import sparse_ease as kernels
        from ..kernels.threads import run

        users = np.bincount(rows.index, minlength=rows.columns).astype(np.float32)
        k = min(self.neighbors, max(rows.columns - 1, 1))
        chosen, weight = np.empty((targets.size, k), np.int32), np.zeros((targets.size, k), np.float32)
        error = np.empty(targets.size, np.float32)
        run(
            kernels.regressions,
            targets.size,
            *(targets, graph.indptr, graph.index, graph.value, users, np.float32(self.reg), min(self.rounds, k)),
            *(chosen, weight, error),
            progress=None if progress is None else (lambda done, of: progress(done / of)),
        )
        return chosen, weight, error

    def _seconds(self, size: Size) -> tuple[float, float]:
        """Rough seconds of the counts and of the regressions."""
        k, pairs = min(self.neighbors, size.items), _pairs(size)
        scanned = self.rounds / 2 * k * pairs  # the rows of the regressors
        return 2 * SCATTERED * size.squared(), self.rounds * KERNEL * size.items * k**3 / 6 + SCATTERED * scanned

    def _cost(self, size: Size) -> Cost:
        return Cost(SORTED * size.rows + sum(self._seconds(size)))

    def _memory(self, size: Size) -> float:
        # By user and by item; counts; regressors and weights, padded and by regressor; arrays of each thread.
        padded = 1.0 * min(self.neighbors, size.items) * size.items
        scratch = scratch_memory(20.0 * size.items + 8.0 * self.neighbors**2, size.items)
        return rows_memory(size, 2) + 8.0 * _pairs(size) + 40.0 * padded + scratch

    def _smaller(self, size: Size, free: int | None) -> str:
        return "leave out the longest histories, choose fewer neighbors, or use item_knn or wmf"

    def _score(self, users: NDArray[np.int32]) -> NDArray[np.float32]:
        ones = np.broadcast_to(np.float32(1), self.seen_index_.size)
        return self._sum(CSR(self.seen_indptr_, self.seen_index_, ones, len(self.items_)).take(users))

    def _score_histories(self, histories: CSR) -> NDArray[np.float32]:
        return self._sum(_ones(histories))

    def _absorb(self, growth: Growth) -> None:
        """Fresh items are regressed on all others, exactly as in a fit; the regressions of older items stay."""
        self.error_[self.error_ == 0] = self.reg
        if not growth.fresh.size:
            return
        rows = growth.rows._replace(value=np.ones(growth.rows.index.size, np.float32))
        graph = self._counts(rows, from_scipy(rows.scipy().T))
        fresh = growth.fresh.astype(np.int32)
        chosen, weight, self.error_[fresh] = self._regress(graph, rows, fresh)
        new = _by_regressor(chosen, weight, fresh, rows.columns)
        self._add_weights(owners(new), new.index, new.value)

    def _contributions(
        self, user: int | None, history: CSR, items: NDArray[np.int32], scores: NDArray[np.float64]
    ) -> Reasons:
        return self._reasons(_ones(history), items)

    def _similar(self, items: NDArray[np.int32]) -> NDArray[np.float32]:
        """The weight, scaled as a partial correlation."""
        scale = np.sqrt(self.error_)
        return np.asarray(super()._similar(items) * (scale[items, None] / scale), np.float32)


def _ones(histories: CSR) -> CSR:
    rows = histories.merged()
    return rows._replace(value=np.ones(rows.index.size, np.float32))


def _pairs(size: Size) -> float:
    """Pairs of items with a user in common, at most: as if each user had any items with equal probability."""
    cells = float(size.items) ** 2
    return -cells * math.expm1(-size.squared() / max(cells, 1.0))


def _by_regressor(chosen: Array, weight: Array, targets: Array, items: int) -> CSR:
    """Weights in rows of regressors, from rows of targets."""
    real = chosen >= 0
    target = np.repeat(targets, real.sum(axis=1))
    order = np.argsort(chosen[real], kind="stable")
    indptr = row_ends(np.bincount(chosen[real], minlength=items))
    return CSR(indptr, target[order].astype(np.int32), weight[real][order], items)
