"""What a fitted model stores: type, shape and range of each learned attribute, declared by its class in `_stores`.

Saving, loading, checkpoints and the docs read the declaration. Kernels trust their input and a file may come from
anybody, so everything in it is checked against the declaration before anything is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from .data import Array, Vocab
from .data.labels import Labels

if TYPE_CHECKING:
    from .model import Model

Sizes = dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Stored:
    """One learned attribute. `optional`: files that earlier versions wrote lack it."""

    optional: bool = False

    def check(self, name: str, value: Any, model: Model, sizes: Sizes) -> None:
        """Raise ValueError unless `value` is as declared; sizes : what earlier attributes tell about "users" etc."""
        raise NotImplementedError

    def words(self) -> str:
        """What it is, as a cell of a table in the docs."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Numbers(Stored):
    """An array of numbers, all finite.

    shape : numbers, or words: "users", "items", a hyper-parameter, a word that the model's `_size` knows, or one that
        means the same number wherever this model uses it ("kept").
    below : values are smaller than this number or word.
    """

    dtype: str
    shape: tuple[str | int, ...]
    low: float | None = None
    below: str | int | None = None
    rising: bool = False  # each value is larger than the one before
    some: bool = False  # there is at least one

    def check(self, name: str, value: Any, model: Model, sizes: Sizes) -> None:
        if not isinstance(value, np.ndarray) or value.dtype != self.dtype or value.ndim != len(self.shape):
            raise ValueError(f"{name} must be {self.words()}")
        for word, n in zip(self.shape, value.shape, strict=True):
            if n != (wanted := size(word, n, model, sizes)):
                raise ValueError(f"{name} must be {self.words()}, with {wanted} {word} and not {n}")
        if value.size == 0:
            if self.some:
                raise ValueError(f"{name} is empty")
            return
        lowest, highest = value.min(), value.max()  # NaN if one of them is
        if not (np.isfinite(lowest) and np.isfinite(highest)):
            raise ValueError(f"{name} has NaN or infinity")
        if self.low is not None and lowest < self.low:
            raise ValueError(f"{name} has {lowest:g}, which is below {self.low:g}")
        if self.below is not None and highest >= (bound := size(self.below, 0, model, sizes)):
            raise ValueError(f"{name} has {highest}, and {bound} {self.below} are there")
        if self.rising and (value[1:] <= value[:-1]).any():
            raise ValueError(f"{name} is not in rising order")

    def words(self) -> str:
        shape = " x ".join(map(str, self.shape))
        bounds = [f"at least {self.low:g}"] if self.low is not None and self.below is None else []
        bounds += [f"codes of {self.below}"] if self.below is not None else []
        bounds += ["rising"] if self.rising else []
        return ", ".join([f"{self.dtype} ({shape})", *bounds])


def floats(
    *shape: str | int,
    low: float | None = None,
    rising: bool = False,
    some: bool = False,
    dtype: str = "float32",
    optional: bool = False,
) -> Numbers:
    """Finite numbers."""
    return Numbers(dtype=dtype, shape=shape, low=low, rising=rising, some=some, optional=optional)


def codes(*shape: str | int, below: str = "items", dtype: str = "int32", rising: bool = False) -> Numbers:
    """Whole numbers from 0 up to the number of users, items or whatever `below` names."""
    return Numbers(dtype=dtype, shape=shape, low=0, below=below, rising=rising)


@dataclass(frozen=True, kw_only=True)
class Lengths(Stored):
    """int64 (of,): how many of the entries that the word `into` names belong to each row; together they are all."""

    of: str
    into: str
    most: str | None = None  # a hyper-parameter that none exceeds

    def check(self, name: str, value: Any, model: Model, sizes: Sizes) -> None:
        Numbers(dtype="int64", shape=(self.of,), low=0).check(name, value, model, sizes)
        if self.most is not None and value.size and value.max() > getattr(model, self.most):
            raise ValueError(f"{name} has {value.max()}, which is more than {self.most}")
        sizes[self.into] = _total(name, value)

    def words(self) -> str:
        return f"int64 ({self.of}), which add up to the {self.into}"


