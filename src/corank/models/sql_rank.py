"""SQL-Rank: the likelihood of each user's whole list, with chance where the data does not say what comes first.

Objective: minus the log likelihood (Plackett-Luce, log phi = sigmoid(u.v)) of an order of each user's list, plus
reg / 2 (|U|^2 + |V|^2) (Wu, Hsieh and Sharpnack, ICML 2018; dissertation ch. 4). The order is drawn anew in each epoch
(stochastic queuing). Explicit feedback: ratings fall, ties fall at random. Implicit feedback: what the user has, in
random order, then `rho` times as many random items that the user has not. Mixed: ratings fall, then a few random items:
not in the paper, as good at ordering rated items, and far better at choosing among all of them.
Use it for the top of the list, with or without ratings. An epoch costs about 11 * (1 + rho) * rows * dim multiply-adds.
There is no step to tune: see `_listwise`.

`SQLRank(solver="authors", reg=4.0, epochs=121)` is the schedule that the authors released.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Dataset, row_ends
from ..errors import CorankError
from ..memory import make_room
from ..params import param
from ._listwise import Lists, Listwise, Rule
from ._rated import levels_of

if TYPE_CHECKING:
    from ..training import Training

REG = {"implicit": 0.068, "explicit": 0.17, "mixed": 0.093}  # of `Lists.spread`
RHO = {"implicit": 3.0, "explicit": 0.0, "mixed": 0.2}


@dataclass(eq=False)
class _Queues(Lists):
    """Lists in the order of their queues."""

    own: CSR  # what each list begins with
    level: NDArray[np.int32]
    order: NDArray[np.int32]
    stream: NDArray[np.int64]
    again: bool  # a new queue for each epoch
    drawn: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.changing = self.again

    def state(self) -> dict[str, NDArray[np.int32]]:
        return {"index": self.index, "order": self.order}

    def redraw(self, seed: int) -> bool:
        from ..kernels.plackett_luce import queue
        from ..kernels.threads import run

        if self.again or not self.drawn:
            own = (*self.own[:2], self.level, self.columns)
            lists = (self.indptr, self.index, self.order)
            run(queue, self.loss.size, seed, self.stream, *own, *lists, cost=self.indptr)
        self.drawn = True
        return self.again


@dataclass(kw_only=True, eq=False)
class SQLRank(Listwise):
    """Listwise collaborative ranking with stochastic queuing."""

    dim: int = param(100, "size of the embeddings", low=1, high=65_536, search=(16, 128), log=True)
    reg: float | None = param(
        None,
        "regularisation of both sides (when absent, by the length of the lists: about 2 on 50 rows a user)",
        low=0.0,
    )
    reg_scale: float = param(
        1.0, "multiple of that usual regularisation, where reg is absent", low=0.0, search=(0.25, 4.0), log=True
    )
    epochs: int = param(20, "passes over both sides", low=1, search=(8, 40))
    rho: float | None = param(
        None, "random items after each list as a multiple of its length (implicit 3, mixed 0.2 when absent)", low=0.0
    )
    feedback: str = param(
        "auto",
        "explicit: ratings in order; implicit: rows, then random items; mixed: both; auto: explicit if ratings differ",
        choices=("auto", "explicit", "implicit", "mixed"),
    )
    top_k: int | None = param(None, "positions of a list that the likelihood counts (all when absent)", low=1)
    requeue: bool = param(True, "draw new orders and new random items in each epoch")
    solver: str = param(
        "newton", "newton: nothing to tune; authors: gradient steps of lr", choices=("newton", "authors")
    )
    lr: float = param(0.2, "first step of solver authors; it shrinks by a tenth each epoch", low=1e-9)
    patience: int | None = param(
        None, "epochs without better NDCG@10 on `valid` before training stops; the best is kept", low=1
    )

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
        self.feedback_ = self.feedback if self.feedback != "auto" else "explicit" if ranked else "implicit"
        if self.feedback_ == "implicit" and self.rho == 0:
            raise CorankError(
                "SQLRank(rho=0) on rows without ratings: with no random items after them there is nothing to learn; "
                "choose rho > 0"
            )
        zeros = self._zeros(rows, self.feedback_)
        make_room(50.0 * (zeros.sum() + rows.index.size), "SQLRank of lists as long as these", "choose a smaller rho")
        queues = self._queues(rows, zeros, np.arange(rows.rows))
        items = np.unique(rows.index).size if self.feedback_ == "explicit" else rows.columns
        usual = self.reg_scale * REG[self.feedback_] * queues.spread(items)
        self.reg_ = float(usual if self.reg is None else self.reg)
        self._learn(queues, training)
        if self.feedback_ == "explicit":
            alike = np.flatnonzero(width == 1)
            self.user_factors_[alike] = self._folded(rows.take(alike))

    def _rule(self, epoch: int, drawn: bool) -> Rule:
        if self.solver == "authors":
            return Rule(steps=0, share=self.lr * 0.9 ** (epoch - 1), halvings=0)
        return super()._rule(epoch, drawn)

    def _zeros(self, rows: CSR, feedback: str) -> NDArray[np.int64]:
        """How many random items come after each list."""
        rho = RHO[feedback] if self.rho is None or feedback == "explicit" else self.rho
        own = np.diff(rows.indptr)
        most: NDArray[np.int64] = np.minimum(np.round(rho * own), rows.columns - own).astype(np.int64)
        if feedback == "implicit":  # such a list says something only where something comes after it
            most[own > 0] = np.maximum(most, np.minimum(1, rows.columns - own))[own > 0]
        return most

    def _queues(self, rows: CSR, zeros: NDArray[np.int64], stream: NDArray[np.int64]) -> _Queues:
        """Lists of the rows, with room for `zeros` other items after each."""
        from ..kernels.plackett_luce import slopes

        level, _ = levels_of(rows)
        if self.feedback_ == "implicit":
            level[:] = 0
        own = np.diff(rows.indptr)
        size = own + zeros
        indptr = row_ends(size)
        head = np.repeat(rows.indptr[:-1], own)
        at = np.arange(rows.index.size) - head + np.repeat(indptr[:-1], own)
        index = np.zeros(indptr[-1], np.int32)
        index[at] = rows.index
        order = (np.arange(index.size) - np.repeat(indptr[:-1], size)).astype(np.int32)
        order[at] = np.lexsort((-level, np.repeat(np.arange(rows.rows), own))) - head
        top = 2**62 if self.top_k is None else int(self.top_k)
        return _Queues(indptr, index, rows.columns, (slopes, order, top), rows, level, order, stream, self.requeue)

    def _folded(self, rows: CSR) -> NDArray[np.float32]:
        """Vectors of new users. Ratings that are all alike are read as rows: before what the user does not have."""
        zeros = self._zeros(rows, self.feedback_)
        if self.feedback_ == "explicit":
            alike = levels_of(rows)[1] == 1
            zeros[alike] = self._zeros(rows, "implicit")[alike]
        # One random stream for all: what somebody gets must not hang on who else asks.
        return self._fold(self._queues(rows, zeros, np.zeros(rows.rows, np.int64)))

    def _score_histories(self, histories: CSR) -> NDArray[np.float32]:
        from ..kernels.csr import merged

        users = self._folded(CSR(*merged(*histories[:3]), histories.columns))
        return np.asarray(users @ self.item_factors_.T)
