"""EASE: a linear item-item model with a closed-form solution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Array, Dataset
from ..errors import CorankError
from ..memory import make_room
from ..model import Model
from ..params import param

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
    operations and 5 * items^2 bytes: 8 GB for 40,000 items. For larger catalogues use `ItemKNN` or `WMF`.
    """

    reg: float = param(250.0, "ridge added to the co-occurrence counts", low=1e-3, search=(10.0, 5000.0), log=True)

    starts: ClassVar[Sequence[Mapping[str, Any]]] = ({"reg": 50.0}, {"reg": 1000.0})

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        from ..kernels import ease as kernels
        from ..kernels.threads import run

        n = rows.columns
        matrix = self._room(n)
        columns = data.csr(by="item")
        # Row i stops at the diagonal, so its cost grows with i; its number of users is a fair estimate of the cost.
        parts = (columns.indptr, columns.index, rows.indptr, rows.index)
        run(kernels.counts, n, *parts, self.reg, matrix, cost=columns.indptr)
        self._invert(matrix)
        # `_similar` needs the diagonal of the inverse for partial correlations.
        diagonal = np.diagonal(matrix).copy()
        self.item_precision_ = diagonal.astype(np.float32)
        self.item_weights_ = matrix if matrix.dtype == np.float32 else np.empty((n, n), np.float32)
        tiles = -(-n // kernels.TILE)
        run(kernels.weights, tiles, matrix, diagonal, self.item_weights_, cost=np.arange(tiles + 1) ** 2)

    def _room(self, n: int) -> Array:
        """An items x items array, or an error that says how much memory it needs."""
        double = n <= DOUBLE_UP_TO
        need = n * n * (8 + 4 + 1 if double else 4 + 1)  # the inverse, the weights, the check that they are finite
        what, remedy = f"EASE of {n:,} items (items x items)", "keep fewer items, or use item_knn or wmf"
        make_room(need, what, remedy)
        try:
            return np.empty((n, n), np.float64 if double else np.float32)
        except MemoryError:
            raise CorankError(f"{what} needs {need / 1e9:.1f} GB, which cannot be allocated: {remedy}") from None

    def _invert(self, matrix: Array) -> None:
        """Replace the lower triangle of a positive definite matrix by that of its inverse, in place."""
        from scipy.linalg.lapack import get_lapack_funcs

        factor, inverse = get_lapack_funcs(("potrf", "potri"), (matrix,))
        # LAPACK is column-major: our lower triangle is its upper one, and nothing is copied.
        result, failed = factor(matrix.T, lower=0, overwrite_a=1, clean=0)
        if not failed:
            result, failed = inverse(result, lower=0, overwrite_c=1)
        if failed:
            raise CorankError(f"EASE(reg={self.reg:g}): the counts could not be inverted in {matrix.dtype}; raise reg")
        if not np.shares_memory(result, matrix):  # some LAPACK builds return a copy
            matrix.T[:] = result

    def _score(self, users: NDArray[np.int32]) -> NDArray[np.float32]:
        ones = np.broadcast_to(np.float32(1), self.seen_index_.size)
        return self._sum(CSR(self.seen_indptr_, self.seen_index_, ones, len(self.items_)).take(users))

    def _score_histories(self, histories: CSR) -> NDArray[np.float32]:
        return self._sum(histories.merged())

    def _sum(self, rows: CSR) -> NDArray[np.float32]:
        from ..kernels import ease as kernels
        from ..kernels.threads import run

        out = np.empty((rows.rows, rows.columns), np.float32)
        strips = -(-rows.columns // kernels.STRIP)
        run(kernels.add_rows, strips, rows.indptr, rows.index, self.item_weights_, out)
        return out

    def _similar(self, items: NDArray[np.int32]) -> NDArray[np.float32]:
        """Partial correlation -P_ij / sqrt(P_ii P_jj): the symmetric form of the weights."""
        scale = np.sqrt(self.item_precision_)
        return np.asarray(self.item_weights_[items] * (scale / scale[items, None]), np.float32)
