"""Metrics: functions of where the test items stand.

A metric takes `Positions` and gives one number a user, NaN where it is not defined for that user (nothing relevant to
find); such users are left out of the mean. Every ranking metric is a function of two counts a test row, `above` and
`tied`, and is the exact expectation over random tie-breaking: a constant scorer scores like chance, whatever the order
of the catalogue.

    metric("ndcg@10")                 a metric by name
    lambda p: precision(p, 5) > 0     a function of Positions goes wherever a name goes
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data import Array
from ..errors import CorankError, suggest

Floats = NDArray[np.float64]


class Groups(NamedTuple):
    """Sets of equal scores that hold relevant rows, by user and falling score; all int64."""

    indptr: Array  # [users + 1]
    above: Array  # [groups] candidates that score higher
    tied: Array  # [groups] candidates in the group
    held: Array  # [groups] relevant ones of them
    before: Array  # [groups] relevant ones in the user's groups before


@dataclass(frozen=True, eq=False)
class Positions:
    """Everything a metric may look at. Rows are test rows, grouped by user; users are numbered 0..n-1 here."""

    indptr: NDArray[np.int64]  # [n + 1] rows of each user
    above: NDArray[np.int32]  # [rows] candidates that score strictly higher
    tied: NDArray[np.int32]  # [rows] candidates that score the same, itself included
    scores: Floats  # [rows]
    value: NDArray[np.float32]  # [rows] ratings
    relevant: NDArray[np.bool_]  # [rows] what the binary metrics look for
    candidates: NDArray[np.int64]  # [n] length of each user's list
    prediction: Floats | None = None  # [rows] predicted ratings, when asked for
    top: NDArray[np.int32] | None = None  # [n, k] best items, -1 padded, when asked for; ties by item code
    owners: NDArray[np.int64] | None = None  # [items] training users who have the item, when asked for
    train_users: int = 0

    @classmethod
    def of_lists(
        cls, indptr: Array, scores: Array, value: Array, relevant: Array | None = None, **more: Any
    ) -> Positions:
        """Positions when the list of each user is just its rows, ranked by `scores`."""
        scores = np.asarray(scores, np.float64)
        indptr = np.asarray(indptr, np.int64)
        lengths = np.diff(indptr)
        user = np.repeat(np.arange(lengths.size), lengths)
        order = np.lexsort((-scores, user))
        ordered, owner = scores[order], user[order]
        starts = np.flatnonzero(np.r_[True, (owner[1:] != owner[:-1]) | (ordered[1:] != ordered[:-1])][: order.size])
        sizes = np.diff(np.r_[starts, order.size])
        above, tied = np.empty(order.size, np.int32), np.empty(order.size, np.int32)
        above[order] = np.repeat(starts - indptr[owner[starts]], sizes)
        tied[order] = np.repeat(sizes, sizes)
        every = np.ones(order.size, np.bool_) if relevant is None else np.asarray(relevant, np.bool_)
        return cls(indptr, above, tied, scores, np.asarray(value, np.float32), every, lengths, **more)

    @property
    def users(self) -> int:
        return self.indptr.size - 1

    @cached_property
    def user(self) -> NDArray[np.int64]:
        """[rows] the user of each row."""
        return np.repeat(np.arange(self.users), np.diff(self.indptr))

    @cached_property
    def n_relevant(self) -> NDArray[np.int64]:
        """[n] relevant rows of each user."""
        return np.bincount(self.user[self.relevant], minlength=self.users)

    @cached_property
    def groups(self) -> Groups:
        """The tie groups of the relevant rows."""
        user, above, tied = self.user[self.relevant], self.above[self.relevant], self.tied[self.relevant]
        order = np.lexsort((above, user))
        user, above = user[order], above[order]
        starts = np.flatnonzero(np.r_[True, (user[1:] != user[:-1]) | (above[1:] != above[:-1])][: order.size])
        count = np.diff(np.r_[starts, order.size])
        relevant_from = np.r_[0, np.cumsum(self.n_relevant)]
        indptr = np.r_[0, np.cumsum(np.bincount(user[starts], minlength=self.users))].astype(np.int64)
        return Groups(
            indptr,
            above[starts].astype(np.int64),
            tied[order][starts].astype(np.int64),
            count,
            starts - relevant_from[user[starts]],
        )

    def sum(self, rows: Array) -> Floats:
        """Sum over the rows of each user."""
        return np.bincount(self.user, rows, minlength=self.users).astype(np.float64)

    def ideal_rank(self) -> NDArray[np.int64]:
        """[rows] places from 0 if the user's rows were ranked by their value."""
        order = np.lexsort((-self.value, self.user))
        rank = np.empty(order.size, np.int64)
        rank[order] = np.arange(order.size) - self.indptr[self.user[order]]
        return rank


