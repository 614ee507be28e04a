"""Statistics of a dataset: counts, density, distributions, popularity bias and time span."""

from __future__ import annotations

import dataclasses
import datetime
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .csr import Array

if TYPE_CHECKING:
    from .dataset import Dataset

_MOST_VALUES = 20  # with more distinct values only the quantiles are shown
_YEAR = 365.25 * 24 * 3600
_HEADS = ("min", "25%", "median", "75%", "max", "mean")


@dataclass(frozen=True)
class Spread:
    """Five quantiles and the mean of some numbers; all NaN if there are none."""

    min: float
    low: float  # 25%
    median: float
    high: float  # 75%
    max: float
    mean: float

    @classmethod
    def of(cls, numbers: Array) -> Spread:
        if numbers.size == 0:
            return cls(math.nan, math.nan, math.nan, math.nan, math.nan, math.nan)
        smallest, low, median, high, largest = np.quantile(numbers, [0, 0.25, 0.5, 0.75, 1]).tolist()
        return cls(smallest, low, median, high, largest, float(np.mean(numbers, dtype=np.float64)))


@dataclass(frozen=True)
class Description:
    """What `Dataset.describe()` returns; `str()` is a table in plain text, `as_dict()` goes into JSON."""

    rows: int
    users: int
    items: int
    density: float  # distinct pairs / (users x items)
    repeated: int  # rows whose (user, item) pair occurred before
    values: str  # the kind of the values: ratings, counts or none
    value: Spread
    value_counts: dict[float, int]  # value -> number of rows; empty if there are more than 20 distinct values
    user_rows: Spread  # rows per user, over all users of the vocabulary, those without rows too
    item_rows: Spread  # rows per item
    top1_share: float  # share of the rows on the most popular 1% of the items (at least one item)
    top10_share: float
    gini: float  # Gini coefficient of item popularity: 0 = all equal, near 1 = one item has all rows
    times: tuple[int, int] | None  # first and last, as they are in the data
    dates: tuple[str, str] | None  # the same as ISO dates (UTC), if they can be unix seconds
    user_edges: int | None  # entries of the user graph
    item_edges: int | None  # entries of the item graph

    def as_dict(self) -> dict[str, Any]:
        """The same as plain types; NaN (no rows) becomes None, because JSON has no NaN."""
        plain: dict[str, Any] = _without_nan(dataclasses.asdict(self))
        plain["value_counts"] = {f"{value:g}": count for value, count in self.value_counts.items()}
        return plain

    def __str__(self) -> str:
        text = [f"{name:<12}{what}" for name, what in self._facts()]
        text += ["", " " * 12 + "".join(f"{head:>12}" for head in _HEADS)]
        text += [f"{name:<12}" + "".join(f"{number:>12}" for number in numbers) for name, *numbers in self._spreads()]
        return "\n".join(text)

    def _repr_html_(self) -> str:
        from ..notebook import html_table

        return html_table(self._facts()) + html_table(self._spreads(), ("", *_HEADS))

    def _facts(self) -> list[tuple[str, str]]:
        lines = [
            ("rows", f"{self.rows:,}" + (f"  ({self.repeated:,} repeat a pair)" if self.repeated else "")),
            ("users", f"{self.users:,}"),
            ("items", f"{self.items:,}"),
            ("density", _number(100 * self.density) + ("" if math.isnan(self.density) else " %")),
            ("time", self._span()),
        ]
        lines += [
            (f"{side} graph", f"{edges:,} edges")
            for side, edges in (("user", self.user_edges), ("item", self.item_edges))
            if edges is not None
        ]
        if self.rows:
            lines.append(("top items", f"1% hold {self.top1_share:.1%} of the rows, 10% hold {self.top10_share:.1%}"))
            lines.append(("gini", f"{self.gini:.3f}  (0: items equally popular, 1: one item has all)"))
        lines.append(("values", self.values))
        if len(self.value_counts) > 1:
            shares = [f"{value:g}: {count / self.rows:.1%}" for value, count in self.value_counts.items()]
            lines += [("", "  ".join(shares[at : at + 6])) for at in range(0, len(shares), 6)]
        return lines

    def _spreads(self) -> list[list[str]]:
        spreads = {"value": self.value, "rows/user": self.user_rows, "rows/item": self.item_rows}
        return [[name, *map(_number, dataclasses.astuple(spread))] for name, spread in spreads.items()]

    def _span(self) -> str:
        if self.times is None:
            return "none"
        if self.dates is None:
            return f"{self.times[0]:,} to {self.times[1]:,} (not unix seconds)"
        years = (self.times[1] - self.times[0]) / _YEAR
        length = f"{years:.1f} years" if years >= 2 else f"{years * 365.25:.1f} days"
        return f"{self.dates[0][:10]} to {self.dates[1][:10]} ({length})"


def describe(data: Dataset) -> Description:
    """The statistics of a dataset; linear time but for a sort of the item counts."""
    cells = len(data.users) * len(data.items)
    pairs = data.csr().index.size
    by_item = np.bincount(data.item, minlength=len(data.items))
    popular = np.sort(by_item)[::-1]
    times = None if data.time is None or not len(data) else (int(data.time.min()), int(data.time.max()))
    return Description(
        rows=len(data),
        users=len(data.users),
        items=len(data.items),
        density=pairs / cells if cells else math.nan,
        repeated=len(data) - pairs,
        values=data.values,
        value=Spread.of(data.value),
        value_counts=_value_counts(data.value),
        user_rows=Spread.of(np.bincount(data.user, minlength=len(data.users))),
        item_rows=Spread.of(by_item),
        top1_share=_top_share(popular, 0.01),
        top10_share=_top_share(popular, 0.1),
        gini=_gini(popular),
        times=times,
        dates=None if times is None else _dates(*times),
        user_edges=None if data.user_graph is None else int(data.user_graph.index.size),
        item_edges=None if data.item_graph is None else int(data.item_graph.index.size),
    )


def _value_counts(value: Array) -> dict[float, int]:
    # The first values usually tell: it saves sorting millions of values that are all different.
    if np.unique(value[:1000]).size > _MOST_VALUES:
        return {}
    distinct, counts = np.unique(value, return_counts=True)
    return dict(zip(distinct.tolist(), counts.tolist(), strict=True)) if distinct.size <= _MOST_VALUES else {}


def _top_share(popular: Array, part: float) -> float:
    total = popular.sum()
    return float(popular[: max(1, round(part * popular.size))].sum() / total) if total else math.nan


def _gini(popular: Array) -> float:
    """Half the mean absolute difference of two counts over the mean count; `popular` is sorted in descending order."""
    total, n = popular.sum(), popular.size
    if not total:
        return math.nan
    weight = n - 1 - 2 * np.arange(n, dtype=np.float64)
    return float(weight @ popular / (n * total)) + 0.0


def _dates(first: int, last: int) -> tuple[str, str] | None:
    """ISO dates of unix seconds; None if the numbers look like positions, years or milliseconds."""
    # 1971 to 2100: counters and years stay below, milliseconds lie far above.
    if not (365 * 24 * 3600 <= first <= last < 4_102_444_800):
        return None
    start, end = (datetime.datetime.fromtimestamp(t, datetime.UTC).isoformat() for t in (first, last))
    return start, end


def _number(x: float) -> str:
    if math.isnan(x):
        return "-"
    if x == int(x):
        return f"{int(x):,}"
    return f"{x:,.1f}" if abs(x) >= 1000 else f"{x:.4g}"


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(v) for v in value]
    return None if isinstance(value, float) and math.isnan(value) else value
