"""Metrics: functions of the ranks of the test items.

A metric takes `Positions` and returns one number per user, NaN where it is not defined for that user (no relevant test
item); such users are left out of the mean. Every ranking metric is a function of two counts per test row, `above` and
`tied`, and is the exact expectation over random tie-breaking: a constant scorer scores like a random one, whatever the
order of the catalogue.

    metric("ndcg@10")                 a metric by name
    lambda p: precision(p, 5) > 0     a function of Positions can be used wherever a name can
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data import Array, row_ends
from ..errors import CorankError, suggest
from .positions import Floats, Positions

# ---- the metrics -----------------------------------------------------------------------------------------------------


def ndcg(p: Positions, k: int | None = None) -> Floats:
    """Normalised discounted cumulative gain, with the discount 1 / log2(rank + 1).

    A row gains 1 if it is relevant (`p.gain` = 'binary'), or 2^rating - 1, 0 for ratings below 0 ('exponential'). The
    ideal is the user's test rows in order of rating, cut at k too.
    """
    if p.gain == "binary":
        return _normalised(p, p.relevant.astype(np.float64), _discount, k)
    # Only ratios of gains matter: scaling by the user's largest gain keeps 2^5000 (a play count) finite.
    value = np.maximum(p.value.astype(np.float64), 0)
    largest = np.zeros(p.users)
    np.maximum.at(largest, p.user, value)
    gain = np.exp2(value - largest[p.user]) - np.exp2(-largest[p.user])
    return _normalised(p, gain, _discount, k)


def hlu(p: Positions, k: int | None = None, *, neutral: float = 0.0, half_life: float = 5.0) -> Floats:
    """Half-life utility: gain / 2^((rank - 1) / (half_life - 1)), divided by the ideal order's.

    A row gains 1 if it is relevant (`p.gain` = 'binary'), or max(rating - neutral, 0).
    """
    if half_life <= 1:
        raise CorankError(f"half_life={half_life}: the rank at which interest has halved must be above 1; 5 is usual")
    gain = p.relevant.astype(np.float64)
    if p.gain != "binary":
        gain = np.maximum(p.value.astype(np.float64) - neutral, 0)
    return _normalised(p, gain, lambda rank: np.exp2(-rank / (half_life - 1)), k)


def precision(p: Positions, k: int) -> Floats:
    """Relevant items among the first k, divided by k (also where the list is shorter).

    Users without relevant items are left out of the mean; `precision_all` counts them.
    """
    return np.where(p.n_relevant > 0, _found(p, k) / k, np.nan)


def precision_all(p: Positions, k: int) -> Floats:
    """As the dissertation prints it: relevant items among the first k of all n users, divided by n k.

    A user whose test items are all irrelevant counts as 0, so it is at most `precision`, and equal to it where every
    user has something relevant.
    """
    return _found(p, k) / k


def recall(p: Positions, k: int) -> Floats:
    """Share of the user's relevant items that are among the first k."""
    return _ratio(_found(p, k), p.n_relevant)


def hit(p: Positions, k: int) -> Floats:
    """1 if at least one relevant item is among the first k, else 0 (its probability where ties decide)."""
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

    g, out, cut = p.tie_groups, np.zeros(p.users), _cut(p, k)
    run(precision_sum, p.users, g.indptr, g.above, g.tied, g.held, cut, out)
    return _ratio(out, np.minimum(p.n_relevant, cut))


def auc(p: Positions) -> Floats:
    """Probability that a relevant item is ranked above an irrelevant one, ties counting half; needs both kinds."""
    g = p.tie_groups
    owner = np.repeat(np.arange(p.users), np.diff(g.indptr))
    worse = g.held * ((g.above - g.before) + (g.tied - g.held) / 2)
    pairs = p.n_relevant * (p.candidates - p.n_relevant)
    return 1 - _ratio(np.bincount(owner, worse, minlength=p.users), pairs)


def rmse(p: Positions) -> Floats:
    """Mean squared error of the predicted ratings; the report shows the root of the mean over all rows."""
    return _ratio(p.sum((_predicted(p) - p.value) ** 2), np.diff(p.indptr))


def mae(p: Positions) -> Floats:
    """Mean absolute error of the predicted ratings; the report shows the mean over all rows."""
    return _ratio(p.sum(np.abs(_predicted(p) - p.value)), np.diff(p.indptr))


def pairwise_error(p: Positions) -> Floats:
    """Share of the user's pairs with different ratings that are in the wrong order, equal scores counting half."""
    wrong, tied, comparable = _pairs(p)
    return _ratio(wrong + tied / 2, comparable)


