"""Rules about items, such as {"genre": "Comedy", "year": (1990, None)}: which items may be recommended.

A small closed language over the labels of a model; nothing in it is executed. For each label a rule is one of

    value                         equal to it; for labels with several texts per item, one of them; None: missing
    [value, value, ...]           one of these
    (low, high)                   from low to high, both included; None is open
    {"min": low, "max": high}     the same, for JSON, which has no tuples
    {"not": rule}                 all items but those of the rule
"""

from __future__ import annotations

import csv
import logging
import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data.columns import NUMBER, plain
from ..data.labels import KINDS, SEVERAL, Column
from ..errors import CorankError, show, suggest

if TYPE_CHECKING:
    from ..model import Model

logger = logging.getLogger("corank.rules")

Where = Mapping[str, Any] | Sequence[Mapping[str, Any]]  # a sequence: all of them must hold
Mask = NDArray[np.bool_]
DEEP = 8  # rules within rules
TOLD = 3  # texts that no item has, of one request
SEARCHED = 5_000  # most texts of a label among which a near one is looked for: it takes long
_CLAUSE = re.compile(r"\s*(?P<name>[^<>=!]*?)\s*(?P<sign>!=|>=|<=|==|=|>|<)\s*(?P<value>.*?)\s*", re.DOTALL)
_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")


def allowed_items(model: Model, where: Where) -> Mask:
    """Whether the rules allow each item, bool (items,).

    where : label -> rule, or a list of such mappings, all of which must hold.
    """
    out = np.ones(len(model.items_), np.bool_)
    for sentence in unmatched(model, where):
        logger.warning("%s", sentence)
    for rules in _parts(where):
        if not isinstance(rules, Mapping):
            raise CorankError(
                f"where={show(where)} is not a set of rules: give a mapping from labels to rules, such as "
                '{"genre": "Comedy", "year": (1990, None)}'
            )
        for name, rule in rules.items():
            out &= _matches(label_of(model, name), name, rule)
    return out


def unmatched(model: Model, where: Where) -> list[str]:
    """A sentence for each text of the rules that no item has: it matches nothing, and is probably mistyped."""
    out: list[str] = []
    for rules in _parts(where):
        for name, rule in rules.items() if isinstance(rules, Mapping) else ():
            column = label_of(model, name)
            if column.kind in ("text", "texts"):
                words = column.words if len(column.words) <= SEARCHED else ()
                for text in [text for text in _texts(rule) if _code(column, text) < 0][: TOLD - len(out)]:
                    near = suggest(text, words).split("; known")[0]
                    out.append(f"no item has {name} = {show(text)}{near}")
    return out


def _parts(where: Where) -> Sequence[Any]:
    return list(where) if isinstance(where, list | tuple) else [where]


def _texts(rule: Any, depth: int = 0) -> list[str]:
    """The texts of a rule that stand for a value, rather than for an end of a range."""
    if isinstance(rule, Mapping):
        return _texts(rule["not"], depth + 1) if set(rule) == {"not"} and depth <= DEEP else []
    several = rule if isinstance(rule, list | set | frozenset | np.ndarray) else [rule]
    return [text for text in map(plain, several) if isinstance(text, str)]


def label_of(model: Model, name: Any) -> Column:
    """A label of the items by its name; the titles are one of them."""
    if isinstance(name, str) and name in model.labels_.columns:
        return model.labels_.columns[name]
    known = [*model.labels_.columns, *(["title"] if model.titles_ else [])]
    if not known:
        raise CorankError(
            f"the items of this model have no labels, and {show(name)} is asked for: attach a table of items with "
            "model.with_items(table) (on the command line --items FILE)"
        )
    if name != "title" or not model.titles_:
        raise CorankError(f"the items have no label {show(name)}{suggest(str(name), known)}")
    words = sorted({title for title in model.titles_ if title})
    code = {word: at for at, word in enumerate(words)}
    return Column("text", np.array([code.get(title, -1) for title in model.titles_], np.int32), tuple(words))


def _matches(column: Column, name: str, rule: Any, depth: int = 0) -> Mask:
    if depth > DEEP:
        raise CorankError(f"the rule for {name!r} has more than {DEEP} rules within each other: simplify it")
    if isinstance(rule, Mapping):
        if set(rule) == {"not"}:
            return ~_matches(column, name, rule["not"], depth + 1)
        if rule and set(rule) <= {"min", "max"}:
            return _between(column, name, rule.get("min"), rule.get("max"))
        raise CorankError(
            f"{name!r} has the rule {show(dict(rule))}: a mapping must be {{'not': rule}} or {{'min': low, 'max': "
            "high}"
        )
    if isinstance(rule, tuple):
        if len(rule) != 2:
            raise CorankError(
                f"{name!r} has the rule {show(rule)}: a tuple is a range (low, high); for one of several values give a "
                "list"
            )
        return _between(column, name, *rule)
    if isinstance(rule, list | set | frozenset | np.ndarray):
        out = np.zeros(_rows(column), np.bool_)
        for value in rule:
            out |= _equal(column, name, value)
        return out
    return _equal(column, name, rule)


def _rows(column: Column) -> int:
    return column.values.size if column.ends is None else column.ends.size - 1


