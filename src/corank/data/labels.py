"""Labels of items, such as genre, year or availability: typed columns with one entry per item, which may be missing."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import CorankError
from .columns import plain, text_kind
from .csr import CSR, Array, row_ends
from .vocab import Vocab

SEVERAL = "|"  # between the values of one item in a text, as in "Comedy|Drama"
_FLAGS = {"true": True, "yes": True, "false": False, "no": False}
_CODE = re.compile(r"[+-]?0[0-9]")  # "007" is a code, not a number
_DTYPES = {"number": np.float64, "flag": np.int8, "text": np.int32, "texts": np.int32}
KINDS = {
    "number": "numbers",
    "flag": "yes or no",
    "text": "text",
    "texts": "several texts per item",
}


class Column(NamedTuple):
    """One label of all items.

    kind : 'number' (values float64, NaN where missing), 'flag' (values int8: 0, 1, or -1 where missing), 'text' (values
        int32: codes of `words`, -1 where missing) or 'texts', several per item (values int32: codes of `words` of all
        items, one after the other, with `ends`).
    values : (items,); for 'texts' (entries,).
    words : the distinct texts in rising order.
    ends : int64 (items + 1,), where the texts of each item begin; for 'texts' only.
    """

    kind: str
    values: Array
    words: tuple[str, ...] = ()
    ends: NDArray[np.int64] | None = None

    def take(self, rows: Array) -> Column:
        """The entries of these items, missing where the position is -1."""
        if self.ends is not None:
            entries = CSR(self.ends, self.values, np.empty(0, np.float32), len(self.words))
            empty = CSR(np.append(entries.indptr, entries.indptr[-1]), *entries[1:])  # position -1 is an empty row
            found = empty._replace(value=np.empty(self.values.size, np.float32)).take(rows)
            return self._replace(values=found.index, ends=found.indptr)
        missing = np.nan if self.kind == "number" else -1
        if not self.values.size:
            return self._replace(values=np.full(rows.size, missing, self.values.dtype))
        return self._replace(values=np.where(rows >= 0, self.values[rows], missing).astype(self.values.dtype))

    def filled(self, rows: Array, more: Column) -> Column | None:
        """This column with other entries at these items, which have none; None if they are of another kind."""
        if self.kind != more.kind:
            return None
        words = tuple(sorted({*self.words, *more.words}))
        own, new = self._over(words), more._over(words)
        if self.ends is None or more.ends is None:
            values = own.copy()
            values[rows] = new
            return self._replace(values=values, words=words)
        lengths = np.diff(self.ends)
        lengths[rows] = np.diff(more.ends)
        places = np.repeat(self.ends[rows], np.diff(more.ends))
        return self._replace(values=np.insert(own, places, new), words=words, ends=row_ends(lengths))

    def _over(self, words: tuple[str, ...]) -> Array:
        """The values with codes of these words, which have all of the own ones."""
        if not self.words:
            return self.values
        codes = np.searchsorted(np.array(words, object), np.array(self.words, object))
        return np.where(self.values >= 0, codes[self.values], -1).astype(self.values.dtype)

    def listed(self) -> list[Any]:
        """The entries as Python values: numbers, booleans, texts or lists of texts, None where missing."""
        if self.ends is not None:
            texts = [self.words[code] for code in self.values.tolist()]
            return [texts[a:b] or None for a, b in zip(self.ends[:-1].tolist(), self.ends[1:].tolist(), strict=True)]
        if self.kind == "number":
            return [None if math.isnan(v) else int(v) if v.is_integer() else v for v in self.values.tolist()]
        if self.kind == "flag":
            return [None if v < 0 else v == 1 for v in self.values.tolist()]
        return [None if code < 0 else self.words[code] for code in self.values.tolist()]

    def check(self, name: str, items: int) -> None:
        """Raise ValueError unless the column is as described above: it may come from a file of anybody."""
        if self.kind not in _DTYPES:
            raise ValueError(f"label {name!r} is of no known kind")
        if not isinstance(self.values, np.ndarray) or self.values.dtype != _DTYPES[self.kind] or self.values.ndim != 1:
            raise ValueError(f"label {name!r} must be {np.dtype(_DTYPES[self.kind])} (items)")
        if any(not isinstance(word, str) for word in self.words):
            raise ValueError(f"label {name!r} has a word that is not a text")
        "".join(self.words).encode()  # half a surrogate pair cannot be written anywhere: a ValueError
        if any(a >= b for a, b in zip(self.words, self.words[1:], strict=False)):
            raise ValueError(f"the words of label {name!r} must be distinct and in rising order")
        if self.kind == "texts":
            ends = self.ends
            if not isinstance(ends, np.ndarray) or ends.dtype != np.int64 or ends.shape != (items + 1,):
                raise ValueError(f"label {name!r} must say where the texts of each item begin")
            if ends[0] != 0 or ends[-1] != self.values.size or (ends[1:] < ends[:-1]).any():
                raise ValueError(f"the ends of label {name!r} are not a running total from 0")
        elif self.values.size != items or self.ends is not None:
            raise ValueError(f"label {name!r} must have one entry per item")
        if self.kind == "number":
            if np.isinf(self.values).any():
                raise ValueError(f"label {name!r} has infinity")
            return
        low, below = (0 if self.kind == "texts" else -1), 2 if self.kind == "flag" else len(self.words)
        if self.values.size and (self.values.min() < low or self.values.max() >= below):
            raise ValueError(f"label {name!r} has a code that stands for nothing")


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of items by name."""

    columns: Mapping[str, Column]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Labels) or self.columns.keys() != other.columns.keys():
            return False
        pairs = [(column, other.columns[name]) for name, column in self.columns.items()]
        return all(
            a.kind == b.kind
            and a.words == b.words
            and np.array_equal(a.values, b.values, equal_nan=True)
            and (a.ends is None or np.array_equal(a.ends, b.ends))  # type: ignore[arg-type]
            for a, b in pairs
        )

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return bool(self.columns)

    def __repr__(self) -> str:
        return f"Labels({', '.join(f'{name}: {column.kind}' for name, column in self.columns.items())})"

    def take(self, rows: Array) -> Labels:
        """The labels of these items, missing where the position is -1."""
        return Labels({name: column.take(rows) for name, column in self.columns.items()})

    def without(self, *names: str) -> Labels:
        return Labels({name: column for name, column in self.columns.items() if name not in names})


