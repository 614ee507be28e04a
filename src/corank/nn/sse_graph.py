"""The neighbours of each id, prepared so that SSE-Graph draws for a whole batch at once and without rejection."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Integers = Tensor | NDArray[np.integer[Any]]


class Graph:
    """The neighbours of each id, prepared for SSE-Graph.

    indptr : int[size + 1], index : int[edges]; the neighbours of id j are index[indptr[j] : indptr[j + 1]], in any
    order. Edges are directed: give both directions of an undirected graph. Repeated edges count once; edges from an id
    to itself and edges from or to `reserved` ids are left out.
    """

    def __init__(self, indptr: Integers, index: Integers, *, reserved: Iterable[int] = ()) -> None:
        start, to = _integers(indptr, "indptr"), _integers(index, "index")
        if start.size < 2 or start[0] != 0 or (np.diff(start) < 0).any():
            raise ValueError("indptr must hold size + 1 numbers that start at 0 and never fall")
        if start[-1] != to.size:
            raise ValueError(f"indptr ends at {start[-1]} and index has {to.size} entries: they must be equal")
        self.size = start.size - 1
        if (wrong := to[(to < 0) | (to >= self.size)]).size:
            raise ValueError(f"the graph has an edge to id {wrong[0]}, and indptr is for the ids 0 to {self.size - 1}")
        self.reserved = reserved_ids(reserved, self.size)
        ids = self.size - len(self.reserved)
        if ids < 2:
            raise ValueError(
                f"the graph has {ids} ids that are not reserved: SSE-Graph draws another one, so give 2 or more"
            )
        # From here on the ids that are not reserved count 0, 1, ..., ids - 1.
        free = np.ones(self.size, np.bool_)
        free[list(self.reserved)] = False
        code = np.cumsum(free) - 1
        row = np.repeat(np.arange(self.size), np.diff(start))
        real = free[row] & free[to] & (row != to)
        edge = np.unique(code[row[real]] * ids + code[to[real]])  # sorted
        row, to = np.divmod(edge, ids)
        first = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=ids))])
        # A neighbour c at place t of its row has c - t non-neighbours below it. That never falls along a row, so with
        # the row in front all of them are one sorted list, in which a binary search counts for any row.
        gaps = edge - (np.arange(edge.size) - first[row])
        # Counted among its non-neighbours, the id itself is the own-th.
        own = np.arange(ids) - np.bincount(row[to < row], minlength=ids)
        self.indptr, self.gaps, self.own = (torch.from_numpy(x.astype(np.int64)) for x in (first, gaps, own))

    def to(self, device: torch.device) -> Graph:
        """The same graph on a device."""
        moved = object.__new__(Graph)
        moved.size, moved.reserved = self.size, self.reserved
        moved.indptr, moved.gaps, moved.own = (x.to(device) for x in (self.indptr, self.gaps, self.own))
        return moved

    def draw(self, code: Tensor, rho: float, generator: torch.Generator | None) -> Tensor:
        """Another id for each of `code` (int64[n], both counted without reserved ids): int64[n]."""
        ids = self.own.numel()
        start = self.indptr[code]
        degree = self.indptr[code + 1] - start
        rest = ids - 1 - degree
        weight = rho * degree.double()
        near = torch.rand(code.shape, dtype=torch.float64, device=code.device, generator=generator)
        near = (near * (weight + rest) < weight) | (rest == 0)  # the second where a product is rounded up
        # A remainder is uniform but for one part in 2^62 / ids. A set that is empty is never chosen.
        rank = torch.randint(2**62, code.shape, device=code.device, generator=generator)
        rank = rank % torch.where(near, degree, rest).clamp(min=1)
        other = rank + (rank >= self.own[code])  # among non-neighbours, past the id itself
        other = other + torch.searchsorted(self.gaps, code * ids + other, right=True) - start
        if self.gaps.numel() == 0:
            return other
        at = (start + rank).clamp(max=self.gaps.numel() - 1)
        return torch.where(near, self.gaps[at] - code * ids + rank, other)


def reserved_ids(ids: Iterable[int], size: int) -> tuple[int, ...]:
    """The distinct reserved ids in increasing order, after a check."""
    out = tuple(sorted({int(i) for i in ids}))
    if out and not 0 <= out[0] <= out[-1] < size:
        wrong = out[0] if out[0] < 0 else out[-1]
        raise ValueError(f"the reserved id {wrong} is not one of the table: its ids are 0 to {size - 1}")
    return out


def _integers(values: Integers, name: str) -> NDArray[np.int64]:
    out = np.asarray(values.cpu() if isinstance(values, Tensor) else values)
    if out.ndim != 1 or out.dtype.kind not in "iu":
        raise ValueError(f"{name} must be a list of whole numbers, got {out.dtype} of the shape {list(out.shape)}")
    return out.astype(np.int64)
