"""What models of preferences between rated items share: levels, entries by item, and fold-in of constant ratings."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Array, on_disk
from ..errors import CorankError
from ._factors import FactorModel, VectorParts, weighted_parts

BACKGROUND = 200  # popular items that the items of a user with constant ratings are compared with


class PreferenceModel(FactorModel):
    """A factor model of each user's order of the rated items; a subclass has `_fit` and `_solve_users`.

    Users with constant ratings state no preference. They are folded in after training, as if they preferred their
    items to the most popular ones, `background_`.
    """

    background_: NDArray[np.int32]

    def _solve_users(self, rows: CSR) -> NDArray[np.float32]:
        """Vectors (rows, dim) that minimise the objective of each row, with the learned items fixed."""
        raise NotImplementedError

    def _fold_in(self, histories: CSR) -> NDArray[np.float32]:
        return self._fold_in_rows(histories.merged())

    def _fold_in_rows(self, rows: CSR) -> NDArray[np.float32]:
        constant = np.flatnonzero(levels_of(rows)[1] == 1)
        users = self._solve_users(rows)
        users[constant] = self._solve_users(self._above_background(rows.take(constant)))
        return users

    def _entry_weights(self, rows: CSR) -> NDArray[np.float64] | None:
        """Weights (entries,) with which the items of one row add up to the vector of `_solve_users`; None if none do.

        At the minimum of a loss of scores plus reg / 2 |x|^2 the gradient is 0: x is the sum of the item vectors, each
        times minus the derivative of the loss by its score, divided by reg.
        """
        return None

    def _vector_parts(self, history: CSR) -> VectorParts | None:
        rows = history.merged()
        listed = self._above_background(rows) if levels_of(rows)[1][0] == 1 else rows
        weight = self._entry_weights(listed)
        if weight is None:
            return None
        return weighted_parts(rows.index, listed.index, weight, self.item_factors_, "popular items")

    def _preferred_rating(self) -> float:
        """The rating that the items of such a user are given, where the background items have 0."""
        return 1.0

    def _above_background(self, rows: CSR) -> CSR:
        """The rows with their items at the preferred rating, and at 0 the background items that they do not contain."""
        background, lengths = self.background_, np.diff(rows.indptr)
        indptr = rows.indptr + background.size * np.arange(rows.rows + 1)
        index = np.empty(indptr[-1], np.int32)
        value = np.zeros(indptr[-1], np.float32)
        own = np.arange(rows.index.size) + background.size * np.repeat(np.arange(rows.rows), lengths)
        index[own], value[own] = rows.index, self._preferred_rating()
        index[(indptr[1:] - background.size)[:, None] + np.arange(background.size)] = background
        return CSR(indptr, index, value, rows.columns).merged()  # an item that is both: its rating plus 0


class GroupedEntries(NamedTuple):
    """The n entries of a sparse matrix, grouped by the rows of one side (users or items)."""

    indptr: NDArray[np.int64]  # [rows + 1]
    other: NDArray[np.int32]  # [n] row of the other side
    place: NDArray[np.int64]  # [n] position of the entry in arrays that are ordered by user


def by_item(rows: CSR) -> GroupedEntries:
    """The entries of a matrix of users x items, grouped by item; users increase within an item."""
    from ..kernels.csr import count, stable_order

    indptr = count(rows.index, rows.columns)
    order = on_disk.empty(rows.index.size, np.int64, rows.index)
    for part in on_disk.blocks(order.size):
        order[part] = np.arange(part.start, part.stop)
    place = stable_order(rows.index, order, indptr)
    owner, other = on_disk.owners(rows), on_disk.empty(place.size, np.int32, rows.index)
    for part in on_disk.blocks(place.size):
        other[part] = owner[place[part]]
    return GroupedEntries(indptr, other, place)


def most_popular(counts: Array) -> NDArray[np.int32]:
    """The `background_`, from the number of ratings of each item."""
    return np.argsort(-counts, kind="stable")[:BACKGROUND].astype(np.int32)


def usual_reg(pairs: NDArray[np.int64], name: str) -> float:
    """Regularisation from the number of pairs per user: near the best on MovieLens with 50 and 200 ratings per user."""
    if not pairs.any():
        raise CorankError(
            f"no user has two items of different rating, and {name} learns from such pairs: give ratings with "
            "more than one level, or use wmf for data without ratings"
        )
    return float(38 * np.sqrt(pairs[pairs > 0].mean()))


def levels_of(rows: CSR) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Rank of each rating among the distinct ratings of its row, from 0, and the number of distinct ones per row."""
    from ..kernels.csr import levels
    from ..kernels.threads import run

    level, width = on_disk.empty(rows.index.size, np.int32, rows.index), np.empty(rows.rows, np.int32)
    run(levels, rows.rows, rows.indptr, rows.value, level, width, cost=rows.indptr)
    return level, width


def pair_places(rows: CSR, comparisons: Array) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Positions of the preferred and of the other item of each comparison in their user's row, sorted by user."""
    ordered = comparisons[np.argsort(comparisons[:, 0], kind="stable")]
    owner = np.repeat(np.arange(rows.rows), np.diff(rows.indptr))
    keys = owner * rows.columns + rows.index  # increasing: rows are sorted by column
    user = ordered[:, 0].astype(np.int64)
    high, low = (
        (np.searchsorted(keys, user * rows.columns + ordered[:, side]) - rows.indptr[user]).astype(np.int32)
        for side in (1, 2)
    )
    return high, low
