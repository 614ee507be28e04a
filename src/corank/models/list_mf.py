"""ListRank-MF: the classical listwise factor model of ratings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Dataset
from ..errors import CorankError
from ..params import param
from ..stored import Number, Stored, codes
from ._listwise import Listwise, ScoredLists
from ._rated import PreferenceModel, levels_of, most_popular

if TYPE_CHECKING:
    from ..training import Training

REG = 0.2  # factor on `ScoredLists.spread` divided by the length of a list


@dataclass(kw_only=True, eq=False)
class ListMF(Listwise, PreferenceModel):
    """ListRank-MF: factorisation of the top-one probabilities of rated lists.

    Objective: per user, the cross entropy between softmax(ratings) and softmax(sigmoid(u.v)) over the items that the
    user rated, plus reg / 2 (|U|^2 + |V|^2). The softmax of the ratings is the probability that an item comes first.

    Reference: Shi, Larson and Hanjalic, "List-wise learning to rank with matrix factorization for collaborative
    filtering", RecSys 2010.

    Use it as the classical listwise baseline for ratings: every user has the same weight, whatever the number of
    ratings, and the highest ratings dominate. The objective never increases, and there is no learning rate to tune. An
    epoch costs about 10 * ratings * dim multiply-adds.
    """

    dim: int = param(64, "embedding size", low=1, high=65_536, search=(8, 128), log=True)
    reg: float | None = param(
        None,
        "regularisation of users and items (default: depends on list lengths, 0.06 with 50 ratings per user)",
        low=0.0,
    )
    reg_scale: float = param(
        1.0, "factor on the default regularisation, used when reg is not given", low=0.0, search=(0.25, 4.0), log=True
    )
    epochs: int = param(20, "passes over users and items", low=1, search=(5, 60))
    patience: int | None = param(
        None, "epochs without better NDCG@10 on `valid` before training stops; the best epoch is kept", low=1
    )

    needs_ratings: ClassVar[bool] = True
    tasks: ClassVar[tuple[str, ...]] = ("explicit",)

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        width = levels_of(rows)[1]
        if not (width > 1).any():
            raise CorankError(
                "no user has two items of different rating, and ListRank-MF learns which of them comes first: give "
                "ratings with more than one level, or use wmf for data without ratings"
            )
        self.range_ = float(np.ptp(rows.value))
        self.background_ = most_popular(np.bincount(rows.index))
        lists = self._lists(rows)
        # The probabilities of a list sum to 1, so gradients shrink with its length, and the regularisation with them.
        length = rows.index.size / np.count_nonzero(width)
        usual = float(REG * lists.spread(np.unique(rows.index).size) / length)
        self.reg_ = self.reg_scale * usual if self.reg is None else self.reg
        self._learn(lists, training)
        constant = np.flatnonzero(width == 1)
        self.user_factors_[constant] = self._fold_in_rows(rows.take(constant))

    def _stores(self) -> dict[str, Stored]:
        return super()._stores() | {
            "range_": Number(low=0),
            "background_": codes("background"),
        }

    def _lists(self, rows: CSR) -> ScoredLists:
        from ..kernels.list_mf import evaluate, targets
        from ..kernels.threads import run

        target = np.empty(rows.index.size, np.float32)
        run(targets, rows.rows, rows.indptr, rows.value, target, cost=rows.indptr)
        return ScoredLists(rows.indptr, rows.index, rows.columns, (evaluate, target))

    def _solve_users(self, rows: CSR) -> NDArray[np.float32]:
        return self._solve_lists(self._lists(rows))

    def _entry_weights(self, rows: CSR) -> NDArray[np.float64] | None:
        return self._list_weights(self._lists(rows))[1]

    def _preferred_rating(self) -> float:
        return self.range_
