"""What a value of an experiment may be: a kind describes itself in words, and says what is wrong with a value."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import CorankError, show, suggest
from ..system.names import unreadable

Mistakes = Iterator[str]  # one sentence each: key, value, rule, remedy


@dataclass(frozen=True)
class Kind:
    """A kind of values."""

    words: str  # what a value must be: "a whole number of 0 or more"
    mistakes: Callable[[str, Any], Mistakes]  # (key, value) -> what is wrong with it


def kind(words: str, fits: Callable[[Any], bool]) -> Kind:
    """A kind of values that a function recognises."""

    def mistakes(key: str, value: Any) -> Mistakes:
        if not fits(value):
            yield f"{key} = {show(value)}: it must be {words}"

    return Kind(words, mistakes)


def whole(low: int) -> Kind:
    """Whole numbers that kernels can take."""
    words = f"a whole number of {low} or more"

    def mistakes(key: str, value: Any) -> Mistakes:
        if not _is(value, numbers.Integral) or value < low:
            yield f"{key} = {show(value)}: it must be {words}"
        elif value >= 1 << 62:
            yield f"{key} = {show(value)}: it must be {words}, and below 2^62"

    return Kind(words, mistakes)


def number(low: float = -math.inf, high: float = math.inf) -> Kind:
    """Finite numbers; of two ends, those between them."""
    words = "a finite number" if low == -math.inf else f"a number between {low:g} and {high:g}"
    # Not every whole number has a float: a comparison with one never overflows.
    return kind(words, lambda v: _is(v, numbers.Real) and max(low, -1e300) < v < min(high, 1e300))


def share(zero: bool = False) -> Kind:
    """Fractions of something; `zero` is none of it."""
    words = f"a share from 0{'' if zero else ' (not 0)'} to 1 (not 1)"
    return kind(words, lambda v: _is(v, numbers.Real) and 0 <= v < 1 and (zero or v > 0))


def _is(value: Any, of: type) -> bool:
    return isinstance(value, of) and not isinstance(value, bool)


def readable(value: Any) -> bool:
    """Whether a value is a text without control characters."""
    return isinstance(value, str) and not any(map(unreadable, value))


SWITCH = kind("true or false", lambda v: isinstance(v, bool))
TEXT = kind("a text without control characters", readable)
FILE = kind("the name of a file", lambda v: isinstance(v, Path) or (readable(v) and bool(v.strip())))
SEED = whole(0)


def one_of(*choices: str) -> Kind:
    """One of some names; a near miss is told which one is near."""
    words = f"one of {', '.join(map(repr, filter(None, choices)))}"

    def mistakes(key: str, value: Any) -> Mistakes:
        if not isinstance(value, str):
            yield f"{key} = {show(value)}: it must be {words}"
        elif value not in choices:
            yield f"{key} = {show(value)} is not known{suggest(value, filter(None, choices))}"

    return Kind(words, mistakes)


def list_of(each: Kind, words: str, example: str) -> Kind:
    """A list, whose values are all of a kind."""

    def mistakes(key: str, value: Any) -> Mistakes:
        if not isinstance(value, list | tuple):
            yield f"{key} = {show(value)}: it must be a list of {words}, such as {key} = {example}"
            return
        for one in value:
            for sentence in each.mistakes(key, one):
                yield sentence.replace(f"{key} =", f"{key} has", 1)

    return Kind(f"a list of {words}", mistakes)


def either(first: Kind, second: Kind, belongs: Callable[[Any], bool]) -> Kind:
    """One of two kinds: the second where `belongs`."""
    return Kind(
        f"{first.words}, or {second.words}",
        lambda key, value: (second if belongs(value) else first).mistakes(key, value),
    )


def table_mistakes(key: str, value: Mapping[Any, Any], kinds: Mapping[str, Kind]) -> Mistakes:
    """What is wrong with a table of these keys."""
    for name, one in value.items():
        if name not in kinds:
            known = suggest(str(name), kinds) if kinds else "; there are none"
            yield f"{key} has no option {show(name)}{known}"
        else:
            yield from kinds[name].mistakes(f"{key}.{name}", one)


def table_of(kinds: Mapping[str, Kind], words: str, example: str) -> Kind:
    """A table of these keys."""

    def mistakes(key: str, value: Any) -> Mistakes:
        if not isinstance(value, Mapping):
            yield f"{key} = {show(value)}: it must be {words}, such as {key} = {example}"
        else:
            yield from table_mistakes(key, value, kinds)

    return Kind(words, mistakes)


def raised(check: Callable[..., object], *arguments: Any) -> Mistakes:
    """What a function that raises has to say, as it is."""
    try:
        check(*arguments)
    except CorankError as why:
        yield str(why)
