"""SQL-Rank: listwise collaborative ranking with stochastic queuing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..cost import Size
from ..data import CSR, Array, Dataset, row_ends
from ..errors import CorankError
from ..params import param
from ..stored import Stored, permutes, word
from ._factors import VectorParts, weighted_parts
from ._listwise import HalfStep, Listwise, ScoredLists
from ._rated import levels_of

if TYPE_CHECKING:
    from ..training import Rule, Training

REG = {"implicit": 0.068, "explicit": 0.17, "mixed": 0.093}  # factor on `ScoredLists.spread`
RHO = {"implicit": 3.0, "explicit": 0.0, "mixed": 0.2}


@dataclass(eq=False)
class QueuedLists(ScoredLists):
    """Lists in the order of their queues: a user's own items by decreasing rating, then random other items."""

    own: CSR  # the items that each list begins with
    level: NDArray[np.int32]  # [own entries] rank of the rating within the user
    order: NDArray[np.int32]  # [n] entry at each position of its list
    stream: NDArray[np.int64]  # [users] number of the random stream of each list
    requeue: bool  # draw new queues in each epoch
    drawn: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.resampled = self.requeue

    def state(self) -> dict[str, NDArray[np.int32]]:
        return {"index": self.index, "order": self.order}

    def rules(self) -> dict[str, Rule]:
        def lists(index: Array) -> bool:
            """The items of each user, and others that are in no list twice."""
            if index.size and (index.min() < 0 or index.max() >= self.columns):
                return False
            keys = _pairs(self.indptr, index, self.columns)
            own = _pairs(self.own.indptr, self.own.index, self.columns)
            return np.unique(keys).size == keys.size and bool(np.isin(own, keys).all())

        return {"index": lists, "order": permutes(self.indptr)}

    def resample(self, seed: int) -> bool:
        from ..kernels.plackett_luce import queue
        from ..kernels.threads import run

        if self.requeue or not self.drawn:
            own = (*self.own[:2], self.level, self.columns)
            lists = (self.indptr, self.index, self.order)
            run(queue, self.loss.size, seed, self.stream, *own, *lists, cost=self.indptr)
        self.drawn = True
        return self.requeue


def _pairs(indptr: Array, index: Array, columns: int) -> NDArray[np.int64]:
    """A number for each (row, column) of the entries."""
    return np.repeat(np.arange(indptr.size - 1), np.diff(indptr)) * columns + index


