"""`Positions`: the ranks of the test items of each user, from which all metrics are computed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data import Array, row_ends

Floats = NDArray[np.float64]


class TieGroups(NamedTuple):
    """Sets of equal scores with relevant rows in them, by user and falling score; all int64."""

    indptr: Array  # [users + 1]
    above: Array  # [groups] candidates that score higher
    tied: Array  # [groups] candidates in the group
    held: Array  # [groups] relevant rows in the group
    before: Array  # [groups] relevant rows in the user's earlier groups


@dataclass(frozen=True, eq=False)
class Positions:
    """The ranks of the test rows. Rows are grouped by user; users are numbered 0..n-1 here."""

    indptr: NDArray[np.int64]  # [n + 1] rows of each user
    above: NDArray[np.int32]  # [rows] candidates that score strictly higher
    tied: NDArray[np.int32]  # [rows] candidates that score the same, the row itself included
    scores: Floats  # [rows]
    value: NDArray[np.float32]  # [rows] ratings
    relevant: NDArray[np.bool_]  # [rows] relevant for the binary metrics
    candidates: NDArray[np.int64]  # [n] number of ranked items of each user
    prediction: Floats | None = None  # [rows] predicted ratings, for metrics that need them
    top: NDArray[np.int32] | None = None  # [n, k] best items, -1 padded, ties by item code, for metrics that need them
    owners: NDArray[np.int64] | None = None  # [items] training users who have the item, where there is `top`
    train_users: int = 0
    gain: str = "exponential"  # of NDCG: 'binary' or 'exponential', see `Protocol`

    @classmethod
    def of_lists(
        cls, indptr: Array, scores: Array, value: Array, relevant: Array | None = None, **more: Any
    ) -> Positions:
        """Positions where the candidates of each user are just its rows, ranked by `scores`."""
        scores = np.asarray(scores, np.float64)
        indptr = np.asarray(indptr, np.int64)
        lengths = np.diff(indptr)
        user = np.repeat(np.arange(lengths.size), lengths)
        order = np.lexsort((-scores, user))
        ordered, owner = scores[order], user[order]
        starts = np.flatnonzero(np.r_[True, (owner[1:] != owner[:-1]) | (ordered[1:] != ordered[:-1])][: order.size])
        sizes = np.diff(np.r_[starts, order.size])
        above, tied = np.empty(order.size, np.int32), np.empty(order.size, np.int32)
        above[order] = np.repeat(starts - indptr[owner[starts]], sizes)
        tied[order] = np.repeat(sizes, sizes)
        every = np.ones(order.size, np.bool_) if relevant is None else np.asarray(relevant, np.bool_)
        return cls(indptr, above, tied, scores, np.asarray(value, np.float32), every, lengths, **more)

    @property
    def users(self) -> int:
        return self.indptr.size - 1

    @cached_property
    def user(self) -> NDArray[np.int64]:
        """[rows] the user of each row."""
        return np.repeat(np.arange(self.users), np.diff(self.indptr))

    @cached_property
    def n_relevant(self) -> NDArray[np.int64]:
        """[n] number of relevant rows of each user."""
        return np.bincount(self.user[self.relevant], minlength=self.users)

    @cached_property
    def tie_groups(self) -> TieGroups:
        """The tie groups of the relevant rows."""
        user, above, tied = self.user[self.relevant], self.above[self.relevant], self.tied[self.relevant]
        order = np.lexsort((above, user))
        user, above = user[order], above[order]
        starts = np.flatnonzero(np.r_[True, (user[1:] != user[:-1]) | (above[1:] != above[:-1])][: order.size])
        count = np.diff(np.r_[starts, order.size])
        return TieGroups(
            row_ends(np.bincount(user[starts], minlength=self.users)),
            above[starts].astype(np.int64),
            tied[order][starts].astype(np.int64),
            count,
            starts - row_ends(self.n_relevant)[user[starts]],
        )

    def sum(self, rows: Array) -> Floats:
        """Sum over the rows of each user."""
        return np.bincount(self.user, rows, minlength=self.users).astype(np.float64)

    def ideal_rank(self) -> NDArray[np.int64]:
        """[rows] rank from 0 if the user's rows were ranked by their ratings."""
        order = np.lexsort((-self.value, self.user))
        rank = np.empty(order.size, np.int64)
        rank[order] = np.arange(order.size) - self.indptr[self.user[order]]
        return rank
