"""Factor models: a score is the inner product of a user's and an item's vector, plus an item bias if there is one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Array
from ..model import Model
from ..stored import Stored, floats

PAIRS = 4_000_000  # numbers of the vectors that are gathered at a time


def pair_products(U: Array, V: Array, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float32]:
    """Inner products of pairs of rows of U and V, some at a time: a million pairs would gather gigabytes."""
    out = np.empty(users.size, np.float32)
    step = max(1, PAIRS // U.shape[1])
    for start in range(0, users.size, step):
        at = slice(start, start + step)
        np.einsum("nf,nf->n", U[users[at]], V[items[at]], out=out[at])
    return out


class FactorModel(Model):
    """A model with `user_factors_` (users, dim), `item_factors_` (items, dim) and maybe `item_bias_` (items,).

    A subclass implements `_fit` and `_fold_in`.
    """

    user_factors_: NDArray[np.float32]
    item_factors_: NDArray[np.float32]

    def _stores(self) -> dict[str, Stored]:
        return super()._stores() | {
            "user_factors_": floats("users", "dim"),
            "item_factors_": floats("items", "dim"),
        }

    def _fold_in(self, histories: CSR) -> NDArray[np.float32]:
        """Vectors (rows, dim) of unseen users, with the learned item vectors fixed."""
        raise NotImplementedError

    def _score(self, users: NDArray[np.int32]) -> NDArray[np.float32]:
        return self._inner(self.user_factors_[users])

    def _score_histories(self, histories: CSR) -> NDArray[np.float32]:
        return self._inner(self._fold_in(histories))

    def _inner(self, vectors: Array) -> NDArray[np.float32]:
        """Scores (batch, items) of user vectors (batch, dim)."""
        scores = vectors @ self.item_factors_.T
        bias = getattr(self, "item_bias_", None)
        return np.asarray(scores if bias is None else scores + bias)

    def _predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float64]:
        scores = pair_products(self.user_factors_, self.item_factors_, users, items)
        bias = getattr(self, "item_bias_", None)
        return np.asarray(scores if bias is None else scores + bias[items], np.float64)
