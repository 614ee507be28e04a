"""Factor models: a score is the inner product of a user's and an item's vector, plus an item bias if there is one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answering.explain import Reasons
from ..answering.update import Growth, owners
from ..answering.vectors import Embeddings, with_bias
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


class VectorParts(NamedTuple):
    """A user vector as a sum."""

    codes: NDArray[np.int32]  # (entries,) items of the history
    vectors: NDArray[np.float64]  # (entries, dim) what each of them adds
    others: Mapping[str, NDArray[np.float64]] = {}  # (dim,) each: what else adds to it


def ridge_parts(F: Array, weight: Array, target: Array, system: Array) -> NDArray[np.float64]:
    """The parts (n, d) of a ridge solution: x = A^-1 sum_j w_j t_j f_j is a sum over its n rows.

    F (n, d) : the vectors f_j. weight, target (n,). system (d, d) : A without the rows, to which w_j f_j f_j' is added.
    """
    F = F.astype(np.float64)
    A, b = system + (F * weight[:, None]).T @ F, ((weight * target)[:, None] * F).T
    try:
        return np.linalg.solve(A, b).T
    except np.linalg.LinAlgError:  # without regularisation
        return np.asarray(np.linalg.lstsq(A, b, rcond=None)[0].T)


def weighted_parts(
    history: NDArray[np.int32], listed: NDArray[np.int32], weight: Array, V: Array, others: str
) -> VectorParts:
    """The parts of x = sum over the listed items of weight times vector; those not in the history are in `others`."""
    vectors = weight[:, None] * V[listed].astype(np.float64)
    own = np.isin(listed, history)
    return VectorParts(listed[own], vectors[own], {} if own.all() else {others: vectors[~own].sum(axis=0)})


def left_of(model: Model, user: int | None) -> str:
    """What the rest of a score is called: a training user's vector is not quite the fold-in of the user's rows."""
    if user is None:
        return "fold-in"
    return "training and graph" if model.graph == "needed" else "training"


def item_vectors(growth: Growth, U: Array, V: Array, bias: Array | None, *, rated: bool) -> NDArray[np.float64]:
    """Vectors (fresh items, dim) of items that a ranking model never saw, with the users fixed; last the bias, if any.

    The vector is the mean item vector plus the ridge solution for which the users of the item score it as they score
    their own items: by their mean score, and by the rating where they rate (a line fitted to all ratings). Where they
    do not rate, the other users should score it as they score the mean item; all of them together weigh as much.
    """
    rows, fresh = growth.rows, growth.fresh
    others = np.setdiff1d(np.unique(growth.old.index), fresh)
    # A fresh item counts for one user more than it has, whose vector is of mean length.
    ridge = np.full(U.shape[1], float(np.einsum("uf,uf->", U, U, dtype=np.float64)) / max(1, int(U.any(axis=1).sum())))
    if bias is not None:
        ridge = np.append(ridge, 1.0)
        U, V = np.column_stack([U, np.ones(len(U))]), np.column_stack([V, bias])
    U, V = U.astype(np.float64), V.astype(np.float64)
    mean = V[others].mean(axis=0)
    owner, known = owners(rows), ~np.isin(rows.index, fresh)
    who, score, rating = owner[known], np.empty(np.count_nonzero(known)), rows.value[known].astype(np.float64)
    for at in range(0, who.size, PAIRS // V.shape[1]):
        part = slice(at, at + PAIRS // V.shape[1])
        score[part] = np.einsum("nf,nf->n", U[who[part]], V[rows.index[known][part]])
    count: Array = np.maximum(np.bincount(who, minlength=rows.rows), 1)
    liked, usual = (np.bincount(who, x, rows.rows) / count for x in (score, rating))
    spread: Array = rating - usual[who]
    slope = float(spread @ (score - liked[who]) / max(float(spread @ spread), 1e-12)) if rated else 0.0
    gram = U.T @ U
    out = np.empty((fresh.size, V.shape[1]))
    by_item = growth.by_item
    for at in range(fresh.size):
        own = slice(by_item.indptr[at], by_item.indptr[at + 1])
        users = by_item.index[own]
        rho = 0.0 if rated else min(1.0, users.size / max(1, rows.rows - users.size))
        F = U[users]
        target = liked[users] + slope * (by_item.value[own] - usual[users]) - F @ mean
        system = rho * (gram - F.T @ F) + np.diag(ridge)
        out[at] = mean + ridge_parts(F, np.ones(users.size), target, system).sum(axis=0)
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

    def _vector_parts(self, history: CSR) -> VectorParts | None:
        """The vector that `_fold_in` gives one history, as a sum with one vector per entry; None if it is no sum."""
        return None

    def _contributions(
        self, user: int | None, history: CSR, items: NDArray[np.int32], scores: NDArray[np.float64]
    ) -> Reasons:
        parts = self._vector_parts(history)
        if parts is None:
            return super()._contributions(user, history, items, scores)
        V = self.item_factors_[items].astype(np.float64)
        rest = {name: V @ vector for name, vector in parts.others.items()}
        if (bias := getattr(self, "item_bias_", None)) is not None:
            rest["item bias"] = bias[items].astype(np.float64)
        return Reasons("decomposition", parts.codes, V @ parts.vectors.T, rest, left_of(self, user))

    def _absorb(self, growth: Growth) -> None:
        """Touched users are folded in, with their items fixed; fresh items get vectors from all their users.

        The fold-in knows nothing of a graph: where there is one, a known user moves as far as the fold-in does.
        """
        self._refold(growth, growth.touched)
        if growth.fresh.size:
            self._absorb_items(growth)
            self._refold(growth, np.unique(growth.by_item.index))

    def _refold(self, growth: Growth, touched: Array) -> None:
        vectors = self._fold_in(growth.rows.take(touched))
        if self.graph == "needed":
            known = np.isin(touched, growth.users)
            vectors[known] -= self._fold_in(growth.old.take(touched[known]))
            vectors[known] += growth.grown(growth.before.user_factors_, 0, "users")[touched[known]]  # type: ignore[attr-defined]
        self.user_factors_[touched] = vectors

    def _absorb_items(self, growth: Growth) -> None:
        """Vectors of the fresh items: `item_vectors`."""
        bias = getattr(self, "item_bias_", None)
        bias = bias if bias is not None and bias.any() else None  # a model may have none by its hyper-parameters
        found = item_vectors(growth, self.user_factors_, self.item_factors_, bias, rated=self.needs_ratings)
        self.item_factors_[growth.fresh] = found[:, : self.item_factors_.shape[1]]
        if bias is not None:
            bias[growth.fresh] = found[:, -1]

    def _embeddings(self) -> Embeddings:
        bias = getattr(self, "item_bias_", None)
        if bias is None:
            return Embeddings(self.user_factors_, self.item_factors_)
        return with_bias(self.user_factors_, self.item_factors_, bias)

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
