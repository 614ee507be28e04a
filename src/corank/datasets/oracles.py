"""Oracles: models that know the ground truth of synthetic data, and so rank as well as any model can.

The generators in `synthetic` make them. Because they learn nothing, they are neither tuned nor saved.
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
    """A model that knows the truth; `fit` only tells it which users and items there are.

    Ids are the row numbers of the arrays of the truth.
    """

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
        raise CorankError("the oracle knows only the generated users: give user ids, not histories")

    def save(self, path: str | Path) -> None:
        raise CorankError("an oracle is not saved: make it again with the same generator, arguments and seed")


class FactorOracle(Oracle):
    """The oracle of `simulation`: ranks and predicts by the true U V^T."""

    predicts_ratings: ClassVar[bool] = True

    def _score(self, users: NDArray[np.int32]) -> NDArray[np.float32]:
        U, V = self._truth["user_factors"], self._truth["item_factors"]
        return np.asarray(U[self.user_rows_[users]] @ V[self.item_rows_].T, np.float32)

    def _predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float64]:
        return pair_products(self._truth, self.user_rows_[users], self.item_rows_[items])


class ChoiceOracle(Oracle):
    """The oracle of `realistic`: ranks by the log-probability of the choice, predicts the expected rating.

    The probability is that at the time of the user's last event. With seen items filtered out, no ranking is better in
    expectation on a user's last event, and no prediction has a lower expected RMSE.
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
        # A rating is 1 + the number of cuts below the preference: its mean is 1 + the sum of those probabilities.
        expected = np.ones(users.size)
        for cut in self._truth["cuts"]:
            expected += ndtr((liking - cut) / self._truth["noise"])
        return expected


class MarkovOracle(Oracle):
    """The oracle of `markov`: ranks by the probability of being the next item after the last one of the history."""

    order_matters: ClassVar[bool] = True

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        super()._fit(data, rows, training)
        self.last_ = _last(data.sequences())

    def _score(self, users: NDArray[np.int32]) -> NDArray[np.float32]:
        return self._after(self.last_[users])

    def _score_histories(self, histories: CSR) -> NDArray[np.float32]:
        return self._after(_last(histories))

    def _after(self, last: NDArray[np.int32]) -> NDArray[np.float32]:
        """The true distribution of the item after each of `last` (codes, -1: empty history): float32[b, items]."""
        successors, follow = self._truth["successors"], float(self._truth["predictability"])
        items, ways = successors.shape
        known = last >= 0
        scores = np.full((last.size, self.item_rows_.size), 1 / items, np.float32)
        scores[known] = (1 - follow) / items
        row = np.repeat(np.flatnonzero(known), ways)
        # A successor that is not in the vocabulary of the data has no column.
        code = Vocab(self.item_rows_).codes(successors[self.item_rows_[last[known]]].ravel())
        scores[row[code >= 0], code[code >= 0]] += follow / ways
        return scores


def preference(truth: Mapping[str, Array], users: Array, items: Array) -> NDArray[np.float64]:
    """Noise-free preference in `realistic`: weight * affinity to the item's group + item quality + user leniency.

    users, items : rows of the truth, one pair per position.
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
