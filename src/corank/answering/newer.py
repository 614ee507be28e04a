"""Training users with newer events: their training rows, continued by what they did since the fit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, row_ends

if TYPE_CHECKING:
    from ..model import Model


def continued(
    model: Model,
    users: NDArray[np.int32],
    items: Sequence[Sequence[int]],
    values: Sequence[Sequence[float]],
    rows: CSR | None = None,
) -> CSR:
    """The histories of training users with newer events appended, for `recommend(users, histories=...)`.

    Where a model learns from ratings and its file does not hold them, its own predictions stand for them, and where it
    learns their order, ratings from 1 to 5 in the order of its scores. Events that the model was fitted on already,
    because they were exported for its fit, are not repeated where order matters.

    Parameters
    ----------
    users : codes, (n,).
    items, values : per user the item codes of the newer events, oldest first, and their values.
    rows : `model._training_rows()`, where the caller keeps it.
    """
    rows = model._training_rows() if rows is None else rows
    index: list[NDArray[np.int32]] = []
    value: list[NDArray[np.float32]] = []
    for user, codes, ratings in zip(users.tolist(), items, values, strict=True):
        before = rows.index[rows.indptr[user] : rows.indptr[user + 1]]
        known = _overlap(before.tolist(), list(codes)) if model.order_matters else 0
        index += [before, np.array(codes[known:], np.int32)]
        value += [_values(model, user, before), np.array(ratings[known:], np.float32)]
    lengths = [a.size + b.size for a, b in list(pairwise(index))[::2]]
    empty = [np.zeros(0, np.int32)], [np.zeros(0, np.float32)]
    return CSR(
        row_ends(lengths),
        np.concatenate(index or empty[0]).astype(np.int32),
        np.concatenate(value or empty[1]).astype(np.float32),
        len(model.items_),
    )


def _values(model: Model, user: int, items: NDArray[np.int32]) -> NDArray[np.float32]:
    """The values of training rows; where they are not stored, from the model's own scores if it learns from values."""
    if model.order_matters:
        return np.ones(items.size, np.float32)
    stored = getattr(model, "seen_value_", None)
    if stored is not None or not (model.predicts_ratings or model.needs_ratings) or not items.size:
        return model._history(user).value
    scores = model._predict(np.full(items.size, user, np.int32), items)
    if not model.predicts_ratings:
        scores = np.interp(scores, np.sort(scores), np.linspace(1, 5, items.size))
    return np.asarray(scores, np.float32)


def _overlap(before: list[int], after: list[int]) -> int:
    """The largest number of events with which one list ends and the other begins."""
    most = min(len(before), len(after))
    return next((n for n in range(most, 0, -1) if before[-n:] == after[:n]), 0)
