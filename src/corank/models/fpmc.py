"""FPMC: a factorised Markov chain beside the taste of the user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..answering.vectors import Embeddings
from ..cost import Size
from ..data import CSR, Array
from ..params import param
from ..stored import Stored, floats
from ._transitions import Codes, Samples
from .fmc import FMC

FOLD_IN_PASSES = 30  # over the history of an unseen user


@dataclass(kw_only=True, eq=False)
class FPMC(FMC):
    """Factorised personalised Markov chain: the taste of the user and the last item predict the next one.

    Score of item j for user u after item i: p_u . q_j + P_i . Q_j, with separate tables. Objective: over all pairs
    (i, j) of consecutive items of a user, log(1 + exp(-(score of j - score of a negative))) with L2 regularisation,
    minimised by stochastic gradient descent (sequential BPR); negatives are uniform over the items that the user does
    not have. Values are ignored.

    Reference: Rendle, Freudenthaler and Schmidt-Thieme, "Factorizing personalized Markov chains for next-basket
    recommendation", WWW 2010.

    Use it as a fast model of sequences where what a user takes next depends on taste and on the last item. For unseen
    users, p_u is learned from the pairs of their history by the steps of training, with all items fixed; with one item
    it is 0, and the last item alone decides. An epoch costs about 16 * rows * negatives * dim multiply-adds, on one
    thread.

    `sse_user` and `sse_item` replace the user and the last item of a step at random (stochastic shared embeddings, Wu
    et al. 2019); the next item and the negatives are kept.
    """

    reg_user: float = param(
        0.01, "regularisation of the user's vector per sample", low=0.0, search=(0.001, 0.1), log=True
    )
    sse_user: float = param(0.0, "SSE: probability that a step uses the embedding of another user", low=0.0, high=1.0)

    by_default: ClassVar[bool] = True

    def _create(self, rng: np.random.Generator, pairs: Samples, users: int, items: int) -> None:
        super()._create(rng, pairs, users, items)
        self.user_factors_ = self._random(rng, users, self.dim)
        self.user_factors_[np.bincount(pairs.user, minlength=users) == 0] = 0  # of these nothing is learned

    def _tables(self) -> tuple[Array, Array, Array]:
        return self.user_factors_, self.last_factors_, self.item_factors_

    def _width(self) -> int:
        return 2 * self.dim

    def _stores(self) -> dict[str, Stored]:
        own = {"user_factors_": floats("users", "dim"), "item_factors_": floats("items", "2 dim")}  # [q | Q]
        return super()._stores() | own

    def _size(self, word: str) -> int | None:
        return self._width() if word == "2 dim" else super()._size(word)

    def _embeddings(self) -> Embeddings:
        return Embeddings(np.hstack([self.user_factors_, self._came_from(self.user_last_)]), self.item_factors_)

    def _after(self, users: Codes | None, last: Codes, histories: CSR | None) -> NDArray[np.float32]:
        taste = self._fold_in(histories) if users is None and histories is not None else self.user_factors_[users]
        scores = np.concatenate([taste, self._came_from(last)], axis=1) @ self.item_factors_.T
        return self._popular(scores, (last < 0) & ~taste.any(axis=1))

    def _fold_in(self, histories: CSR) -> NDArray[np.float32]:
        """The vectors of unseen users, from the pairs of their histories."""
        from ..kernels.sequential_bpr import chain_fold_in
        from ..kernels.threads import run

        vectors = np.empty((histories.rows, self.dim), np.float32)
        options = (FOLD_IN_PASSES, self.negatives, np.float32(self.lr), np.float32(self.reg_user))
        tables = (self.last_factors_, self.item_factors_)
        parts = (*histories[:2], *histories.merged()[:2])
        run(chain_fold_in, histories.rows, *parts, *options, *tables, vectors, cost=histories.indptr)
        return vectors

    def _fold_in_memory(self, size: Size) -> float:
        return 12.0 * size.users * self.dim + 16.0 * size.rows
