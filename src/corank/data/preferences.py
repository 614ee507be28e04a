"""Comparisons: what people said when asked which of two they like better, instead of ratings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import CorankError

if TYPE_CHECKING:
    from .dataset import Dataset


def dataset(user: Any, preferred: Any, other: Any) -> Dataset:
    """A dataset of comparisons: one row for each item that a user compared, value 1, and the comparisons beside it."""
    from .dataset import Dataset, Vocab

    users, who = Vocab.build(user, "user")
    n = who.size
    both = [*_listed(preferred), *_listed(other)]
    if len(both) != 2 * n or len(_listed(preferred)) != n:
        raise CorankError(f"{n:,} users and {len(both):,} items: give one preferred and one other item a comparison")
    items, codes = Vocab.build(both, "item")
    triples = np.stack([who, codes[:n], codes[n:]], axis=1).astype(np.int32)
    twice = np.flatnonzero(triples[:, 1] == triples[:, 2])
    if twice.size:
        row = int(twice[0])
        raise CorankError(
            f"row {row} compares item {_named(items, triples[row, 1])} with itself: drop such rows ({twice.size:,})"
        )
    _no_contradiction(triples, users, items)
    pairs = np.unique(np.concatenate([triples[:, [0, 1]], triples[:, [0, 2]]]), axis=0)
    ones = np.ones(len(pairs), np.float32)
    return Dataset(users, items, pairs[:, 0].copy(), pairs[:, 1].copy(), ones, comparisons=triples)


def within(
    triples: NDArray[np.int32], user: NDArray[np.int32], item: NDArray[np.int32], items: int
) -> NDArray[np.bool_]:
    """Which comparisons have both of their items among these rows."""
    rows = user.astype(np.int64) * items + item
    who = triples[:, 0].astype(np.int64) * items
    return np.isin(who + triples[:, 1], rows) & np.isin(who + triples[:, 2], rows)


def _no_contradiction(triples: NDArray[np.int32], users: Any, items: Any) -> None:
    """a over b and b over a, by one user, leaves nothing to learn."""
    width = len(items)
    key = (triples[:, 0].astype(np.int64) * width + triples[:, 1]) * width + triples[:, 2]
    reverse = (triples[:, 0].astype(np.int64) * width + triples[:, 2]) * width + triples[:, 1]
    against = np.flatnonzero(np.isin(key, reverse))
    if against.size:
        who, one, two = triples[against[0]]
        raise CorankError(
            f"user {_named(users, who)} prefers item {_named(items, one)} to {_named(items, two)} and the reverse: "
            f"drop one of the two ({against.size:,} rows contradict each other)"
        )


def _named(vocab: Any, code: Any) -> str:
    return repr(vocab.ids[code : code + 1].tolist()[0])


def _listed(column: Any) -> list[Any]:
    return column.tolist() if hasattr(column, "tolist") else list(column)