@dataclass(kw_only=True, eq=False)
class SQLRank(Listwise):
    """Listwise collaborative ranking with stochastic queuing.

    Objective: the negative log likelihood (Plackett-Luce, log phi = sigmoid(u.v)) of an order of each user's list, plus
    reg / 2 (|U|^2 + |V|^2). Where the data does not determine the order, it is resampled in each epoch (stochastic
    queuing):

    - explicit feedback: items by decreasing rating, ties in random order;
    - implicit feedback: the items of the user in random order, then `rho` times as many random other items;
    - mixed: items by decreasing rating, then a few random other items. Not in the paper; it orders rated items as well
      as explicit, and ranks the whole catalogue far better.

    Reference: Wu, Hsieh and Sharpnack, "SQL-Rank: a listwise approach to collaborative ranking", ICML 2018;
    dissertation, chapter 4.

    Use it when the top of the list matters, with or without ratings. There is no learning rate to tune (see
    `Listwise`). An epoch costs about 11 * (1 + rho) * rows * dim multiply-adds.
    `SQLRank(solver="authors", reg=4.0, epochs=121)` is the schedule of the authors' code.
    """

    dim: int = param(100, "embedding size", low=1, high=65_536, search=(16, 128), log=True)
    reg: float | None = param(
        None,
        "regularisation of users and items (default: depends on list lengths, about 2 with 50 rows per user)",
        low=0.0,
    )
    reg_scale: float = param(
        1.0, "factor on the default regularisation, used when reg is not given", low=0.0, search=(0.25, 4.0), log=True
    )
    epochs: int = param(20, "passes over users and items", low=1, search=(8, 40))
    rho: float | None = param(
        None, "number of random items per item of a list (default: implicit 3, mixed 0.2)", low=0.0
    )
    feedback: str = param(
        "auto",
        "explicit: order by rating; implicit: items, then random ones; mixed: both; auto: explicit for ratings",
        choices=("auto", "explicit", "implicit", "mixed"),
    )
    top_k: int | None = param(None, "number of positions of a list in the likelihood (default: all)", low=1)
    requeue: bool = param(True, "draw new orders and new random items in each epoch")
    solver: str = param(
        "newton",
        "newton: no learning rate; authors: gradient steps with learning rate lr",
        choices=("newton", "authors"),
    )
    lr: float = param(0.2, "initial learning rate of solver='authors'; multiplied by 0.9 after each epoch", low=1e-9)
    patience: int | None = param(
        None, "epochs without better NDCG@10 on `valid` before training stops; the best epoch is kept", low=1
    )

    starts: ClassVar[Sequence[Mapping[str, Any]]] = ({"reg_scale": 0.4}, {"epochs": 40}, {"reg_scale": 2.0})
    tasks: ClassVar[tuple[str, ...]] = ("implicit", "explicit", "sequential")
    task_params: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "implicit": {"feedback": "implicit"},
        "explicit": {"feedback": "explicit"},
    }

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        _, width = levels_of(rows)
        ranked = bool((width > 1).any())
        if self.feedback in ("explicit", "mixed") and not ranked:
            raise CorankError(
                f"SQLRank(feedback={self.feedback!r}) and no user has two items of different rating: "
                "give ratings with more than one level, or use feedback='implicit'"
            )
        rated = ranked and data.values == "ratings"
        self.feedback_ = self.feedback if self.feedback != "auto" else "explicit" if rated else "implicit"
        if self.feedback_ == "implicit" and self.rho == 0:
            raise CorankError(
                "SQLRank(rho=0) on rows without ratings: with no random items after them there is nothing to learn; "
                "choose rho > 0"
            )
        negatives = self._negatives(rows, self.feedback_)
        queues = self._queues(rows, negatives, np.arange(rows.rows))
        items = np.unique(rows.index).size if self.feedback_ == "explicit" else rows.columns
        usual = self.reg_scale * REG[self.feedback_] * queues.spread(items)
        self.reg_ = usual if self.reg is None else self.reg
        self._learn(queues, training)
        if self.feedback_ == "explicit":
            constant = np.flatnonzero(width == 1)
            self.user_factors_[constant] = self._fold_in_rows(rows.take(constant))

    def _stores(self) -> dict[str, Stored]:
        return super()._stores() | {"feedback_": word("explicit", "implicit")}

    def _entries(self, size: Size) -> float:
        feedback = self.feedback
        if feedback == "auto":
            feedback = "explicit" if size.levels > 1 else "implicit"
        rho = RHO[feedback] if self.rho is None or feedback == "explicit" else self.rho
        return float(np.minimum((1 + rho) * size.lengths + 1, size.items).sum())

    def _smaller(self, size: Size, free: int | None) -> str:
        return "choose a smaller dim or rho"

    def _half_step(self, epoch: int, resampled: bool) -> HalfStep:
        if self.solver == "authors":
            return HalfStep(cg_steps=0, scale=self.lr * 0.9 ** (epoch - 1), halvings=0)
        return super()._half_step(epoch, resampled)

    def _negatives(self, rows: CSR, feedback: str) -> NDArray[np.int64]:
        """Number of random items after each list."""
        rho = RHO[feedback] if self.rho is None or feedback == "explicit" else self.rho
        own = np.diff(rows.indptr)
        number: NDArray[np.int64] = np.minimum(np.round(rho * own), rows.columns - own).astype(np.int64)
        if feedback == "implicit":  # without at least one negative, such lists have no gradient
            number[own > 0] = np.maximum(number, np.minimum(1, rows.columns - own))[own > 0]
        return number

    def _queues(self, rows: CSR, negatives: NDArray[np.int64], stream: NDArray[np.int64]) -> QueuedLists:
        """Lists of the rows, with room for `negatives` other items after each."""
        from ..kernels.plackett_luce import evaluate

        level, _ = levels_of(rows)
        if self.feedback_ == "implicit":
            level[:] = 0
        own = np.diff(rows.indptr)
        size = own + negatives
        indptr = row_ends(size)
        first = np.repeat(rows.indptr[:-1], own)
        at = np.arange(rows.index.size) - first + np.repeat(indptr[:-1], own)
        index = np.zeros(indptr[-1], np.int32)
        index[at] = rows.index
        order = (np.arange(index.size) - np.repeat(indptr[:-1], size)).astype(np.int32)
        order[at] = np.lexsort((-level, np.repeat(np.arange(rows.rows), own))) - first
        loss = (evaluate, order, 2**62 if self.top_k is None else self.top_k)
        return QueuedLists(indptr, index, rows.columns, loss, rows, level, order, stream, self.requeue)

    def _fold_in(self, histories: CSR) -> NDArray[np.float32]:
        return self._fold_in_rows(histories.merged())

    def _vector_parts(self, history: CSR) -> VectorParts | None:
        rows = history.merged()
        index, weight = self._list_weights(self._history_queues(rows))
        return None if weight is None else weighted_parts(rows.index, index, weight, self.item_factors_, "random items")

    def _fold_in_rows(self, rows: CSR) -> NDArray[np.float32]:
        return self._solve_lists(self._history_queues(rows))

    def _history_queues(self, rows: CSR) -> QueuedLists:
        """Constant ratings are treated as implicit feedback: ranked above random items that the user does not have."""
        negatives = self._negatives(rows, self.feedback_)
        if self.feedback_ == "explicit":
            constant = levels_of(rows)[1] == 1
            negatives[constant] = self._negatives(rows, "implicit")[constant]
        # The same random stream for all rows: results must not depend on the other users of the request.
        return self._queues(rows, negatives, np.zeros(rows.rows, np.int64))

    @property
    def _keeps_values(self) -> bool:
        return self.feedback != "implicit"
