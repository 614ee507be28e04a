"""New rows, users and items for a fitted model, without a refit.

The vocabularies, the seen items and everything whose declaration (`Model._stores`) names users or items grow first, in
one place; then `Model._absorb` of the model fills in what it can compute for the users and items that the rows touch.
"""

from __future__ import annotations

import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Array, Dataset, Vocab, from_scipy, row_ends
from ..data.columns import text_kind
from ..data.labels import Labels, column_of, labels_of
from ..data.split import require_dataset
from ..errors import CorankError, show
from ..stored import COMMON, Ends, Lengths, Numbers, check_state
from . import inference

if TYPE_CHECKING:
    from ..model import Model

    M = TypeVar("M", bound=Model)


RUNS = 1_000  # of old entries that stay neighbours: above, they are moved one by one


class Growth:
    """An update in progress: the model as it was, and the rows as they are now, over the new vocabularies.

    before : the model that is updated.
    users, items : (old users,), (old items,): the new code of each old one.
    added : the new rows in time order.
    old, rows : CSR (users x items), the training rows before and with the new ones; values are 1 where the model keeps
        none. A new rating replaces that of the same pair; of amounts, such as counts, the sum is kept.
    touched : codes of the users with new rows.
    fresh : codes of the items that have rows now and had none before.
    """

    def __init__(self, before: Model, users: Array, items: Array, added: Dataset, old: CSR, rows: CSR) -> None:
        self.before, self.users, self.items = before, users, items
        self.added, self.old, self.rows = added, old, rows
        self.touched = np.unique(added.user)
        had, has = (np.bincount(part.index, minlength=rows.columns) for part in (old, rows))
        self.fresh = np.flatnonzero((had == 0) & (has > 0)).astype(np.int32)

    @cached_property
    def by_item(self) -> CSR:
        """The rows of the fresh items, (fresh items x users)."""
        mine = np.isin(np.arange(self.rows.columns), self.fresh)[self.rows.index]  # few of all rows
        lengths = np.bincount(owners(self.rows)[mine], minlength=self.rows.rows)
        few = CSR(row_ends(lengths), self.rows.index[mine], self.rows.value[mine], self.rows.columns)
        return from_scipy(few.scipy().T.tocsr()[self.fresh])

    @property
    def new_pairs(self) -> NDArray[np.int64]:
        """The items of the (user, item) pairs that were not there before."""
        key = _keys(self.added.csr())
        return key[~_found(_keys(self.old), key)[1]] % self.rows.columns

    def grown(self, array: Array, axis: int, side: str) -> Array:
        """An array with one entry per user (or item) along an axis, with zeros for the new ones."""
        places = self.users if side == "users" else self.items
        size = self.rows.rows if side == "users" else self.rows.columns
        shape = list(array.shape)
        shape[axis] = size
        out = np.zeros(shape, array.dtype)
        to, old = np.moveaxis(out, axis, 0), np.moveaxis(array, axis, 0)
        cuts = np.flatnonzero(np.diff(places) != 1) + 1
        if cuts.size > RUNS:
            to[places] = old
            return out
        for start, stop in zip([0, *cuts.tolist()], [*cuts.tolist(), places.size], strict=True):
            if stop > start:  # old entries that stay neighbours are moved together
                to[places[start] : places[start] + stop - start] = old[start:stop]
        return out

    def grown_with_means(self, array: Array, side: str) -> Array:
        """An array with one row per user (or item), with the mean of all rows for the new ones."""
        out = self.grown(array, 0, side)
        out[np.setdiff1d(np.arange(len(out)), self.users if side == "users" else self.items)] = array.mean(axis=0)
        return out


def update(model: M, data: Dataset) -> M:
    """See `Model.update`."""
    inference.require_fitted(model)
    require_dataset(data, "update")
    if not len(data):
        raise CorankError("there are no rows to update with: give at least one")
    if model._keeps_values and getattr(model, "seen_value_", None) is None and np.ptp(data.value) > 0:
        raise CorankError(
            f"this {type(model).__name__} was fitted without ratings, or saved by an earlier version, which did not "
            "keep them: fit it again on all rows"
        )
    data = data.compact()
    users, old_users, new_users = _joined(model.users_, data.users, "user")
    items, old_items, new_items = _joined(model.items_, data.items, "item")
    added = Dataset(users, items, new_users[data.user], new_items[data.item], data.value, data.time, values=data.values)
    old = _recoded(model, old_users, old_items, len(users), len(items))
    rows = _with(old, added, replace=model.predicts_ratings or model.needs_ratings)
    growth = Growth(model, old_users, old_items, added, old, rows)
    out = copy.copy(model)
    out.users_, out.items_ = users, items
    out.seen_indptr_, out.seen_index_ = rows.indptr, rows.index
    if model._keeps_values and hasattr(model, "seen_value_"):
        out.seen_value_ = rows.value
    out.titles_, out.labels_ = _labels(model, growth, data, new_items)
    out._finished = None
    _grow(model, out, growth)
    out._absorb(growth)
    try:
        check_state(out, out._learned())
    except ValueError as why:
        raise CorankError(f"{model.name()} cannot be updated with these rows ({why}): fit it again") from None
    return out


def owners(rows: CSR) -> NDArray[np.int64]:
    """The row of each entry."""
    return np.repeat(np.arange(rows.rows, dtype=np.int64), np.diff(rows.indptr))


