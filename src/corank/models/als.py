"""ALS: explicit ratings as a mean, two biases and an inner product.

r = mean + b_u + b_i + u.v, fitted by alternating exact least squares: with one side fixed, each row of the other, its
bias included, is a small ridge regression (Zhou et al. 2008, "ALS-WR", for the regularisation that grows with the
number of ratings). Use it where ratings say more than presence does, and RMSE counts. One epoch costs about ratings *
dim^2 multiply-adds. Predictions are not clipped to the range of the ratings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Array, Dataset
from ..model import Model
from ..params import param

if TYPE_CHECKING:
    from ..training import Training


@dataclass(kw_only=True, eq=False)
class ALS(Model):
    """Biased matrix factorisation of ratings."""

    dim: int = param(32, "size of the embeddings", low=1, high=4096, search=(4, 128), log=True)
    reg: float = param(0.12, "regularisation of the embeddings", low=1e-6, search=(0.01, 1.0), log=True)
    reg_power: float = param(
        1.0, "reg is multiplied by (ratings of the row)^reg_power; 0 = plain", low=0.0, high=2.0, search=(0.0, 1.0)
    )
    reg_bias: float = param(
        2.0, "regularisation of the biases: as many ratings without bias", low=1e-6, search=(0.5, 20.0), log=True
    )
    epochs: int = param(15, "passes over both sides", low=1, search=(5, 30))
    biases: bool = param(True, "learn the mean and the biases; without them a rating is the inner product alone")

    predicts_ratings: ClassVar[bool] = True
    tasks: ClassVar[tuple[str, ...]] = ("explicit",)

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        rng = training.rng
        from ..kernels import csr

        # Not `rows`: there, ratings of a repeated pair are added up, here each of them is a rating.
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
        user_side = (self.user_factors_, self.user_bias_)
        item_side = (self.item_factors_, self.item_bias_)
        for _ in training.epochs(**self._state()):
            self._half_step(items, user_side, item_side)
            self._half_step(users, item_side, user_side)
            training.report(objective=self._objective(users, items))

    def _state(self) -> dict[str, Array]:
        """Arrays beside the learned ones that training changes (see `Training.epochs`)."""
        return {}

    def _centre(self, data: Dataset) -> None:
        self.mean_ = float(data.value.mean(dtype=np.float64)) if self.biases else 0.0
        # What "I took this", without a rating, is worth in a history: the rating that the happiest tenth gave.
        self.liked_ = float(np.quantile(data.value, 0.9))

    def _reg(self, rows: CSR) -> NDArray[np.float32]:
        """Regularisation of each row; a row without ratings stays at 0 and needs none."""
        return np.asarray(self.reg * np.diff(rows.indptr).astype(np.float64) ** self.reg_power, np.float32)

    def _half_step(self, rows: CSR, fixed: tuple[Array, Array], out: tuple[Array, Array]) -> None:
        """Every row of `out` (vectors, biases) at its minimum, the `fixed` side staying as it is."""
        from ..kernels.als import half_step
        from ..kernels.threads import run

        # An infinite penalty leaves the biases at 0.
        settings = (self.mean_, self._reg(rows), float(self.reg_bias) if self.biases else np.inf)
        run(half_step, rows.rows, *rows[:3], *settings, *fixed, *out, cost=rows.indptr)

    def _objective(self, users: CSR, items: CSR) -> float:
        from ..kernels.als import losses
        from ..kernels.threads import run

        loss = np.empty(users.rows, np.float64)
        item_side, user_side = (self.item_factors_, self.item_bias_), (self.user_factors_, self.user_bias_)
        run(losses, users.rows, *users[:3], self.mean_, *item_side, *user_side, loss, cost=users.indptr)
        total = float(loss.sum())
        for rows, (vectors, bias) in ((users, user_side), (items, item_side)):
            total += float(self._reg(rows) @ np.einsum("if,if->i", vectors, vectors, dtype=np.float64))
            total += self.reg_bias * float(np.square(bias, dtype=np.float64).sum())
        return total

    def _score(self, users: NDArray[np.int32]) -> NDArray[np.float32]:
        return self._ratings(self.user_factors_[users], self.user_bias_[users])

    def _score_histories(self, histories: CSR) -> NDArray[np.float32]:
        """Fold-in: the vector and bias that fit's last half-step would give a user with these ratings."""
        vectors = np.zeros((histories.rows, self.dim), np.float32)
        bias = np.zeros(histories.rows, np.float32)
        self._half_step(histories, (self.item_factors_, self.item_bias_), (vectors, bias))
        return self._ratings(vectors, bias)

    def _ratings(self, vectors: Array, bias: Array) -> NDArray[np.float32]:
        scores = vectors @ self.item_factors_.T
        scores += (self.mean_ + bias)[:, None]
        scores += self.item_bias_
        return np.asarray(scores, np.float32)

    def _predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float64]:
        product = np.einsum("nf,nf->n", self.user_factors_[users], self.item_factors_[items])
        return np.asarray(self.mean_ + product + self.user_bias_[users] + self.item_bias_[items], np.float64)
