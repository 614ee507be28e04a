"""Lists of ratings as the ranking models read them: levels within a user, the same entries by item, given pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Array
from ..errors import CorankError

BACKGROUND = 200  # items that a list without differences is compared with


class Items(NamedTuple):
    """The same entries by item: owner and place of each (see `kernels.primal_cr.collect`)."""

    indptr: NDArray[np.int64]
    owner: NDArray[np.int32]
    place: NDArray[np.int64]


def usual_reg(pairs: NDArray[np.int64], name: str) -> float:
    """Regularisation by the pairs of each user: close to the best on MovieLens with 50 and with 200 ratings a user."""
    if not pairs.any():
        raise CorankError(
            f"no user has two items of different rating, and {name} learns from such pairs: give ratings with "
            "more than one level, or use wmf for data without ratings"
        )
    return float(38 * np.sqrt(pairs[pairs > 0].mean()))


def against(rows: CSR, background: NDArray[np.int32]) -> CSR:
    """The rows with their items at 1, and below them at 0 the background items that a row does not have."""
    from ..kernels.csr import merged

    lengths = np.diff(rows.indptr)
    indptr = rows.indptr + background.size * np.arange(rows.rows + 1)
    index = np.empty(indptr[-1], np.int32)
    value = np.zeros(indptr[-1], np.float32)
    own = np.arange(rows.index.size) + background.size * np.repeat(np.arange(rows.rows), lengths)
    index[own], value[own] = rows.index, 1
    index[(indptr[1:] - background.size)[:, None] + np.arange(background.size)] = background
    return CSR(*merged(indptr, index, value), rows.columns)  # an item that is both adds up to 1


def levels_of(rows: CSR) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The ratings of each row numbered from 0 by rising value, and how many different ones the row has."""
    from ..kernels.pairs import levels
    from ..kernels.threads import run

    level, width = np.empty(rows.index.size, np.int32), np.empty(rows.rows, np.int32)
    run(levels, rows.rows, rows.indptr, rows.value, level, width, cost=rows.indptr)
    return level, width


def places(rows: CSR, comparisons: Array) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Where the preferred and the other item of each comparison stand in their user's row, comparisons by user."""
    ordered = comparisons[np.argsort(comparisons[:, 0], kind="stable")]
    owner = np.repeat(np.arange(rows.rows), np.diff(rows.indptr))
    keys = owner * rows.columns + rows.index  # rising: rows are sorted by column
    who = ordered[:, 0].astype(np.int64)
    high, low = (
        (np.searchsorted(keys, who * rows.columns + ordered[:, side]) - rows.indptr[who]).astype(np.int32)
        for side in (1, 2)
    )
    return high, low


def by_item(rows: CSR) -> Items:
    from ..kernels.csr import count, stable_order

    indptr = count(rows.index, rows.columns)
    place = stable_order(rows.index, np.arange(rows.index.size), indptr)
    owner = np.repeat(np.arange(rows.rows, dtype=np.int32), np.diff(rows.indptr))
    return Items(indptr, owner[place], place)
