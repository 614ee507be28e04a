"""A usearch index over the vectors of items, for the nearest items without a scan of the catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import CorankError, MissingExtra
from ..system.atomic import replacing

if TYPE_CHECKING:
    from ..model import Model

USERS = 1_000  # whose lists are compared with the exact ones
EXPANSION = 128  # candidates that a search or an insertion looks at
BLOCK = 128  # users that are scored at a time


@dataclass(frozen=True)
class IndexCheck:
    """What an index finds of the exact top k: `recall`, the mean over `users` users."""

    items: int
    dim: int
    k: int
    users: int
    recall: float

    def __str__(self) -> str:
        return (
            f"{self.items:,} items, {self.dim} coordinates; recall@{self.k} {self.recall:.4f} against the exact lists "
            f"of {self.users:,} users"
        )


def export_index(model: Model, path: str | Path, *, k: int = 10) -> IndexCheck:
    """Write a usearch index of the items and measure its recall against exact top-k lists.

    The index ranks by inner product, in float32. Its keys are rows of `model.vectors().item_vectors`, so that
    `model.vectors().items[key]` is the id. It knows nothing of seen items: ask for more than k, and leave out what the
    user has. A distance is 1 minus the score.

    k : length of the lists of which recall is measured, at most 1,000.
    """
    if not isinstance(k, int) or not 1 <= k <= 1_000:
        raise CorankError(f"k={k!r}: the lists that an index is checked with have 1 to 1,000 items")
    usearch = _usearch()
    found = model.vectors()
    items, users = found.item_vectors, _some(found.user_vectors)
    index = usearch.Index(
        ndim=items.shape[1], metric="ip", dtype="f32", expansion_add=EXPANSION, expansion_search=EXPANSION
    )
    index.add(np.arange(len(items), dtype=np.uint64), items)
    with replacing(path) as target:
        index.save(str(target))
        # What is in the file is measured, with the settings that whoever opens it gets.
        restored = usearch.Index.restore(str(target))
        k = min(k, len(items))
        recall = np.mean([_shared(restored, users[at : at + BLOCK], items, k) for at in range(0, len(users), BLOCK)])
    return IndexCheck(len(items), items.shape[1], k, len(users), float(recall))


def _some(users: NDArray[np.float32]) -> NDArray[np.float32]:
    """Some users of whom anything is known, or items of the whole catalogue tie."""
    known = np.flatnonzero(users.any(axis=1))
    if not known.size:
        raise CorankError("no user has a vector, so an index cannot be checked: fit the model to users with rows")
    return users[known[np.linspace(0, known.size - 1, min(USERS, known.size)).astype(np.int64)]]


def _shared(index: Any, users: NDArray[np.float32], items: NDArray[np.float32], k: int) -> float:
    """The share of the exact top k that the index finds; items that tie with the last one count as well."""
    scores = users @ items.T
    least = np.partition(scores, -k, axis=1)[:, -k]
    keys = np.asarray(index.search(users, k).keys).reshape(len(users), -1).astype(np.int64)
    reached = np.take_along_axis(scores, keys, axis=1) >= (least - 1e-5 * np.abs(least))[:, None]
    return float(reached.sum() / (k * len(users)))


def _usearch() -> Any:
    try:
        from usearch import index
    except ModuleNotFoundError as why:
        if (why.name or "").split(".")[0] != "usearch":
            raise
        raise MissingExtra("a search index", "export") from None
    return index
