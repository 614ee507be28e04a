"""Items on the command line: by id, by title, or by the nearest title."""

from __future__ import annotations

import difflib
import re
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import CorankError, suggest
from .options import comma_separated
from .show import say, titles_of

_YEAR = re.compile(r"\s*\([^()]*\)$")  # Heat (1995)


class ItemFinder:
    """Finds the items of a model that words on the command line mean."""

    def __init__(self, model: Any, titles_file: str | None) -> None:
        self.model = model
        self.titles = titles_of(model, titles_file)

    def history(self, texts: Sequence[str]) -> list[Hashable]:
        """The items of a history; unknown ones are skipped with a sentence, and an error if all of them are."""
        return self.some_of(texts, "--history", needed=True)

    def some_of(self, texts: Sequence[str], flag: str, *, needed: bool = False) -> list[Hashable]:
        """The items that are found; the others are skipped with a sentence. needed : at least one must be found."""
        found = [(word, self._find(word)) for word in self._words(texts, flag)]
        unknown = [word for word, item in found if item is None]
        if needed and len(unknown) == len(found):
            raise self._unknown(unknown[0])
        for word in unknown:
            say(f"no item {word!r}: skipped")
        return [item for _, item in found if item is not None]

    def all_of(self, texts: Sequence[str], flag: str) -> list[Hashable]:
        """The items, every one of which must be found."""
        out = []
        for word in self._words(texts, flag):
            item = self._find(word)
            if item is None:
                raise self._unknown(word)
            out.append(item)
        return out

    def _words(self, texts: Sequence[str], flag: str) -> list[str]:
        """One word per item: a text is a list with commas, unless all of it is an id or a title (`Matrix, The`)."""
        out: list[str] = []
        for text in texts:
            out += [text] if self._exact(text) is not None else comma_separated(text, flag)
        return out

    def _exact(self, word: str) -> Hashable | None:
        """The item of that id, else of that title, in upper or lower case."""
        vocab = self.model.items_
        item: Any = word if vocab.strings else int(word) if re.fullmatch(r"-?[0-9]{1,18}", word) else None
        if item is not None and vocab.codes([item])[0] >= 0:
            return item  # type: ignore[no-any-return]
        return self._by_title.get(word.strip().casefold())

    def _find(self, word: str) -> Hashable | None:
        item = self._exact(word)
        if item is None and not _is_number(word) and (near := self._nearest(word.casefold())) is not None:
            item = self._by_title[near]
            say(f"no item {word!r}: using {self.titles[item]!r} (id {item})")
        return item

    def _nearest(self, word: str) -> str | None:
        """The title that is meant: without its year, else the most popular one with these words, else by spelling."""
        whole = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
        same = [title for title in self._by_title if _YEAR.sub("", title) == word]
        holds = same or [title for title in self._by_title if whole.search(title)]
        if holds:
            return max(holds, key=lambda title: self._rows[self._by_title[title]])
        short = {_YEAR.sub("", title): title for title in self._by_title}
        near = difflib.get_close_matches(word, {**short, **dict.fromkeys(self._by_title, "")}, n=1, cutoff=0.7)
        return short.get(near[0], near[0]) if near else None

    @cached_property
    def _rows(self) -> dict[Any, int]:
        """Item -> number of training rows."""
        counts = np.bincount(self.model.seen_index_, minlength=len(self.model.items_))
        return dict(zip(self.model.items_.ids.tolist(), counts.tolist(), strict=True))

    @cached_property
    def _by_title(self) -> dict[str, Any]:
        """Title in lower case -> item; of two items with one title, the more popular one."""
        known = [
            (title.strip().casefold(), item) for item, title in self.titles.items() if item in self._rows and title
        ]
        return dict(sorted(known, key=lambda pair: self._rows[pair[1]]))

    def _unknown(self, word: str) -> CorankError:
        vocab = self.model.items_
        try:
            vocab.require([vocab.parse(word)], "item")
        except CorankError as why:
            if not self.titles:
                return why
        near = suggest(word.casefold(), self._by_title).split("; known")[0]
        return CorankError(f"unknown item {word!r}: it is neither an id nor a title of the {len(vocab):,} items{near}")


def _is_number(word: str) -> bool:
    """A number is an id: its nearest title would be a surprise."""
    return re.fullmatch(r"-?[0-9]+", word) is not None
