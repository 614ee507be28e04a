"""Random walks on a weighted graph, with the two parameters of node2vec (Grover and Leskovec 2016).

From j, having come from i, the next node k of row j is drawn with probability proportional to weight(j, k) times

    1 / p   if k is i (going back)
    1       if k is a column of row i (staying near)
    1 / q   otherwise (going on)

by rejection sampling: k is drawn by weight alone and accepted with its factor divided by the largest one, so nothing is
stored per pair of edges. A trial costs O(log degree). Each walk has its own random stream, so that the result does not
depend on the number of threads.

Shapes: indptr int64[n + 1]; index int32[edges], ascending in each row; ladder float64[edges], the running total of the
weights within each row; out int32[walks, length]. Walk r starts at node r % n; a walk that cannot continue is padded
with -1.
"""

from __future__ import annotations

import numpy as np

from .random import bisect, seek, uniform
from .threads import inline, kernel
from .vectors import insertion_point


@inline
def _linked(indptr: np.ndarray, index: np.ndarray, i: int, k: int) -> bool:
    """Whether k is a column of row i."""
    at = insertion_point(index, indptr[i], indptr[i + 1], k)
    return bool(at < indptr[i + 1] and index[at] == k)


@kernel
def walk(
    start: int,
    stop: int,
    seed: int,
    p: float,
    q: float,
    indptr: np.ndarray,
    index: np.ndarray,
    ladder: np.ndarray,
    out: np.ndarray,
) -> None:
    """Walks start..stop."""
    n = indptr.size - 1
    back, on = 1.0 / p, 1.0 / q
    largest = max(1.0, back, on)
    state = np.empty(1, np.uint64)
    for r in range(start, stop):
        seek(state, seed, r)
        before, here = -1, r % n
        out[r, 0] = here
        for t in range(1, out.shape[1]):
            low, high = indptr[here], indptr[here + 1]
            if low == high:
                out[r, t:] = -1
                break
            while True:
                k = index[bisect(ladder, low, high, uniform(state) * ladder[high - 1])]
                if before < 0:
                    break
                factor = back if k == before else 1.0 if _linked(indptr, index, before, k) else on
                if factor == largest or uniform(state) * largest < factor:
                    break
            out[r, t] = k
            before, here = here, k
