"""Which column is the time, by its name (bought_at, order_date, clickTime) and its values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ..data.columns import text_kind

Sample = Callable[[str], Sequence[str]]  # name of a column -> its fields in the first rows

_LAST = "at on time date datetime timestamp stamp ts when day"  # how the name of a time ends
_UNITS = "utc gmt local unix epoch iso s sec secs seconds ms millis us ns"  # what may follow
_GLUED = re.compile(r".(time|date|timestamp|datetime)$")  # ordertime
_OTHERS = (  # times of a user or an item, not of what they have to do with each other
    "birth born birthday release released publish published publication expires expired expiry expiration due joined "
    "signup registered registration update updated modified"
)
_DATE = re.compile(r"[0-9]{4}[-/][0-9]{1,2}[-/][0-9]{1,2}(?![0-9]).*")
_DAY = re.compile(r"(19|20)[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])")  # 20240131
_OLDEST = 1e8  # unix seconds of 1973: smaller numbers are durations, counts or ids
_ENOUGH = 0.9  # share of the rows with times; the others are errors, which are named when the column is read


def find_time(names: Sequence[str], sample: Sample, ids: Sequence[str]) -> str | None:
    """The first column that is named and filled like a time, if there is one.

    ids : the columns of users and items. What has one value per user or per item, like the date of birth or of release,
        is not the time of an interaction.
    """
    owners = [sample(name) for name in ids]
    for name in names:
        if named_like_time(name):
            fields = sample(name)
            if are_times(fields, days=True) and not any(_belongs_to(owner, fields) for owner in owners):
                return name
    return None


def named_like_time(name: str) -> bool:
    """Whether a name ends like that of a time: bought_at, "Order Date", clickTime, event_time_utc."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name.split(":")[0])
    words = [word for word in re.split(r"[\W_]+", apart.lower()) if word]
    if not set(_OTHERS.split()).isdisjoint(words):
        return False
    while len(words) > 1 and words[-1] in _UNITS.split():
        words.pop()
    return bool(words) and (words[-1] in _LAST.split() or _GLUED.search(words[-1]) is not None)


def are_times(fields: Sequence[str], *, days: bool = False) -> bool:
    """Whether nearly all of these are ISO dates, or all are numbers like unix times.

    days : numbers like 20240131 count too
    """
    filled = [field.strip() for field in fields if field.strip()]
    if not filled or len(filled) < _ENOUGH * len(fields):
        return False
    if sum(_DATE.fullmatch(field) is not None for field in filled) >= _ENOUGH * len(fields):
        return True
    numbers = [field for field in filled if text_kind([field]) != "text"]
    if len(numbers) < _ENOUGH * len(fields):
        return False
    return all(float(field) >= _OLDEST or (days and _DAY.fullmatch(field)) for field in numbers)


def _belongs_to(owner: Sequence[str], fields: Sequence[str]) -> bool:
    """Whether every user (or item) has one value, and several of them have more than one row."""
    pairs = set(zip(owner, fields, strict=False))
    owners = len(set(owner))
    return len(pairs) == owners and len(owner) >= owners + 2 and len(set(fields)) > 1