def _joined(own: Vocab, more: Vocab, what: str) -> tuple[Vocab, NDArray[np.int32], NDArray[np.int32]]:
    """The ids of both, and the code in it of each id of the one and of the other; "12" and 12 are the same id."""
    ids = more.ids
    if own.strings and not more.strings:
        ids = np.array([str(i) for i in ids.tolist()], object)
    elif more.strings and not own.strings:
        if text_kind(ids.tolist()) != "int":
            odd = next(i for i in ids.tolist() if text_kind([i]) != "int")
            raise CorankError(
                f"the new rows have the {what} {show(odd)}, and the {what}s of this model are integers: repair the ids"
            )
        ids = np.array([int(i) for i in ids.tolist()], np.int64)
    if own.strings:
        joined = Vocab(np.array(sorted({*own.ids.tolist(), *ids.tolist()}), object))
    else:
        joined = Vocab(np.union1d(own.ids, ids))
    return joined, joined.codes(own.ids), joined.codes(ids)


def _recoded(model: Model, users: Array, items: Array, n_users: int, n_items: int) -> CSR:
    """The training rows of a model over the new vocabularies; new codes keep the order of the old ones."""
    lengths = np.zeros(n_users, np.int64)
    lengths[users] = np.diff(model.seen_indptr_)
    return CSR(row_ends(lengths), items[model.seen_index_], model._row_values(), n_items)


def _with(old: CSR, added: Dataset, *, replace: bool) -> CSR:
    """The rows with the new ones; of pairs that are in both, the new value or the sum."""
    new = added.csr()
    more = inference.row_values(added, new, mean=replace)
    # Both are sorted, so the few new entries are put between the many old ones, which are not sorted again.
    keys, key = _keys(old), _keys(new)
    place, there = _found(keys, key)
    value = np.array(old.value, np.float32)
    kept = place[there]
    value[kept] = more[there] if replace else value[kept].astype(np.float64) + more[there]
    lengths = np.diff(old.indptr) + np.bincount(key[~there] // new.columns, minlength=new.rows)
    at = place[~there]
    index, value = np.insert(old.index, at, new.index[~there]), np.insert(value, at, more[~there])
    return CSR(row_ends(lengths), index, value, new.columns)


def _keys(rows: CSR) -> NDArray[np.int64]:
    """A number per entry that rises with its row and, within a row, with its column."""
    return owners(rows) * np.int64(rows.columns) + rows.index


def _found(keys: NDArray[np.int64], wanted: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where each of `wanted` stands, or would stand, in the sorted `keys`, and whether it is there."""
    place = np.searchsorted(keys, wanted)
    there = np.zeros(wanted.size, np.bool_)
    inside = place < keys.size
    there[inside] = keys[place[inside]] == wanted[inside]
    return place, there


def _labels(model: Model, growth: Growth, data: Dataset, new_items: Array) -> tuple[list[str], Labels]:
    """Titles and labels of all items; those of the new rows count for items that the model did not know."""
    n = growth.rows.columns
    place = np.full(n, -1, np.int64)
    place[growth.items] = np.arange(growth.items.size)
    labels = dict(model.labels_.take(place).columns)
    titles = [model.titles_[at] if at >= 0 else "" for at in place.tolist()] if model.titles_ else []
    unknown = np.flatnonzero(place[new_items] < 0)
    at = new_items[unknown]
    # Of many items of the new rows, few are new: of labels whose kind is known, only these are read.
    told, few = data.item_labels if unknown.size else {}, {*labels, "title"}
    found_in = labels_of({name: _some(values, unknown) for name, values in told.items() if name in few}).columns
    rest = labels_of({name: values for name, values in told.items() if name not in few}).take(unknown).columns
    for name, column in {**found_in, **rest}.items():
        if name == "title":
            titles = titles or [""] * n
            for code, title in zip(at.tolist(), column.listed(), strict=True):
                titles[code] = title or ""
            continue
        found = labels[name].filled(at, column) if name in labels else None
        if found is None:  # a new label, or one of another kind
            entries: list[Any] = labels[name].listed() if name in labels else [None] * n
            for code, entry in zip(at.tolist(), column.listed(), strict=True):
                entries[code] = entry
            found = column_of(entries)
        if found is not None:
            labels[name] = found
    return titles, Labels(labels)


def _some(values: Any, rows: Array) -> Any:
    """Some entries of a column."""
    return values[rows] if isinstance(values, np.ndarray) else [values[row] for row in rows.tolist()]


def _grow(model: Model, out: Model, growth: Growth) -> None:
    """Everything that is declared to have one entry per user or item gets zeros for the new ones; codes are renewed."""
    for name, rule in model._stores().items():
        if name in COMMON or name == "seen_value_" or not hasattr(model, name):
            continue
        value = getattr(model, name)
        if isinstance(rule, Numbers):
            if rule.below == "items":
                value = growth.items[value].astype(value.dtype)
            for axis, word in enumerate(rule.shape):
                if word in ("users", "items"):
                    value = growth.grown(value, axis, str(word))
        elif isinstance(rule, Ends) and rule.of in ("users", "items"):
            value = row_ends(growth.grown(np.diff(value), 0, rule.of))
        elif isinstance(rule, Lengths) and rule.of in ("users", "items"):
            value = growth.grown(value, 0, rule.of)
        else:
            continue
        setattr(out, name, value)
