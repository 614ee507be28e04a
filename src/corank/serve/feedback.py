"""Feedback: checked and written, and the counts of what each model showed and what users did with it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import CorankError
from . import schemas
from .answers import stored_code
from .catalogue import parse
from .metrics import Metrics
from .problems import Problem, refused, unavailable
from .registry import Registry
from .store import FORGET, LIKED, Event, Store, StoreDown
from .writer import Writer

SHOWN, CLICKED = "shown", "clicked"  # what the store calls items in answers, and feedback on them


class Feedback:
    """Takes feedback. Its methods run in the event loop."""

    def __init__(self, store: Store | None, registry: Registry, metrics: Metrics) -> None:
        self.store = store
        self.registry = registry
        self.metrics = metrics
        self.counts: Counter[tuple[str, str]] = Counter()  # since they were last written to the store
        self.writer = None if store is None else Writer(store)

    async def accept(self, events: Sequence[schemas.FeedbackEvent]) -> dict[str, Any]:
        """Store events; when this returns, they are on disk and part of the next answer."""
        rows = [self._event(one) for one in events]
        await self._write(rows)
        for row in rows:
            self.metrics.events.labels(row.event).inc()
            if row.event in LIKED and row.model is not None:
                self.counts[row.model, CLICKED] += 1
                self.metrics.clicked.labels(row.model).inc()
        unknown = dict.fromkeys(one.item for one in events if not self._known(one.item))
        return {"accepted": len(rows)} | ({"unknown": list(unknown)} if unknown else {})

    def _known(self, item: Any) -> bool:
        """Whether any model has an item."""
        vocabs = (one.model.items_ for one in self.registry.models.values())
        return any(stored_code(vocab, item) >= 0 for vocab in vocabs)

    async def forget(self, user: str) -> None:
        """Delete all feedback of a user."""
        await self._write([Event(self.key(user), None, FORGET, time=int(time.time()))])

    def showed(self, model: str, items: int) -> None:
        """Count items in an answer to a user whom the split gave this model."""
        self.counts[model, SHOWN] += items
        self.metrics.showed(model, items)

    def key(self, user: Any) -> str:
        """A user as the store and the split know it: "05" is 5 where ids are integers."""
        try:
            key = str(parse(self.registry.first.users_, user, "a user"))
        except CorankError as why:
            raise refused(why) from None
        _check_text(key)
        return key

    async def totals(self) -> Mapping[tuple[str, str], int]:
        """The counts of the store, and those that are not written yet."""
        counted: Mapping[tuple[str, str], int] = {}
        if self.store is not None:
            with contextlib.suppress(StoreDown):
                counted = await asyncio.to_thread(self.store.counts)
        return Counter(counted) + self.counts

    async def write_counts(self) -> None:
        """Add the counts to those of the store, or keep them until it is back."""
        if self.store is None:
            return
        counts, self.counts = self.counts, Counter()
        try:
            if counts:
                await asyncio.to_thread(self.store.count, counts)
            elif not self.store.up:
                await asyncio.to_thread(self.store.position)
        except StoreDown:
            self.counts += counts

    async def close(self) -> None:
        """Write what is waiting."""
        if self.writer is not None and self.store is not None:
            await asyncio.to_thread(self.writer.close)
            await self.write_counts()
            self.store.close()

    def _event(self, one: schemas.FeedbackEvent) -> Event:
        if (one.event == "rating") != (one.value is not None):
            raise refused("a rating has a value, and no other event has one: give event=rating and value, or neither")
        key = self.key(one.user)
        try:
            item = str(parse(self.registry.first.items_, one.item, "an item"))
        except CorankError as why:
            raise refused(why) from None
        _check_text(item)
        _check_text(one.key or "")
        model = one.model if one.model in self.registry.models else self.registry.find(None, key).name
        return Event(key, item, one.event, one.value, one.time or int(time.time()), model, one.key)

    async def _write(self, rows: Sequence[Event]) -> None:
        if self.writer is None:
            raise Problem(403, "there is no feedback store: start the service with --store URL")
        try:
            await self.writer.write(rows)
        except StoreDown as why:
            raise unavailable(f"the feedback store does not answer ({why}): send it again later") from None


def _check_text(text: str) -> None:
    """Databases store neither NUL nor half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        broken = True
    else:
        broken = "\0" in text
    if broken:
        raise refused(f"{text!r} holds a character that cannot be stored: leave out NUL and broken Unicode")
