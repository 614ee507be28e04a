"""BPR: what a user took should score above what the user did not take.

Bayesian personalised ranking (Rendle et al. 2009): stochastic gradient descent on log(1 + exp(-(score of an item that
the user has - score of one that the user has not))) with L2 regularisation; the second item is drawn uniformly from all
that the user has not. Use it where the order of the whole list counts (AUC) or as the classical baseline for rows
without ratings; `wmf` and `ease` usually have the better top ten. One epoch costs about 8 * rows * negatives * dim
multiply-adds. Values are not looked at. `sse_user` and `sse_item` replace the user and the taken item of a triple at
random (stochastic shared embeddings, Wu et al. 2019); the item not taken stays.

`BPR(dim=100, lr=0.1, decay=0.9, reg=0.01, negatives=3, biases=False)` is the setting of the dissertation's tables, with
`sse_user=0.1, sse_item=0.01` that of SSE-BPR.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Dataset
from ..params import param
from ._sse import SharedRows

if TYPE_CHECKING:
    from ..training import Training

SAMPLE = 65_536  # triples by which the objective is judged: the same ones in each epoch
PASSES = 30  # over the history of somebody new


@dataclass(kw_only=True, eq=False)
class BPR(SharedRows):
    """Pairwise ranking of taken above not taken, by stochastic gradient descent."""

    dim: int = param(64, "size of the embeddings", low=1, high=65_536, search=(16, 256), log=True)
    lr: float = param(0.1, "length of the steps in the first epoch", low=1e-6, search=(0.02, 0.3), log=True)
    decay: float = param(0.95, "lr is multiplied by this after each epoch", low=0.01, high=1.0, search=(0.85, 1.0))
    reg: float = param(0.01, "regularisation of every triple", low=0.0, search=(0.001, 0.05), log=True)
    epochs: int = param(30, "passes over the rows", low=1, search=(10, 60))
    negatives: int = param(1, "items not taken that each taken one is compared with in a pass", low=1, search=(1, 4))
    biases: bool = param(True, "learn how popular each item is beside its vector")

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        rng = training.rng
        from ..kernels import bpr as kernels
        from ..kernels import random, sgd, sse
        from ..kernels.threads import run

        each, laws, keep = int(self.negatives), self._laws(data), random.kept(self.dropout)
        user = np.repeat(np.arange(rows.rows, dtype=np.int32), np.diff(rows.indptr))
        entries = sgd.Entries(user, rows.index, np.full(user.size, each, np.int32))
        side = sgd.sides(user.size, rows.rows, rows.columns)
        self.user_factors_ = self.seek(rng, rows.rows)
        self.user_factors_[np.diff(rows.indptr) == 0] = 0  # who says nothing is shown what is popular
        self.item_factors_ = self.seek(rng, rows.columns)
        self.item_bias_ = np.zeros(rows.columns, np.float32)
        learned = (self.user_factors_, self.item_factors_, self.item_bias_)
        for epoch in training.epochs():
            lr = np.float32(self.lr * self.decay ** (epoch - 1))
            parts = sgd.draw(rng, rows.rows, rows.columns, side)
            steps = sse.split(rng, entries, each, *laws)
            if steps is not entries:
                others = (steps.item[user.size :], steps.value[user.size :])
                run(kernels.negatives, others[0].size, int(rng.integers(2**62)), parts, *rows[:2], *others)
            rates = (lr, lr if self.biases else np.float32(0), np.float32(self.reg), keep)
            sgd.sweep(kernels.step, sgd.fill(parts, steps), int(rng.integers(2**62)), *rates, *learned)
            training.report(objective=self._objective(rows))

    def seek(self, rng: np.random.Generator, rows: int) -> NDArray[np.float32]:
        return rng.standard_normal((rows, self.dim), np.float32) * np.float32(0.1 / np.sqrt(self.dim))

    def _objective(self, rows: CSR) -> float:
        """Mean loss and regularisation of a triple, over a sample that stays the same."""
        from ..kernels.bpr import losses
        from ..kernels.threads import run

        n = rows.index.size
        every, negatives = max(1, n // SAMPLE), min(64, max(1, SAMPLE // n))
        loss, count = np.empty(rows.rows, np.float64), np.empty(rows.rows, np.int64)
        learned = (self.user_factors_, self.item_factors_, self.item_bias_)
        run(
            losses,
            rows.rows,
            *rows[:2],
            every,
            negatives,
            float(self.reg),
            *learned,
            loss,
            count,
            cost=rows.indptr,
        )
        return float(loss.sum() / max(1, count.sum()))

    def _score(self, users: NDArray[np.int32]) -> NDArray[np.float32]:
        return np.asarray(self.user_factors_[users] @ self.item_factors_.T + self.item_bias_)

    def _score_histories(self, histories: CSR) -> NDArray[np.float32]:
        """Fold-in: the steps of training on the new user's vector alone, until they have shrunk to nothing."""
        from ..kernels.bpr import fold_in
        from ..kernels.csr import merged
        from ..kernels.threads import run

        indptr, index, _ = merged(*histories[:3])
        vectors = np.empty((histories.rows, self.dim), np.float32)
        options = (PASSES, int(self.negatives), np.float32(self.lr), np.float32(self.reg))
        run(fold_in, histories.rows, indptr, index, *options, self.item_factors_, self.item_bias_, vectors, cost=indptr)
        return np.asarray(vectors @ self.item_factors_.T + self.item_bias_)

    def _predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float64]:
        product = np.einsum("nf,nf->n", self.user_factors_[users], self.item_factors_[items])
        return np.asarray(product + self.item_bias_[items], np.float64)
