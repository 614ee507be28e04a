"""Sums of powers of a sparse matrix, row by row.

Row i of G + a2 G^2 + ... is computed by propagation: x starts as 1 at i, and each step multiplies x by G. The cost of a
row is the number of edges that its steps touch. Each thread needs a few dense vectors, so that only the entries that
are kept need memory.

Shapes: indptr int64[n + 1]; index int32[edges]; value float32[edges], positive; scale float64[depth], scale[0] for G
itself; counts int64[rows]; out_index int32[>= rows * n]; out_value float32[>= rows * n].
"""

from __future__ import annotations

import numpy as np

from .threads import kernel


@kernel
def sum_of_powers(
    first: int,
    last: int,
    indptr: np.ndarray,
    index: np.ndarray,
    value: np.ndarray,
    scale: np.ndarray,
    threshold: float,
    counts: np.ndarray,
    out_index: np.ndarray,
    out_value: np.ndarray,
) -> int:
    """Rows first..last, columns ascending, without the diagonal and without zeros.

    Entries of the highest power below `threshold` are dropped; those of the lower powers are all kept.

    counts[r] is the number of entries of row first + r. Returns the total number of entries.
    """
    n = indptr.size - 1
    x, y, total = np.zeros(n), np.zeros(n), np.zeros(n)
    near, far, met = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    reached, counted = (
        np.full(n, -1, np.int64),
        np.full(n, -1, np.int64),
    )  # the last step, and the last row, that reached a node
    end, step = 0, 0
    for i in range(first, last):
        near[0], x[i] = i, 1.0
        size, columns = 1, 0
        for p in range(scale.size):
            step += 1
            ahead = 0
            for a in range(size):
                j = near[a]
                for at in range(indptr[j], indptr[j + 1]):
                    k = index[at]
                    if reached[k] != step:
                        reached[k] = step
                        y[k] = 0.0
                        far[ahead] = k
                        ahead += 1
                    y[k] += x[j] * value[at]
            x, y, near, far, size = y, x, far, near, ahead
            least = threshold if p == scale.size - 1 else 0.0
            for a in range(size):
                k = near[a]
                if x[k] < least:
                    continue
                if counted[k] != i:
                    counted[k] = i
                    total[k] = 0.0
                    met[columns] = k
                    columns += 1
                total[k] += scale[p] * x[k]
        start = end
        if 16 * columns < n:
            met[:columns].sort()
        else:  # scanning all columns is faster than sorting
            columns = 0
            for k in range(n):
                if counted[k] == i:
                    met[columns] = k
                    columns += 1
        for a in range(columns):
            k = met[a]
            if k != i and total[k] > 0.0:
                out_index[end] = k
                out_value[end] = total[k]
                end += 1
        counts[i - first] = end - start
    return end
