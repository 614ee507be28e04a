"""Vectors of users and items whose inner products are the scores of a model: what other systems can search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data import Array
from ..errors import CorankError
from . import inference

if TYPE_CHECKING:
    from ..model import Model


class Embeddings(NamedTuple):
    """Vectors by code, (users, dim) and (items, dim): an inner product is a score."""

    user: NDArray[np.float32]
    item: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Vectors:
    """One vector per user and per item: `user_vectors @ item_vectors.T` are the scores of all pairs.

    Biases are coordinates: where items have a bias, it is one coordinate of their vectors, and those of users hold a 1
    there. Nothing is said about seen items: leave them out when you rank. A user without training rows has no taste
    to tell, so `Model.recommend` ranks by popularity there.
    """

    users: Array  # (users,) external ids
    items: Array  # (items,) external ids
    user_vectors: NDArray[np.float32]  # (users, dim)
    item_vectors: NDArray[np.float32]  # (items, dim)

    def __repr__(self) -> str:
        return f"Vectors({self.users.size:,} users, {self.items.size:,} items, dim={self.item_vectors.shape[1]})"


def vectors(model: Model) -> Vectors:
    """See `Model.vectors`."""
    inference.require_fitted(model)
    found = model._embeddings()
    if found is None:
        raise CorankError(
            f"the scores of {model.name()} are no inner products, so it has no vectors to export: use wmf, bpr, sasrec "
            "or another model with a vector per item"
        )
    user, item = (np.ascontiguousarray(part, np.float32) for part in found)
    return Vectors(model.users_.ids, model.items_.ids, user, item)


def with_bias(user: Array, item: Array, item_bias: Array, user_bias: Array | float | None = None) -> Embeddings:
    """Vectors (users, dim) and (items, dim) with the biases (items,) of items, and of users, as further coordinates."""
    users, items = np.ones((len(user), 1), np.float32), np.ones((len(item), 1), np.float32)
    found = Embeddings(np.hstack([user, users]), np.hstack([item, item_bias[:, None]]))
    if user_bias is None:
        return found
    own = np.broadcast_to(np.asarray(user_bias, np.float32), len(user))[:, None]
    return Embeddings(np.hstack([found.user, own]), np.hstack([found.item, items]))
