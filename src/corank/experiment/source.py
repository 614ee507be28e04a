"""The data of an experiment: open or generate the rows, then split them."""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Array, Dataset
from ..data.given import align
from ..data.split import Split
from ..errors import CorankError, several, show, suggest
from .schema import SPLIT_FUNCTIONS, SPLITS, split_mistakes

logger = logging.getLogger("corank")
DRAW_USERS = ("strong_generalization", "cold_users")  # the seed decides which users are tested


def open_rows(source: str | Path, *, positive: float | None = None, **columns: Any) -> Dataset:
    """The rows of a file or of a named dataset, without those below `positive`."""
    from ..datasets import open_any

    return _at_least(positive, open_any(source, **columns))


def _at_least(positive: float | None, data: Dataset) -> Dataset:
    if positive is None:
        return data
    if not math.isfinite(positive):
        raise CorankError(f"positive = {positive}: it must be a finite number, such as 4")
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
    test: Dataset | str | Path | None,
    valid: Dataset | str | Path | None,
    ordered: bool,
    seed: int,
) -> Dataset | Split:
    """The rows, or the split that is given or that the data comes with, as it is; see the fields of `Experiment`.

    A split other than 'auto' and 'published' divides all rows anew, which is said.
    """
    edges = (user_edges, item_edges)
    split = _named(split)
    if valid is not None and test is None:
        raise CorankError(f"valid = {str(valid)!r} needs test rows beside it: give test = ... (--test) too")
    if test is not None:
        if ties := rule_alone(split):
            raise _already_divided(ties, f"test = {_name(test)!r} is a part of its own")
        if split != "auto":
            raise CorankError(
                f"split {split!r} divides the rows, and test = {_name(test)!r} has divided them: drop one"
            )
        if isinstance(data, Mapping):
            raise CorankError("test rows cannot be given for generated data: leave test out")
        given = {"train": data, "valid": valid, "test": test}
        # The smaller files first: a mistyped name is found before the training rows are read.
        rows = {part: _part(given[part], columns, positive) for part in reversed(given) if given[part] is not None}
        files = ", ".join(_name(source) for source in given.values() if isinstance(source, str | Path))
        name = f"given split ({files})" if files else "given split"
        return align(rows["train"].with_graph(*edges), rows["test"], rows.get("valid"), name=name)
    if isinstance(data, str | Path):
        from ..datasets import open_split, split_name

        if split in ("auto", "published") or rule_alone(split):
            own = open_split(data, ordered=ordered and split != "published", **dict(columns))
            if own is not None and (ties := rule_alone(split)):
                raise _already_divided(ties, f"the data comes with {own.name}")
            if own is not None:
                return _changed(own, positive, *edges)
        elif (unused := split_name(data)) is not None:
            logger.warning("%s is not used: split %r divides all rows anew", unused, split)
    if split == "published":
        raise CorankError(
            "split 'published' is for data with a split of its own, such as ml-1m-wu-200 or a folder with train.csv "
            f"and test.csv, and these are plain rows: choose another{suggest('', SPLITS)}"
        )
    if isinstance(data, Mapping):
        from ..datasets.synthetic import made as generated

        found = generated(data, seed)
        if positive is None and found.split is not None and (ties := rule_alone(split)):
            raise _already_divided(ties, f"the data comes with {found.split.name}")
        if split == "auto" and positive is None and found.split is not None:
            return found.split
        return _at_least(positive, found.data).with_graph(*edges)
    # The graph is last, so that users with edges but without rows are kept.
    return _part(data, columns, positive).with_graph(*edges)


def _named(split: str | Mapping[str, Any]) -> str | Mapping[str, Any]:
    """A table with nothing but a name is that name; an empty one is the default."""
    return split if isinstance(split, str) or split.keys() - {"name"} else str(split.get("name", "auto"))