def _equal(column: Column, name: str, value: Any) -> Mask:
    """Whether the label of each item is this value, or has it among several."""
    value = plain(value)
    if value is None:
        if column.ends is not None:
            return np.asarray(np.diff(column.ends) == 0)
        return np.isnan(column.values) if column.kind == "number" else column.values < 0
    if column.kind in ("number", "flag"):
        return np.asarray(column.values == _number(column, name, value))
    if not isinstance(value, str):
        raise _wrong_kind(column, name, value)
    code = _code(column, value)
    if column.ends is None:
        return np.asarray(column.values == code) & (code >= 0)
    out = np.zeros(_rows(column), np.bool_)
    hits = np.flatnonzero(column.values == code)
    out[np.searchsorted(column.ends, hits, side="right") - 1] = True
    return out


def _between(column: Column, name: str, low: Any, high: Any) -> Mask:
    """Whether the label of each item is from low to high; None is open, and a missing label is in no range."""
    low, high = plain(low), plain(high)
    if column.kind in ("flag", "texts"):
        raise CorankError(f"{name!r} has {KINDS[column.kind]}, which have no order: give a value or a list of values")
    values = column.values
    if column.kind == "number":
        low, high = (end if end is None else _number(column, name, end) for end in (low, high))
        inside = ~np.isnan(values)
    else:  # by code: words are in rising order
        for end in (low, high):
            if end is not None and not isinstance(end, str):
                raise _wrong_kind(column, name, end)
        low = None if low is None else bisect_left(column.words, low)
        high = None if high is None else bisect_right(column.words, high) - 1
        inside = values >= 0
    if low is not None:
        inside &= values >= low
    if high is not None:
        inside &= values <= high
    return inside


def _number(column: Column, name: str, value: Any) -> float:
    if not isinstance(value, int | float) or (column.kind == "flag" and value not in (0, 1)):
        raise _wrong_kind(column, name, value)
    if isinstance(value, bool) and column.kind == "number" and not np.isin(np.nan_to_num(column.values), (0, 1)).all():
        raise _wrong_kind(column, name, value)  # but a column of 0 and 1 means no and yes
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise CorankError(f"{name!r} is compared with {show(value)}: give a finite number, or None for an open range")
    return number


def _code(column: Column, text: str) -> int:
    """The code of a text; -1 for one that no item has."""
    at = bisect_left(column.words, text)
    return at if at < len(column.words) and column.words[at] == text else -1


def _wrong_kind(column: Column, name: str, value: Any) -> CorankError:
    wanted = {"number": "a number", "flag": "True or False"}.get(column.kind, "a text")
    remedy = f"write {wanted}"
    if column.kind == "number" and isinstance(value, str) and NUMBER.fullmatch(value.strip()):
        remedy = f"write {value.strip()} without quotes"
    elif column.kind in ("text", "texts") and isinstance(value, int | float):
        remedy = f"write it in quotes, {str(value)!r}"
    return CorankError(f"{name!r} has {KINDS[column.kind]}, and {show(value)} is not {wanted}: {remedy}")


# ---- rules as text: --where "year>=1990,genre=Comedy|Drama" -------------------------------------------------------


def parse_where(model: Model, text: str) -> list[dict[str, Any]]:
    """The rules of a text: clauses separated by commas, all of which must hold.

    A clause is a label, one of = != >= <= > <, and a value; `=` takes several values separated by |. A clause in double
    quotes may hold a comma itself. Values are read by the kind of the label: 1990 for a year, true for a flag.
    """
    fields = next(csv.reader([" ".join(text.split())], skipinitialspace=True), [])
    clauses = [clause for clause in fields if clause.strip()]
    if not clauses:
        raise CorankError(f"where {text!r} holds no rule: write label=value, label>=number, ... separated by commas")
    return [_clause(model, clause) for clause in clauses]


def _clause(model: Model, clause: str) -> dict[str, Any]:
    found = _CLAUSE.fullmatch(clause)
    if not found or not found["name"]:
        raise CorankError(
            f"{clause.strip()!r} is not a rule: write a label, one of = != >= <= > <, and a value, such as year>=1990"
        )
    name, sign, value = found["name"], found["sign"], found["value"]
    column = label_of(model, name)
    if sign in ("=", "==", "!="):
        parts = [_read(column, name, part.strip()) for part in value.split(SEVERAL)]
        rule: Any = parts[0] if len(parts) == 1 else parts
        return {name: {"not": rule} if sign == "!=" else rule}
    end = _read(column, name, value)
    if end is None:
        raise CorankError(f"{clause.strip()!r} has no value: write one after {sign}")
    if sign in (">", "<"):
        if column.kind != "number":
            raise CorankError(f"{clause.strip()!r}: {name!r} has {KINDS[column.kind]}; use >= or <=, or = and !=")
        end = float(np.nextafter(end, math.inf if sign == ">" else -math.inf))
    return {name: {"min" if sign.startswith(">") else "max": end}}


def _read(column: Column, name: str, text: str) -> Any:
    """A value by the kind of its label; nothing means missing."""
    if not text:
        return None
    if column.kind == "flag":
        if text.casefold() not in _TRUE + _FALSE:
            raise CorankError(f"{name!r} has yes or no, and {text!r} is neither: write true or false")
        return text.casefold() in _TRUE
    if column.kind == "number":
        if text.casefold() in _TRUE[:2] + _FALSE[:2]:
            return text.casefold() in _TRUE
        if not NUMBER.fullmatch(text):
            raise CorankError(f"{name!r} has numbers, and {text!r} is not one: write a number")
        return float(text)
    return text