def pairwise_error_authors(p: Positions) -> Floats:
    """As in the dissertation's programs: wrong or equally scored pairs over ALL pairs, equal ratings included.

    On MovieLens-1M it is about 0.7 (the share of pairs with different ratings) times `pairwise_error`. Only for
    comparison with published numbers.
    """
    wrong, tied, _ = _pairs(p)
    lengths = np.diff(p.indptr)
    return _ratio(wrong + tied, lengths * (lengths - 1) // 2)


def coverage(p: Positions, k: int) -> Floats:
    """Share of the catalogue that is in the top k of at least one user: one number for all users, float64[1]."""
    top, owners = _top(p, k)
    return np.array([np.unique(top[top >= 0]).size / owners.size])


def novelty(p: Positions, k: int) -> Floats:
    """Mean of -log2(share of training users who have the item) over the top k; items without users count as one."""
    top, owners = _top(p, k)
    surprise = -np.log2(np.maximum(owners, 1) / max(p.train_users, 1))
    return _ratio(np.where(top >= 0, surprise[top], 0).sum(axis=1), (top >= 0).sum(axis=1))


# ---- metrics by name -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Metric:
    """A metric with what the evaluation must know about it.

    Parameters
    ----------
    needs : 'prediction' (ratings) or 'top' (top lists), where the ranks are not enough.
    scope : 'user' = mean over users; 'row' = mean over all test rows (users weighted by their number of rows); 'all' =
        one number for all users together.
    root : the reported value is the root of the mean.
    """

    name: str
    k: int | None
    function: Callable[[Positions], Floats]
    higher_is_better: bool = True
    needs: frozenset[str] = frozenset()
    scope: Literal["user", "row", "all"] = "user"
    root: bool = False

    def finish(self, mean: Any) -> Any:
        """From the mean of what `function` returned to the value that is shown."""
        return np.sqrt(mean) if self.root else mean


class _Kind(NamedTuple):
    function: Callable[..., Floats]
    cut: Literal["must", "may", "no"]  # whether "@k" belongs to the name
    options: dict[str, Any] = {}  # noqa: RUF012 (never written)


_TOP, _RATINGS = frozenset({"top"}), frozenset({"prediction"})
_KINDS = {
    "ndcg": _Kind(ndcg, "may"),
    "precision": _Kind(precision, "must"),
    "precision_all": _Kind(precision_all, "must"),
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


def names(length: str = "@10") -> list[str]:
    """The names that `metric` knows, with this list length where they take one."""
    return [name if kind.cut == "no" else f"{name}{length}" for name, kind in _KINDS.items()]


def metric(name: AnyMetric) -> Metric:
    """The metric of that name, e.g. `metric("ndcg@10")`; functions of Positions and metrics are accepted too."""
    if isinstance(name, Metric):
        return name
    if not isinstance(name, str):
        if not callable(name):
            raise CorankError(f"{name!r} is not a metric: give a name such as 'ndcg@10' or a function of Positions")
        return Metric(getattr(name, "__name__", type(name).__name__), None, name)
    word, at, length = name.strip().lower().partition("@")
    if word not in _KINDS:
        raise CorankError(f"there is no metric {name!r}{suggest(name, names(at + length))}")
    kind = _KINDS[word]
    if at and kind.cut == "no":
        raise CorankError(f"metric {name!r}: {word} is computed from the whole list, so write {word!r}")
    if not at:
        if kind.cut == "must":
            raise CorankError(f"metric {name!r} needs the length of the list: write '{word}@10'")
        return Metric(word, None, kind.function, **kind.options)
    if not re.fullmatch(r"[0-9]{1,9}", length) or int(length) < 1:
        raise CorankError(f"metric {name!r}: after @ comes a whole number of at least 1, as in '{word}@10'")
    return Metric(f"{word}@{int(length)}", int(length), partial(kind.function, k=int(length)), **kind.options)


def metrics_of(which: AnyMetric | Iterable[AnyMetric]) -> tuple[Metric, ...]:
    """One metric or several, without duplicates."""
    if isinstance(which, str | Metric) or callable(which):
        which = [which]
    found = {m.name: m for m in map(metric, which)}
    if not found:
        raise CorankError("no metric is given: name at least one, for example 'ndcg@10'")
    return tuple(found.values())


# ---- parts -----------------------------------------------------------------------------------------------------------


def _cut(p: Positions, k: int | None) -> int:
    longest = int(p.candidates.max(initial=1))
    return longest if k is None else min(k, longest)


def _expected(p: Positions, weight: Callable[[Array], Array], k: int | None) -> Floats:
    """[rows] expected weight of the rank of a row: the average over the ranks of its tie group, 0 beyond k."""
    cut = _cut(p, k)
    at = weight(np.arange(cut))
    total = np.r_[0, np.cumsum(at)]
    low, high = np.minimum(p.above, cut), np.minimum(p.above + p.tied, cut)
    mean = (total[high] - total[low]) / p.tied
    # A row without ties needs no difference of sums, and none of its rounding.
    alone = p.tied == 1
    mean[alone] = np.r_[at, 0][low[alone]]
    return np.asarray(mean, np.float64)


def _discount(rank: Array) -> Array:
    """Of NDCG; ranks from 0."""
    return np.asarray(1 / np.log2(rank + 2))


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

    g, reciprocal, found = p.tie_groups, np.zeros(p.users), np.zeros(p.users)
    run(first_relevant, p.users, g.indptr, g.above, g.tied, g.held, _cut(p, k), reciprocal, found)
    none = p.n_relevant == 0
    reciprocal[none] = found[none] = np.nan
    return reciprocal, found


def _pairs(p: Positions) -> tuple[Array, Array, Array]:
    from ..kernels.ranks import pair_errors
    from ..kernels.threads import run

    counts = np.zeros((3, p.users), np.int64)
    cost = row_ends(np.diff(p.indptr) ** 2)
    run(pair_errors, p.users, p.indptr, p.scores, p.value, counts[0], counts[1], counts[2], cost=cost)
    return counts[0], counts[1], counts[2]


def _predicted(p: Positions) -> Floats:
    if p.prediction is None:
        raise CorankError("these positions hold no predicted ratings: declare needs={'prediction'} in the Metric")
    return p.prediction


def _top(p: Positions, k: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    if p.top is None or p.owners is None:
        raise CorankError("these positions hold no top lists: declare needs={'top'} in the Metric")
    return p.top[:, :k], p.owners


def _ratio(part: Array, whole: Array) -> Floats:
    """part / whole, NaN where there is nothing to divide by."""
    return np.asarray(np.divide(part, whole, out=np.full(part.size, np.nan), where=whole > 0), np.float64)
