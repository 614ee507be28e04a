"""ALS: explicit ratings as a mean, two biases and an inner product, by alternating least squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answering.explain import Reasons
from ..answering.update import Growth
from ..answering.vectors import Embeddings, with_bias
from ..cost import (
    KERNEL,
    SORTED,
    Cost,
    Size,
    equations_memory,
    factors_memory,
    half_steps,
    rows_memory,
    scratch_memory,
)
from ..data import CSR, Array, Dataset
from ..model import Model
from ..params import param
from ..stored import Number, Stored, floats
from ._factors import left_of, pair_products, ridge_parts

if TYPE_CHECKING:
    from ..training import Training


class RatedSide(NamedTuple):
    """The users or the items during training: their ratings and what is learned of them."""

    rows: CSR  # one row per user (or item)
    vectors: NDArray[np.float32]  # (rows, dim)
    bias: NDArray[np.float32]  # (rows,)


@dataclass(kw_only=True, eq=False)
class ALS(Model):
    """Biased matrix factorisation of ratings by alternating least squares.

    A rating is predicted as r_ui = mean + b_u + b_i + u.v, not clipped to the range of the ratings. The objective is

        sum over ratings of (r - r_ui)^2 + sum over rows of reg * n^reg_power |x|^2 + reg_bias b^2

    with n the number of ratings of a user or item, x its vector and b its bias. With one side fixed, each row of the
    other, its bias included, is a small ridge regression that is solved exactly.

    Reference: Zhou et al. 2008, "Large-scale parallel collaborative filtering for the Netflix Prize" (ALS-WR), for the
    regularisation that grows with the number of ratings.

    Use it where the values of ratings matter and RMSE is the metric. Cost per epoch: about ratings * dim^2
    multiply-adds.
    """

    dim: int = param(32, "size of the embeddings", low=1, high=4096, search=(4, 128), log=True)
    reg: float = param(0.12, "regularisation of the embeddings", low=1e-6, search=(0.01, 1.0), log=True)
    reg_power: float = param(
        1.0,
        "reg is multiplied by (number of ratings of the row)^reg_power; 0 = reg as it is",
        low=0.0,
        high=2.0,
        search=(0.0, 1.0),
    )
    reg_bias: float = param(2.0, "regularisation of the biases", low=1e-6, search=(0.5, 20.0), log=True)
    epochs: int = param(15, "passes over both sides", low=1, search=(5, 30))
    biases: bool = param(True, "learn the mean and the biases; without them a rating is the inner product alone")

    predicts_ratings: ClassVar[bool] = True
    tasks: ClassVar[tuple[str, ...]] = ("explicit",)

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        users, items = self._start(data, training.rng)
        for _ in training.epochs():
            self._half_step(items, users.vectors, users.bias)
            self._half_step(users, items.vectors, items.bias)
            training.report(objective=self._objective(users.rows, items.rows))

    def _stores(self) -> dict[str, Stored]:
        return super()._stores() | {
            "user_factors_": floats("users", "dim"),
            "item_factors_": floats("items", "dim"),
            "mean_": Number(),
            "liked_": Number(),
            "user_bias_": floats("users"),
            "item_bias_": floats("items"),
        }

    def _cost(self, size: Size) -> Cost:
        return Cost(SORTED * size.rows, KERNEL * half_steps(size, self.dim))

    def _memory(self, size: Size) -> float:
        solving = scratch_memory(equations_memory(self.dim + 1), size.nodes)
        return rows_memory(size, 3) + factors_memory(self, size, self.dim + 1) + solving

    def _fold_in_memory(self, size: Size) -> float:
        return scratch_memory(equations_memory(self.dim + 1), size.users)

    def _start(self, data: Dataset, rng: np.random.Generator) -> tuple[RatedSide, RatedSide]:
        """Users with random vectors and items at 0, which are solved for first."""
        from ..kernels import csr

        # Not `data.csr()`, which adds up the ratings of a repeated pair: here each of them is a rating.
        users = data.sequences()
        by_item = csr.count(data.item, len(data.items))
        index, value = csr.place(data.item, data.user, data.value, np.arange(len(data)), by_item)
        items = CSR(by_item, index, value, len(data.users))
        self._centre(data)
        scale = np.float32(0.1 / np.sqrt(self.dim))
        self.user_factors_ = rng.standard_normal((users.rows, self.dim), np.float32) * scale
        self.user_bias_ = np.zeros(users.rows, np.float32)
        self.item_factors_ = np.zeros((items.rows, self.dim), np.float32)
        self.item_bias_ = np.zeros(items.rows, np.float32)
        return (
            RatedSide(users, self.user_factors_, self.user_bias_),
            RatedSide(items, self.item_factors_, self.item_bias_),
        )

    def _centre(self, data: Dataset) -> None:
        self.mean_ = float(data.value.mean(dtype=np.float64)) if self.biases else 0.0
        # The rating assumed for an item of a history without one: the 90 % quantile, as users choose what they like.
        self.liked_ = float(np.quantile(data.value, 0.9))

    def _reg(self, rows: CSR) -> NDArray[np.float32]:
        """Regularisation of each row; a row without ratings stays at 0 and needs none."""
        return self._reg_of(np.diff(rows.indptr))

    def _reg_of(self, counts: Array) -> NDArray[np.float32]:
        """Regularisation of rows with so many ratings."""
        return np.asarray(self.reg * counts.astype(np.float64) ** self.reg_power, np.float32)

    @property
    def _bias_penalty(self) -> float:
        """reg_bias, or an infinite penalty that keeps the biases at 0."""
        return self.reg_bias if self.biases else np.inf

    def _half_step(self, side: RatedSide, V: Array, c: Array) -> None:
        """Set every row of `side` to its minimum, given the vectors V and biases c of the other side."""
        from ..kernels.als import half_step
        from ..kernels.threads import run

        rows, X, bias = side
        settings = (self.mean_, self._reg(rows), self._bias_penalty)
        run(half_step, rows.rows, *rows[:3], *settings, V, c, X, bias, cost=rows.indptr)

    def _objective(self, users: CSR, items: CSR) -> float:
        total = self._loss(users)
        for rows, vectors, bias in (
            (users, self.user_factors_, self.user_bias_),
            (items, self.item_factors_, self.item_bias_),
        ):
            total += self._penalty(self._reg(rows), vectors, bias)
        return total

    def _loss(self, users: CSR) -> float:
        """The sum of the squared errors."""
        from ..kernels.als import losses
        from ..kernels.threads import run

        loss = np.empty(users.rows, np.float64)
        item_side, user_side = (self.item_factors_, self.item_bias_), (self.user_factors_, self.user_bias_)
        run(losses, users.rows, *users[:3], self.mean_, *item_side, *user_side, loss, cost=users.indptr)
        return float(loss.sum())

    def _penalty(self, reg: Array, vectors: Array, bias: Array) -> float:
        """The regularisation of one side."""
        total = float(reg @ np.einsum("if,if->i", vectors, vectors, dtype=np.float64))
        return total + self.reg_bias * float(np.square(bias, dtype=np.float64).sum())

    def _embeddings(self) -> Embeddings:
        return with_bias(self.user_factors_, self.item_factors_, self.item_bias_, self.mean_ + self.user_bias_)

    def _score(self, users: NDArray[np.int32]) -> NDArray[np.float32]:
        return self._ratings(self.user_factors_[users], self.user_bias_[users])

    def _score_histories(self, histories: CSR) -> NDArray[np.float32]:
        unseen = self._folded(histories)
        return self._ratings(unseen.vectors, unseen.bias)

    def _folded(self, histories: CSR) -> RatedSide:
        """Fold-in: the vector and bias that the last half-step of fit would give a user with these ratings."""
        n = histories.rows
        unseen = RatedSide(histories, np.zeros((n, self.dim), np.float32), np.zeros(n, np.float32))
        self._half_step(unseen, self.item_factors_, self.item_bias_)
        return unseen

    def _absorb(self, growth: Growth) -> None:
        """The half-steps of training for the touched users and the fresh items alone, as in `FactorModel`."""
        self._refold(growth, growth.touched)
        if growth.fresh.size:
            rows = growth.by_item
            side = RatedSide(rows, np.zeros((rows.rows, self.dim), np.float32), np.zeros(rows.rows, np.float32))
            self._half_step(side, self.user_factors_, self.user_bias_)
            self.item_factors_[growth.fresh], self.item_bias_[growth.fresh] = side.vectors, side.bias
            self._refold(growth, np.unique(rows.index))

    def _refold(self, growth: Growth, touched: Array) -> None:
        found = self._folded(growth.rows.take(touched))
        if self.graph == "needed":  # the fold-in knows nothing of a graph: a known user moves as far as it does
            known = np.flatnonzero(np.isin(touched, growth.users))
            then = self._folded(growth.old.take(touched[known]))
            for new, old, name in zip(found[1:], then[1:], ("user_factors_", "user_bias_"), strict=True):
                before = growth.grown(getattr(growth.before, name), 0, "users")
                new[known] += before[touched[known]] - old
        self.user_factors_[touched], self.user_bias_[touched] = found.vectors, found.bias

    def _contributions(
        self, user: int | None, history: CSR, items: NDArray[np.int32], scores: NDArray[np.float64]
    ) -> Reasons:
        """The fold-in is a ridge regression, so that vector and bias are sums over the ratings of the history.

        A rating above the mean and the bias of its item speaks for similar items, one below against them.
        """
        free = self.biases  # the bias of the user is one more coordinate
        V = np.column_stack([self.item_factors_, np.ones(len(self.item_factors_))])[:, : self.dim + free]
        penalty = np.append(np.full(self.dim, float(self._reg(history)[0])), [self.reg_bias])[: self.dim + free]
        target = history.value.astype(np.float64) - self.mean_ - self.item_bias_[history.index]
        parts = ridge_parts(V[history.index], np.ones(target.size), target, np.diag(penalty))
        known = {"mean and item bias": self.mean_ + self.item_bias_[items].astype(np.float64)}
        return Reasons("decomposition", history.index, V[items] @ parts.T, known, left_of(self, user))

    def _ratings(self, vectors: Array, bias: Array) -> NDArray[np.float32]:
        """Predicted ratings (batch, items) of users with these vectors (batch, dim) and biases (batch,)."""
        scores = vectors @ self.item_factors_.T
        scores += (self.mean_ + bias)[:, None]
        scores += self.item_bias_
        return np.asarray(scores, np.float32)

    def _predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float64]:
        product = pair_products(self.user_factors_, self.item_factors_, users, items)
        return np.asarray(self.mean_ + product + self.user_bias_[users] + self.item_bias_[items], np.float64)
