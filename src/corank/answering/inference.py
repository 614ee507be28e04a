"""Inference with a fitted model: recommendations, similar items and scores of pairs, with external ids in and out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..cost import Size, scratch_memory
from ..data import CSR, Array, Dataset, row_ends
from ..errors import CorankError, NotFitted
from ..system.memory import make_room, one_sentence
from .histories import Histories, read_histories
from .ranking import MANY, Ranking, blocks, top_k
from .rules import Where, allowed_items

if TYPE_CHECKING:
    from ..model import Model

Candidates = Iterable[Hashable] | Mapping[Hashable, Iterable[Hashable]] | Sequence[Iterable[Hashable]]
FEWER = "ask for fewer users or items at a time, or a smaller k"
WORTH_ASKING = 64_000_000  # bytes: to read how much is free takes longer than a request for less
Top = tuple[NDArray[np.int32], NDArray[np.float32]]  # items and scores, [n, k] each


@one_sentence("recommending", FEWER)
def recommend(
    model: Model,
    users: Iterable[Hashable] | Hashable | None,
    histories: Histories | None,
    k: int,
    exclude_seen: bool,
    items: Candidates | None,
    exclude: Candidates | None = None,
    where: Where | None = None,
) -> Ranking:
    """See `Model.recommend`."""
    require_fitted(model)
    if users is None and histories is None and isinstance(items, Mapping):
        users = list(items)
    _check_k(k, "the number of items to recommend")
    rows = known = None
    if histories is not None:
        names, rows = read_histories(model, histories)
        seen, codes = rows, np.arange(rows.rows, dtype=np.int32)
        if users is not None:
            known = user_codes(model, users)
            names = model.users_.ids[known]
            if known.size != rows.rows:
                raise CorankError(f"{known.size:,} users and {rows.rows:,} histories: give one history per user")
    else:
        codes = user_codes(model, users)
        names, seen = model.users_.ids[codes], seen_items(model)
    limits = _limits(model, names, seen if exclude_seen else None, items, exclude, where)

    # Users without any history; an oracle knows that their items are equally likely.
    lengths = seen.indptr[codes + 1] - seen.indptr[codes]
    unknown = (lengths == 0) & (not model.oracle)
    shared = 0.0
    if rows is not None or model.order_matters:  # the vectors of users are computed
        shared = model._fold_in_memory(Size(codes.size, len(model.items_), lengths))
    _ask(model, f"recommending {k:,} items to {codes.size:,} users", codes.size, len(model.items_), k, shared=shared)
    scores_of = model._scorer(codes if rows is None else known, rows)

    def score(part: slice) -> Array:
        scores = scores_of(part)
        return _popular_first(model, scores, unknown[part]) if unknown[part].any() else scores

    best = _rank(len(model.items_), score, codes, k, limits)
    return Ranking(names, *best, model.items_, model.titles_)


def _ask(model: Model, what: str, rows: int, columns: int, k: int, *, shared: float = 0.0, each: float = 0.0) -> None:
    """Raise an error if there is no room for the k best of `columns` scores for so many rows.

    shared, each : bytes that the model takes beside the scores: once, and per block of rows.
    """
    height = min(rows, next(blocks(rows, columns), slice(0, 0)).stop)
    # A score and what it is computed from; long lists are sorted, with their places.
    cell = 12.0 + (12.0 if k > MANY else 0.0)
    at_once = scratch_memory(cell * height * columns + each, -(-rows // max(1, height)))
    need = 8.0 * rows * min(k, columns) + shared + at_once
    if need > WORTH_ASKING:
        make_room(need, f"{what} of {type(model).__name__}", FEWER)


@one_sentence("finding similar items", FEWER)
def similar_items(model: Model, items: Iterable[Hashable] | Hashable, k: int) -> Ranking:
    """See `Model.similar_items`."""
    require_fitted(model)
    _check_k(k, "the number of items")
    codes = model.items_.require(listed(items), "item")
    unit = getattr(model, "item_factors_", codes).nbytes  # vectors of length 1, per block
    _ask(model, f"finding {k:,} similar items of {codes.size:,}", codes.size, len(model.items_), k, each=unit)
    best = _nearest(len(model.items_), model._similar, codes, k)
    return Ranking(model.items_.ids[codes], *best, model.items_, model.titles_, ("item", "similar"))


@one_sentence("finding similar users", FEWER)
def similar_users(model: Model, users: Iterable[Hashable] | Hashable, k: int) -> Ranking:
    """See `Model.similar_users`."""
    require_fitted(model)
    _check_k(k, "the number of users")
    codes = user_codes(model, users)
    unit = getattr(model, "user_factors_", codes).nbytes
    _ask(model, f"finding {k:,} similar users of {codes.size:,}", codes.size, len(model.users_), k, each=unit)
    best = _nearest(len(model.users_), model._similar_users, codes, k)
    return Ranking(model.users_.ids[codes], *best, model.users_, columns=("user", "similar"))


def _nearest(n: int, similar: Callable[[NDArray[np.int32]], Array], codes: NDArray[np.int32], k: int) -> Top:
    """The k most similar of n items (or users) to each of `codes`, itself excluded."""
    itself = CSR(np.arange(n + 1, dtype=np.int64), np.arange(n, dtype=np.int32), np.empty(0, np.float32), n)
    return _rank(n, lambda part: similar(codes[part]), codes, k, Limits(seen=itself))


def cosine(vectors: Array, rows: NDArray[np.int32]) -> NDArray[np.float32]:
    """Cosine of some rows of `vectors` (n, dim) with all of them, (rows, n); 0 with a vector of zeros."""
    norms = np.sqrt(np.einsum("if,if->i", vectors, vectors))
    unit = vectors / np.maximum(norms, 1e-12)[:, None]
    return np.asarray(unit[rows] @ unit.T, np.float32)


@one_sentence("predicting", "give fewer pairs at a time")
def predict(model: Model, users: Any, items: Any) -> NDArray[np.float64]:
    """See `Model.predict`."""
    require_fitted(model)
    user, item = user_codes(model, users), model.items_.require(listed(items), "item")
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


class Limits(NamedTuple):
    """Which columns may be chosen: all where everything is None."""

    excluded: NDArray[np.bool_] | None = None  # (columns,): for no row
    seen: CSR | None = None  # by code of a row
    without: CSR | None = None  # by place of a row
    only: CSR | None = None  # by place of a row: no others


def _limits(
    model: Model,
    names: Array,
    seen: CSR | None,
    items: Candidates | None,
    exclude: Candidates | None,
    where: Where | None,
) -> Limits:
    """What a request allows; limits that are the same for all users are one mask."""
    if items is None and exclude is None and where is None:
        return Limits(seen=seen)
    n = len(model.items_)
    excluded = np.zeros(n, np.bool_) if where is None else ~allowed_items(model, where)
    only = without = None
    if items is not None:
        lists, shared = _lists(items, names, "items")
        index = model.items_.require([item for one in lists for item in one], "item")
        if shared:
            candidates = np.zeros(n, np.bool_)
            candidates[index] = True
            excluded |= ~candidates
        else:
            only = CSR(row_ends([len(one) for one in lists]), index, np.empty(0, np.float32), n)
    if exclude is not None:
        lists, shared = _lists(exclude, names, "exclude")
        index = model.items_.codes([item for one in lists for item in one])
        known = index >= 0  # an item that the model does not know cannot be recommended anyway
        if shared:
            excluded[index[known]] = True
        else:
            ends = np.append(0, np.cumsum(known))[row_ends([len(one) for one in lists])]
            without = CSR(ends, index[known], np.empty(0, np.float32), n)
    return Limits(excluded if excluded.any() else None, seen, without, only)


def _lists(items: Candidates, names: Array, option: str) -> tuple[list[list[Hashable]], bool]:
    """Lists of ids, and whether there is one for all users instead of one per user, in the order of `names`."""
    if isinstance(items, Mapping):
        missing = [name for name in names.tolist() if name not in items] if option == "items" else []
        if missing:
            raise CorankError(
                f"items= has no candidates for {missing[0]!r} ({len(missing):,} of {len(names):,} users are missing): "
                "give a list for each user, or one list for all"
            )
        return [listed(items.get(name, ())) for name in names.tolist()], False
    flat = listed(items)
    nested = [isinstance(one, Iterable) and not isinstance(one, str | bytes) for one in flat]
    if any(nested) and not all(nested):
        raise CorankError(f"{option}= mixes ids and lists: give one list of ids for all users, or one list per user")
    if not flat or not nested[0]:
        return [flat], True
    if len(flat) != len(names):
        raise CorankError(
            f"{option}= has {len(flat):,} lists for {len(names):,} users: give one list per user, in their order"
        )
    return [listed(one) for one in flat], False


def _rank(n: int, score: Callable[[slice], Array], codes: NDArray[np.int32], k: int, limits: Limits) -> Top:
    """The top k of n columns per row of `score`, in blocks: a users x items array is never allocated."""
    from ..kernels.threads import each, run
    from ..kernels.topk import mask_rows

    width = min(int(k), n)
    items = np.full((codes.size, width), -1, np.int32)
    best = np.full((codes.size, width), -np.inf, np.float32)
    excluded, seen, without, only = limits

    def rank(part: slice) -> None:
        scores = np.ascontiguousarray(score(part), np.float32)
        if only is not None:
            ends = only.indptr[part.start : part.stop + 1]
            pairs = np.repeat(np.arange(len(scores)), np.diff(ends)), only.index[ends[0] : ends[-1]]
            asked = np.full_like(scores, -np.inf)
            asked[pairs] = scores[pairs]
            scores = asked
        if excluded is not None:
            np.copyto(scores, -np.inf, where=excluded)
        if without is not None:
            places = np.arange(part.start, part.stop, dtype=np.int32)
            run(mask_rows, len(scores), scores, places, without.indptr, without.index)
        if seen is not None:
            run(mask_rows, len(scores), scores, codes[part], seen.indptr, seen.index)
        top_k(scores, width, items[part], best[part])

    each(rank, blocks(codes.size, n))
    return items, best


def _popular_first(model: Model, scores: Array, unknown: NDArray[np.bool_]) -> Array:
    """Where a model scores all items of an unknown user equally, they are ranked by their number of training rows."""
    constant = unknown & (scores == scores[:, :1]).all(axis=1)
    count = np.bincount(model.seen_index_, minlength=len(model.items_))
    return np.where(constant[:, None], count.astype(np.float32), scores)


def seen_items(model: Model) -> CSR:
    """The training items of each user, without values."""
    return CSR(model.seen_indptr_, model.seen_index_, np.empty(0, np.float32), len(model.items_))


def row_values(data: Dataset, rows: CSR, mean: bool) -> NDArray[np.float32]:
    """The value of each entry of `data.csr()`; of repeated pairs the sum, or the mean."""
    if not mean or rows.index.size == len(data):
        return rows.value
    counts = dataclasses.replace(data, value=np.ones(len(data), np.float32), values="counts").csr().value
    return np.asarray(rows.value / counts, np.float32)


def training_history(model: Model, user: int) -> CSR:
    """The training items of a user with their values; where these are not stored, with that of an item without one."""
    own = slice(model.seen_indptr_[user], model.seen_indptr_[user + 1])
    index = model.seen_index_[own]
    return CSR(row_ends([index.size]), index, training_values(model)[own], len(model.items_))


def training_values(model: Model) -> NDArray[np.float32]:
    """The stored values of the training rows; where there are none, that of an item of a history without one."""
    stored: NDArray[np.float32] | None = getattr(model, "seen_value_", None)
    if stored is None:
        return np.broadcast_to(np.float32(getattr(model, "liked_", 1)), model.seen_index_.size)
    return stored


def require_fitted(model: Model) -> None:
    if "items_" not in vars(model):
        raise NotFitted(f"this {type(model).__name__} is not fitted: call fit(data) first")


def user_codes(model: Model, users: Any) -> NDArray[np.int32]:
    """Codes of user ids; all users when absent."""
    if users is None:
        return np.arange(len(model.users_), dtype=np.int32)
    return model.users_.require(listed(users), "user")


def _check_k(k: Any, what: str) -> None:
    if not isinstance(k, int | np.integer) or k < 1:
        raise CorankError(f"k={k!r}: {what} must be a whole number of at least 1")


def listed(ids: Any) -> list[Hashable]:
    """One id or many, as a list."""
    if isinstance(ids, str | bytes | int | np.integer):
        return [ids]
    if not isinstance(ids, Iterable):
        raise CorankError(f"a {type(ids).__name__} is not an id or a list of ids: give users and items by their ids")
    return ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
