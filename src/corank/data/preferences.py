"""Comparisons: a user states which of two items is preferred, instead of rating them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import CorankError
from .vocab import Vocab


def encode(user: Any, preferred: Any, other: Any) -> tuple[Vocab, Vocab, NDArray[np.int32]]:
    """Users, items and the comparisons as codes: int32[m, 3], (user, preferred item, other item).

    Comparisons of an item with itself, and those that contradict each other, are errors.
    """
    users, who = Vocab.build(user, "user")
    n = who.size
    both = [*_listed(preferred), *_listed(other)]
    if len(both) != 2 * n or len(_listed(preferred)) != n:
        raise CorankError(f"{n:,} users and {len(both):,} items: give one preferred and one other item per comparison")
    items, codes = Vocab.build(both, "item")
    triples = np.stack([who, codes[:n], codes[n:]], axis=1).astype(np.int32)
    twice = np.flatnonzero(triples[:, 1] == triples[:, 2])
    if twice.size:
        row = int(twice[0])
        raise CorankError(
            f"row {row} compares item {_named(items, triples[row, 1])} with itself: drop such rows ({twice.size:,})"
        )
    _no_contradiction(triples, users, items)
    return users, items, triples


def within(
    triples: NDArray[np.int32], user: NDArray[np.int32], item: NDArray[np.int32], items: int
) -> NDArray[np.bool_]:
    """Mask of the comparisons whose two (user, item) pairs both occur in these rows: bool[m]."""
    rows = user.astype(np.int64) * items + item
    who = triples[:, 0].astype(np.int64) * items
    return np.isin(who + triples[:, 1], rows) & np.isin(who + triples[:, 2], rows)


def _no_contradiction(triples: NDArray[np.int32], users: Vocab, items: Vocab) -> None:
    """Refuse a user who prefers a to b and b to a: such rows cancel out."""
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


def _named(vocab: Vocab, code: Any) -> str:
    return repr(vocab.ids[code : code + 1].tolist()[0])


def _listed(column: Any) -> list[Any]:
    return column.tolist() if hasattr(column, "tolist") else list(column)
