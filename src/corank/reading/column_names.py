"""Which column of a table is the user, the item, the value and the time, detected by column names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import CorankError, shorten, suggest
from .time_columns import Sample, find_time

ROLES = ("user", "item", "value", "time")

# Names of columns, best first; "movie", "movie_id", "MovieID" and "movie_id:token" all count as "movie".
WORDS = {
    "user": "user uid userid username reviewer customer visitor client account member person player listener reader "
    "viewer buyer u session sid",
    "item": "item iid itemid movie film product asin track song artist album book isbn article news poi venue location "
    "place business restaurant hotel recipe game app video anime sku content course job beer joke i",
    "value": "rating value score stars overall bookrating userrating count plays playcount weight listens listencount "
    "clicks views quantity qty frequency visits checkins purchases preference hours label",
    "time": "timestamp when unixtimestamp unixreviewtime time ts datetime date createdat created eventtime "
    "eventtimestamp reviewtime reviewdate ratingtime checkintime utctime tdat day",
    "title": "title name movietitle booktitle itemtitle producttitle itemname productname moviename trackname songname "
    "artistname englishtitle label description",
}
# Names that say that the values are counts or other amounts, however few rows there are.
COUNTS = (
    "count plays playcount listens listencount clicks views quantity qty frequency hours minutes seconds visits "
    "checkins purchases"
)
_ENDINGS = ("", "id", "index", "idx", "key", "code", "number")


@dataclass(frozen=True)
class Columns:
    """Which column has which role, by name (by position, "0", "1", ..., where the file has no header)."""

    user: str
    item: str
    value: str | None = None
    time: str | None = None
    separator: str | None = None  # None: not a text file
    header: bool = True

    def __str__(self) -> str:
        parts = [f"{role}={getattr(self, role)}" for role in ROLES if getattr(self, role) is not None]
        if self.separator is not None:
            parts.append(f"(separator {self.separator!r}, {'header' if self.header else 'no header'})")
        return " ".join(parts)

    def roles(self) -> dict[str, str]:
        """Role -> column name, for the roles that have a column."""
        return {role: getattr(self, role) for role in ROLES if getattr(self, role) is not None}


def choose(
    names: Sequence[str],
    wanted: Mapping[str, str | None],
    where: str,
    *,
    header: bool = True,
    sample: Sample | None = None,
) -> dict[str, str]:
    """Role -> column name: the wanted name where there is one, a guess where it is None, no column where it is "".

    sample : the fields of a column in the first rows; with it, columns like bought_at can be the time (`find_time`)

    Raises where a name does not exist, or where the user or the item column cannot be guessed.
    """
    chosen: dict[str, str] = {}
    for role, name in wanted.items():
        if name and name not in names:
            positions = "" if header else f" (it has no header: columns are numbered 0 to {len(names) - 1})"
            raise CorankError(
                f"{where} has no column {name!r} for {role}{positions}{shorten(suggest(name, names), 400)}"
            )
        if name and name in chosen.values():
            raise CorankError(f"column {name!r} of {where} cannot be two things: name another column for {role}")
        if name:
            chosen[role] = name
    for role, name in wanted.items():
        free = [n for n in names if n not in chosen.values()]
        found = guess(free, role) if name is None and header else None
        if found is not None:
            chosen[role] = found
    lost = [role for role in wanted if role in ("user", "item") and role not in chosen]
    if lost and header:
        raise CorankError(
            f"cannot tell which column of {where} is the {' and the '.join(lost)}: "
            f"it has {shorten(', '.join(names), 400)}; "
            f"say {', '.join(f'{r}=...' for r in lost)} (on the command line {' '.join(f'--{r} ...' for r in lost)})"
        )
    if header and sample and "time" not in chosen and "time" in wanted and wanted["time"] is None:
        free = [n for n in names if n not in chosen.values() and names.count(n) == 1]
        if found := find_time(free, sample, [chosen[role] for role in ("user", "item") if role in chosen]):
            chosen["time"] = found
    return chosen


def guess(names: Sequence[str], role: str) -> str | None:
    """The column whose name means this role, if there is one."""
    plain = {_plain(name): name for name in reversed(names)}
    for word in WORDS[role].split():
        for ending in _ENDINGS:
            if word + ending in plain:
                return plain[word + ending]
    return None


def means_counts(column: str | None) -> bool:
    """Whether the name of a column of values says that they are counts or other amounts."""
    return _plain(column or "") in COUNTS.split()


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name.split(":")[0].lower())
