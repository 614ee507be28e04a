"""FMC: a factorised Markov chain, in which the last item alone predicts the next one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..answering.vectors import Embeddings
from ..data import CSR, Array
from ..params import param
from ..stored import Stored, floats
from ._transitions import Codes, Samples, TransitionModel


@dataclass(kw_only=True, eq=False)
class FMC(TransitionModel):
    """Factorised Markov chain: the last item of a user, and nothing else, predicts the next one.

    Score of item j after item i: P_i . Q_j, with two tables of item vectors. Objective: over all pairs (i, j) of
    consecutive items of a user, log(1 + exp(-(score of j - score of a negative))) with L2 regularisation, minimised by
    stochastic gradient descent (sequential BPR); negatives are uniform over the items that the user does not have.
    Values are ignored.

    Reference: the chain of Rendle, Freudenthaler and Schmidt-Thieme, "Factorizing personalized Markov chains for
    next-basket recommendation", WWW 2010, without its user term.

    Use it as the baseline that tells how far the last item alone goes; `FPMC` adds the taste of the user. Unseen users
    need nothing but their last item. An epoch costs about 8 * rows * negatives * dim multiply-adds, on one thread.
    """

    reg: float = param(0.01, "regularisation per sample", low=0.0, search=(0.001, 0.05), log=True)

    by_default: ClassVar[bool] = False  # a baseline, compared when it is named

    def _create(self, rng: np.random.Generator, pairs: Samples, users: int, items: int) -> None:
        self.last_factors_ = self._random(rng, items, self.dim)
        self.last_factors_[~self.item_leads_] = 0
        self.item_factors_ = self._random(rng, items, self._width())

    def _random(self, rng: np.random.Generator, rows: int, columns: int) -> NDArray[np.float32]:
        return rng.standard_normal((rows, columns), np.float32) * np.float32(0.1 / np.sqrt(self.dim))

    def _tables(self) -> tuple[Array, Array, Array]:
        """User vectors (users, a), vectors of last items (items, dim), and of next items (items, a + dim)."""
        return np.empty((len(self.users_), 0), np.float32), self.last_factors_, self.item_factors_

    def _steps(self, samples: Samples, lr: np.float32) -> None:
        from ..kernels.sequential_bpr import chain_steps

        reg_user = np.float32(getattr(self, "reg_user", 0.0))
        chain_steps(*samples, lr, reg_user, np.float32(self.reg), *self._tables())

    def _margins(self, samples: Samples) -> Array:
        from ..kernels.sequential_bpr import chain_margins
        from ..kernels.threads import run

        margin = np.empty(samples.negative.shape, np.float32)
        run(chain_margins, samples.user.size, *samples, *self._tables(), margin)
        return margin

    def _stores(self) -> dict[str, Stored]:
        own = {"last_factors_": floats("items", "dim"), "item_factors_": floats("items", "dim")}
        return super()._stores() | own

    def _embeddings(self) -> Embeddings:
        return Embeddings(self._came_from(self.user_last_), self.item_factors_)

    def _after(self, users: Codes | None, last: Codes, histories: CSR | None) -> NDArray[np.float32]:
        return self._popular(self._came_from(last) @ self.item_factors_.T, last < 0)

    def _came_from(self, last: Codes) -> NDArray[np.float32]:
        """The vectors of last items, 0 where there is none."""
        vectors = self.last_factors_[last]
        vectors[last < 0] = 0
        return vectors
