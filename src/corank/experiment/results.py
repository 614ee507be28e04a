"""The results of an experiment: its rows, best first, and their leaderboard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..data.split import Split
from ..evaluation.metrics import Metric
from ..evaluation.report import Report
from ..model import Model
from ..report import leaderboard

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False)
class Row:
    """One row of a leaderboard: a fitted model and its evaluation."""

    label: str
    model: Model
    report: Report
    trials: int = 0  # tuning trials on the validation rows
    chosen: str = ""  # how the hyper-parameters were chosen, in words
    published: Mapping[str, float] = field(default_factory=dict)  # metric -> the value that others report
    published_under: str = ""  # what those were measured under, in words
    deviation: Mapping[str, float] = field(default_factory=dict)  # metric -> standard deviation over the seeds
    runs: int = 1  # number of seeds
    loaded: int = 0  # fits that an earlier run kept

    @property
    def oracle(self) -> bool:
        """Whether the model knows the ground truth of synthetic data: an upper bound, not a competing model."""
        return self.model.oracle


@dataclass(frozen=True, eq=False)
class Results:
    """The results of an experiment, best row first."""

    split: Split
    rows: list[Row]
    metrics: tuple[str, ...]
    name: str = "experiment"
    seconds: float = 0.0
    failed: dict[str, str] = field(default_factory=dict)  # label -> why the row was skipped
    not_run: tuple[str, ...] = ()  # labels of the rows that were not reached before a stop
    between: tuple[str, ...] = ()  # labels of two rows, which count as 0 % and 100 % of a gain
    one_split: bool = False  # all seeds have the same test rows
    left_out: dict[str, str] = field(default_factory=dict)  # label -> why the row was not run, by its estimate
    remarks: tuple[str, ...] = ()  # what the experiment says about its figures
    overlap: float = 0.0  # share of later test rows that are among the validation rows of the search

    @property
    def best(self) -> Row:
        """The best row that is not an oracle."""
        return next((row for row in self.rows if not row.oracle), self.rows[0])

    def metric(self, name: str) -> Metric:
        """The metric of that name; it may be a user-defined function."""
        return self.rows[0].report.metric(name)

    def gained(self, row: Row) -> float | None:
        """The row's share of the gain from the first to the second row of `between`, by the first metric."""
        at = {r.label: r.report[self.metrics[0]] for r in self.rows}
        if len(self.between) != 2 or not at.keys() >= set(self.between):
            return None
        start, end = (at[label] for label in self.between)
        if start == end:
            return None
        return float((row.report[self.metrics[0]] - start) / (end - start))

    @cached_property
    def lines(self) -> list[leaderboard.Line]:
        """The rows with their significance tests against the best one, which run once."""
        return leaderboard.lines(self)

    def leaderboard(self) -> pl.DataFrame:
        """One row per model: metrics with intervals, p, effect, shares of users, seconds, hyper-parameters."""
        return leaderboard.frame(self)

    def as_dict(self) -> dict[str, Any]:
        """Everything but the per-user values, as plain values for JSON."""
        return leaderboard.as_dict(self)

    def __repr__(self) -> str:
        return f"Results({self.name}: {len(self.rows)} models, best {self.best.label})"

    def _repr_html_(self) -> str:
        return leaderboard.html(self)

    def __str__(self) -> str:
        return leaderboard.text(self)
