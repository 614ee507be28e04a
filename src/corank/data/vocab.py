"""Vocabularies: external ids (integers or strings) and their codes, the positions that arrays and kernels work with."""

from __future__ import annotations

import contextlib
from bisect import bisect_left
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import CorankError, shorten, suggest
from .columns import id_array, plain
from .csr import Array

_FEW = 20  # a dict of all ids pays off once more than one id in this many is looked up


class Vocab:
    """Distinct external ids, integers or strings, sorted and read-only; the code of an id is its position."""

    __slots__ = ("_codes", "ids")

    def __init__(self, ids: Array) -> None:
        """`ids`: distinct and sorted, int64 or object (str); `Vocab.build` makes them from a column."""
        self.ids = frozen(ids)
        self._codes: dict[Any, int] | None = None

    @classmethod
    def build(cls, column: Any, what: str = "id") -> tuple[Vocab, NDArray[np.int32]]:
        """The vocabulary of a column and the code of each of its entries."""
        if type(column).__module__.startswith("polars") and str(column.dtype) == "String":
            return cls._build_strings(column, what)
        values = id_array(column, what)
        if values.dtype == object:
            return cls._build_strings(values, what)
        if values.size == 0:
            return cls(values), np.zeros(0, np.int32)
        low, high = int(values.min()), int(values.max())
        if high - low > 8 * values.size + 1_000_000:
            ids, codes = np.unique(values, return_inverse=True)
            return cls(ids), codes.astype(np.int32)
        # Dense enough for a lookup table: linear time, where sorting 20 million ids takes seconds.
        present = np.zeros(high - low + 1, np.bool_)
        present[values - low] = True
        table = np.cumsum(present, dtype=np.int32) - np.int32(1)
        return cls(np.flatnonzero(present).astype(np.int64) + low), table[values - low]

    @classmethod
    def _build_strings(cls, values: Any, what: str) -> tuple[Vocab, NDArray[np.int32]]:
        import polars as pl

        column = pl.Series(values, dtype=pl.String)  # a Series passes through without creating Python strings
        if column.null_count():
            raise CorankError(
                f"{column.null_count():,} of {len(column):,} {what} ids are missing: drop those rows first"
            )
        distinct = column.unique().sort()
        # An Enum cast is a hash lookup whose codes follow the order of its categories.
        codes = column.cast(pl.Enum(distinct)).to_physical().to_numpy().astype(np.int32)
        return cls(distinct.to_numpy().astype(object)), codes

    @property
    def strings(self) -> bool:
        return self.ids.dtype == object

    def __len__(self) -> int:
        return int(self.ids.size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocab) and (self is other or np.array_equal(self.ids, other.ids))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        head = ", ".join(shorten(repr(i)) for i in self.ids[:3].tolist())
        return f"Vocab({len(self):,} {'strings' if self.strings else 'ints'}: {head}{', ...' if len(self) > 3 else ''})"

    def codes(self, ids: Iterable[Hashable] | Array) -> NDArray[np.int32]:
        """The code of each id, -1 where it is unknown (an id of the other type is unknown too)."""
        wanted = ids if isinstance(ids, np.ndarray) else self._listed(list(ids))
        if not self.strings and wanted.dtype.kind in "iu":
            at = np.minimum(np.searchsorted(self.ids, wanted), max(len(self) - 1, 0))
            known = self.ids[at] == wanted if len(self) else np.zeros(wanted.size, np.bool_)
            return np.where(known, at, -1).astype(np.int32)
        if self._codes is None and wanted.size * _FEW > len(self):
            self._codes = {key: code for code, key in enumerate(self.ids.tolist())}
        return np.fromiter((self._code(plain(i)) for i in wanted.tolist()), np.int32, len(wanted))

    def _listed(self, ids: list[Any]) -> Array:
        """Ids as an array: of integers where all of them are, which are looked up together."""
        if not self.strings and all(type(key) is int for key in ids):
            with contextlib.suppress(OverflowError):
                return np.array(ids, np.int64)
        return np.array([*ids, None], dtype=object)[:-1]  # None keeps tuples from becoming rows

    def _code(self, key: Any) -> int:
        """The code of one id, by the dict where it was built, else by bisection."""
        try:
            if self._codes is not None:
                return self._codes.get(key, -1)
            # As Python integers: numpy would round an int64 before comparing it with a float.
            at = bisect_left(self.ids, key, key=None if self.strings else int)
        except TypeError:  # neither a string nor a number
            return -1
        return at if at < len(self) and plain(self.ids[at]) == key else -1

    def require(self, ids: Iterable[Hashable] | Array, what: str) -> NDArray[np.int32]:
        """Like `codes`, but an unknown id is an error that names it."""
        wanted = list(ids)
        codes = self.codes(wanted)
        if (codes < 0).any():
            bad = plain(wanted[int(np.argmax(codes < 0))])
            kind = str if self.strings else int
            hint = f"; ids here are {'strings' if self.strings else 'integers'}" if not isinstance(bad, kind) else ""
            if not hint and isinstance(bad, str):
                hint = suggest(bad, self.ids[:20_000].tolist()).split("; known")[0]
            raise CorankError(f"unknown {what} {bad!r}: it is not among the {len(self):,} {what}s the data has{hint}")
        return codes

    def parse(self, text: str) -> Hashable:
        """The id that a word on the command line means."""
        if self.strings:
            return text
        try:
            return int(text)
        except ValueError:
            raise CorankError(f"id {text!r} is not an integer, and the ids of this data are integers") from None


def frozen(array: Array) -> Array:
    """A read-only view."""
    view = array.view()
    view.flags.writeable = False
    return view
