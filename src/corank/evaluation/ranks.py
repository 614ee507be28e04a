"""From a model's scores to the counts per test row that metrics are computed from.

Scores are computed in blocks of users, counted (`kernels.ranks`) and discarded: nothing here holds users x items.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..answering.ranking import blocks, top_k
from ..data import CSR, Array, Dataset, row_ends, settle_duplicates
from ..data.split import Split
from ..errors import CorankError
from .positions import Floats, Positions

if TYPE_CHECKING:
    from ..model import Model

Score = Callable[[slice], Array]  # rows of the task's users -> float32[b, items]


@dataclass(frozen=True, eq=False)
class Counts:
    """What the kernels found, one entry per test row or per user."""

    mine: NDArray[np.float32]  # [rows] scores
    above: NDArray[np.int32]  # [rows]
    tied: NDArray[np.int32]  # [rows]
    candidates: NDArray[np.int64]  # [users]
    top: NDArray[np.int32] | None  # [users, width] the best candidates, -1 padded
    top_scores: NDArray[np.float32] | None  # [users, width]


class Task:
    """Rows to predict, grouped by user; where a (user, item) pair has several rows, the last one counts."""

    def __init__(self, rows: Dataset, relevant: float | None) -> None:
        rows = settle_duplicates(rows, "last")
        order = np.argsort(rows.user, kind="stable")
        self.users, lengths = np.unique(rows.user, return_counts=True)  # codes
        self.indptr = row_ends(lengths)
        self.item = rows.item[order]
        self.value = rows.value[order]
        self.relevant = np.ones(order.size, np.bool_) if relevant is None else self.value >= relevant
        if order.size and not self.relevant.any():
            raise CorankError(
                f"relevant={relevant:g}: no row to predict has such a value, the largest is {self.value.max():g}: "
                "choose a smaller one"
            )

    def positions(self, counts: Counts, **more: Any) -> Positions:
        return Positions(
            self.indptr,
            counts.above,
            counts.tied,
            counts.mine.astype(np.float64),
            self.value,
            self.relevant,
            counts.candidates,
            top=counts.top,
            **more,
        )

    def nothing(self, columns: int) -> CSR:
        """An empty row for each user."""
        return CSR(np.zeros(self.users.size + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), columns)


def popularity(split: Split) -> dict[str, Any]:
    """What `Positions` needs beside top lists: the training users of each item, and their number."""
    taken = split.train.csr()
    train_users = int(np.count_nonzero(np.diff(taken.indptr)))
    return {"owners": np.bincount(taken.index, minlength=taken.columns), "train_users": train_users}


def scorer(model: Model, users: NDArray[np.int32], known: Dataset | None, unseen: bool = False) -> Score:
    """Scores of the users by code, or from their histories where `known` rows are given.

    unseen : the users were not in the training data, so the model has learned nothing for their codes.
    """
    if known is None:
        return model._scorer(users, None)
    return model._scorer(None if unseen else users, known.sequences().take(users))


def predict(model: Model, task: Task) -> Floats:
    """The prediction of each row of the task: float64[rows]."""
    user = np.repeat(task.users, np.diff(task.indptr)).astype(np.int32)
    out = np.asarray(model._predict(user, task.item), np.float64)
    bad = np.flatnonzero(np.isnan(out))
    if bad.size:
        raise _no_number(model, user[bad[0]])
    return out


def count(
    model: Model, task: Task, score: Score, *, known: CSR | None = None, others: CSR | None = None, width: int = 0
) -> Counts:
    """Rank the rows of the task.

    Parameters
    ----------
    known : items to exclude, one row per user code; all other items are candidates (full ranking).
    others : negatives, one row per user of the task; they and the test items are the candidates.
    width : length of the top lists to keep, with `known` only; 0 = none.
    """
    from ..kernels.ranks import rank_all, rank_some
    from ..kernels.threads import run

    n, users, rows = len(model.items_), task.users.size, task.item.size
    mine, above, tied = np.empty(rows, np.float32), np.empty(rows, np.int32), np.empty(rows, np.int32)
    candidates, bad = np.empty(users, np.int64), np.zeros(users, np.bool_)
    width = min(width, n)
    top = np.full((users, width), -1, np.int32) if width else None
    top_scores = np.full((users, width), -np.inf, np.float32) if width else None
    for part in blocks(users, n):
        scores = np.require(score(part), np.float32, ["C", "W"])
        if scores.shape != (part.stop - part.start, n):
            raise CorankError(
                f"{model.name()} returned scores of shape {scores.shape}: "
                f"it must be ({part.stop - part.start}, {n}), users x items"
            )
        low, high = task.indptr[part.start], task.indptr[part.stop]
        indptr = task.indptr[part.start : part.stop + 1] - low
        out = (mine[low:high], above[low:high], tied[low:high], candidates[part], bad[part])
        if known is not None:
            seen = (task.users[part], known.indptr, known.index)
            run(rank_all, len(scores), scores, *seen, indptr, task.item[low:high], *out)
            if top is not None and top_scores is not None:
                top_k(scores, width, top[part], top_scores[part])
        elif others is not None:
            start, stop = others.indptr[part.start], others.indptr[part.stop]
            drawn = (others.indptr[part.start : part.stop + 1] - start, others.index[start:stop])
            run(rank_some, len(scores), scores, *drawn, indptr, task.item[low:high], *out)
        if bad[part].any():
            raise _no_number(model, task.users[part][np.argmax(bad[part])])
    return Counts(mine, above, tied, candidates, top, top_scores)


def _no_number(model: Model, user: int) -> CorankError:
    name = model.users_.ids[user]
    return CorankError(f"{model.name()} scores NaN for user {name!r}: the model is broken; fit it again with more reg")
