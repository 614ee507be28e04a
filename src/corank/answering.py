"""Inference with a fitted model: recommendations, similar items and scores of pairs, with external ids in and out."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .data import CSR, Array, Dataset, row_ends
from .data.columns import id_array
from .errors import CorankError, NotFitted
from .ranking import Ranking, blocks, top_k

if TYPE_CHECKING:
    from .model import Model

Histories = Sequence[Iterable[Hashable] | Mapping[Hashable, float]] | Mapping[Hashable, Iterable[Hashable]] | Dataset


def recommend(
    model: Model,
    users: Iterable[Hashable] | Hashable | None,
    histories: Histories | None,
    k: int,
    exclude_seen: bool,
    items: Iterable[Hashable] | None,
) -> Ranking:
    """See `Model.recommend`."""
    require_fitted(model)
    if users is not None and histories is not None:
        raise CorankError("give users or histories, not both: a history replaces the training rows of a user")
    _check_k(k, "the number of items to recommend")
    rows = None
    if histories is not None:
        names, rows = read_histories(model, histories)
        seen, codes = rows, np.arange(rows.rows, dtype=np.int32)
    else:
        codes = user_codes(model, users)
        names, seen = model.users_.ids[codes], seen_items(model)
    excluded = None
    if items is not None:
        excluded = np.ones(len(model.items_), np.bool_)
        excluded[model.items_.require(_listed(items), "item")] = False

    # Users without any history; an oracle knows that their items are equally likely.
    unknown = (np.diff(seen.indptr)[codes] == 0) & (not model.oracle)
    scores_of = model._scorer(codes if rows is None else None, rows)

    def score(part: slice) -> Array:
        scores = scores_of(part)
        return _popular_first(model, scores, unknown[part]) if unknown[part].any() else scores

    return _rank(model, score, names, codes, k, seen if exclude_seen else None, excluded)


def similar_items(model: Model, items: Iterable[Hashable] | Hashable, k: int) -> Ranking:
    """See `Model.similar_items`."""
    require_fitted(model)
    _check_k(k, "the number of items")
    codes = model.items_.require(_listed(items), "item")
    n = len(model.items_)
    itself = CSR(np.arange(n + 1, dtype=np.int64), np.arange(n, dtype=np.int32), np.empty(0, np.float32), n)
    return _rank(model, lambda part: model._similar(codes[part]), model.items_.ids[codes], codes, k, itself, None)


def predict(model: Model, users: Any, items: Any) -> NDArray[np.float64]:
    """See `Model.predict`."""
    require_fitted(model)
    user, item = user_codes(model, users), model.items_.require(_listed(items), "item")
    if user.size != item.size:
        raise CorankError(f"{user.size} users and {item.size} items: predict takes pairs, one item per user")
    return model._predict(user, item)


def predict_from_rows(model: Model, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float64]:
    """Scores of pairs of codes, for a model that can only score all items of a user."""
    out = np.empty(users.size, np.float64)
    distinct, where = np.unique(users, return_inverse=True)
    order = np.argsort(where, kind="stable")
    for part in blocks(distinct.size, len(model.items_)):
        scores = model._score(distinct[part])
        pairs = order[np.searchsorted(where[order], part.start) : np.searchsorted(where[order], part.stop)]
        out[pairs] = scores[where[pairs] - part.start, items[pairs]]
    return out


def _rank(
    model: Model,
    score: Callable[[slice], Array],
    names: Array,
    codes: NDArray[np.int32],
    k: int,
    seen: CSR | None,
    excluded: NDArray[np.bool_] | None,
) -> Ranking:
    """The top k per row of `score`, in blocks: a users x items array is never allocated."""
    from .kernels.threads import each, run
    from .kernels.topk import mask_rows

    n, width = codes.size, min(int(k), len(model.items_))
    items = np.full((n, width), -1, np.int32)
    best = np.full((n, width), -np.inf, np.float32)

    def rank(part: slice) -> None:
        scores = np.ascontiguousarray(score(part), np.float32)
        if excluded is not None:
            scores[:, excluded] = -np.inf
        if seen is not None:
            run(mask_rows, len(scores), scores, codes[part], seen.indptr, seen.index)
        top_k(scores, width, items[part], best[part])

    each(rank, blocks(n, len(model.items_)))
    return Ranking(names, items, best, model.items_)


def _popular_first(model: Model, scores: Array, unknown: NDArray[np.bool_]) -> Array:
    """Where a model scores all items of an unknown user equally, they are ranked by their number of training rows."""
    constant = unknown & (scores == scores[:, :1]).all(axis=1)
    count = np.bincount(model.seen_index_, minlength=len(model.items_))
    return np.where(constant[:, None], count.astype(np.float32), scores)


def seen_items(model: Model) -> CSR:
    """The training items of each user, without values."""
    return CSR(model.seen_indptr_, model.seen_index_, np.empty(0, np.float32), len(model.items_))


def require_fitted(model: Model) -> None:
    if "items_" not in vars(model):
        raise NotFitted(f"this {type(model).__name__} is not fitted: call fit(data) first")


def user_codes(model: Model, users: Any) -> NDArray[np.int32]:
    """Codes of user ids; all users when absent."""
    if users is None:
        return np.arange(len(model.users_), dtype=np.int32)
    return model.users_.require(_listed(users), "user")


def read_histories(model: Model, histories: Histories) -> tuple[Array, CSR]:
    """(names, rows of item codes) of external histories; unknown items are an error that names them."""
    if isinstance(histories, Dataset):
        codes = model.items_.require(histories.items.ids.tolist(), "item") if len(histories.items) else np.zeros(0)
        rows = histories.sequences()
        return histories.users.ids, CSR(rows.indptr, codes.astype(np.int32)[rows.index], rows.value, len(model.items_))
    if not isinstance(histories, Mapping | Sequence | np.ndarray):
        raise CorankError(
            f"histories={type(histories).__name__} is not a list of histories: give a list of lists of item ids, "
            "a {name: items} mapping or a Dataset"
        )
    names = id_array(list(histories) if isinstance(histories, Mapping) else np.arange(len(histories)), "history")
    lists: list[list[Hashable]] = []
    values: list[float] = []
    bare = getattr(model, "liked_", 1.0)  # the value of an item without one: a high rating, where values are ratings
    for one in histories.values() if isinstance(histories, Mapping) else histories:
        if isinstance(one, str | bytes) or not isinstance(one, Iterable):
            raise CorankError(f"a history must be a list of item ids, got {one!r}")
        lists.append(list(one))
        values += map(_value, one.values()) if isinstance(one, Mapping) else [bare] * len(lists[-1])
    flat = model.items_.require([i for one in lists for i in one], "item")
    indptr = row_ends([len(one) for one in lists])
    return names, CSR(indptr, flat, np.array(values, np.float32), len(model.items_))


def _value(value: Any) -> float:
    """The value of an item in a history."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not abs(number) <= float(np.finfo(np.float32).max):  # so that NaN is refused too
        raise CorankError(f"a history holds the value {value!r}: the values of a history must be finite numbers")
    return number


def _check_k(k: Any, what: str) -> None:
    if not isinstance(k, int | np.integer) or k < 1:
        raise CorankError(f"k={k!r}: {what} must be a whole number of at least 1")


def _listed(ids: Any) -> list[Hashable]:
    """One id or many, as a list."""
    if isinstance(ids, str | bytes | int | np.integer):
        return [ids]
    if not isinstance(ids, Iterable):
        raise CorankError(f"a {type(ids).__name__} is not an id or a list of ids: give users and items by their ids")
    return ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
