"""The users and items of a model as the service shows them: ids in requests, titles, and search by title or id."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..data import Vocab
from ..data.labels import Column
from ..errors import CorankError, show
from ..model import Model

RESERVED = ("item", "title", "score", "rows", "reasons", "rest", "share", "contribution")  # names in answers
OFFERED = 100  # values of a label that the page offers
WORD = re.compile(r"\w+")
HITS = 2_000  # of a search, from which the best are chosen


def parse(vocab: Vocab, value: Any, what: str) -> Any:
    """The id that a value of a request means: "5" is the id 5 where ids are integers. Raises `CorankError`."""
    if isinstance(value, str):
        if vocab.strings:
            return value
        return vocab.parse(value) if len(value) <= 20 else _refuse(value, what)
    if isinstance(value, bool) or not isinstance(value, int):
        return _refuse(value, what)
    return str(value) if vocab.strings else value


def _refuse(value: Any, what: str) -> Any:
    raise CorankError(f"{show(value)} is not the id of {what}: ids are integers or strings")


def code_of(vocab: Vocab, value: Any, what: str) -> int:
    """The code of an id, -1 if it is unknown."""
    key = parse(vocab, value, what)
    if not isinstance(key, int):
        return int(vocab.codes([key])[0])
    if not -(2**63) <= key < 2**63:
        return -1
    at = int(vocab.ids.searchsorted(key))  # a single id: the way through arrays takes ten times as long
    return at if at < len(vocab) and vocab.ids[at] == key else -1


class Catalogue:
    """Titles and ids of the items and users of one model."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.ids: list[Any] = model.items_.ids.tolist()
        self.titles: Sequence[str] = model.titles_ if len(model.titles_) else ()
        self._shown: dict[int, dict[str, Any]] = {}

    def item(self, code: int) -> dict[str, Any]:
        """An item in an answer: id, title and labels. Do not change it: it is made once."""
        found = self._shown.get(code)
        if found is None:
            found = {"item": self.ids[code]}
            if self.titles and self.titles[code]:
                found["title"] = self.titles[code]
            for name, values in self._values.items():
                if values[code] is not None and name not in RESERVED:
                    found[name] = values[code]
            self._shown[code] = found
        return found

    def items(self, text: str, most: int) -> list[dict[str, Any]]:
        """The items with a text in their title or id, the best matches first; of equal ones the most popular.

        Where there are none, those with all of its words: "the matrix" is "Matrix, The".
        """
        wanted = text.strip().casefold()
        if not wanted:
            codes = np.argsort(-self._rows, kind="stable")[:most].tolist()
        else:
            hits = self._hits(wanted) or self._with_words(WORD.findall(wanted))
            codes = sorted(hits, key=lambda code: (self._distance(code, wanted), -self._rows[code], code))[:most]
        return [{**self.item(code), "rows": int(self._rows[code])} for code in codes]

    def users(self, text: str, most: int) -> list[dict[str, Any]]:
        """The users whose id begins with a text; without one, those with the most interactions."""
        vocab, wanted = self.model.users_, text.strip()
        lengths = self.model.seen_indptr_
        if not wanted:
            codes = np.argsort(-np.diff(lengths), kind="stable")[:most]
        elif vocab.strings:
            codes = np.arange(*_range(vocab.ids, wanted))[:most]
        else:
            codes = _numbers(vocab.ids, wanted)[:most]
        return [
            {"user": vocab.ids[code], "rows": int(lengths[code + 1] - lengths[code])}
            for code in (int(one) for one in codes)
        ]

    @cached_property
    def labels(self) -> list[dict[str, Any]]:
        """The labels of items by which answers can be filtered, with their most frequent values."""
        return [
            {"name": name, "kind": column.kind, "values": _frequent(column)}
            for name, column in self.model.labels_.columns.items()
        ]

    @cached_property
    def _values(self) -> dict[str, list[Any]]:
        """Label -> its value for each item."""
        return {name: column.listed() for name, column in self.model.labels_.columns.items()}

    @cached_property
    def _rows(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Training rows per item."""
        return np.bincount(self.model.seen_index_, minlength=len(self.ids))

    @cached_property
    def _words(self) -> tuple[str, np.ndarray[Any, np.dtype[np.int64]]]:
        """All titles and ids in one text, in which C code searches, and where each begins."""
        titles = self.titles or [""] * len(self.ids)
        lines = [f"{_one_line(title)}\t{_one_line(str(key))}\n" for title, key in zip(titles, self.ids, strict=True)]
        begins = np.cumsum([0, *map(len, lines)])
        return "".join(lines), begins

    def _hits(self, wanted: str) -> list[int]:
        text, begins = self._words
        found: list[int] = []
        at = text.find(wanted)
        while at >= 0 and len(found) < HITS:
            code = int(np.searchsorted(begins, at, side="right")) - 1
            found.append(code)
            at = text.find(wanted, int(begins[code + 1]))
        return found

    def _with_words(self, words: list[str]) -> list[int]:
        """The items whose title or id holds all of the words."""
        if len(words) < 2:
            return []
        text, begins = self._words
        hits = self._hits(max(words, key=len))
        return [code for code in hits if all(word in text[begins[code] : begins[code + 1]] for word in words)]

    def _distance(self, code: int, wanted: str) -> int:
        """0 for an id or title that is the text, 1 where the title begins with it, 2 at a word, 3 elsewhere."""
        text, begins = self._words
        title, key = text[begins[code] : begins[code + 1] - 1].split("\t")
        if wanted in (title, key):
            return 0
        if title.startswith(wanted) or key.startswith(wanted):
            return 1
        return 2 if f" {wanted}" in title else 3


def _frequent(column: Column) -> list[Any]:
    """The most frequent texts of a label, in alphabetical order; the least and the largest number."""
    if column.kind == "number":
        known = column.values[~np.isnan(column.values)]
        return [float(known.min()), float(known.max())] if known.size else []
    if column.kind == "flag":
        return []
    counts = np.bincount(column.values[column.values >= 0], minlength=len(column.words))
    return sorted(column.words[at] for at in np.argsort(-counts, kind="stable")[:OFFERED].tolist())


def _one_line(text: str) -> str:
    return text.casefold().replace("\t", " ").replace("\n", " ")


def _range(ids: Any, prefix: str) -> tuple[int, int]:
    """Where in sorted strings those with a prefix are."""
    begin = bisect_left(ids, prefix)
    return begin, bisect_left(ids, True, lo=begin, key=lambda key: not key.startswith(prefix))


def _numbers(ids: Any, prefix: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Positions of sorted integers whose digits begin with a prefix, the shortest first."""
    if not prefix.isascii() or not prefix.isdecimal() or len(prefix) > 18:
        return np.zeros(0, np.int64)
    low, parts, width = int(prefix), [], 1
    while low * width < 2**63 and (low or width == 1):
        begin, end = np.searchsorted(ids, [low * width, min((low + 1) * width, 2**63 - 1)])
        parts.append(np.arange(begin, end))
        width *= 10
    return np.concatenate(parts)
