"""Oracles: models that were told the truth behind synthetic data, and so rank as well as any model can.

They are made by the generators in `synthetic`. Because nothing was learned, they are neither tuned nor saved.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Array, Dataset, Vocab
from ..errors import CorankError
from ..model import Model

if TYPE_CHECKING:
    from ..training import Training


class Oracle(Model):
    """Learns nothing from data but which users and items there are: their ids are the row numbers of the truth."""

    oracle: ClassVar[bool] = True

    def __init__(self, truth: Mapping[str, Array], seed: int = 0) -> None:
        super().__init__(seed=seed)
        self._truth = truth

    @classmethod
    def name(cls) -> str:
        return "oracle"

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        for side, vocab in (("user", data.users), ("item", data.items)):
            known = int(self._truth[f"{side}s"])
            if vocab.strings or vocab.ids[0] < 0 or vocab.ids[-1] >= known:
                raise CorankError(
                    f"the oracle was made with the {side} ids 0 to {known - 1} and this data has others: "
                    "fit it on the data it came with, or on parts of that"
                )
        self.user_rows_, self.item_rows_ = data.users.ids.copy(), data.items.ids.copy()

    def _score_histories(self, histories: CSR) -> NDArray[np.float32]:
        raise CorankError("the oracle knows only the users it made: ask it by user id, not by history")

    def save(self, path: str | Path) -> None:
        raise CorankError("an oracle is not saved: make it again with the same generator, arguments and seed")


class FactorOracle(Oracle):
    """Of `simulation`: ranks and predicts by the true U V^T."""

    predicts_ratings: ClassVar[bool] = True

    def _score(self, users: NDArray[np.int32]) -> NDArray[np.float32]:
        U, V = self._truth["user_factors"], self._truth["item_factors"]
        return np.asarray(U[self.user_rows_[users]] @ V[self.item_rows_].T, np.float32)

    def _predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float64]:
        return pair_products(self._truth, self.user_rows_[users], self.item_rows_[items])


class ChoiceOracle(Oracle):
    """Of `realistic`: ranks by the log-probability at the time of the user's last event; predicts the expected rating.

    With the seen items filtered out, no ranking can do better on a user's last event; no prediction has a lower RMSE.
    """

    predicts_ratings: ClassVar[bool] = True

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        super()._fit(data, rows, training)
        popularity = self._truth["popularity"][:, self.item_rows_]
        self.log_popularity_ = np.log(np.maximum(popularity, np.finfo(np.float32).tiny))

    def _score(self, users: NDArray[np.int32]) -> NDArray[np.float32]:
        who = self.user_rows_[users]
        scores = np.log(self._truth["taste"][who])[:, self._truth["item_group"][self.item_rows_]]
        scores += self.log_popularity_[self._truth["last_period"][who]]
        return np.asarray(scores, np.float32)

    def _predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float64]:
        from scipy.special import ndtr

        liking = preference(self._truth, self.user_rows_[users], self.item_rows_[items])
        # A rating is 1 + the number of cuts passed, so its mean is 1 + the sum of the chances to pass each.
        expected = np.ones(users.size)
        for cut in self._truth["cuts"]:
            expected += ndtr((liking - cut) / self._truth["noise"])
        return expected


class MarkovOracle(Oracle):
    """Of `markov`: ranks by the probability of coming next after the last item of the history."""

    order_matters: ClassVar[bool] = True

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        super()._fit(data, rows, training)
        self.last_ = _last(data.sequences())

    def _score(self, users: NDArray[np.int32]) -> NDArray[np.float32]:
        return self._after(self.last_[users])

    def _score_histories(self, histories: CSR) -> NDArray[np.float32]:
        return self._after(_last(histories))

    def _after(self, last: NDArray[np.int32]) -> NDArray[np.float32]:
        """The true distribution of the item after each of `last` (codes, -1 = nothing yet): float32[b, items]."""
        successors, follow = self._truth["successors"], float(self._truth["predictability"])
        items, ways = successors.shape
        known = last >= 0
        scores = np.full((last.size, self.item_rows_.size), 1 / items, np.float32)
        scores[known] = (1 - follow) / items
        row = np.repeat(np.flatnonzero(known), ways)
        # A successor that the split has dropped from the vocabulary has no column.
        code = Vocab(self.item_rows_).codes(successors[self.item_rows_[last[known]]].ravel())
        scores[row[code >= 0], code[code >= 0]] += follow / ways
        return scores


def preference(truth: Mapping[str, Array], users: Array, items: Array) -> NDArray[np.float64]:
    """How much users of `realistic` like items, without the noise: affinity to the group + item quality + own leniency.

    users, items : truth rows, one pair a position.
    """
    taste = truth["taste"]
    affinity = np.log(taste.shape[1] * taste[users, truth["item_group"][items]].astype(np.float64))
    return np.asarray(truth["weight"] * affinity + truth["quality"][items] + truth["leniency"][users])


def pair_products(truth: Mapping[str, Array], users: Array, items: Array) -> NDArray[np.float64]:
    """user_factors[users[p]] . item_factors[items[p]] for each pair p."""
    from ..kernels.sample import products
    from ..kernels.threads import run

    out = np.empty(users.size, np.float64)
    run(products, users.size, truth["user_factors"], truth["item_factors"], users, items, out)
    return out


def _last(sequences: CSR) -> NDArray[np.int32]:
    """The last column of each row, -1 where the row is empty."""
    last = np.full(sequences.rows, -1, np.int32)
    full = np.diff(sequences.indptr) > 0
    last[full] = sequences.index[sequences.indptr[1:][full] - 1]
    return last
