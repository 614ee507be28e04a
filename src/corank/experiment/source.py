"""The data of an experiment: open or generate the rows, then split them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Dataset
from ..data import split as splits
from ..data.split import Split
from ..errors import CorankError, suggest

SPLITS = ("leave_last_out", "holdout", "time_cut", "fixed_per_user", "strong_generalization", "cold_users")
DRAW_USERS = ("strong_generalization", "cold_users")  # the seed decides which users are tested
COLUMNS = ("user", "item", "value", "time", "separator", "header", "duplicates", "values")


def open_rows(source: str | Path, *, positive: float | None = None, **columns: Any) -> Dataset:
    """The rows of a file or of a named dataset, without those below `positive`."""
    from ..datasets import open_any

    return _at_least(positive, open_any(source, **columns))


def _at_least(positive: float | None, data: Dataset) -> Dataset:
    if positive is None:
        return data
    data = data.take(data.value >= positive).compact()
    if len(data) == 0:
        raise CorankError(f"no row has a value of {positive:g} or more: lower positive")
    return data


def opened(
    data: Dataset | str | Path | Mapping[str, Any],
    *,
    columns: Mapping[str, Any],
    positive: float | None,
    user_edges: str | Path | None,
    item_edges: str | Path | None,
    split: str | Mapping[str, Any],
    seed: int,
) -> Dataset | Split:
    """The rows, or a split where the data comes with its own; see the fields of `Experiment`."""
    if split == "published":
        if not isinstance(data, str | Path):
            raise CorankError(
                "split 'published' is for an experiment file that names a dataset with a split of its own, such as "
                f"data = 'ml-1m-wu-200', and these are plain rows: choose another{suggest('', SPLITS)}"
            )
        from ..datasets import load_split

        return load_split(str(data))
    if isinstance(data, Mapping):
        from ..datasets.synthetic import made

        found = made(data, seed)
        if split == "auto" and positive is None and found.split is not None:
            return found.split
        rows = _at_least(positive, found.data)
    elif isinstance(data, Dataset):
        rows = _at_least(positive, data)
    else:
        rows = open_rows(data, positive=positive, **dict(columns))
    return rows.with_graph(user_edges, item_edges)  # last, so that users with edges but without rows are kept


def cut(data: Dataset, split: str | Mapping[str, Any], *, rated: bool, seed: int) -> Split:
    """Split the rows, by a name or a table {name = ..., seed = ...}.

    rated : the task is to order a user's ratings, so that 'auto' does not split by time.
    """
    options = {"name": split} if isinstance(split, str) else dict(split)
    name = options.pop("name", "auto")
    if name == "auto":
        # By time where there are timestamps; without them the last row has no meaning.
        if options:
            raise CorankError(f"split: {next(iter(options))!r} needs a name beside it{suggest('', SPLITS)}")
        ordered = data.time is not None and not rated
        name, options = ("leave_last_out", {}) if ordered else ("holdout", {"by": "user"})
    if name not in SPLITS:
        raise CorankError(f"there is no split {name!r}{suggest(str(name), SPLITS)}")
    function = getattr(splits, name)
    if "seed" in inspect.signature(function).parameters:
        options = {"seed": seed, **options}
    known = [p for p in inspect.signature(function).parameters if p != "data"]
    for key in options:
        if key not in known:
            raise CorankError(f"split {name} has no option {key!r}{suggest(str(key), known or ['none'])}")
    try:
        return function(data, **options)  # type: ignore[no-any-return]
    except TypeError:
        given = ", ".join(f"{k}={v!r}" for k, v in options.items())
        needed = [k for k, p in inspect.signature(function).parameters.items() if k != "data" and p.default is p.empty]
        missing = [k for k in needed if k not in options]
        why = f"{missing[0]} must be given, e.g. {missing[0]} = 50" if missing else "an option has the wrong type"
        raise CorankError(f"split {name}({given}): {why}") from None


def same_rows(one: Dataset, other: Dataset) -> bool:
    """Whether two datasets have the same rows."""
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("user", "item", "value"))
