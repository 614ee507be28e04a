"""EASE: a linear item-item model solved in closed form.

Each item is predicted from all others by ridge regression with a zero diagonal (Steck 2019, "Embarrassingly shallow
autoencoders"): with P = (X^T X + reg I)^-1, the weights are B_ij = -P_ij / P_jj. One number to tune and no epochs,
and on dense catalogues it beats most neural autoencoders. Costs items^3 and items^2 * 4 bytes: up to some 40,000
items on 24 GB; beyond that use item_knn or wmf. Only presence counts: values are not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Array, Dataset
from ..errors import CorankError
from ..memory import make_room
from ..model import Model
from ..params import param

if TYPE_CHECKING:
    from ..training import Training

DOUBLE_UP_TO = 8_000  # items: beyond, single precision halves the memory and the time


@dataclass(kw_only=True, eq=False)
class EASE(Model):
    """Ridge regression of each item on all others."""

    reg: float = param(250.0, "ridge added to the co-occurrence counts", low=1e-3, search=(10.0, 5000.0), log=True)

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        from ..kernels import ease as kernels
        from ..kernels.threads import run

        n = rows.columns
        matrix = self._room(n)
        columns = data.csr(by="item")
        # Row i stops at its own column, so its cost grows with i; the number of its users is a fair stand-in.
        parts = (columns.indptr, columns.index, rows.indptr, rows.index)
        run(kernels.counts, n, *parts, float(self.reg), matrix, cost=columns.indptr)
        self._invert(matrix)
        # The diagonal of the inverse turns weights into partial correlations, see `_similar`.
        diagonal = np.diagonal(matrix).copy()
        self.item_precision_ = diagonal.astype(np.float32)
        self.item_weights_ = matrix if matrix.dtype == np.float32 else np.empty((n, n), np.float32)
        tiles = -(-n // kernels.TILE)
        run(kernels.weights, tiles, matrix, diagonal, self.item_weights_, cost=np.arange(tiles + 1) ** 2)

    def _room(self, n: int) -> Array:
        """An items x items array, or a sentence where there is no room for it."""
        double = n <= DOUBLE_UP_TO
        need = n * n * (8 + 4 + 1 if double else 4 + 1)  # the inverse, the weights, the check that they are finite
        what, remedy = f"EASE of {n:,} items (items x items)", "keep fewer items, or use item_knn or wmf"
        make_room(need, what, remedy)
        try:
            return np.empty((n, n), np.float64 if double else np.float32)
        except MemoryError:
            raise CorankError(f"{what} needs {need / 1e9:.1f} GB, and there are fewer: {remedy}") from None

    def _invert(self, matrix: Array) -> None:
        """Replace the lower triangle of a positive definite matrix by that of its inverse, in place."""
        from scipy.linalg.lapack import get_lapack_funcs

        factor, inverse = get_lapack_funcs(("potrf", "potri"), (matrix,))
        # LAPACK reads columns first: our lower triangle is its upper one, and nothing is copied.
        result, failed = factor(matrix.T, lower=0, overwrite_a=1, clean=0)
        if not failed:
            result, failed = inverse(result, lower=0, overwrite_c=1)
        if failed:
            raise CorankError(f"EASE(reg={self.reg:g}): the counts could not be inverted in {matrix.dtype}; raise reg")
        if not np.shares_memory(result, matrix):  # a LAPACK that insists on its own array
            matrix.T[:] = result

    def _score(self, users: NDArray[np.int32]) -> NDArray[np.float32]:
        ones = np.broadcast_to(np.float32(1), self.seen_index_.size)
        return self._sum(CSR(self.seen_indptr_, self.seen_index_, ones, len(self.items_)).take(users))

    def _score_histories(self, histories: CSR) -> NDArray[np.float32]:
        from ..kernels.csr import merged

        return self._sum(CSR(*merged(*histories[:3]), histories.columns))

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
