"""The charts of a report and the numbers in them; `model_charts` and `data_charts` draw them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data import Array, Dataset
from ..data.split import Split
from ..errors import CorankError, reason
from . import data_charts, model_charts
from .formatting import metric_title
from .leaderboard import Line
from .palette import ACCENT, FAINT, TIERS, WARM, Style, styles
from .svg import short

if TYPE_CHECKING:
    from ..experiment.results import Results

logger = logging.getLogger("corank")

MOST_CURVES = 8  # more cannot be told apart
LIST_LENGTH = 10  # of the lists whose popularity bias is shown
MOST_USERS = 2_000  # to recommend to for popularity bias, where the evaluation kept no lists


class Figure(NamedTuple):
    """A chart with its title and caption."""

    title: str
    svg: str
    caption: str


Maker = tuple[str, Callable[[], Figure | None]]  # a title, and what draws it; None where there is nothing to see


def drawn(makers: Iterable[Maker]) -> Iterator[Figure]:
    """The figures that have information. One that cannot be drawn costs no other: its reason takes its place."""
    for title, make in makers:
        try:
            figure = make()
        except Exception as why:
            logger.warning("the figure '%s' is missing: %s", title, reason(why))
            yield Figure(title, "", f"This figure is missing: {reason(why)}.")
            continue
        if figure is not None:
            yield figure


def model_figures(results: Results, board: Sequence[Line]) -> Iterator[Figure]:
    """Charts that compare the models; a chart without information is left out."""
    first = results.metrics[0]
    rows = [b for b in board if np.isfinite(b.row.report[first])]
    if not rows:
        return iter(())
    curves = [b for b in rows if not b.row.oracle]
    if len(curves) > MOST_CURVES:  # the best ones, and the worst for scale
        curves = [*curves[: MOST_CURVES - 1], curves[-1]]
    oracles = [b.label for b in board if b.row.oracle]
    looks = styles([b.label for b in board], oracles, [b.label for b in curves])
    shown = [b for b in rows if b.row.oracle][:1] + curves
    return drawn(
        [
            (f"{metric_title(first)} of each model", lambda: _means(rows, first, looks)),
            ("Wins and losses", lambda: _wins(rows, board)),
            ("Distribution over users", lambda: _per_user(shown, first, looks)),
            ("Accuracy against training time", lambda: _cost(results, rows, first, looks)),
            ("Accuracy by user activity", lambda: _by_activity(results.split, shown, first, looks)),
            ("Popularity bias", lambda: _bias(results.split, board)),
            ("Novelty and coverage", lambda: _novelty(results, board, looks)),
        ]
    )


def data_figures(split: Split, data: Dataset) -> Iterator[Figure]:
    """Charts of the dataset."""

    def popularity() -> Figure:
        return Figure(
            "Popularity",
            data_charts.concentration(np.bincount(data.item, minlength=len(data.items))),
            "The closer the curve is to the upper left corner, the fewer items account for most interactions.",
        )

    def activity() -> Figure:
        chart = data_charts.activity(np.bincount(data.user, minlength=len(data.users)))
        return Figure("Activity", chart, "Users by number of interactions, on a logarithmic axis.")

    def values() -> Figure | None:
        if data.value.min() == data.value.max():
            return None
        return Figure("Values", data_charts.ratings(data.value), "Distribution of the values (ratings, counts).")

    def times() -> Figure | None:
        past, future = split.train.time, split.test.time
        if past is None or future is None or min(past.min(), future.min()) == max(past.max(), future.max()):
            return None
        return Figure("Time", data_charts.over_time(past, future), "Training and test interactions over time.")

    return drawn([("Popularity", popularity), ("Activity", activity), ("Values", values), ("Time", times)])


def _means(rows: Sequence[Line], first: str, looks: dict[str, Style]) -> Figure:
    name = metric_title(first)
    marks = [model_charts.Mark(b.label, b.row.report[first], *b.row.report.interval[first], b.row.oracle) for b in rows]
    return Figure(
        f"{name} of each model",
        model_charts.intervals(marks, looks, name),
        "Mean over users with its 95% confidence interval. Models whose intervals overlap can still differ "
        "significantly: the test in the table is paired by user.",
    )


def _wins(rows: Sequence[Line], board: Sequence[Line]) -> Figure | None:
    compared = {b.label: (b.versus.better, b.versus.equal, b.versus.worse) for b in rows if b.versus is not None}
    best = next((b for b in board if b.best), board[0])
    if not compared:
        return None
    return Figure(
        f"Wins and losses against {short(best.label)}",
        model_charts.stacked_bars(compared, ("better", "equal", "worse"), (ACCENT, FAINT, WARM), "wins"),
        f"Share of users for whom a model is better than, equal to or worse than {best.label}. A model with a "
        "worse mean can still be the better one for many users.",
    )


def _cost(results: Results, rows: Sequence[Line], first: str, looks: dict[str, Style]) -> Figure | None:
    contenders = {b.label: (b.row.report.fit_seconds, b.row.report[first]) for b in rows if not b.row.oracle}
    contenders = {k: (max(x, 1e-4), y) for k, (x, y) in contenders.items() if np.isfinite(x)}
    ceiling = next(((b.label, b.row.report[first]) for b in rows if b.row.oracle), None)
    if not contenders:
        return None
    corner = "upper" if results.metric(first).higher_is_better else "lower"
    chart = model_charts.scatter(
        contenders, looks, "cost", "training time", metric_title(first), seconds=True, ceiling=ceiling
    )
    return Figure(
        "Accuracy against training time",
        chart,
        f"Time of the final fit, on a logarithmic axis. The best trade-offs are in the {corner} left corner.",
    )


def _per_user(shown: Sequence[Line], first: str, looks: dict[str, Style]) -> Figure | None:
    """Hit rate by list length where each user has one test item of known rank; else the metric's distribution."""
    report = shown[0].row.report
    placed = next((m for m in report.metrics if m.name.partition("@")[0] in ("ndcg", "mrr") and m.k), None)
    if placed is not None and (report.rows == 1).all():
        ranks = np.arange(1, (placed.k or 0) + 1)
        gains = 1 / (np.log2(ranks + 1) if placed.name.startswith("ndcg") else ranks)  # of one test item at each rank
        rates = {}
        for b in shown:
            values = _defined(b, placed.name)
            rates[b.label] = (values[:, None] >= gains - 1e-9).mean(axis=0) if values.size else np.zeros(ranks.size)
        return Figure(
            "Hit rate by list length",
            model_charts.hit_rates(rates, looks),
            "Share of users whose held-out item is in the top k; one item per user was held out.",
        )
    if shown[0].row.report.metric(first).scope == "all":
        return None
    spread = {b.label: _defined(b, first) for b in shown}
    spread = {label: v for label, v in spread.items() if v.size}
    if not spread:
        return None
    higher = shown[0].row.report.metric(first).higher_is_better
    return Figure(
        "Distribution over users",
        model_charts.distribution(spread, looks, metric_title(first), higher),
        f"Share of users with at {'least' if higher else 'most'} this {metric_title(first)}: higher curves are better.",
    )