# ---- the metrics -----------------------------------------------------------------------------------------------------


def ndcg(p: Positions, k: int | None = None) -> Floats:
    """Normalised discounted cumulative gain: gain 2^rating - 1 (0 for ratings below 0), discount 1 / log2(rank + 1).

    The ideal is the user's test rows in order of rating, cut at k too.
    """
    # Only ratios of gains matter: counting from the user's largest rating keeps 2^5000 (a play count) finite.
    value = np.maximum(p.value.astype(np.float64), 0)
    largest = np.zeros(p.users)
    np.maximum.at(largest, p.user, value)
    gain = np.exp2(value - largest[p.user]) - np.exp2(-largest[p.user])
    return _normalised(p, gain, lambda rank: 1 / np.log2(rank + 2), k)


def hlu(p: Positions, k: int | None = None, *, neutral: float = 0.0, half_life: float = 5.0) -> Floats:
    """Half-life utility: max(rating - neutral, 0) / 2^((rank - 1) / (half_life - 1)), over the ideal order's."""
    if half_life <= 1:
        raise CorankError(f"half_life={half_life}: the rank at which interest has halved must be above 1; 5 is usual")
    gain = np.maximum(p.value.astype(np.float64) - neutral, 0)
    return _normalised(p, gain, lambda rank: np.exp2(-rank / (half_life - 1)), k)


def precision(p: Positions, k: int) -> Floats:
    """Share of the first k places that hold relevant items (always of k, also when the list is shorter)."""
    return np.where(p.n_relevant > 0, _found(p, k) / k, np.nan)


def recall(p: Positions, k: int) -> Floats:
    """Share of the user's relevant items that are among the first k."""
    return _ratio(_found(p, k), p.n_relevant)


def hit(p: Positions, k: int) -> Floats:
    """1 when at least one relevant item is among the first k, else 0 (a chance in between where ties decide)."""
    return _first(p, k)[1]


def mrr(p: Positions, k: int | None = None) -> Floats:
    """1 / rank of the first relevant item, 0 when it is not among the first k."""
    return _first(p, k)[0]


def average_precision(p: Positions, k: int | None = None) -> Floats:
    """Mean of the precisions at the ranks of the relevant items within the first k.

    Divided by min(k, number of relevant items), so that a perfect list scores 1 for any k.
    """
    from ..kernels.ranks import precision_sum
    from ..kernels.threads import run

    g, out, cut = p.groups, np.zeros(p.users), _cut(p, k)
    run(precision_sum, p.users, g.indptr, g.above, g.tied, g.held, cut, out)
    return _ratio(out, np.minimum(p.n_relevant, cut))


def auc(p: Positions) -> Floats:
    """Chance that a relevant item is ranked above one that is not, ties counting half; both kinds must exist."""
    g = p.groups
    owner = np.repeat(np.arange(p.users), np.diff(g.indptr))
    worse = g.held * ((g.above - g.before) + (g.tied - g.held) / 2)
    pairs = p.n_relevant * (p.candidates - p.n_relevant)
    return 1 - _ratio(np.bincount(owner, worse, minlength=p.users), pairs)


def rmse(p: Positions) -> Floats:
    """Mean squared error of the predicted ratings; the report takes the root of the mean over all rows."""
    return _ratio(p.sum((_predicted(p) - p.value) ** 2), np.diff(p.indptr))


def mae(p: Positions) -> Floats:
    """Mean absolute error of the predicted ratings; the report takes the mean over all rows."""
    return _ratio(p.sum(np.abs(_predicted(p) - p.value)), np.diff(p.indptr))


