"""EASE: a linear item-item model with a closed-form solution."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..answering.explain import Reasons
from ..answering.update import Growth
from ..cost import DENSE, SCATTERED, SORTED, Cost, Size, rows_memory
from ..data import CSR, Array, Dataset
from ..errors import CorankError
from ..model import Model
from ..params import param
from ..stored import Stored, codes, floats

if TYPE_CHECKING:
    from ..training import Training

DOUBLE_UP_TO = 8_000  # items; with more of them, single precision halves memory and time


@dataclass(kw_only=True, eq=False)
class EASE(Model):
    """Embarrassingly shallow autoencoder: ridge regression of each item on all others.

    Objective: |X - X B|^2 + reg |B|^2 with a zero diagonal of B. It has a closed form: with P = (X^T X + reg I)^-1, the
    weights are B_ij = -P_ij / P_jj. Values are ignored.

    Reference: Steck, "Embarrassingly shallow autoencoders for sparse data", WWW 2019.

    Use it on dense data, where it beats most neural autoencoders with a single hyper-parameter. It costs items^3
    operations and 5 * items^2 bytes: 8 GB for 40,000 items. For larger catalogues set `max_items`, which gives weights
    to the most popular items alone, or use `SparseEASE`, which gives them to all.
    """

    reg: float = param(250.0, "ridge added to the co-occurrence counts", low=1e-3, search=(10.0, 5000.0), log=True)
    max_items: int | None = param(
        None, "only this many of the most popular items have weights; the others come last, by popularity", low=1
    )

    large_form: ClassVar[tuple[int, str]] = (12_000, "sparse_ease")  # several times as fast from there on, and as good

    starts: ClassVar[Sequence[Mapping[str, Any]]] = ({"reg": 50.0}, {"reg": 1000.0})

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        from ..kernels import ease as kernels
        from ..kernels.threads import run

        columns = data.csr(by="item")
        kept = self._most_popular(columns)
        if kept is not None:
            columns = columns.take(kept)
            rows = _columns_of(rows, kept)
        n = rows.columns
        matrix = self._room(n)
        counting, inverting = self._parts(n, float(np.square(np.diff(rows.indptr), dtype=np.float64).sum()))
        whole = counting + inverting
        # Row i stops at the diagonal, so its cost grows with i; its number of users is a fair estimate of the cost.
        parts = (columns.indptr, columns.index, rows.indptr, rows.index)
        run(
            kernels.counts,
            n,
            *(*parts, self.reg, matrix),
            cost=columns.indptr,
            progress=lambda done, of: training.progress(counting * done / of, whole, "counting pairs of items"),
        )
        self._invert(
            matrix, lambda done, of: training.progress(counting + inverting * done / of, whole, "inverting the counts")
        )
        # `_similar` needs the diagonal of the inverse for partial correlations.
        diagonal = np.diagonal(matrix).copy()
        weights = matrix if matrix.dtype == np.float32 else np.empty((n, n), np.float32)
        tiles = -(-n // kernels.TILE)
        run(kernels.weights, tiles, matrix, diagonal, weights, cost=np.arange(tiles + 1) ** 2)
        if kept is None:
            self.item_precision_, self.item_weights_ = diagonal.astype(np.float32), weights
        else:
            self.kept_, self.precision_, self.weights_ = kept, diagonal.astype(np.float32), weights
            self.item_counts_ = np.bincount(self.seen_index_, minlength=len(data.items)).astype(np.float32)

    def _stores(self) -> dict[str, Stored]:
        own: dict[str, Stored] = {"item_precision_": floats("items", low=0), "item_weights_": floats("items", "items")}
        if self.max_items is not None and self.max_items < len(self.items_):
            own = {
                "kept_": codes("max_items", rising=True),
                "precision_": floats("max_items", low=0),
                "weights_": floats("max_items", "max_items"),
                "item_counts_": floats("items", low=0),
            }
        return super()._stores() | own

    def _most_popular(self, columns: CSR) -> NDArray[np.int32] | None:
        """Codes of the `max_items` items with the most users, in rising order; None if these are all."""
        if self.max_items is None or self.max_items >= columns.rows:
            return None
        order = np.argsort(-np.diff(columns.indptr), kind="stable")
        return np.sort(order[: self.max_items]).astype(np.int32)

    def _parts(self, n: int, squares: float) -> tuple[float, float]:
        """Rough seconds of the counts and of the inverse; squares : sum over users of their squared number of items."""
        dense = (2 if n <= DOUBLE_UP_TO else 1) * DENSE
        return 0.5 * SCATTERED * squares, dense * n**3 / 2 + SCATTERED * n**2

    def _kept(self, size: Size) -> int:
        return size.items if self.max_items is None else min(self.max_items, size.items)

    def _cost(self, size: Size) -> Cost:
        counting, inverting = self._parts(self._kept(size), size.squared())
        return Cost(SORTED * size.rows + counting + inverting, dense=inverting)

    def _memory(self, size: Size) -> float:
        return rows_memory(size, 2) + _matrices(self._kept(size))

    def _smaller(self, size: Size, free: int | None) -> str:
        fits = int(math.sqrt(max(0.0, 0.8 * (free or 0) - rows_memory(size, 2)) / 5)) // 1000 * 1000
        if fits < 1000 or fits >= self._kept(size):
            return "keep fewer items, or use sparse_ease, item_knn or wmf"
        return f"max_items={fits} (--max-items {fits}) keeps the most popular items and fits; or use sparse_ease"

    def _room(self, n: int) -> Array:
        """An items x items array, or an error that says how much memory it needs."""
        try:
            return np.empty((n, n), np.float64 if n <= DOUBLE_UP_TO else np.float32)
        except MemoryError:
            need = f"EASE of {n:,} items (items x items) needs {_matrices(n) / 1e9:.1f} GB"
            raise CorankError(
                f"{need}, which cannot be allocated: set max_items, or use sparse_ease, item_knn or wmf"
            ) from None

    def _invert(self, matrix: Array, progress: Callable[[float, float], None] | None = None) -> None:
        """Replace the lower triangle of a positive definite matrix by that of its inverse, in place."""
        from ..kernels.inverse import invert

        if not invert(matrix, progress):
            raise CorankError(f"EASE(reg={self.reg:g}): the counts could not be inverted in {matrix.dtype}; raise reg")

    def _score(self, users: NDArray[np.int32]) -> NDArray[np.float32]:
        ones = np.broadcast_to(np.float32(1), self.seen_index_.size)
        return self._sum(CSR(self.seen_indptr_, self.seen_index_, ones, len(self.items_)).take(users))

    def _score_histories(self, histories: CSR) -> NDArray[np.float32]:
        return self._sum(histories.merged())

    def _sum(self, rows: CSR) -> NDArray[np.float32]:
        if not hasattr(self, "kept_"):
            return _sums(rows, self.item_weights_)
        among = _sums(_columns_of(rows, self.kept_), self.weights_)
        # Items without weights are below all others of the user, the most popular of them first.
        last = self.item_counts_ / (self.item_counts_.max() + 1) - 1
        out = among.min(axis=1, keepdims=True) + last
        out[:, self.kept_] = among
        return np.asarray(out, np.float32)

    def _absorb(self, growth: Growth) -> None:
        """Weights between older items stay as they are; a fresh item is regressed on them with the old inverse.

        With c the counts of the fresh item with the others, P the inverse of their counts and s = n + reg - c'Pc, block
        inversion gives its weights: from the others to it P c, and from it to j (Pc)_j / (s P_jj + (Pc)_j^2). Between
        fresh items they are 0.
        """
        if hasattr(self, "kept_"):  # items without weights come last, by popularity
            self.item_counts_ += np.bincount(growth.new_pairs, minlength=len(self.items_)).astype(np.float32)
            return
        if self.max_items is not None and self.max_items < len(self.items_):
            raise CorankError(
                f"EASE(max_items={self.max_items:,}) has weights for all its items, and there are {len(self.items_):,} "
                "now: fit it again"
            )
        fresh = growth.fresh
        self.item_precision_[self.item_precision_ == 0] = 1 / self.reg
        if not fresh.size:
            return
        X = growth.rows._replace(value=np.ones(growth.rows.index.size, np.float32)).scipy()
        counts = (X.T @ X[:, fresh]).toarray()  # (items, fresh)
        users = counts[fresh, np.arange(fresh.size)]
        counts[fresh] = 0
        B, diagonal = self.item_weights_, self.item_precision_
        PC = diagonal[:, None] * counts - B @ (diagonal[:, None] * counts)  # P = diag(d) - B diag(d), off the diagonal
        PC[fresh] = 0
        schur = np.maximum(users + self.reg - np.einsum("if,if->f", counts, PC), self.reg)
        B[:, fresh] = PC
        B[fresh] = (PC / (schur * diagonal[:, None] + PC**2)).T
        diagonal[fresh] = 1 / schur

    def _contributions(
        self, user: int | None, history: CSR, items: NDArray[np.int32], scores: NDArray[np.float64]
    ) -> Reasons:
        """Exact: a score is the sum of the weights of the history; items without weights have their popularity."""
        index = history.merged().index
        if not hasattr(self, "kept_"):
            return Reasons("exact", index, self.item_weights_[index][:, items].T.astype(np.float64))
        places = np.full(len(self.items_), -1)
        places[self.kept_] = np.arange(self.kept_.size)
        both = (places[index] >= 0) & (places[items] >= 0)[:, None]  # (items, entries)
        weights = np.where(both, self.weights_[places[index]][:, places[items]].T, 0).astype(np.float64)
        return Reasons("exact", index, weights, {"popularity": np.where(places[items] >= 0, 0.0, scores)})

    def _similar(self, items: NDArray[np.int32]) -> NDArray[np.float32]:
        """Partial correlation -P_ij / sqrt(P_ii P_jj): the symmetric form of the weights."""
        if not hasattr(self, "kept_"):
            scale = np.sqrt(self.item_precision_)
            return np.asarray(self.item_weights_[items] * (scale / scale[items, None]), np.float32)
        out = np.full((items.size, len(self.items_)), -np.inf, np.float32)  # items without weights are not similar
        at = np.searchsorted(self.kept_, items)
        known = np.flatnonzero((at < self.kept_.size) & (self.kept_[np.minimum(at, self.kept_.size - 1)] == items))
        scale, at = np.sqrt(self.precision_), at[known]
        out[known[:, None], self.kept_] = self.weights_[at] * (scale / scale[at, None])
        return out


def _matrices(n: int) -> float:
    """Bytes of the inverse, the weights, and the check that they are finite."""
    return float(n) ** 2 * (8 + 4 + 1 if n <= DOUBLE_UP_TO else 4 + 1)


def _columns_of(rows: CSR, kept: Array) -> CSR:
    """The entries of these columns (in rising order), numbered anew."""
    place = np.full(rows.columns, -1, np.int32)
    place[kept] = np.arange(kept.size, dtype=np.int32)
    index = place[rows.index]
    stay = index >= 0
    indptr = np.concatenate([[0], np.cumsum(stay)])[rows.indptr]
    return CSR(indptr, index[stay], rows.value[stay], kept.size)


def _sums(rows: CSR, weights: Array) -> NDArray[np.float32]:
    """For each row, the sum of the weights of its items."""
    from ..kernels import ease as kernels
    from ..kernels.threads import run

    out = np.empty((rows.rows, rows.columns), np.float32)
    strips = -(-rows.columns // kernels.STRIP)
    run(kernels.add_rows, strips, rows.indptr, rows.index, weights, out)
    return out
