"""Histories of unseen users: from lists, mappings or a dataset to rows of item codes."""

from __future__ import annotations

import logging
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Array, Dataset, row_ends
from ..data.columns import id_array, plain
from ..errors import CorankError

if TYPE_CHECKING:
    from ..model import Model

logger = logging.getLogger("corank")

Listed = Sequence[Iterable[Hashable] | Mapping[Hashable, float]] | Mapping[Hashable, Iterable[Hashable]]
Histories = Listed | Dataset | CSR


def read_histories(model: Model, histories: Histories) -> tuple[Array, CSR]:
    """(names, rows of item codes) of external histories; unknown items are left out with a warning.

    A CSR holds item codes already, as a service keeps them.
    """
    if isinstance(histories, CSR):
        return np.arange(histories.rows), histories
    if isinstance(histories, Dataset):
        rows = histories.sequences()
        every = histories.items.ids
        codes = model.items_.codes(every)[rows.index] if len(every) else np.zeros(0, np.int32)
        names, values, indptr, words = histories.users.ids, rows.value, rows.indptr, every[rows.index]
    else:
        names, lists, values = _history_lists(model, histories)
        flat = [item for one in lists for item in one]
        codes, indptr = model.items_.codes(flat), row_ends([len(one) for one in lists])
        words = np.array([*flat, None], object)[:-1]  # None keeps tuples from becoming rows
    known = codes >= 0
    if not known.all():
        given, indptr = np.diff(indptr), np.append(0, np.cumsum(known))[indptr]
        _say_unknown(model, words[~known].tolist(), known.size, given, np.diff(indptr))
        codes, values = codes[known], values[known]
    return names, CSR(indptr, codes.astype(np.int32), values, len(model.items_))


def _history_lists(model: Model, histories: Any) -> tuple[Array, list[list[Hashable]], NDArray[np.float32]]:
    """Names, item ids and values of histories that are given as lists or mappings."""
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
    return names, lists, np.array(values, np.float32)


def _say_unknown(model: Model, unknown: list[Any], items: int, given: Array, left: Array) -> None:
    """Warn about unknown items; an error if no history has a known one. given, left : items per history."""
    if not left.any():
        try:
            model.items_.require(unknown[:1], "item")
        except CorankError as why:
            all_of_them = f"none of the {items:,} items of the histories is known; " if items > 1 else ""
            raise CorankError(f"{all_of_them}{why}") from None
    shown = ", ".join(repr(plain(item)) for item in unknown[:3]) + (", ..." if len(unknown) > 3 else "")
    logger.warning(
        "skipped %s of %s items of the histories, which the model does not know: %s",
        f"{len(unknown):,}",
        f"{items:,}",
        shown,
    )
    empty = np.count_nonzero((given > 0) & (left == 0))
    if empty:
        logger.warning(
            "%s of %s histories have no known item: they are treated as empty", f"{empty:,}", f"{left.size:,}"
        )


def _value(value: Any) -> float:
    """The value of an item in a history."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not abs(number) <= float(np.finfo(np.float32).max):  # so that NaN is refused too
        raise CorankError(f"a history holds the value {value!r}: the values of a history must be finite numbers")
    return number
