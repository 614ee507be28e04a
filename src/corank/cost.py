"""What a fit costs, as models declare it: seconds that only need the right ratios, and bytes.

`estimate` measures how long a declared second takes on this machine; `training` compares the bytes with the free memory
before a fit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .data import Dataset, on_disk, tally

if TYPE_CHECKING:
    from .model import Model

# Rough seconds, for `_cost`. Only their ratios matter: the probe measures the rest.
DENSE = 0.02e-9  # per multiply-add of a large matrix product
KERNEL = 0.2e-9  # per multiply-add of a kernel over rows of factors
SCATTERED = 2e-9  # per element that is read or written in random order
SORTED = 40e-9  # per row of the data that is sorted into CSR rows, by user and by item


class Cost(NamedTuple):
    """Rough seconds of a fit: what is done once, and each epoch.

    dense : the part of `setup` that is large matrix products, which BLAS divides among all processors.
    """

    setup: float
    epoch: float = 0.0
    dense: float = 0.0

    def total(self, epochs: int) -> float:
        return self.setup + epochs * self.epoch


@dataclass(frozen=True, eq=False)
class Size:
    """What the cost of a model may depend on."""

    users: int
    items: int
    lengths: NDArray[np.int64]  # [users] rows of each
    user_edges: int = 0  # entries of the graphs
    item_edges: int = 0
    levels: int = 1  # distinct values
    comparisons: int = 0
    most_of_an_item: int = 0  # rows of the item that has the most
    on_disk: bool = False  # whether the rows are in files

    @classmethod
    def of(cls, data: Dataset) -> Size:
        user_edges, item_edges = (0 if g is None else g.index.size for g in (data.user_graph, data.item_graph))
        lengths = tally(data.user, len(data.users))
        levels = np.unique(data.value[:: 1 + len(data) // 100_000]).size
        comparisons = 0 if data.comparisons is None else len(data.comparisons)
        most = int(tally(data.item, len(data.items)).max(initial=0))
        edges = user_edges, item_edges
        counts = len(data.users), len(data.items), lengths
        return cls(*counts, *edges, levels, comparisons, most, data.on_disk)

    @property
    def rows(self) -> int:
        return int(self.lengths.sum())

    @property
    def longest(self) -> int:
        """Rows of the user or item that has the most."""
        return max(int(self.lengths.max(initial=0)), self.most_of_an_item)

    @property
    def nodes(self) -> int:
        """Users and items: the rows of the factors."""
        return self.users + self.items

    def squared(self, most: int | None = None) -> float:
        """Sum over users of their squared number of rows, of which at most `most` count."""
        lengths = self.lengths if most is None else np.minimum(self.lengths, most)
        return float(np.square(lengths, dtype=np.float64).sum())

    @property
    def pairs(self) -> float:
        """Comparisons, or the largest number of pairs of different value that users with so many rows can have."""
        return float(self.comparisons) or self.squared() / 2 * (1 - 1 / self.levels)

    def thinned(self, users: int, items: int) -> Size:
        """Roughly the size of a sample of that many users and items."""
        share = users / max(1, self.users)
        lengths = self.lengths[np.linspace(0, self.users - 1, users).astype(np.int64)]
        edges = int(self.user_edges * share), int(self.item_edges * items / max(1, self.items))
        compared = int(self.comparisons * share)
        return Size(users, items, lengths, *edges, self.levels, compared, math.ceil(self.most_of_an_item * share))


def rows_memory(size: Size, copies: int = 1) -> float:
    """Bytes of the data as sorted rows, `copies` times, with what is needed to sort the last of them."""
    blocks = 32.0 * min(size.rows, on_disk.BLOCK) if size.on_disk else 0.0  # passes over what is in files
    return row_memory(8.0 * copies + 16.0, size) + blocks + 16.0 * (1 + copies) * size.nodes


def row_memory(each: float, size: Size) -> float:
    """Bytes of arrays with an entry per row, of `each` bytes together; they are in files where the rows are."""
    return 0.0 if size.on_disk else each * size.rows


def factors_memory(model: Model, size: Size, dim: int, copies: float = 2) -> float:
    """Bytes of a float32 vector per user and item, `copies` times; once more for the best epoch, with `patience`."""
    if model.stops_early:
        copies += 1
    return 4.0 * copies * dim * size.nodes


def scratch_memory(each: float, tasks: float = math.inf) -> float:
    """Bytes of the work arrays of a kernel, `each` per thread; there are at most as many threads as tasks."""
    from .kernels.threads import threads

    return each * min(threads(), tasks)


def equations_memory(unknowns: int) -> float:
    """Bytes of a system of normal equations (see `kernels.normal`) and of the rows that are added to it at a time."""
    return 4.0 * (unknowns + 8) * (unknowns + 24)


def half_steps(size: Size, dim: int) -> float:
    """Multiply-adds of least-squares solutions for all users and all items."""
    return 1.0 * size.rows * dim * (dim + 4) + size.nodes * dim**3 / 6
