"""Which pictures a report shows, and the numbers behind them; `plots` draws them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data import Array, Dataset
from ..data.split import Split
from ..errors import CorankError
from . import charts as plots
from .leaderboard import Line, title
from .svg import FAINT, Style, short

if TYPE_CHECKING:
    from ..experiment.results import Results

MOST_CURVES = 8  # more cannot be told apart
MOST_USERS = 2_000  # whose lists are looked at for popularity
_BIAS = ("#0b4f7a", "#5aa2cf", "#c4dcec")  # dark = the most popular


class Figure(NamedTuple):
    title: str
    svg: str
    caption: str


def model_figures(results: Results, board: Sequence[Line]) -> Iterator[Figure]:
    """The pictures of the rows; one that would say nothing is left out."""
    first = results.metrics[0]
    name = title(first)
    rows = [b for b in board if np.isfinite(b.row.report[first])]
    if not rows:
        return
    curves = [b for b in rows if not b.row.oracle]
    if len(curves) > MOST_CURVES:  # the best ones, and the last for scale
        curves = [*curves[: MOST_CURVES - 1], curves[-1]]
    oracles = [b.label for b in board if b.row.oracle]
    looks = plots.styles([b.label for b in board], oracles, [b.label for b in curves])
    marks = [plots.Mark(b.label, b.row.report[first], *b.row.report.interval[first], b.row.oracle) for b in rows]
    yield Figure(
        f"{name} of each model",
        plots.intervals(marks, looks, name),
        "The point is the mean over users, the bar its 95% interval. Bars that overlap may still differ: the test in "
        "the table compares user by user.",
    )
    compared = {b.label: (b.versus.better, b.versus.equal, b.versus.worse) for b in rows if b.versus is not None}
    best = next((b for b in board if b.best), board[0])
    if compared:
        yield Figure(
            f"User by user against {short(best.label)}",
            plots.shares(compared, ("better", "equal", "worse"), (plots.ACCENT, FAINT, plots.WARM), "wins"),
            f"Share of users for whom a model does better or worse than {best.label}. A model that loses on average "
            "may still serve some users best.",
        )
    shown = [b for b in rows if b.row.oracle][:1] + curves
    users = _per_user(shown, first, looks)
    if users is not None:
        yield users
    contenders = {b.label: (b.row.report.fit_seconds, b.row.report[first]) for b in rows if not b.row.oracle}
    contenders = {k: (max(x, 1e-4), y) for k, (x, y) in contenders.items() if np.isfinite(x)}
    ceiling = next(((b.label, b.row.report[first]) for b in rows if b.row.oracle), None)
    if contenders:
        corner = "upper" if results.metric(first).higher_is_better else "lower"
        yield Figure(
            "Accuracy against training time",
            plots.scatter(contenders, looks, "cost", "time to fit", name, seconds=True, ceiling=ceiling),
            f"Time of the final fit, on a logarithmic axis. The {corner} left corner is the best place.",
        )
    active = _by_activity(results.split, shown, first, looks)
    if active is not None:
        yield active
    yield from _popularity(results, board, looks)


def data_figures(split: Split, data: Dataset) -> Iterator[Figure]:
    """The portrait of the data."""
    by_item = np.bincount(data.item, minlength=len(data.items))
    by_user = np.bincount(data.user, minlength=len(data.users))
    yield Figure(
        "Popularity",
        plots.concentration(by_item),
        "The further the curve bends to the upper left, the fewer items carry the data.",
    )
    yield Figure("Activity", plots.activity(by_user), "Users by the number of their rows, on a logarithmic axis.")
    if data.value.min() < data.value.max():
        yield Figure("Values", plots.ratings(data.value), "How the values of the rows are spread.")
    past, future = split.train.time, split.test.time
    if past is not None and future is not None and min(past.min(), future.min()) < max(past.max(), future.max()):
        yield Figure("Time", plots.over_time(past, future), "When the rows were made; test rows are to be predicted.")


def _per_user(shown: Sequence[Line], first: str, looks: dict[str, Style]) -> Figure | None:
    """Where the test item of each user stands, if there is one and its place can be told; else the metric's spread."""
    report = shown[0].row.report
    placed = next((m for m in report.metrics if m.name.partition("@")[0] in ("ndcg", "mrr") and m.k), None)
    if placed is not None and (report.rows == 1).all():
        places = np.arange(1, (placed.k or 0) + 1)
        worth = 1 / (np.log2(places + 1) if placed.name.startswith("ndcg") else places)
        found = {}
        for b in shown:
            values = _defined(b, placed.name)
            found[b.label] = (values[:, None] >= worth - 1e-9).mean(axis=0) if values.size else np.zeros(places.size)
        return Figure(
            "Where the next item stands",
            plots.reach(found, looks, "users whose item is on it"),
            "One item a user was held out. The curve tells for how many users it is on a list of that length.",
        )
    if shown[0].row.report.metric(first).scope == "all":
        return None
    spread = {b.label: _defined(b, first) for b in shown}
    spread = {label: v for label, v in spread.items() if v.size}
    if not spread:
        return None
    higher = shown[0].row.report.metric(first).higher_is_better
    return Figure(
        "From user to user",
        plots.distribution(spread, looks, title(first), higher),
        f"Share of users who get at {'least' if higher else 'most'} so much: the higher a curve, the better.",
    )