def pairwise_error(p: Positions) -> Floats:
    """Share of the user's pairs with different ratings that are in the wrong order, equal scores counting half."""
    wrong, tied, comparable = _pairs(p)
    return _ratio(wrong + tied / 2, comparable)


def pairwise_error_authors(p: Positions) -> Floats:
    """As the dissertation's programs count: wrong or equally scored pairs over ALL pairs, equal ratings included.

    It is lower than `pairwise_error` by the share of equal ratings (about 0.7 on MovieLens-1M) and is here to compare
    with print.
    """
    wrong, tied, _ = _pairs(p)
    lengths = np.diff(p.indptr)
    return _ratio(wrong + tied, lengths * (lengths - 1) // 2)


def coverage(p: Positions, k: int) -> Floats:
    """Share of the catalogue that is in somebody's top k: one number for all users, float64[1]."""
    top, owners = _top(p, k)
    return np.array([np.unique(top[top >= 0]).size / owners.size])


def novelty(p: Positions, k: int) -> Floats:
    """Mean of -log2(share of training users who have the item) over the top k; nobody counts as one."""
    top, owners = _top(p, k)
    surprise = -np.log2(np.maximum(owners, 1) / max(p.train_users, 1))
    return _ratio(np.where(top >= 0, surprise[top], 0).sum(axis=1), (top >= 0).sum(axis=1))


# ---- found by name ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Metric:
    """A metric with what the evaluation must know of it.

    scope : 'user' = the mean over users; 'row' = the mean over all rows (a user weighs as many as there are); 'all' =
    one number. needs : 'prediction' (ratings) or 'top' (lists of the best items), beyond the counts. root : the figure
    is the root of the mean.
    """

    name: str
    k: int | None
    function: Callable[[Positions], Floats]
    higher_is_better: bool = True
    needs: frozenset[str] = frozenset()
    scope: Literal["user", "row", "all"] = "user"
    root: bool = False

    def finish(self, mean: Any) -> Any:
        """From the mean of what `function` gave to the figure that is shown."""
        return np.sqrt(mean) if self.root else mean


class _Kind(NamedTuple):
    function: Callable[..., Floats]
    cut: Literal["must", "may", "no"]  # whether "@k" belongs to the name
    options: dict[str, Any] = {}  # noqa: RUF012 (never written)


_TOP, _RATINGS = frozenset({"top"}), frozenset({"prediction"})
_KINDS = {
    "ndcg": _Kind(ndcg, "may"),
    "precision": _Kind(precision, "must"),
    "recall": _Kind(recall, "must"),
    "hit": _Kind(hit, "must"),
    "map": _Kind(average_precision, "may"),
    "mrr": _Kind(mrr, "may"),
    "auc": _Kind(auc, "no"),
    "hlu": _Kind(hlu, "may"),
    "rmse": _Kind(rmse, "no", {"higher_is_better": False, "needs": _RATINGS, "scope": "row", "root": True}),
    "mae": _Kind(mae, "no", {"higher_is_better": False, "needs": _RATINGS, "scope": "row"}),
    "pairwise_error": _Kind(pairwise_error, "no", {"higher_is_better": False}),
    "pairwise_error_authors": _Kind(pairwise_error_authors, "no", {"higher_is_better": False}),
    "coverage": _Kind(coverage, "must", {"needs": _TOP, "scope": "all"}),
    "novelty": _Kind(novelty, "must", {"needs": _TOP}),
}

AnyMetric = str | Metric | Callable[[Positions], Floats]


def names() -> list[str]:
    """The names that `metric` knows, with @10 where a list length belongs to them."""
    return [name if kind.cut == "no" else f"{name}@10" for name, kind in _KINDS.items()]


def metric(name: AnyMetric) -> Metric:
    """The metric that a name means, e.g. `metric("ndcg@10")`; functions of Positions and metrics pass through."""
    if isinstance(name, Metric):
        return name
    if not isinstance(name, str):
        if not callable(name):
            raise CorankError(f"{name!r} is not a metric: give a name such as 'ndcg@10' or a function of Positions")
        return Metric(getattr(name, "__name__", type(name).__name__), None, name)
    word, at, length = name.strip().lower().partition("@")
    if word not in _KINDS:
        raise CorankError(f"there is no metric {name!r}{suggest(word, _KINDS)}")
    kind = _KINDS[word]
    if at and kind.cut == "no":
        raise CorankError(f"metric {name!r}: {word} looks at the whole list, so write {word!r}")
    if not at:
        if kind.cut == "must":
            raise CorankError(f"metric {name!r} needs the length of the list: write '{word}@10'")
        return Metric(word, None, kind.function, **kind.options)
    if not re.fullmatch(r"[0-9]{1,9}", length) or int(length) < 1:
        raise CorankError(f"metric {name!r}: after @ comes a whole number of at least 1, as in '{word}@10'")
    return Metric(f"{word}@{int(length)}", int(length), partial(kind.function, k=int(length)), **kind.options)


def metrics_of(which: AnyMetric | Iterable[AnyMetric]) -> tuple[Metric, ...]:
    """One metric or many, each once."""
    if isinstance(which, str | Metric) or callable(which):
        which = [which]
    found = {m.name: m for m in map(metric, which)}
    if not found:
        raise CorankError("no metric is asked for: name at least one, for example 'ndcg@10'")
    return tuple(found.values())


# ---- parts -----------------------------------------------------------------------------------------------------------


def _cut(p: Positions, k: int | None) -> int:
    longest = int(p.candidates.max(initial=1))
    return longest if k is None else min(k, longest)


def _expected(p: Positions, weight: Callable[[Array], Array], k: int | None) -> Floats:
    """[rows] the mean weight of the places that a row can take: the average over its tie group, nothing beyond k."""
    cut = _cut(p, k)
    at = weight(np.arange(cut))
    total = np.r_[0, np.cumsum(at)]
    low, high = np.minimum(p.above, cut), np.minimum(p.above + p.tied, cut)
    mean = (total[high] - total[low]) / p.tied
    # A row alone in its place needs no difference of sums, and none of its rounding.
    alone = p.tied == 1
    mean[alone] = np.r_[at, 0][low[alone]]
    return np.asarray(mean, np.float64)


def _normalised(p: Positions, gain: Floats, weight: Callable[[Array], Array], k: int | None) -> Floats:
    """Expected sum of gain x weight over that of the ideal order."""
    rank = p.ideal_rank()
    best = np.where(rank < _cut(p, k), gain * weight(rank), 0)
    return _ratio(p.sum(gain * _expected(p, weight, k)), p.sum(best))


def _found(p: Positions, k: int) -> Floats:
    return p.sum(np.where(p.relevant, _expected(p, lambda rank: np.ones(rank.size), k), 0))


def _first(p: Positions, k: int | None) -> tuple[Floats, Floats]:
    from ..kernels.ranks import first_relevant
    from ..kernels.threads import run

    g, reciprocal, found = p.groups, np.zeros(p.users), np.zeros(p.users)
    run(first_relevant, p.users, g.indptr, g.above, g.tied, g.held, _cut(p, k), reciprocal, found)
    none = p.n_relevant == 0
    reciprocal[none] = found[none] = np.nan
    return reciprocal, found


def _pairs(p: Positions) -> tuple[Array, Array, Array]:
    from ..kernels.ranks import pair_errors
    from ..kernels.threads import run

    counts = np.zeros((3, p.users), np.int64)
    cost = np.r_[0, np.cumsum(np.diff(p.indptr) ** 2)]
    run(pair_errors, p.users, p.indptr, p.scores, p.value, counts[0], counts[1], counts[2], cost=cost)
    return counts[0], counts[1], counts[2]


def _predicted(p: Positions) -> Floats:
    if p.prediction is None:
        raise CorankError("these positions hold no predicted ratings: declare needs={'prediction'} in the Metric")
    return p.prediction


def _top(p: Positions, k: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    if p.top is None or p.owners is None:
        raise CorankError("these positions hold no lists of the best items: declare needs={'top'} in the Metric")
    return p.top[:, :k], p.owners


def _ratio(part: Array, whole: Array) -> Floats:
    """part / whole, NaN where there is nothing to divide by."""
    return np.asarray(np.divide(part, whole, out=np.full(part.size, np.nan), where=whole > 0), np.float64)