def _by_activity(split: Split, shown: Sequence[Line], first: str, looks: dict[str, Style]) -> Figure | None:
    """The metric by quartiles of the users, from few known interactions to many."""
    if shown[0].row.report.metric(first).scope == "all":
        return None
    known = split.known()
    rows = np.bincount(known.user, minlength=len(known.users))[known.users.codes(shown[0].row.report.users)]
    inner = np.unique(np.quantile(rows, [0.25, 0.5, 0.75], method="lower"))
    group = np.searchsorted(inner, rows, side="left")
    groups = [rows[group == g] for g in range(inner.size + 1)]
    full = [g for g, members in enumerate(groups) if members.size]
    if len(full) < 2:
        return None
    names = [f"{m.min()}–{m.max()}" if m.min() < m.max() else f"{m.min()}" for m in (groups[g] for g in full)]
    means: dict[str, Array] = {}
    for b in shown:
        values = b.row.report.per_user[first]
        parts = [values[(group == g) & ~np.isnan(values)] for g in full]
        means[b.label] = np.array([p.mean() if p.size else np.nan for p in parts])
    return Figure(
        "Accuracy by user activity",
        model_charts.by_group(names, means, looks, "known interactions of the user", metric_title(first)),
        "Users in quartiles by their number of known interactions, from the least to the most active.",
    )


