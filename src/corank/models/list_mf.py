"""ListRank-MF: the item that a user would put first, learned from whole lists of ratings.

Objective: for each user the cross entropy between softmax(ratings) and softmax(sigmoid(u.v)) over the items that the
user rated, plus reg / 2 (|U|^2 + |V|^2) (Shi, Larson and Hanjalic, RecSys 2010). Use it as the classical listwise
baseline for ratings: a list counts the same whatever its length, and the highest ratings in it count most. The
objective never rises. One epoch costs about 10 * ratings * dim multiply-adds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Dataset
from ..errors import CorankError
from ..params import param
from ._listwise import Lists, Listwise
from ._rated import BACKGROUND, against, levels_of

if TYPE_CHECKING:
    from ..training import Training

REG = 0.2  # of `Lists.spread`, divided by the length of a list


@dataclass(kw_only=True, eq=False)
class ListMF(Listwise):
    """Top-one probabilities of ratings, factorised."""

    dim: int = param(64, "size of the embeddings", low=1, high=65_536, search=(8, 128), log=True)
    reg: float | None = param(
        None,
        "regularisation of both sides (when absent, by the length of the lists: about 0.06 on 50 ratings a user)",
        low=0.0,
    )
    reg_scale: float = param(
        1.0, "multiple of that usual regularisation, where reg is absent", low=0.0, search=(0.25, 4.0), log=True
    )
    epochs: int = param(20, "passes over both sides", low=1, search=(5, 60))
    patience: int | None = param(
        None, "epochs without better NDCG@10 on `valid` before training stops; the best is kept", low=1
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
        self.background_ = np.argsort(-np.bincount(rows.index), kind="stable")[:BACKGROUND].astype(np.int32)
        lists = self._lists(rows)
        # Slopes shrink with the length of a list, whose probabilities sum to 1.
        length = rows.index.size / np.count_nonzero(width)
        by_length = REG * lists.spread(np.unique(rows.index).size) / length
        self.reg_ = float(self.reg_scale * by_length if self.reg is None else self.reg)
        self._learn(lists, training)
        alike = np.flatnonzero(width == 1)
        self.user_factors_[alike] = self._folded(rows.take(alike))

    def _lists(self, rows: CSR) -> Lists:
        from ..kernels.list_mf import slopes, targets
        from ..kernels.threads import run

        target = np.empty(rows.index.size, np.float32)
        run(targets, rows.rows, rows.indptr, rows.value, target, cost=rows.indptr)
        return Lists(rows.indptr, rows.index, rows.columns, (slopes, target))

    def _folded(self, rows: CSR) -> NDArray[np.float32]:
        """Vectors of new users. Who rated all items alike is taken to prefer them to what most others rated."""
        alike = np.flatnonzero(levels_of(rows)[1] == 1)
        users = self._fold(self._lists(rows))
        wide = against(rows.take(alike), self.background_)
        users[alike] = self._fold(self._lists(wide._replace(value=wide.value * np.float32(self.range_))))
        return users

    def _score_histories(self, histories: CSR) -> NDArray[np.float32]:
        from ..kernels.csr import merged

        users = self._folded(CSR(*merged(*histories[:3]), histories.columns))
        return np.asarray(users @ self.item_factors_.T)
