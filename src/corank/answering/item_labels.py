"""Labels and titles of the items of a fitted model, attached from a table of items."""

from __future__ import annotations

import copy
import logging
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..data.given import codes_in
from ..data.labels import Labels
from ..errors import CorankError, NotFitted

if TYPE_CHECKING:
    from ..model import Model

    M = TypeVar("M", bound=Model)

logger = logging.getLogger("corank")


def attached(model: M, table: Any) -> M:
    """See `Model.with_items`."""
    from ..reading.item_tables import item_table

    if "items_" not in vars(model):
        raise NotFitted(f"this {type(model).__name__} is not fitted: call fit(data) first")
    table = item_table(table)
    codes = codes_in(model.items_, table.items)
    known = np.flatnonzero(codes >= 0)
    if not known.size:
        raise CorankError(
            f"none of the {len(table):,} items of the table is known to the model: check which column has the ids "
            "(item_table(..., item=NAME))"
        )
    rows = np.full(len(model.items_), -1, np.int64)
    rows[codes[known]] = known
    missing = np.count_nonzero(rows < 0)
    if missing:
        logger.warning("%s of %s items of the model are not in the item table", f"{missing:,}", f"{rows.size:,}")
    labels = table.labels.take(rows)
    out = copy.copy(model)
    titles = labels.columns.get("title")
    if titles is not None:
        out.titles_ = [title or "" for title in titles.listed()]
    known_values = [column.listed() for column in model.labels_.columns.values()]
    new = {
        name: column
        for name, column in labels.without("title").columns.items()
        # A column without a name, such as the genres of MovieLens' movies.dat, may be one that the model has.
        if not (name.isdigit() and column.listed() in known_values)
    }
    out.labels_ = Labels({**model.labels_.columns, **new})
    return out