def _bias(split: Split, board: Sequence[Line]) -> Figure | None:
    """How popular the recommended items are."""
    tier = _tiers(split.train)
    bars: dict[str, tuple[float, ...]] = {
        "(training data)": _tier_shares(tier[split.train.item]),
        "(test data)": _tier_shares(tier[split.test.item]),
    }
    for b in board:
        codes = _recommended(b, split)
        if codes is not None and codes.size:
            bars[b.label] = _tier_shares(tier[codes])
    if len(bars) == 2:
        return None
    return Figure(
        "Popularity bias",
        model_charts.stacked_bars(bars, ("top 1% of the items", "next 9%", "other 90%"), TIERS, "bias", gap=2),
        f"Share of the top-{LIST_LENGTH} recommendations by popularity of the items. The test data shows the "
        "ground truth.",
    )


def _novelty(results: Results, board: Sequence[Line], looks: dict[str, Style]) -> Figure | None:
    """How much of the catalogue is recommended at all, and how popular it is."""
    names = [m for m in results.metrics if m.partition("@")[0] in ("coverage", "novelty")]
    both = {m.partition("@")[0]: m for m in reversed(names)}
    if len(both) < 2:
        return None
    points = {b.label: (b.row.report[both["novelty"]], b.row.report[both["coverage"]]) for b in board}
    points = {label: xy for label, xy in points.items() if np.isfinite(xy).all()}
    if not points:
        return None
    novelty, coverage = metric_title(both["novelty"]), metric_title(both["coverage"])
    return Figure(
        "Novelty and coverage",
        model_charts.scatter(points, looks, "novelty", f"{novelty} in bits", coverage, in_percent=True),
        "To the right: less popular items are recommended (one bit = half as many users). Up: more of the "
        "catalogue is recommended to at least one user.",
    )


def _tiers(train: Dataset) -> NDArray[np.int8]:
    """(items,) 0 for the most popular 1%, 1 for the next 9%, 2 for the rest."""
    counts = np.bincount(train.item, minlength=len(train.items))
    place = np.empty(counts.size, np.int64)
    place[np.argsort(-counts, kind="stable")] = np.arange(counts.size)
    return (place >= max(1, round(0.01 * counts.size))).astype(np.int8) + (place >= max(1, round(0.1 * counts.size)))


def _tier_shares(tiers: NDArray[np.int8]) -> tuple[float, ...]:
    return tuple((np.bincount(tiers, minlength=3) / max(tiers.size, 1)).tolist())


def _recommended(line: Line, split: Split) -> NDArray[np.int32] | None:
    """The items of the top lists of the test users; None where the model cannot recommend to them."""
    top = line.row.report.top
    if top is not None and top.items.shape[1] >= min(LIST_LENGTH, len(top.vocab)):
        codes = top.items[:, :LIST_LENGTH]
        return codes[codes >= 0]
    users = np.unique(split.test.user)
    if users.size > MOST_USERS:
        users = np.sort(np.random.default_rng(0).choice(users, MOST_USERS, replace=False))
    try:
        if split.history is None:
            ranking = line.row.model.recommend(split.test.users.ids[users], k=LIST_LENGTH)
        else:
            known = split.history.take(np.isin(split.history.user, users))
            ranking = line.row.model.recommend(histories=known.compact(), k=LIST_LENGTH)
    except CorankError:  # an oracle has no fold-in
        return None
    return np.asarray(ranking.items[ranking.items >= 0], np.int32)


def _defined(line: Line, name: str) -> NDArray[np.float64]:
    values = line.row.report.per_user[name]
    return values[~np.isnan(values)]