@dataclass(frozen=True, kw_only=True)
class Ends(Stored):
    """int64 (of + 1,): where each row begins among the entries that `into` names, and at the end their number."""

    of: str
    into: str

    def check(self, name: str, value: Any, model: Model, sizes: Sizes) -> None:
        rows = size(self.of, 0, model, sizes)
        if not isinstance(value, np.ndarray) or value.dtype != np.int64 or value.shape != (rows + 1,):
            raise ValueError(f"{name} must be {self.words()}")
        if value[0] != 0 or (value[1:] < value[:-1]).any():
            raise ValueError(f"{name} is not a running total from 0")
        sizes[self.into] = int(value[-1])

    def words(self) -> str:
        return f"int64 ({self.of} + 1), where each has its {self.into}"


@dataclass(frozen=True, kw_only=True)
class Number(Stored):
    """One finite number."""

    low: float | None = None
    high: float | None = None
    whole: bool = False

    def check(self, name: str, value: Any, model: Model, sizes: Sizes) -> None:
        if not is_number(value, self.whole):
            raise ValueError(f"{name} must be {self.words()}, not {_shown(value)}")
        if (self.low is not None and value < self.low) or (self.high is not None and value > self.high):
            raise ValueError(f"{name} must be {self.words()}, not {_shown(value)}")

    def words(self) -> str:
        ends = [f"at least {self.low:g}"] if self.low is not None else []
        ends += [f"at most {self.high:g}"] if self.high is not None else []
        return ", ".join(["a whole number" if self.whole else "a number", *ends])


@dataclass(frozen=True, kw_only=True)
class Word(Stored):
    """One of a few words."""

    among: tuple[str, ...]

    def check(self, name: str, value: Any, model: Model, sizes: Sizes) -> None:
        if not isinstance(value, str) or value not in self.among:
            raise ValueError(f"{name} must be {self.words()}, not {_shown(value)}")

    def words(self) -> str:
        return " or ".join(map(repr, self.among))


def word(*among: str, optional: bool = False) -> Word:
    return Word(among=among, optional=optional)


@dataclass(frozen=True, kw_only=True)
class Wholes(Stored):
    """A short list of whole numbers of at least 0."""

    length: int

    def check(self, name: str, value: Any, model: Model, sizes: Sizes) -> None:
        if not isinstance(value, list) or len(value) != self.length or not all(is_number(v, True) for v in value):
            raise ValueError(f"{name} must be {self.words()}")
        if min(value) < 0 or max(value) > 1 << 40:
            raise ValueError(f"{name} must be {self.words()}")

    def words(self) -> str:
        return f"{self.length} whole numbers"


@dataclass(frozen=True, kw_only=True)
class Ids(Stored):
    """The distinct ids of users or items, in rising order."""

    def check(self, name: str, value: Any, model: Model, sizes: Sizes) -> None:
        if not isinstance(value, Vocab) or not len(value):
            raise ValueError(f"{name} must be ids, at least one")
        ids = value.ids
        if ids.ndim != 1 or ids.dtype not in (np.dtype(object), np.dtype(np.int64)):
            raise ValueError(f"{name} must be int64 or text")
        if any(a >= b for a, b in pairwise(ids.tolist())) if value.strings else (ids[1:] <= ids[:-1]).any():
            raise ValueError(f"{name} must be distinct and in rising order")
        if len(value) >= 1 << 31:
            raise ValueError(f"{name} has more than 2^31 ids")
        sizes[name.rstrip("_")] = len(value)

    def words(self) -> str:
        return "distinct ids in rising order, int64 or text"


@dataclass(frozen=True, kw_only=True)
class Titles(Stored):
    """A title per item, or none at all."""

    def check(self, name: str, value: Any, model: Model, sizes: Sizes) -> None:
        if not isinstance(value, list) or len(value) not in (0, sizes["items"]):
            raise ValueError(f"{name} must be one text per item, or none")
        for title in value:
            if title is not None and not isinstance(title, str):
                raise ValueError(f"{name} has {_shown(title)}, which is not a text")
        "".join(filter(None, value)).encode()  # half a surrogate pair cannot be written anywhere: a ValueError

    def words(self) -> str:
        return "a text per item, or none"