def _by_activity(split: Split, shown: Sequence[Line], first: str, looks: dict[str, Style]) -> Figure | None:
    """The metric by quarters of the users, from few rows known to many."""
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
        "Newcomers and regulars",
        plots.by_group(names, means, looks, "rows known of the user", title(first)),
        "Users in quarters, from those of whom little is known to those of whom most is known.",
    )


def _popularity(results: Results, board: Sequence[Line], looks: dict[str, Style]) -> Iterator[Figure]:
    """Where recommendations go, and what share of the catalogue is ever shown."""
    split = results.split
    tier = _tiers(split.train)
    bars: dict[str, tuple[float, ...]] = {
        "(training rows)": _share(tier[split.train.item]),
        "(test rows)": _share(tier[split.test.item]),
    }
    for b in board:
        codes = _recommended(b, split)
        if codes is not None and codes.size:
            bars[b.label] = _share(tier[codes])
    if len(bars) > 2:
        yield Figure(
            "Popularity bias",
            plots.shares(bars, ("top 1% of the items", "next 9%", "the rest"), _BIAS, "bias", gap=2),
            "Who gets the places of the top 10 lists. Compare with the test rows, which are what users really chose.",
        )
    names = [m for m in results.metrics if m.partition("@")[0] in ("coverage", "novelty")]
    both = {m.partition("@")[0]: m for m in reversed(names)}
    if len(both) == 2:
        points = {b.label: (b.row.report[both["novelty"]], b.row.report[both["coverage"]]) for b in board}
        points = {label: xy for label, xy in points.items() if np.isfinite(xy).all()}
        if points:
            novelty, coverage = title(both["novelty"]), title(both["coverage"])
            yield Figure(
                "Novelty and coverage",
                plots.scatter(points, looks, "novelty", f"{novelty} in bits", coverage, share=True),
                "To the right: items that fewer users know (one bit = half as many). Up: more of the catalogue is "
                "shown to somebody.",
            )


def _tiers(train: Dataset) -> NDArray[np.int8]:
    """[items] 0 for the most popular 1%, 1 for the next 9%, 2 for the rest."""
    counts = np.bincount(train.item, minlength=len(train.items))
    place = np.empty(counts.size, np.int64)
    place[np.argsort(-counts, kind="stable")] = np.arange(counts.size)
    return (place >= max(1, round(0.01 * counts.size))).astype(np.int8) + (place >= max(1, round(0.1 * counts.size)))


def _share(tiers: NDArray[np.int8]) -> tuple[float, ...]:
    return tuple((np.bincount(tiers, minlength=3) / max(tiers.size, 1)).tolist())


def _recommended(line: Line, split: Split) -> NDArray[np.int32] | None:
    """The items of the top 10 lists of (a sample of) the test users; None where the model cannot be asked."""
    users = np.unique(split.test.user)
    if users.size > MOST_USERS:
        users = np.sort(np.random.default_rng(0).choice(users, MOST_USERS, replace=False))
    try:
        if split.history is None:
            ranking = line.row.model.recommend(split.test.users.ids[users], k=10)
        else:
            known = split.history.take(np.isin(split.history.user, users))
            ranking = line.row.model.recommend(histories=known.compact(), k=10)
    except CorankError:  # an oracle does not fold in
        return None
    return np.asarray(ranking.items[ranking.items >= 0], np.int32)


def _defined(line: Line, name: str) -> NDArray[np.float64]:
    values = line.row.report.per_user[name]
    return values[~np.isnan(values)]
