"""What an experiment found: its rows, best first, and the leaderboard they make."""

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
    """One line of a leaderboard: a fitted model and what it scored."""

    label: str
    model: Model
    report: Report
    trials: int = 0  # how many settings were tried on validation before this one was chosen
    published: Mapping[str, float] = field(default_factory=dict)  # what others report for this row
    deviation: Mapping[str, float] = field(default_factory=dict)  # of each figure over the seeds
    runs: int = 1

    @property
    def oracle(self) -> bool:
        """The row knows the truth (synthetic data): a ceiling, not a contender."""
        return self.model.oracle


@dataclass(frozen=True, eq=False)
class Results:
    """What an experiment found, best row first."""

    split: Split
    rows: list[Row]
    metrics: tuple[str, ...]
    name: str = "experiment"
    seconds: float = 0.0
    failed: dict[str, str] = field(default_factory=dict)  # label -> why the row is missing
    not_run: tuple[str, ...] = ()  # labels that a stop left out
    gain: tuple[str, ...] = ()  # labels of the rows that count as 0 % and 100 % of a gain
    one_split: bool = False  # all runs were on the same split

    @property
    def best(self) -> Row:
        """The best row that is a contender."""
        return next((row for row in self.rows if not row.oracle), self.rows[0])

    def metric(self, name: str) -> Metric:
        """The metric of a column; it may be somebody's own function."""
        return self.rows[0].report.metric(name)

    def gained(self, row: Row) -> float | None:
        """How far the row is on the way between the two rows of `gain`, by the first metric; 1 is the second."""
        at = {r.label: r.report[self.metrics[0]] for r in self.rows}
        if len(self.gain) != 2 or not at.keys() >= set(self.gain) or at[self.gain[0]] == at[self.gain[1]]:
            return None
        start, end = (at[label] for label in self.gain)
        return float((row.report[self.metrics[0]] - start) / (end - start))

    @cached_property
    def lines(self) -> list[leaderboard.Line]:
        """The rows compared with the best one; the tests run once."""
        return leaderboard.lines(self)

    def leaderboard(self) -> pl.DataFrame:
        """One row a model: metrics with intervals, p, effect, shares of users, seconds, hyper-parameters."""
        return leaderboard.frame(self)

    def as_dict(self) -> dict[str, Any]:
        """Everything but the per-user values, as plain values for JSON."""
        return leaderboard.as_dict(self)

    def __str__(self) -> str:
        return leaderboard.text(self)