NO_LABELS = Labels({})


@dataclass(frozen=True, eq=False)
class ItemTable:
    """A table of items: their ids and labels; made by `item_table` and attached to a model by `Model.with_items`."""

    items: Vocab
    labels: Labels

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        return f"ItemTable({len(self):,} items, {', '.join(self.labels.columns) or 'no labels'})"

    @staticmethod
    def build(ids: Any, columns: Mapping[str, Any], where: str = "the item table") -> ItemTable:
        """From columns of equal length; an id that occurs twice is an error."""
        items, codes = Vocab.build(ids, "item")
        if len(items) < codes.size:
            twice = plain(items.ids[int(np.argmax(np.bincount(codes) > 1))])
            raise CorankError(f"{where} has item {twice!r} more than once: keep one row per item")
        order = np.argsort(codes)
        return ItemTable(items, labels_of(columns).take(order))


def labels_of(columns: Mapping[str, Any]) -> Labels:
    """Labels from columns of any type; arrays with more than one number per item are left out."""
    read = {"title": _texts}  # a title is a text, whatever it looks like: "1917", "Either|Or"
    found = {str(name): read.get(str(name), column_of)(values) for name, values in columns.items()}
    return Labels({name: column for name, column in found.items() if column is not None})


def column_of(values: Any) -> Column | None:
    """The typed column of a list or an array; None for arrays of two or more dimensions.

    Texts are numbers (or yes and no) if all of them are written so, and several values per item if one holds "|".
    Missing are None, NaN, infinity and empty texts.
    """
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            return None
        if values.dtype.kind == "b":
            return Column("flag", values.astype(np.int8))
        if values.dtype.kind in "iuf":
            numbers = values.astype(np.float64)
            return Column("number", np.where(np.isfinite(numbers), numbers, np.nan))
    entries = [_entry(value) for value in (values.tolist() if isinstance(values, np.ndarray) else values)]
    some = [entry for entry in entries if entry is not None]
    if any(isinstance(entry, list) for entry in some):
        return _several([entry if isinstance(entry, list) else [] if entry is None else [entry] for entry in entries])
    if all(isinstance(entry, bool) for entry in some) and some:
        return _flags(entries)
    if all(isinstance(entry, int | float) for entry in some):
        return _numbers(entries)
    texts = [None if entry is None else str(entry) for entry in entries]
    given = [text for text in texts if text is not None]
    if {text.casefold() for text in given} <= _FLAGS.keys():
        return _flags([None if text is None else _FLAGS[text.casefold()] for text in texts])
    if text_kind(given) != "text" and all(math.isfinite(float(t)) and not _CODE.match(t) for t in given):
        return _numbers([None if text is None else float(text) for text in texts])
    if any(SEVERAL in text for text in given):
        return _several([[] if text is None else text.split(SEVERAL) for text in texts])
    return _texts(texts)


def _texts(entries: Iterable[Any]) -> Column:
    texts = [_entry(entry) for entry in entries]
    words = sorted({str(text) for text in texts if text is not None})
    code = {word: at for at, word in enumerate(words)}
    codes = np.array([-1 if text is None else code[str(text)] for text in texts], np.int32)
    return Column("text", codes, tuple(words))


def _entry(value: Any) -> Any:
    """None where missing, a number, a boolean, a text, or a list where an item has several values."""
    value = plain(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, date):  # datetimes too: as text, which has the same order
        return value.isoformat()
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return list(value)
    return str(value)


def _flags(entries: Sequence[bool | None]) -> Column:
    return Column("flag", np.array([-1 if entry is None else entry for entry in entries], np.int8))


def _numbers(entries: Sequence[float | None]) -> Column:
    return Column("number", np.array([np.nan if entry is None else entry for entry in entries], np.float64))


def _several(entries: Sequence[Sequence[Any]]) -> Column:
    texts = [sorted({str(plain(part)).strip() for part in entry if part is not None} - {""}) for entry in entries]
    words = sorted({word for text in texts for word in text})
    code = {word: at for at, word in enumerate(words)}
    codes = np.array([code[word] for text in texts for word in text], np.int32)
    return Column("texts", codes, tuple(words), row_ends([len(text) for text in texts]))