@dataclass(frozen=True, kw_only=True)
class ItemLabels(Stored):
    """The labels of the items."""

    def check(self, name: str, value: Any, model: Model, sizes: Sizes) -> None:
        if not isinstance(value, Labels):
            raise ValueError(f"{name} must be {self.words()}")
        for label, column in value.columns.items():
            column.check(label, sizes["items"])

    def words(self) -> str:
        return "columns of numbers, yes or no, a text or several texts per item"


@dataclass(frozen=True, kw_only=True)
class History(Stored):
    """What was reported after each epoch."""

    def check(self, name: str, value: Any, model: Model | None = None, sizes: Sizes | None = None) -> None:
        if not isinstance(value, list):
            raise ValueError(f"{name} must be {self.words()}")
        for at, entry in enumerate(value):
            if not isinstance(entry, dict) or not all(is_number(number) for number in entry.values()):
                raise ValueError(f"{name} must be {self.words()}")
            if entry.get("epoch") != at + 1 or entry.get("seconds", -1) < 0:
                raise ValueError(f"{name} must be {self.words()}, in order and with their seconds")

    def words(self) -> str:
        return "a dict of numbers per epoch"


COMMON: Mapping[str, Stored] = {
    "users_": Ids(),
    "items_": Ids(),
    "seen_indptr_": Ends(of="users", into="training rows"),
    "seen_index_": codes("training rows"),
    "titles_": Titles(),
    "labels_": ItemLabels(optional=True),
    "history_": History(),
    "fit_seconds_": Number(low=0),
}


def check_state(model: Model, state: Mapping[str, Any]) -> None:
    """Put a state into a model attribute by attribute, each checked first; ValueError says what is not as declared.

    An attribute that the model does not declare is an error too: nothing would know what it may be.
    """
    sizes: Sizes = {}
    vars(model).update({name: state[name] for name in ("users_", "items_") if isinstance(state.get(name), Vocab)})
    for name, rule in COMMON.items():
        if name in state or not rule.optional:
            rule.check(name, _of(state, name), model, sizes)
    declared = model._stores()
    for name in state:
        if name not in declared:
            raise ValueError(f"{name} is not something that {type(model).__name__} stores")
    for name, rule in declared.items():
        if name in state or not rule.optional:
            if name not in COMMON:
                rule.check(name, _of(state, name), model, sizes)
            setattr(model, name, state[name])


def check_arrays(model: Model, arrays: Mapping[str, Array]) -> None:
    """ValueError unless these learned arrays of a model in training are as declared."""
    sizes: Sizes = {"users": len(model.users_), "items": len(model.items_)}
    for name, rule in model._stores().items():
        if name in arrays and isinstance(rule, Numbers | Lengths | Ends):
            rule.check(name, arrays[name], model, sizes)


def permutes(indptr: Array) -> Callable[[Array], bool]:
    """A rule for training state: within each row, the places of its entries in some order."""
    length = np.diff(indptr)
    first = np.repeat(indptr[:-1], length)

    def holds(order: Array) -> bool:
        if order.size and (order.min() < 0 or (order >= np.repeat(length, length)).any()):
            return False
        return bool((np.bincount(order + first, minlength=first.size) == 1).all())

    return holds


def size(word: str | int, found: int, model: Model, sizes: Sizes) -> int:
    """The number that a word of a shape stands for; one that nothing knows yet stands for what was found."""
    if isinstance(word, int):
        return word
    known = sizes.get(word)
    if known is None:
        known = model._size(word)
    return sizes.setdefault(word, found if known is None else known)


def is_number(value: Any, whole: bool = False) -> bool:
    """Whether it is a finite number, and a whole one that 64 bits can hold if asked for."""
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        return False
    return -(1 << 62) < value < 1 << 62 if isinstance(value, int) else math.isfinite(value)


def _of(state: Mapping[str, Any], name: str) -> Any:
    if name not in state:
        raise ValueError(f"{name} is missing")
    return state[name]


def _total(name: str, lengths: Array) -> int:
    """Their sum, in Python's integers where it could overflow."""
    if lengths.size and int(lengths.max()) > 1 << 40:
        raise ValueError(f"{name} has {lengths.max()}, which is too long")
    return int(lengths.sum())


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
