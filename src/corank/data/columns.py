"""Columns of any type as the arrays that `from_arrays` takes: ids, finite values, integer times.

What cannot be converted raises a `CorankError` that names the column, the row and the remedy.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import CorankError, shorten

if TYPE_CHECKING:
    import polars as pl

Where = Callable[[int], str]  # position of a row -> how messages refer to it
_UNIX = (10**8, 10**10)  # unix seconds of 1973 and of 2286
_EXACT = 2.0**53  # from here on a float skips integers
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE)
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")


@dataclass(frozen=True)
class Wording:
    """The words that messages use for a table: those for interactions by default."""

    rows: str = "interactions"
    least: str = "a user and an item"  # what a row must have
    roles: Mapping[str, str] = dataclasses.field(default_factory=dict)  # role -> its name here, where that differs
    to: str = ""  # where to name a separator or a column, if not in the call at hand
    split: str = ""  # what to do where only one column is found, if not to name the separator

    def role(self, role: str) -> str:
        return self.roles.get(role, role)


INTERACTIONS = Wording()


def text_kind(fields: Sequence[str]) -> str:
    """'int', 'float' or 'text': the narrowest type that holds every non-empty field; "007" is not an 'int'."""
    fields = [f.strip(" ") for f in fields]
    fields = [f for f in fields if f]
    if all(_INTEGER.fullmatch(f) and -(2**63) <= int(f) < 2**63 for f in fields):
        return "int"
    return "float" if all(NUMBER.fullmatch(f) for f in fields) else "text"


def id_array(column: Any, what: str) -> NDArray[Any]:
    """The ids of a list or an array as int64, or as an object array of str."""
    values = np.asarray(column)
    if values.ndim != 1:
        raise CorankError(f"{what}s must be one column, got an array of shape {values.shape}")
    if values.dtype.kind in "iu":
        if values.dtype == np.uint64 and values.size and values.max() > np.iinfo(np.int64).max:
            raise CorankError(f"{what} id {values.max()} does not fit in a signed 64-bit integer: give ids as strings")
        return values.astype(np.int64, copy=False)
    if values.dtype.kind in "bf":
        fit = np.isfinite(values) & (np.floor(values) == values) & (np.abs(values) < _EXACT)
        if not fit.all():
            bad = values[np.argmin(fit)]
            raise CorankError(f"{what} ids must be integers or strings, got {bad}: missing, fractional or too large")
        return values.astype(np.int64)
    # numpy turns a list that mixes 1 and "a" into strings, so the types are those of the list itself.
    listed = list(column) if isinstance(column, list | tuple) else values.tolist()
    kinds = {type(plain(v)) for v in listed}
    if kinds <= {str}:
        return np.array(listed, dtype=object)
    if kinds <= {int, bool}:
        try:
            return np.array(listed, np.int64)
        except OverflowError:
            raise CorankError(f"{what} ids do not fit in signed 64-bit integers: give them as strings") from None
    names = ", ".join(sorted(k.__name__ for k in kinds))
    raise CorankError(f"{what} ids are of type {names}: make them all integers or all strings")


def plain(value: Any) -> Any:
    """A numpy scalar as the Python value that it holds."""
    return value.item() if isinstance(value, np.generic) else value


def numbers(column: Any, what: str) -> NDArray[Any]:
    """Values as float32 (`Dataset` checks that they are finite), times as int64; datetimes as unix seconds."""
    array = np.asarray(column)
    time = what == "time"
    if array.dtype.kind in "cm" or (array.dtype.kind == "M" and not time):
        raise CorankError(f"the {what} column holds {array.dtype}, and {what}s must be plain numbers: convert it first")
    try:
        if time and array.dtype.kind == "M":
            missing = np.isnat(array)
            array = array.astype("datetime64[s]").astype(np.int64)
        elif time and array.dtype.kind not in "iub":
            array = array.astype(np.float64)
            missing = ~(np.abs(array) < 2.0**63)
        elif time:
            missing = array > np.iinfo(np.int64).max
        with np.errstate(over="ignore", invalid="ignore"):  # overflow gives inf, which is refused as such
            result = array.astype(np.int64 if time else np.float32, copy=False)
    except (TypeError, ValueError, OverflowError):
        raise CorankError(f"the {what} column holds something that is not a number: {what}s must be numbers") from None
    if time and missing.any():
        row = int(np.argmax(missing))
        raise CorankError(f"row {row:,} has the time {array[row]}, and times must be finite 64-bit numbers: repair it")
    return result


def row_number(row: int) -> str:
    """How messages refer to a row of a table in memory or of a Parquet file."""
    return f"row {row:,}"


def convert(
    series: Mapping[str, pl.Series], names: Mapping[str, str], where: Where, wording: Wording = INTERACTIONS
) -> dict[str, Any]:
    """Polars columns of any type as the arguments of `from_arrays`; `names`, `where` and `wording` are for messages."""
    import polars as pl

    words = (pl.Categorical, pl.Enum)  # text in another form
    series = {role: s.cast(pl.String) if s.dtype in words else s for role, s in series.items()}
    for role, s in series.items():
        if s.null_count():
            first = where(int(s.is_null().arg_max() or 0))
            count = f"{s.null_count():,} missing entr{'ies' if s.null_count() > 1 else 'y'}"
            optional = f"; {wording.role(role)}='' reads the table without it" if role in ("value", "time") else ""
            raise CorankError(
                f"{names[role]} ({wording.role(role)}) has {count}, the first in {first}: drop or fill those rows first"
                f"{optional}"
            )
    change = {"user": _ids, "item": _ids, "value": _values, "time": _times}
    return {role: change[role](s, names[role], where, wording) for role, s in series.items()}


def _ids(s: pl.Series, name: str, where: Where, wording: Wording) -> Any:
    import polars as pl

    if s.dtype == pl.String:
        blank = s.str.strip_chars() == ""
        if blank.any():
            row, count = int(blank.arg_max() or 0), int(blank.sum())
            raise CorankError(
                f"{where(row)} of {name} is blank, and it must be an id ({count:,} such row{'s' * (count > 1)}): drop "
                "or fill it first"
            )
        return s
    if s.dtype in (pl.Int128, pl.UInt128) or (isinstance(s.dtype, pl.Decimal) and not s.dtype.scale):
        whole = s.cast(pl.Int64, strict=False)
        return s.cast(pl.String) if whole.null_count() else whole.to_numpy()
    if s.dtype.is_integer() or s.dtype.is_float() or s.dtype == pl.Boolean:
        return s.to_numpy()
    raise CorankError(f"{name} holds {s.dtype}, and ids must be integers or strings: convert it first")


def _values(s: pl.Series, name: str, where: Where, wording: Wording) -> Any:
    import polars as pl

    if s.dtype == pl.String:
        read = s.str.strip_chars().cast(pl.Float32, strict=False)
        s = _parsed(s, read, name, where, "a number", "value", wording)
    if not (s.dtype.is_numeric() or s.dtype == pl.Boolean):
        raise CorankError(f"{name} holds {s.dtype}, and {wording.role('value')}s must be numbers: convert it first")
    numbers = s.cast(pl.Float32)
    _finite(numbers, name, where)
    return numbers.to_numpy()


def _times(s: pl.Series, name: str, where: Where, wording: Wording) -> Any:
    import polars as pl

    if s.dtype == pl.String:
        plain = s.str.strip_chars()
        numbers = plain.cast(pl.Float64, strict=False)
        if numbers.null_count() == 0:
            whole = plain.cast(pl.Int64, strict=False)
            s = numbers if whole.null_count() else whole
        else:
            # The format of most rows is that of the column; the error names the first of the others.
            dates = _iso_seconds(plain)
            most, other = (dates, numbers) if dates.null_count() <= numbers.null_count() else (numbers, dates)
            like = "a number or a date like 2024-01-31 12:00:00"
            if (first := most.is_null().arg_max()) is not None and other[first] is not None:
                like = f"a {'date' if most is dates else 'number'} like those of most rows"
            s = _parsed(s, most, name, where, like, "time", wording)
    if s.dtype == pl.Date or s.dtype == pl.Datetime:
        s = s.dt.epoch("s")
    if s.dtype.is_float() or s.dtype.is_decimal():
        _finite(s, name, where)
    elif not s.dtype.is_integer():
        raise CorankError(f"{name} holds {s.dtype}, and times must be numbers or dates: convert it first")
    whole = s.cast(pl.Int64, strict=False)
    if whole.null_count():
        row = int(whole.is_null().arg_max() or 0)
        raise CorankError(f"{where(row)} of {name} is {s[row]}, and a time must fit in 64 bits: use a coarser unit")
    times = whole.to_numpy()
    _one_unit(times, name, where)
    return times


def _one_unit(times: NDArray[np.int64], name: str, where: Where) -> None:
    """Raise where unix times of two units mix: no time of 1973 to 2286 in one unit is such a time in another."""
    if not times.size or times.min() < _UNIX[0] or times.max() < 1000 * _UNIX[0]:
        return
    thousands = np.zeros(times.size, np.int8)  # 0: seconds, 1: milliseconds, ...
    for power in range(1, 4):
        thousands[times >= 1000**power * _UNIX[0]] = power
    if (times >= 1000.0**thousands * _UNIX[1]).any() or thousands.min() == thousands.max():
        return  # numbers of another kind, or of one unit
    second = int(np.argmax(thousands != thousands[0]))
    raise CorankError(
        f"{name} mixes units: {where(0)} has {times[0]} and {where(second)} has {times[second]}, as where seconds and "
        "milliseconds are mixed: convert all times to one unit"
    )


def _iso_seconds(text: pl.Series) -> pl.Series:
    """Unix seconds of ISO dates and times, null where parsing fails; rows with and without fractions may mix."""
    import polars as pl

    part = text.str.extract_groups(
        r"^(\d{4})[-/](\d{1,2})[-/](\d{1,2})"
        r"(?:[T ]+(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d+)?)?)?\s*(?:Z|UTC|([+-])(\d{2}):?(\d{2})?)?$"
    ).struct.unnest()
    number = part.select(pl.all().exclude("7").cast(pl.Int64, strict=False))
    day = pl.format("{}-{}-{}", *(pl.col(i).cast(pl.String).str.zfill(2) for i in "123"))
    seconds = number.select(
        day=day.str.to_date("%Y-%m-%d", strict=False).dt.epoch("s"),
        clock=_below("4", 24) * 3600 + _below("5", 60) * 60 + _below("6", 60),
        zone=_below("8", 24) * 3600 + _below("9", 60) * 60,
    )
    east = (part["7"] == "+").fill_null(False).cast(pl.Int64) * 2 - 1  # 10:00+02:00 is 08:00 in UTC
    return seconds["day"] + seconds["clock"] - east * seconds["zone"]


def _below(part: str, most: int) -> pl.Expr:
    """A part of a clock: 0 where there is none, null where it is impossible."""
    import polars as pl

    return pl.when(pl.col(part).fill_null(0) < most).then(pl.col(part).fill_null(0))


def _parsed(
    text: pl.Series, parsed: pl.Series, name: str, where: Where, what: str, role: str, wording: Wording
) -> pl.Series:
    """`parsed`; raises where an entry of `text` could not be parsed."""
    if count := parsed.null_count():
        role = wording.role(role)
        row = int(parsed.is_null().arg_max() or 0)
        raise CorankError(
            f"{where(row)} of {name} is {shorten(text[row])!r}, which is not {what}{_comma(text[row])} "
            f"({count:,} such row{'s' * (count > 1)}): repair it, name another column with {role}=..., "
            f"or leave it out with {role}=''{wording.to}"
        )
    return parsed


def _comma(text: str) -> str:
    return " (decimals are written with a point)" if re.fullmatch(r"\s*[+-]?[0-9.]+,[0-9]+\s*", text) else ""


def _finite(numbers: pl.Series, name: str, where: Where) -> None:
    bad = ~numbers.cast(float).is_finite() if numbers.dtype.is_decimal() else ~numbers.is_finite()
    if bad.any():
        row = int(bad.arg_max() or 0)
        raise CorankError(
            f"{where(row)} of {name} is {numbers[row]}, and it must be a finite number: "
            f"drop or fill such rows ({int(bad.sum()):,} of {len(numbers):,}) first"
        )
