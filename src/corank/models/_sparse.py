"""Sparse matrices of weights, beside dense blocks of vectors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Array


def sums(matrix: CSR, X: Array, width: int | None = None) -> NDArray[np.float32]:
    """The product of the matrix and X, or the first `width` columns of X."""
    from ..kernels import graph_block
    from ..kernels.threads import run

    out = np.empty((matrix.rows, X.shape[1] if width is None else width), np.float32)
    run(graph_block.sums, matrix.rows, *matrix[:3], X, out, cost=matrix.indptr)
    return out


def transposed(rows: CSR) -> CSR:
    """The same entries by column, each column's in the order of the rows."""
    from ..kernels import csr

    owner = np.repeat(np.arange(rows.rows, dtype=np.int32), np.diff(rows.indptr))
    indptr = csr.count(rows.index, rows.columns)
    index, value = csr.place(rows.index, owner, rows.value, np.arange(owner.size), indptr)
    return CSR(indptr, index, value, rows.rows)
