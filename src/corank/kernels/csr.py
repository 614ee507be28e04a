"""Sorting triples into compressed rows in linear time.

Shapes: row, col int32[n]; order int64[n]; indptr int64[rows + 1]; index int32[n]; value float32[n].
"""

from __future__ import annotations

import numpy as np

from .threads import kernel, run
from .vectors import insertion_point, longest_row


@kernel
def count(keys: np.ndarray, size: int) -> np.ndarray:
    """indptr of rows with one entry per key: int64[size + 1]."""
    indptr = np.zeros(size + 1, np.int64)
    for p in range(keys.size):
        indptr[keys[p] + 1] += 1
    for r in range(size):
        indptr[r + 1] += indptr[r]
    return indptr


@kernel
def held(
    start: int, stop: int, row: np.ndarray, col: np.ndarray, indptr: np.ndarray, index: np.ndarray, out: np.ndarray
) -> None:
    """Whether each (row, col) is an entry of rows that are sorted by column: out bool[n]."""
    for p in range(start, stop):
        high = indptr[row[p] + 1]
        at = insertion_point(index, indptr[row[p]], high, col[p])
        out[p] = at < high and index[at] == col[p]


@kernel
def stable_order(keys: np.ndarray, first: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """Positions of `keys` sorted by key, equal keys in the order in which `first` visits them: int64[n]."""
    fill = indptr[:-1].copy()
    order = np.empty(keys.size, np.int64)
    for q in range(first.size):
        p = first[q]
        k = keys[p]
        order[fill[k]] = p
        fill[k] += 1
    return order


@kernel
def place(
    row: np.ndarray, col: np.ndarray, val: np.ndarray, first: np.ndarray, indptr: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Write the triples, visited in the order `first`, into their rows."""
    fill = indptr[:-1].copy()
    index = np.empty(col.size, np.int32)
    value = np.empty(col.size, np.float32)
    for q in range(first.size):
        p = first[q]
        at = fill[row[p]]
        fill[row[p]] = at + 1
        index[at] = col[p]
        value[at] = val[p]
    return index, value


@kernel
def merge(indptr: np.ndarray, index: np.ndarray, value: np.ndarray) -> int:
    """Sum the entries of equal column in each sorted row, in place; returns the number of entries that remain."""
    out = 0
    start = indptr[0]
    for r in range(indptr.size - 1):
        stop = indptr[r + 1]
        head = out
        for p in range(start, stop):
            if out > head and index[out - 1] == index[p]:
                value[out - 1] += value[p]
            else:
                index[out] = index[p]
                value[out] = value[p]
                out += 1
        start = stop
        indptr[r + 1] = out
    return out


@kernel
def sort_rows(start: int, stop: int, indptr: np.ndarray, index: np.ndarray, value: np.ndarray) -> None:
    """Sort the rows start..stop by column, in place and stable (insertion: rows are short or nearly sorted)."""
    for r in range(start, stop):
        for p in range(indptr[r] + 1, indptr[r + 1]):
            column, amount, at = index[p], value[p], p
            while at > indptr[r] and index[at - 1] > column:
                index[at] = index[at - 1]
                value[at] = value[at - 1]
                at -= 1
            index[at] = column
            value[at] = amount


@kernel
def levels(start: int, stop: int, indptr: np.ndarray, value: np.ndarray, level: np.ndarray, width: np.ndarray) -> None:
    """level int32[n]: rank of a value among the distinct ones of its row, from 0; width int32[rows]: their number."""
    # Ratings have few levels, so a sorted list of the distinct values is short; numba's own argsort takes three seconds
    # to compile.
    distinct = np.empty(longest_row(start, stop, indptr), np.float32)
    for i in range(start, stop):
        count = 0
        for second in range(2):  # the distinct values first, then the place of each entry among them
            for p in range(indptr[i], indptr[i + 1]):
                at = insertion_point(distinct, 0, count, value[p])
                if second == 1:
                    level[p] = at
                elif at == count or distinct[at] != value[p]:
                    for q in range(count, at, -1):
                        distinct[q] = distinct[q - 1]
                    distinct[at] = value[p]
                    count += 1
        width[i] = count


def merged(indptr: np.ndarray, index: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Copies of the rows in the form of `Dataset.csr`: sorted by column, entries of equal column summed."""
    indptr, index, value = indptr.copy(), index.copy(), value.copy()
    run(sort_rows, indptr.size - 1, indptr, index, value, cost=indptr)
    size = merge(indptr, index, value)
    return indptr, index[:size], value[:size]
