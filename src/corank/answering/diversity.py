"""Lists that are less uniform: re-ranking by maximal marginal relevance, over item vectors or labels."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Array
from ..data.labels import Column, column_of
from ..errors import CorankError
from .inference import require_fitted
from .ranking import BLOCK_BYTES, Ranking
from .rules import label_of

if TYPE_CHECKING:
    from ..model import Model

POOL = 5  # times as many items as are asked for are recommended and re-ranked, where only their number is given
Similar = Callable[[NDArray[np.int32]], NDArray[np.float32]]  # items (b, n) -> similarities (b, n, n)


def diversify(
    ranking: Ranking, model: Model | Any, dial: float, *, by: str | None = None, k: int | None = None
) -> Ranking:
    """Re-rank the items of each list so that similar ones do not follow each other (maximal marginal relevance).

    Parameters
    ----------
    ranking : lists of recommendations, best longer than k: items that are not in them cannot come in.
    model : the model, whose item vectors (or similar items, where it has no vectors) say what is similar; or an array
        with a vector per item (items, dim), or a list with a label, or a list of labels, per item.
    dial : from 0, which leaves the lists as they are, to 1: relevance decides nothing but the first item.
    by : a label of the model's items, such as "genre": items are similar by the labels they share (Jaccard).
    k : the length of the new lists; as long as they are when absent.

    Scores stay those of the model, so that they need not fall along a new list.
    """
    checked(dial)
    if k is not None and (not isinstance(k, int | np.integer) or k < 1):
        raise CorankError(f"k={k!r}: the length of the lists must be a whole number of at least 1")
    width = ranking.items.shape[1] if k is None else min(int(k), ranking.items.shape[1])
    similar = similarity(model, by, len(ranking.vocab))
    if dial == 0:
        return dataclasses.replace(ranking, items=ranking.items[:, :width], scores=ranking.scores[:, :width])
    order = np.full((len(ranking), width), -1, np.int32)
    _choose(ranking, similar, float(dial), order)
    place = np.maximum(order, 0)
    items = np.where(order < 0, np.int32(-1), np.take_along_axis(ranking.items, place, axis=1))
    scores = np.where(order < 0, np.float32(-np.inf), np.take_along_axis(ranking.scores, place, axis=1))
    return dataclasses.replace(ranking, items=items, scores=scores)


def recommend_diverse(model: Model, dial: float, *, by: str | None = None, k: int = 10, **options: Any) -> Ranking:
    """`model.recommend` and `diversify`: the k items per user are chosen from `POOL` times as many."""
    if checked(dial) == 0:
        return model.recommend(k=k, **options)
    longer = k * POOL if isinstance(k, int | np.integer) else k  # what is no number is refused by `recommend`
    return diversify(model.recommend(k=longer, **options), model, dial, by=by, k=k)


def list_similarity(ranking: Ranking, model: Model | Any, by: str | None = None) -> float:
    """Mean similarity of two items of one list: what `diversify` lowers. NaN if no list has two items."""
    similar = similarity(model, by, len(ranking.vocab))
    total, pairs = 0.0, 0
    for part in _blocks(ranking):
        items = ranking.items[part]
        both = (items >= 0)[:, :, None] & (items >= 0)[:, None, :] & ~np.eye(items.shape[1], dtype=bool)
        total += float(similar(np.maximum(items, 0))[both].sum(dtype=np.float64))
        pairs += int(both.sum())
    return total / pairs if pairs else math.nan


def checked(dial: Any) -> float:
    """The dial, if it is one."""
    if isinstance(dial, bool) or not isinstance(dial, int | float | np.number) or not 0 <= dial <= 1:
        raise CorankError(f"the diversity {dial!r} must be a number from 0 (as it is) to 1")
    return float(dial)


def similarity(model: Model | Any, by: str | None, items: int) -> Similar:
    """How similar two of `items` items are, by vectors, by labels or by what the model says."""
    if not hasattr(model, "recommend"):
        if by is not None:
            raise CorankError("by= names a label of a model's items: give the model, or leave by out")
        return _given(model, items)
    require_fitted(model)
    if len(model.items_) != items:
        raise CorankError(f"the ranking has {items:,} items and the model {len(model.items_):,}: give its own model")
    if by is not None:
        return _by_labels(label_of(model, by))
    vectors = getattr(model, "item_factors_", None)
    return _by_vectors(vectors) if vectors is not None else _by_model(model)


def _given(source: Any, items: int) -> Similar:
    """By an array of vectors or a list of labels."""
    try:
        array = np.asarray(source, np.float64) if not isinstance(source, list) else None
    except (TypeError, ValueError):
        array = None
    if array is not None and array.ndim == 2:
        if len(array) != items or not np.isfinite(array).all():
            raise CorankError(f"vectors of shape {array.shape} for {items:,} items: give one finite vector per item")
        return _by_vectors(array)
    column = column_of(source) if isinstance(source, list | tuple | np.ndarray) else None
    if column is None or (column.values.size if column.ends is None else column.ends.size - 1) != items:
        raise CorankError(
            f"a {type(source).__name__} does not say what is similar: give a model, or one label per item"
        )
    return _by_labels(column)


def _by_vectors(vectors: Array) -> Similar:
    norms = np.sqrt(np.einsum("if,if->i", vectors, vectors, dtype=np.float64))
    unit = np.asarray(vectors / np.maximum(norms, 1e-12)[:, None], np.float32)

    def similar(items: NDArray[np.int32]) -> NDArray[np.float32]:
        chosen = unit[items]  # (b, n, dim)
        return np.asarray(chosen @ chosen.transpose(0, 2, 1), np.float32)

    return similar


def _by_labels(column: Column) -> Similar:
    """The share of common labels among the labels of both (Jaccard); items without labels are similar to none."""
    if column.ends is None:
        known = column.values >= 0 if column.kind != "number" else ~np.isnan(column.values)
        values = np.where(known, column.values, 0)
        code = np.where(known, np.unique(values, return_inverse=True)[1], -1)

        def equal(items: NDArray[np.int32]) -> NDArray[np.float32]:
            chosen = code[items]
            return np.asarray((chosen[:, :, None] == chosen[:, None, :]) & (chosen >= 0)[:, :, None], np.float32)

        return equal
    has = CSR(column.ends, column.values, np.ones(column.values.size, np.float32), len(column.words)).scipy()
    number = np.diff(column.ends)[:, None]  # (items, 1)

    def jaccard(items: NDArray[np.int32]) -> NDArray[np.float32]:
        out = np.empty((*items.shape, items.shape[1]), np.float32)
        for row, own in enumerate(items):
            common = (has[own] @ has[own].T).toarray()  # (n, n)
            out[row] = common / np.maximum(number[own] + number[own].T - common, 1)
        return out

    return jaccard


def _by_model(model: Model) -> Similar:
    """By `similar_items`: relative to the most similar of all items, which has 1; what is not similar has 0."""
    model._similar(np.zeros(1, np.int32))  # a model without similar items says so before any work

    def similar(items: NDArray[np.int32]) -> NDArray[np.float32]:
        out = np.empty((*items.shape, items.shape[1]), np.float32)
        for row, own in enumerate(items):
            every = model._similar(own)  # (n, items)
            every = np.where(np.isfinite(every), np.maximum(every, 0), 0)
            every[np.arange(own.size), own] = 0
            found = every[:, own] / np.maximum(every.max(axis=1, keepdims=True), 1e-12)
            out[row] = np.maximum(found, found.T)
        return out

    return similar


def _blocks(ranking: Ranking) -> list[slice]:
    """Rows whose similarities are a few megabytes."""
    step = max(1, BLOCK_BYTES // (4 * max(1, ranking.items.shape[1]) ** 2))
    return [slice(at, at + step) for at in range(0, len(ranking), step)]


def _choose(ranking: Ranking, similar: Similar, dial: float, order: NDArray[np.int32]) -> None:
    from ..kernels.mmr import choose
    from ..kernels.threads import run

    for part in _blocks(ranking):
        items, scores = ranking.items[part], ranking.scores[part]
        real = (items >= 0).sum(axis=1)
        found = similar(np.maximum(items, 0))
        run(choose, len(items), np.ascontiguousarray(scores), real, found, dial, order[part])
