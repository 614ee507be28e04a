"""Batches of requests for recommendations, answered by a few calls of the library.

Requests with the same rules become one call: users as they were in the training data, users with newer events, and
histories of unseen users are three kinds of calls. A request that fails does not cost the others their answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..answering.diversity import recommend_diverse
from ..answering.newer import continued
from ..answering.ranking import Ranking
from ..answering.rules import unmatched
from ..data import CSR, Vocab, row_ends
from ..errors import CorankError
from ..model import Model
from .catalogue import code_of, parse
from .problems import Problem, refused, unknown
from .recent import NOTHING, Recent, RecentEvents

WIDTHS = (10, 20, 50, 100)  # lists up to such a length are cut from one of that length, so that they share a call


REMEDY = {"user": "give a history, or send feedback first", "item": "find items with /items?q=TITLE"}


class Rules(NamedTuple):
    """Options of `recommend` and of the list; equal keys mean equal rules."""

    key: bytes = b""
    options: Mapping[str, Any] = {}  # items, exclude, where
    diversity: float = 0.0


PLAIN = Rules()


@dataclass(slots=True)
class Asked:
    """One request for recommendations."""

    k: int = 10
    user: Any = None
    history: Sequence[tuple[Any, float | None]] = ()  # items and ratings, oldest first
    rules: Rules = PLAIN
    seen: bool = False  # recommend what the user knows already, too

    @property
    def key(self) -> str | None:
        """The user as the store and the split know it."""
        return None if self.user is None else str(self.user)


@dataclass(slots=True)
class Answer:
    """The list of one request."""

    codes: list[int]
    scores: list[float]
    events: int  # known items of the history and of stored feedback that the list is based on
    skipped: list[Any]  # items of the history that the model does not know
    stale: bool  # the feedback store could not be asked
    notes: list[str]  # what is probably mistyped


@dataclass(slots=True)
class Known:
    """A request in the codes of a model."""

    user: int = -1  # -1: unseen
    items: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    hidden: list[int] = field(default_factory=list)
    skipped: list[Any] = field(default_factory=list)


class Answerer:
    """Answers batches with one model. It is called in the thread of the model's lane."""

    def __init__(self, model: Model, recent: RecentEvents) -> None:
        self.model = model
        self.recent = recent
        self.bare = float(getattr(model, "liked_", 1.0))  # the value of an item without a rating
        self._training: CSR | None = None

    def __call__(self, batch: Sequence[Asked]) -> list[Answer | BaseException]:
        answers: list[Any] = [None] * len(batch)
        recent = self.recent.of([asked.key for asked in batch if asked.key is not None])
        groups: dict[Any, list[tuple[int, Known]]] = {}
        for at, asked in enumerate(batch):
            try:
                one = self.known(asked.user, asked.history, recent.get(asked.key or "", NOTHING))
            except Problem as why:
                answers[at] = why
                continue
            # What a diverse list is chosen from depends on its length, so that it is never cut from a longer one.
            width = asked.k if asked.rules.diversity else next((w for w in WIDTHS if asked.k <= w), asked.k)
            key = (one.user >= 0, bool(one.items), width, asked.seen, asked.rules.key)
            groups.setdefault(key, []).append((at, one))
        for key, group in groups.items():
            self._answer_group(batch, group, key[2], answers)
        return answers

    def known(self, user: Any, history: Sequence[tuple[Any, float | None]], recent: Recent = NOTHING) -> Known:
        """A request in codes; a user or a history that the model cannot know is a `Problem`."""
        out, users, items = Known(), self.model.users_, self.model.items_
        try:
            if user is not None:
                out.user = code_of(users, user, "a user")
            for item, value in recent.liked:
                self._add(out, stored_code(items, item), value)
            for item, value in history:
                code = code_of(items, item, "an item")
                if code < 0:
                    out.skipped.append(item)
                else:
                    self._add(out, code, value)
            out.hidden = [code for code in (stored_code(items, item) for item in recent.hidden) if code >= 0]
        except CorankError as why:
            raise refused(why) from None
        if out.user < 0 and not out.items:
            what, vocab = ("item", items) if out.skipped else ("user", users)
            first = out.skipped[0] if out.skipped else user
            if first is None:
                raise refused("the history is empty: give at least one item, or a user")
            try:
                vocab.require([parse(vocab, first, what)], what)
            except CorankError as why:
                raise unknown(CorankError(f"{why}; {REMEDY[what]}")) from None
        return out

    def training_rows(self) -> CSR:
        """The training rows in time order, made once."""
        if self._training is None:
            self._training = self.model._training_rows()
        return self._training

    def history_rows(self, group: Sequence[Known]) -> CSR | None:
        """Histories for a call about users of one kind; None for training users without newer events."""
        if not group[0].items:
            return None
        if group[0].user >= 0:
            users = np.array([one.user for one in group], np.int32)
            lists = [one.items for one in group], [one.values for one in group]
            return continued(self.model, users, *lists, rows=self.training_rows())
        index = np.array([code for one in group for code in one.items], np.int32)
        value = np.array([number for one in group for number in one.values], np.float32)
        return CSR(row_ends([len(one.items) for one in group]), index, value, len(self.model.items_))

    def _add(self, out: Known, code: int, value: float | None) -> None:
        if code >= 0:
            out.items.append(code)
            out.values.append(self.bare if value is None else value)

    def _answer_group(
        self, batch: Sequence[Asked], group: Sequence[tuple[int, Known]], width: int, answers: list[Any]
    ) -> None:
        """One call for requests of one kind; where it fails for a reason of its own, one call for each of them."""
        asked = batch[group[0][0]]
        try:
            ranking = self._ranked([one for _, one in group], width, asked)
            where = asked.rules.options.get("where")
            notes = unmatched(self.model, where) if where else []
        except Exception as why:
            if len(group) > 1 and not isinstance(why, CorankError):
                for single in group:
                    self._answer_group(batch, [single], width, answers)
                return
            for at, _ in group:
                answers[at] = refused(why) if isinstance(why, CorankError) else why
            return
        codes, scores = ranking.items.tolist(), ranking.scores.tolist()
        stale = self.recent.stale
        for row, (at, one) in enumerate(group):
            k = batch[at].k
            found = codes[row][:k]
            if found and found[-1] < 0:  # fewer items than asked for
                found = [code for code in found if code >= 0]
            answers[at] = Answer(found, scores[row][: len(found)], len(one.items), one.skipped, stale, notes)

    def _ranked(self, group: Sequence[Known], width: int, asked: Asked) -> Ranking:
        options = dict(asked.rules.options)
        if any(one.hidden for one in group):
            ids, shared = self.model.items_.ids, list(options.get("exclude", ()))
            options["exclude"] = [[*shared, *ids[one.hidden].tolist()] for one in group]
        users = None if group[0].user < 0 else self.model.users_.ids[[one.user for one in group]]
        rows = self.history_rows(group)
        options |= {"users": users, "histories": rows, "exclude_seen": not asked.seen}
        return recommend_diverse(self.model, asked.rules.diversity, k=width, **options)


def stored_code(items: Vocab, item: Any) -> int:
    """The code of an item of the store or of feedback; -1 if this model cannot know it."""
    try:
        return code_of(items, item, "an item")
    except CorankError:
        return -1
