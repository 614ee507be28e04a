"""The kind of the values of a dataset: ratings on a scale, counts (or other amounts), or none.

Ratings are grades: their scale ends somewhere, and its upper end is used. Counts have no end: most rows are at the
bottom and a few far above (plays, check-ins, quantities, seconds watched). Where all values are equal, a row says only
that there was an interaction. The kind decides the gains of NDCG and how values become weights.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal, cast, get_args

import numpy as np

from ..errors import CorankError, suggest
from .csr import Array

if TYPE_CHECKING:
    from .dataset import Dataset

Values = Literal["auto", "ratings", "counts", "none"]  # auto: to be detected; a `Dataset` has one of the others
VALUES = get_args(Values)

_SAMPLE = 1_000_000  # with more rows, every n-th of them is looked at
_LARGEST_SCALE = 100  # no rating scale in use goes beyond it
_RARE = 0.01  # a larger share of the rows at the upper end is the end of a scale, not a tail


def check_values(values: object) -> Values:
    """A kind of values, or one sentence."""
    if not isinstance(values, str) or values not in VALUES:
        raise CorankError(f"values={values!r} is not a kind of values{suggest(str(values), VALUES)}")
    return cast(Values, values)


def detect(value: Array) -> Values:
    """The kind of these values (all values of a dataset, not those of a part)."""
    if value.size == 0 or value.min() == value.max():
        return "none"
    sample = np.sort(sampled(value, value.size)).astype(np.float64)
    negative = int(np.searchsorted(sample, 0))
    if negative > 0.05 * sample.size:  # dislikes; a few negative ones may be purchases that were returned
        return "ratings"
    return "counts" if _long_tail(sample[negative:]) or _few_repeats(sample) else "ratings"


def sampled(value: Array, rows: int, first: int = 0) -> Array:
    """The values that `detect` looks at; `value` are those of some rows out of `rows`, from `first` on."""
    step = -(-rows // _SAMPLE)
    return value[-first % step :: step]


def _long_tail(sample: Array) -> bool:
    """Whether most of the (sorted, non-negative) values are low and only a few reach the upper end."""
    n = sample.size
    low, median = sample[0], sample[n // 2]
    high = sample[n - 1 - n // 1000]  # typing errors above it, one row in a thousand, do not make ratings counts
    at_the_end = n - int(np.searchsorted(sample, low + 0.9 * (high - low)))
    if high > _LARGEST_SCALE and at_the_end <= max(0.15 * n, 1):
        return True
    if n < 100:  # a share of 1 % says nothing here
        return bool(at_the_end == 1 and high > 10 * max(median, 1))
    return bool(at_the_end <= max(_RARE * n, 1) and median - low < 0.35 * (high - low))


def _few_repeats(sample: Array) -> bool:
    """Whether these are small whole numbers of which each is much rarer than the one before: 1, seldom 2, hardly 3."""
    distinct, rows = np.unique(sample, return_counts=True)
    if distinct[0] not in (0, 1) or distinct[-1] <= 1 or (distinct != np.floor(distinct)).any():
        return False
    falling = (np.diff(rows) <= 2 * np.sqrt(rows[1:])).all()  # but for chance
    return bool(falling and rows[0] >= 0.5 * sample.size and rows[1] <= 0.5 * rows[0] and sample.size >= 50)


def declared(data: Dataset, values: Values) -> Dataset:
    """The same rows with this kind of values; 'none' makes all values 1, 'auto' keeps what was detected."""
    if check_values(values) == "auto":
        return data
    if values == "counts" and len(data):
        counts_only(float(data.value.min()))
    value = np.ones_like(data.value) if values == "none" else data.value
    return dataclasses.replace(data, value=value, values=values)


def counts_only(low: float) -> None:
    """Raise if the smallest of some values that are said to be counts is none."""
    if low < 0:
        raise CorankError(
            f"values='counts' and the smallest value is {low:g}: counts are at least 0; drop such rows, "
            "or use values='ratings'"
        )


def as_counts(data: Dataset) -> Dataset:
    """The same rows; where the values look like ratings but can be counts, as the name of their column says."""
    if data.values != "ratings" or data.value.min() < 0:
        return data
    return dataclasses.replace(data, values="counts")


def words(data: Dataset) -> str:
    """The kind and the range of the values, for messages: 'counts from 1 to 5,112'."""
    if data.values == "none" or not len(data):
        return "no values"
    return f"{data.values} from {data.value.min():,.6g} to {data.value.max():,.6g}"