def rule_alone(split: str | Mapping[str, Any]) -> str:
    """The rule for equal timestamps where no split is named beside it, {name = 'auto', ties = ...}; else empty."""
    return "" if isinstance(split, str) or split.get("name") != "auto" else str(split.get("ties", ""))


def _already_divided(ties: str, why: str) -> CorankError:
    return CorankError(
        f"ties = {show(ties)} orders the rows before they are divided, and {why}: leave ties out, or choose split "
        "'leave_last_out' or 'time_cut'"
    )


def _part(rows: Any, columns: Mapping[str, Any], positive: float | None) -> Dataset:
    if isinstance(rows, str | Path):
        return open_rows(rows, positive=positive, **dict(columns))
    return _at_least(positive, rows)


def _changed(split: Split, positive: float | None, *edges: str | Path | None) -> Split:
    """A split without rows below `positive`, and with these graphs."""
    if positive is None and not any(edges):
        return split
    parts = [_at_least(positive, part) if len(part) else part for part in (split.train, split.test, split.valid)]
    return align(parts[0].with_graph(*edges), *parts[1:], name=split.name)


def _name(source: object) -> str:
    return Path(source).name if isinstance(source, str | Path) else type(source).__name__


def cut(
    data: Dataset, split: str | Mapping[str, Any], *, rated: bool = False, ordered: bool = False, seed: int = 0
) -> Split:
    """Split the rows, by a name or a table {name = ..., seed = ...}.

    rated : the task is to order a user's ratings, so that 'auto' does not split by time.
    ordered : the task depends on the order of the rows, so that 'auto' takes that of the file where there are no times.
    """
    if wrong := list(split_mistakes("split", split)):
        raise several(wrong)
    split = _named(split)
    options = {"name": split} if isinstance(split, str) else dict(split)
    name = options.pop("name")
    if name == "auto":
        # By time where there are timestamps; without them the last row has no meaning.
        by_order = (data.time is not None or ordered) and not rated
        # A tenth of fewer than ten rows is none, and searches need validation rows.
        short = np.median(np.unique(data.user, return_counts=True)[1]) < 10
        name = "leave_last_out" if by_order else "holdout"
        if options and not by_order:
            raise CorankError(
                f"ties = {show(options['ties'])} is for splits by time, and the rows are divided at random here: leave "
                "ties out, or choose split 'leave_last_out' or 'time_cut'"
            )
        options = options if by_order else {"by": "user", "valid": 0.2 if short else 0.1}
    if "seed" in SPLITS[name]:
        options = {"seed": seed, **options}
    notes: tuple[str, ...] = ()
    if data.time is None and (ordered or name == "leave_last_out"):
        if name == "leave_last_out":
            notes = ("no times: the order of the file is the order of events",)
        else:
            notes = (f"no times, and {name} does not look at the order of the file",)
        logger.warning(*notes)
    if data.time is not None and "ties" in SPLITS[name] and len(data) and np.ptp(data.time) == 0:
        by = "item ids are" if options.get("ties") == "item" else "order of the file is"
        notes = (f"all times are equal: the {by} the order of events",)
        logger.warning(*notes)
    return dataclasses.replace(SPLIT_FUNCTIONS[name](data, **options), notes=notes)


def overlap(parts: Sequence[Split]) -> float:
    """The share of the test rows of the later splits that are validation rows of the first one.

    Hyper-parameters are chosen on the latter, so such test rows are not quite unseen.
    """
    chosen_on, items = parts[0].valid, len(parts[0].train.items)
    later = [part.test for part in parts[1:]]
    total = sum(map(len, later))
    if not total or not len(chosen_on):
        return 0.0
    known = _pairs(chosen_on, items)
    return sum(int(np.isin(_pairs(test, items), known).sum()) for test in later) / total


def _pairs(data: Dataset, items: int) -> Array:
    return data.user.astype(np.int64) * items + data.item


def same_rows(one: Dataset, other: Dataset) -> bool:
    """Whether two datasets have the same rows."""
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("user", "item", "value"))
