"""Hyper-parameters: each is declared once, with type, default, meaning, allowed range and the range worth searching."""

from __future__ import annotations

import dataclasses
import inspect
import math
import operator
import types
import typing
from typing import Any, NamedTuple

import numpy as np

from .errors import CorankError, show


@dataclasses.dataclass(frozen=True)
class Param:
    """What is known of a hyper-parameter beside its type and default."""

    doc: str
    low: float | None = None  # smallest value allowed
    high: float | None = None  # largest value allowed
    choices: tuple[Any, ...] | None = None
    search: tuple[float, float] | tuple[Any, ...] | None = None  # (low, high) for numbers, the options for choices
    log: bool = False  # search on a logarithmic scale
    machine: bool = False  # where a fit runs, not what it learns: not in `params()`, files and reports


def param(
    default: Any,
    doc: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[Any, ...] | None = None,
    search: tuple[Any, ...] | None = None,
    log: bool = False,
    machine: bool = False,
) -> Any:
    """A dataclass field that is a hyper-parameter."""
    return dataclasses.field(default=default, metadata={"param": Param(doc, low, high, choices, search, log, machine)})


def params_of(cls: Any) -> dict[str, tuple[type, bool, Any, Param]]:
    """name -> (type, may be None, default, Param) for each hyper-parameter of a model class."""
    hints = typing.get_type_hints(cls)
    out = {}
    for f in dataclasses.fields(cls):
        kind, optional = hints[f.name], False
        if isinstance(kind, types.UnionType):
            inner = [a for a in typing.get_args(kind) if a is not type(None)]
            kind, optional = inner[0], True
        if typing.get_origin(kind) is typing.Literal:
            kind = str
        out[f.name] = (kind, optional, f.default, f.metadata["param"])
    return out


class Described(NamedTuple):
    """A hyper-parameter in words: a row of the table on a model's page and in `help()`."""

    name: str
    kind: str  # its type; empty where `allowed` lists the choices
    default: str
    allowed: str  # empty: any value of the type
    tuned: str  # the range that `tune` searches; empty: it keeps its value
    doc: str


def described(cls: Any) -> list[Described]:
    """The hyper-parameters of a model class in words: those of its own first, then the inherited ones, `seed` last."""
    homes = [inspect.get_annotations(base) for base in cls.__mro__]
    fields = [f for f in dataclasses.fields(cls) if "param" in f.metadata]
    fields.sort(key=lambda f: (f.name == "seed", next((at for at, home in enumerate(homes) if f.name in home), 0)))
    return [_described(f) for f in fields]


def _described(field: Any) -> Described:
    rule: Param = field.metadata["param"]
    if rule.choices is not None:
        kind, allowed = "", " | ".join(map(repr, rule.choices))
    else:
        kind = field.type if isinstance(field.type, str) else getattr(field.type, "__name__", str(field.type))
        ends = [None if end is None else _number(end) for end in (rule.low, rule.high)]
        allowed = f"{ends[0]} to {ends[1]}" if None not in ends else f"at least {ends[0]}" if ends[0] else ""
        allowed = allowed or (f"at most {ends[1]}" if ends[1] else "")
    tuned = ""
    if rule.search and (rule.choices is not None or kind.startswith("bool")):
        tuned = "all" if rule.search == rule.choices else ", ".join(map(repr, rule.search))
    elif rule.search:
        tuned = f"{_number(rule.search[0])} to {_number(rule.search[-1])}{', log scale' if rule.log else ''}"
    return Described(field.name, kind, repr(field.default), allowed, tuned, rule.doc)


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,g}"


class ClassDoc:
    """The docstring of a model class, followed by its hyper-parameters; put together whenever it is read.

    `help(cr.WMF)`, editors and `corank models wmf` read it. The declarations are the only source: importing costs
    nothing, and no docstring repeats a default.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def __get__(self, model: Any, cls: Any) -> str:
        lines = [inspect.cleandoc(self.text), "", "Parameters", "----------"]
        for one in described(cls):
            facts = [one.kind or one.allowed, f"default {one.default}", one.allowed if one.kind else ""]
            facts.append(f"tuned over {one.tuned}" if one.tuned else "")
            lines += [f"{one.name} : {', '.join(filter(None, facts))}", f"    {one.doc}"]
        return "\n".join(lines)


def check(model: Any) -> None:
    """Raise one sentence for the first hyper-parameter whose value is not allowed; the others get their declared type.

    After this `model.dim` is an int and `model.reg` a float, whatever kind of number was given: no model needs a cast.
    """
    for name, declared in params_of(type(model)).items():
        value = getattr(model, name)
        why = mistake(type(model), name, value, *declared)
        if why:
            raise CorankError(why)
        if declared[0] in (int, float) and value is not None:
            setattr(model, name, operator.index(value) if declared[0] is int else float(value))


def mistake(cls: Any, name: str, value: Any, kind: type, optional: bool, default: Any, rule: Param) -> str:
    """What is wrong with a value of a hyper-parameter, which `params_of` declares; empty where nothing is."""
    where = f"{cls.__name__}({name}={show(value)}): {name} must be"
    if value is None and optional:
        return ""
    if not _is(value, kind):
        return f"{where} {_called(kind)}; the default is {default!r}"
    if rule.choices is not None and value not in rule.choices:
        return f"{where} one of {', '.join(map(repr, rule.choices))}"
    if kind in (int, float):
        if isinstance(value, int) and abs(value) >= 1 << 62:
            return f"{cls.__name__}({name}=...): {name} must have at most 62 bits"
        if not math.isfinite(value):
            return f"{where} a finite number; the default is {default!r}"
        if rule.low is not None and value < rule.low:
            return f"{where} at least {rule.low:g}; the default is {default!r}"
        if rule.high is not None and value > rule.high:
            return f"{where} at most {rule.high:g}; the default is {default!r}"
    return ""


def _is(value: Any, kind: type) -> bool:
    if isinstance(value, bool) or kind is bool:
        return isinstance(value, bool) and kind is bool
    if kind is float:
        return hasattr(value, "__float__") and not isinstance(value, str)
    if kind is int:
        return hasattr(value, "__index__")
    return isinstance(value, kind)


def _called(kind: type) -> str:
    return {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}.get(kind, kind.__name__)


def whole(name: str, value: Any, low: int) -> int:
    """A whole number of at least `low`, or one sentence about the argument `name`."""
    try:
        number = operator.index(value)
    except TypeError:
        number = low - 1
    if isinstance(value, bool) or not low <= number < 1 << 62:
        raise CorankError(f"{name}={value!r}: it must be a whole number of at least {low}")
    return number


def number(name: str, value: Any, low: float) -> float:
    """A finite number of at least `low`, or one sentence about the argument `name`."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not low <= value < math.inf:
        raise CorankError(f"{name}={value!r}: it must be a finite number of at least {low}")
    return float(value)
