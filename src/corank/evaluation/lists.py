"""The metrics of recommendation lists of any origin, computed as for a model under full ranking."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answering.ranking import Ranking
from ..data import Array, Dataset
from ..data.split import Split
from ..errors import CorankError
from ..reading.lists import Lists, read_lists
from .metrics import Metric
from .positions import Positions
from .protocol import Protocol
from .ranks import Counts, Task, popularity


class Entries(NamedTuple):
    """The rows of the lists that count, by user and place; users are numbered as in the task."""

    user: Array
    item: Array  # code; -1 is an unknown item, which takes its place all the same
    place: Array  # from 0
    above: Array  # entries of the user with a better key
    tied: Array  # entries of the user with the same key, itself included


def rank_lists(
    lists: Any, split: Split, known: Dataset, how: Protocol, task: Task, wanted: tuple[Metric, ...]
) -> tuple[Positions, Ranking | None, tuple[str, ...]]:
    """The positions of the test rows in the lists, the lists if a metric needs them, and remarks for the report.

    Items that the user has among the known rows are removed, as full ranking excludes them. A test item that is not in
    the list of its user is ranked below all k.
    """
    if how.kind != "full":
        raise CorankError(
            f"lists rank no other items than their own: evaluate them with protocol='full', not {how.kind!r}"
        )
    given = _of_ranking(lists) if isinstance(lists, Ranking) else read_lists(lists)
    users, items = split.train.users, split.train.items
    user, item = given.codes(users, items)
    row_of = np.full(len(users) + 1, -1)  # the last entry is for unknown users
    row_of[task.users] = np.arange(task.users.size)
    tested = row_of[user] >= 0
    if not tested.any():
        raise CorankError(f"no list is for a test user of {split.name}: check the user column and its ids")
    entries, repeated, seen = _entries(row_of[user[tested]], item[tested], given.key[tested], task, known)
    lengths = np.bincount(entries.user, minlength=task.users.size)
    if not lengths.any():
        raise CorankError(f"all {seen:,} listed items are known from training or validation rows: list other items")
    candidates = _candidates(task, known)
    _check_metrics(wanted, int(lengths.max()), int(candidates.max()))

    longest = max(m.k or 0 for m in wanted)
    unknown_users = given.user.filter(user < 0).n_unique() if (user < 0).any() else 0
    odd = {
        f"test users without a list, who count as 0 (of {lengths.size:,})": np.count_nonzero(lengths == 0),
        f"lists with fewer than {longest} items, whose missing ranks are misses": np.count_nonzero(
            (lengths > 0) & (lengths < np.minimum(longest, candidates))
        ),
        "listed items known from training or validation rows, removed": seen,
        "items listed twice for a user, of which the first counts": repeated,
        "listed items unknown to the data, which are misses": np.count_nonzero(item[tested] < 0),
        "lists of unknown users, left out": unknown_users,
        "lists of users without test rows, left out": np.unique(user[~tested & (user >= 0)]).size,
    }
    notes = [f"lists in order of {given.by}, {lengths[lengths > 0].mean():.4g} items on average"]
    notes += [f"{what}: {number:,}" for what, number in odd.items() if number]
    counts = _counts(entries, task, candidates, len(items))
    if (counts.above == len(items)).all():
        notes.append("no test item is in any list: lists that were made from all rows leave them out as seen")
    more: dict[str, Any] = {"gain": how.gain}
    ranking = None
    if any("top" in m.needs for m in wanted):
        more |= popularity(split)
        top = np.full((task.users.size, longest), -1, np.int32)
        first = entries.place < longest
        top[entries.user[first], entries.place[first]] = entries.item[first]
        scores = np.where(top >= 0, -np.arange(longest), -np.inf).astype(np.float32)
        ranking = Ranking(users.ids[task.users], top, scores, items)
        counts = dataclasses.replace(counts, top=top, top_scores=scores)
    return task.positions(counts, **more), ranking, tuple(notes)


def _of_ranking(ranking: Ranking) -> Lists:
    import polars as pl

    frame = ranking.to_frame(titles=False)
    asked, listed = ranking.columns
    return Lists(frame[asked], frame[listed], frame["rank"].cast(pl.Float64).to_numpy(), "rank")


def _entries(user: Array, item: Array, key: Array, task: Task, known: Dataset) -> tuple[Entries, int, int]:
    """The entries that count; the number of repeated ones and that of known items, which are removed."""
    order = np.lexsort((key, user))
    user, item, key = user[order], item[order], key[order]
    n = len(known.items)
    pair = user.astype(np.int64) * n + item
    first = np.zeros(pair.size, np.bool_)
    first[np.unique(pair, return_index=True)[1]] = True
    repeated = (item >= 0) & ~first
    tested = np.isin(pair, _pairs(task, n))
    seen = (item >= 0) & ~repeated & ~tested & known.csr().holds(task.users[user], np.maximum(item, 0))
    kept = ~(repeated | seen)
    user, item, key = user[kept], item[kept], key[kept]
    at = np.arange(user.size)
    new_user = np.append(True, user[1:] != user[:-1])[: user.size]
    new_key = new_user | np.append(True, key[1:] != key[:-1])[: user.size]
    start = np.maximum.accumulate(np.where(new_user, at, 0))
    group = np.cumsum(new_key) - 1
    above = np.flatnonzero(new_key)[group] - start
    entries = Entries(user, item, at - start, above, np.bincount(group)[group])
    return entries, int(repeated.sum()), int(seen.sum())


def _pairs(task: Task, n: int) -> NDArray[np.int64]:
    """The (user, item) pairs to predict as single numbers; users are numbered as in the task."""
    return np.repeat(np.arange(task.users.size), np.diff(task.indptr)) * n + task.item


def _candidates(task: Task, known: Dataset) -> NDArray[np.int64]:
    """[users] the number of items that full ranking ranks: all but the known ones, and the test items."""
    rows = known.csr()
    user = np.repeat(task.users, np.diff(task.indptr))
    again = np.add.reduceat(rows.holds(user, task.item), task.indptr[:-1], dtype=np.int64)
    return np.asarray(len(known.items) - np.diff(rows.indptr)[task.users] + again, np.int64)


def _counts(entries: Entries, task: Task, candidates: NDArray[np.int64], n: int) -> Counts:
    """The places of the test rows among n items; one that is not listed is below every list."""
    listed = np.flatnonzero(entries.item >= 0)
    pair = entries.user[listed].astype(np.int64) * n + entries.item[listed]
    order = np.argsort(pair)
    wanted = _pairs(task, n)
    at = np.append(order, -1)[np.searchsorted(pair, wanted, sorter=order)]
    found = np.append(pair, -1)[at] == wanted
    row = np.append(listed, 0)[at]
    above = np.where(found, entries.above[row], n).astype(np.int32)
    tied = np.where(found, entries.tied[row], 1).astype(np.int32)
    return Counts(-above.astype(np.float32), above, tied, candidates, None, None)


def _check_metrics(wanted: tuple[Metric, ...], longest: int, candidates: int) -> None:
    for m in wanted:
        if "prediction" in m.needs or m.k is None:
            hint = f": write '{m.name}@{longest}'" if m.name in ("ndcg", "map", "mrr", "hlu") else ""
            raise CorankError(f"{m.name} cannot be computed from lists, which end somewhere: it needs all ranks{hint}")
        if m.k > max(longest, 0) and longest < candidates:
            raise CorankError(
                f"{m.name} needs lists of {m.k} items, and the longest of these has {longest}: make longer lists, or "
                f"use '{m.name.partition('@')[0]}@{longest}'"
            )
