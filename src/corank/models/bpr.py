"""BPR: Bayesian personalised ranking by stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..cost import KERNEL, SCATTERED, SORTED, Cost, Size, factors_memory, row_memory, rows_memory
from ..data import CSR, Dataset, on_disk
from ..params import param
from ..stored import Stored, floats
from ._factors import FactorModel, VectorParts
from ._sse import SSEModel

if TYPE_CHECKING:
    from ..training import Training

SAMPLE = 65_536  # triples on which the objective is estimated, the same in each epoch
FOLD_IN_PASSES = 30  # over the history of an unseen user


@dataclass(kw_only=True, eq=False)
class BPR(SSEModel, FactorModel):
    """Bayesian personalised ranking: items of a user should score above items the user does not have.

    Objective: log(1 + exp(-(score of an item of the user - score of a negative))) with L2 regularisation, minimised by
    stochastic gradient descent; negatives are drawn uniformly from the items that the user does not have. Values are
    ignored.

    Reference: Rendle, Freudenthaler, Gantner and Schmidt-Thieme, "BPR: Bayesian personalized ranking from implicit
    feedback", UAI 2009.

    Use it where the order of the whole list matters (AUC), or as the classical baseline for implicit feedback; `WMF`
    and `EASE` are usually better at the top of the list. An epoch costs about 8 * rows * negatives * dim multiply-adds.

    `sse_user` and `sse_item` replace the user and the positive item of a triple at random (stochastic shared
    embeddings, Wu et al. 2019); the negative is kept.
    `BPR(dim=100, lr=0.1, decay=0.9, reg=0.01, negatives=3, epochs=40, biases=False)` is the setting of the
    dissertation's tables; with `sse_user=0.1, sse_item=0.01` it is SSE-BPR.
    """

    dim: int = param(128, "embedding size", low=1, high=65_536, search=(16, 256), log=True)
    lr: float = param(0.3, "initial learning rate", low=1e-6, search=(0.02, 0.4), log=True)
    decay: float = param(0.95, "lr is multiplied by this after each epoch", low=0.01, high=1.0, search=(0.85, 1.0))
    reg: float = param(0.02, "regularisation per triple", low=0.0, search=(0.001, 0.05), log=True)
    epochs: int = param(60, "passes over the rows", low=1, search=(10, 80))
    negatives: int = param(4, "number of negatives per row and epoch", low=1, search=(1, 6))
    biases: bool = param(True, "learn item biases")

    fits_on_disk: ClassVar[bool] = True

    starts: ClassVar[Sequence[Mapping[str, Any]]] = (
        {"dim": 64, "reg": 0.01, "negatives": 1, "lr": 0.1, "epochs": 60},
        {"lr": 0.2, "epochs": 40, "negatives": 3, "reg": 0.005},
        {"reg": 0.03},
        {"lr": 0.4},  # many steps, for few rows
    )

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        from ..kernels import bpr as kernels
        from ..kernels import random, sgd, sse
        from ..kernels.threads import run

        rng = training.rng
        replacements, keep = self._replacements(data), random.kept(self.dropout)
        user = on_disk.owners(rows)
        entries = sgd.Entries(user, rows.index, on_disk.full(user.size, self.negatives, np.int32, rows.index))
        sorted_ = (
            sgd.Entries(*(on_disk.empty(user.size, np.int32, rows.index) for _ in entries)) if data.on_disk else None
        )
        side = sgd.grid_side(user.size, rows.rows, rows.columns)
        self.user_factors_ = self._random_factors(rng, rows.rows)
        self.user_factors_[np.diff(rows.indptr) == 0] = 0  # users without rows are ranked by item bias
        self.item_factors_ = self._random_factors(rng, rows.columns)
        self.item_bias_ = np.zeros(rows.columns, np.float32)
        learned = (self.user_factors_, self.item_factors_, self.item_bias_)
        for epoch in training.epochs():
            lr = np.float32(self.lr * self.decay ** (epoch - 1))
            partition = sgd.random_partition(rng, rows.rows, rows.columns, side)
            steps = sse.split(rng, entries, self.negatives, *replacements)
            if steps is not entries:  # the replaced triples stand after the others and need negatives of their own
                replaced = (steps.item[user.size :], steps.value[user.size :])
                run(kernels.negatives, replaced[0].size, int(rng.integers(2**62)), partition, *rows[:2], *replaced)
            options = (lr, lr if self.biases else np.float32(0), np.float32(self.reg), keep)
            blocks = sgd.sort_into_blocks(partition, steps, sorted_ if steps is entries else None)
            sgd.sweep(kernels.step, blocks, int(rng.integers(2**62)), *options, *learned)
            training.report(objective=self._objective(rows))

    def _stores(self) -> dict[str, Stored]:
        return super()._stores() | {"item_bias_": floats("items")}

    def _cost(self, size: Size) -> Cost:
        return Cost(SORTED * size.rows, size.rows * self.negatives * (8 * KERNEL * self.dim + 10 * SCATTERED))

    def _memory(self, size: Size) -> float:
        # The triples and, in each epoch, their random order; replaced ones (SSE) are triples of their own.
        replaced = min(1.0, self.sse_user + self.sse_item)
        triples = row_memory(24.0, size) + (24.0 * self.negatives * replaced + (12.0 if replaced else 0.0)) * size.rows
        return rows_memory(size) + triples + factors_memory(self, size, self.dim + 2)

    def _random_factors(self, rng: np.random.Generator, rows: int) -> NDArray[np.float32]:
        return rng.standard_normal((rows, self.dim), np.float32) * np.float32(0.1 / np.sqrt(self.dim))

    def _objective(self, rows: CSR) -> float:
        """Mean loss and regularisation per triple, on a fixed sample."""
        from ..kernels.bpr import losses
        from ..kernels.threads import run

        n = rows.index.size
        every, negatives = max(1, n // SAMPLE), min(64, max(1, SAMPLE // n))
        loss, count = np.empty(rows.rows, np.float64), np.empty(rows.rows, np.int64)
        learned = (self.user_factors_, self.item_factors_, self.item_bias_)
        run(losses, rows.rows, *rows[:2], every, negatives, self.reg, *learned, loss, count, cost=rows.indptr)
        return float(loss.sum() / max(1, count.sum()))

    def _fold_in(self, histories: CSR) -> NDArray[np.float32]:
        """The gradient steps of training on the user's vector alone, with a learning rate that falls to 0."""
        from ..kernels.bpr import fold_in
        from ..kernels.threads import run

        rows = histories.merged()
        vectors = np.empty((rows.rows, self.dim), np.float32)
        run(fold_in, rows.rows, *rows[:2], *self._fold_in_options(), vectors, cost=rows.indptr)
        return vectors

    def _fold_in_options(self) -> tuple[Any, ...]:
        options = (FOLD_IN_PASSES, self.negatives, np.float32(self.lr), np.float32(self.reg))
        return (*options, self.item_factors_, self.item_bias_)

    def _vector_parts(self, history: CSR) -> VectorParts:
        """Each gradient step is for one item of the history, so that the vector is the sum of the steps of each."""
        from ..kernels.bpr import fold_in_parts

        rows = history.merged()
        parts = np.zeros((rows.index.size, self.dim), np.float64)
        fold_in_parts(rows.index, *self._fold_in_options(), parts)
        return VectorParts(rows.index, parts)
