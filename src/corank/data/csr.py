"""Compressed sparse rows: the form in which models and kernels read a dataset or a graph."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]


def row_ends(counts: ArrayLike) -> NDArray[np.int64]:
    """The `indptr` of rows with these numbers of entries: int64[rows + 1], a running total that starts at 0."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def tally(codes: Array, size: int) -> NDArray[np.int64]:
    """How often each code occurs: int64[size]. Some at a time, as numpy counts in a copy of twice their size."""
    total = np.zeros(size, np.int64)
    step = max(size, 1 << 22)
    for at in range(0, codes.size, step):
        total += np.bincount(codes[at : at + step], minlength=size)
    return total


class CSR(NamedTuple):
    """Compressed sparse rows. `Dataset.csr()` sorts each row by column, `sequences()` by time."""

    indptr: NDArray[np.int64]  # [rows + 1]
    index: NDArray[np.int32]  # type: ignore[assignment]  # [n] column of each entry
    value: NDArray[np.float32]  # [n]
    columns: int

    @property
    def rows(self) -> int:
        return self.indptr.size - 1

    def take(self, rows: Array) -> CSR:
        """These rows, in this order."""
        lengths = np.diff(self.indptr)[rows]
        indptr = row_ends(lengths)
        at = np.arange(indptr[-1]) - np.repeat(indptr[:-1], lengths) + np.repeat(self.indptr[:-1][rows], lengths)
        return CSR(indptr, self.index[at], self.value[at], self.columns)

    def holds(self, rows: Array, columns: Array) -> NDArray[np.bool_]:
        """Whether there is an entry at each (row, column); rows must be sorted by column, as `Dataset.csr` has them."""
        from ..kernels.csr import held
        from ..kernels.threads import run

        out = np.zeros(rows.size, np.bool_)
        run(held, rows.size, rows.astype(np.int32), columns.astype(np.int32), self.indptr, self.index, out)
        return out

    def merged(self) -> CSR:
        """The form of `Dataset.csr`: rows sorted by column, values of repeated columns added up."""
        from ..kernels.csr import merged

        return CSR(*merged(*self[:3]), self.columns)

    def scipy(self) -> Any:
        """The same as a `scipy.sparse.csr_array`, sharing memory."""
        from scipy.sparse import csr_array

        return csr_array((self.value, self.index, self.indptr), shape=(self.rows, self.columns))


def from_scipy(matrix: Any) -> CSR:
    """A CSR from any scipy sparse matrix or dense array (for graphs)."""
    from scipy.sparse import csr_array

    sparse = csr_array(matrix)
    sparse.sum_duplicates()
    return CSR(
        sparse.indptr.astype(np.int64), sparse.indices.astype(np.int32), sparse.data.astype(np.float32), sparse.shape[1]
    )
