"""MF: explicit ratings as a mean, two biases and an inner product, by stochastic gradient descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..cost import KERNEL, SCATTERED, SORTED, Cost, Size, factors_memory, rows_memory
from ..data import CSR, Array, Dataset
from ..params import param
from ._sse import SSEModel
from .als import ALS

if TYPE_CHECKING:
    from ..training import Training


@dataclass(kw_only=True, eq=False)
class MF(SSEModel, ALS):
    """Biased matrix factorisation of ratings by stochastic gradient descent.

    Objective, as in `ALS`: squared error of r = mean + b_u + b_i + u.v, with `reg` on both vectors per rating and
    `reg_bias` on the biases, learned one rating at a time. Unseen users are solved for exactly, as in `ALS`.

    References: Funk, "Netflix update: try this at home", 2006; Koren, Bell and Volinsky, "Matrix factorization
    techniques for recommender systems", Computer 2009.

    Use it where ratings are to be predicted (RMSE): early stopping often predicts better than the minimum that `ALS`
    finds; `ALS` in turn needs no learning rate. An epoch costs about 4 * ratings * dim multiply-adds. Predictions are
    not clipped to the range of the ratings.

    `sse_user` and `sse_item` replace the user and the item of a rating at random (stochastic shared embeddings, Wu et
    al. 2019). `MF(biases=False, dim=100, reg=0.1, lr=0.01, decay=1.0, epochs=50)` is the baseline of the dissertation
    except for its initialisation: here vectors start small, and those of items without ratings are 0, so that such
    items are not recommended at random.
    """

    reg: float = param(0.07, "regularisation of the embeddings", low=1e-6, search=(0.01, 0.3), log=True)
    lr: float = param(0.03, "initial learning rate", low=1e-6, search=(0.005, 0.1), log=True)
    decay: float = param(0.95, "lr is multiplied by this after each epoch", low=0.01, high=1.0, search=(0.85, 1.0))
    epochs: int = param(40, "passes over the ratings", low=1, search=(10, 80))

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        from ..kernels import csr, mf, random, sgd, sse

        rng = training.rng
        # Not `rows`, which adds up the ratings of a repeated pair: here each of them is a rating.
        by_item, by_user = csr.count(data.item, len(data.items)), csr.count(data.user, len(data.users))
        order = csr.stable_order(data.item, np.arange(len(data)), by_item)
        index, value = csr.place(data.user, data.item, data.value, order, by_user)
        users = CSR(by_user, index, value, len(data.items))
        items = CSR(by_item, data.user[order], data.value[order], len(data.users))
        owner = np.repeat(np.arange(users.rows, dtype=np.int32), np.diff(by_user))
        entries = sgd.Entries(owner, index, value)
        replacements, keep = self._replacements(data), random.kept(self.dropout)
        self._centre(data)
        scale = np.float32(0.1 / np.sqrt(self.dim))
        self.user_factors_ = rng.standard_normal((users.rows, self.dim), np.float32) * scale
        self.user_factors_[np.diff(by_user) == 0] = 0
        self.user_bias_ = np.zeros(users.rows, np.float32)
        self.item_factors_ = np.zeros((items.rows, self.dim), np.float32)
        self.item_bias_ = np.zeros(items.rows, np.float32)
        penalties = [*self._reg_per_rating(users), *self._reg_per_rating(items)]
        learned = (self.user_factors_, self.user_bias_, self.item_factors_, self.item_bias_)
        # A gradient of a vector grows with the errors and with the other vector: on a scale of 0 to 100, steps that fit
        # ten stars diverge. Those of a bias grow with the errors alone, as the bias itself does.
        wide = np.float32(max(1.0, float(np.ptp(data.value)) / 10))
        for epoch in training.epochs():
            lr = np.float32(self.lr * self.decay ** (epoch - 1))
            options = (lr / wide, lr if self.biases else np.float32(0), keep, np.float32(self.mean_))
            blocks = sgd.random_blocks(rng, sse.replace(rng, entries, *replacements), users.rows, items.rows)
            sgd.sweep(mf.step, blocks, int(rng.integers(2**62)), *options, *penalties, *learned)
            training.report(objective=self._objective(users, items))

    def _cost(self, size: Size) -> Cost:
        return Cost(SORTED * size.rows, size.rows * (8 * KERNEL * self.dim + 5 * SCATTERED))

    def _memory(self, size: Size) -> float:
        # By user and by item, the entries and, in each epoch, their random order.
        return rows_memory(size, 3) + 32.0 * size.rows + factors_memory(self, size, self.dim + 2)

    def _reg_per_rating(self, rows: CSR) -> tuple[Array, Array]:
        """The regularisation of each row, of its vector and of its bias, divided by its number of ratings."""
        count = np.maximum(np.diff(rows.indptr), 1)
        return self._reg(rows) / count.astype(np.float32), (self.reg_bias / count).astype(np.float32)
