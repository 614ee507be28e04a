"""What users did lately: the newest events of each user, in memory, and always as new as the store.

Before each batch of requests the store is asked for events after the last one that was read; those of users in memory
are appended, users that are not are read when they are asked for. Memory is bounded: the users asked for longest ago
are dropped. So an acknowledged event is part of the next answer, whichever process acknowledged it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from .store import FORGET, HIDDEN, LIKED, Store, StoreDown

USERS = 100_000  # kept in memory


class Recent(NamedTuple):
    """The events of one user that matter for recommendations, oldest first."""

    liked: tuple[tuple[str, float | None], ...] = ()  # items and their ratings
    hidden: frozenset[str] = frozenset()  # items that must not be recommended


NOTHING = Recent()


class RecentEvents:
    """The recent events of users; may be called from any thread."""

    def __init__(self, store: Store | None, most: int, users: int = USERS) -> None:
        """most : events kept per user. users : in memory."""
        self.store = store
        self.most = most
        self.users = users
        self.stale = False  # the store was down when it was last asked
        self._known: OrderedDict[str, Recent] = OrderedDict()
        self._version = -1
        self._position = -1
        self._lock = threading.Lock()

    def of(self, users: Sequence[str]) -> dict[str, Recent]:
        """The events of those users that have any. While the store is down: what was read before."""
        if self.store is None:
            return {}
        with self._lock:
            try:
                self._read_on(self.store)
                self._read_missing(self.store, users)
                self.stale = False
            except StoreDown:
                self.stale = True
            found = {}
            for user in users:
                events = self._known.get(user)
                if events is not None:
                    self._known.move_to_end(user)
                    if events is not NOTHING:
                        found[user] = events
            return found

    def _read_on(self, store: Store) -> None:
        """Take notice of the events since the last time."""
        version = store.version()
        if version == self._version:
            return
        if self._position < 0:
            self._position = store.position()
        else:
            for number, user, item, event, value in store.since(self._position):
                self._position = number
                if user in self._known:
                    self._known[user] = self._after(self._known[user], item, event, value)
        self._version = version

    def _read_missing(self, store: Store, users: Sequence[str]) -> None:
        """Read the events of users that are not in memory, up to those that `_read_on` has seen."""
        missing = [user for user in dict.fromkeys(users) if user not in self._known]
        if not missing:
            return
        found = dict.fromkeys(missing, NOTHING)
        for _, user, item, event, value in store.of(missing, self._position):
            found[user] = self._after(found[user], item, event, value)
        self._known.update(found)
        while len(self._known) > max(self.users, len(missing)):
            self._known.popitem(last=False)

    def _after(self, before: Recent, item: str | None, event: str, value: float | None) -> Recent:
        """The events of a user after one more. The last word on an item counts: liked, or hidden."""
        if event == FORGET or item is None:
            return NOTHING
        if event in LIKED:
            liked = (*before.liked, (item, value))[-self.most :]
            return Recent(liked, before.hidden - {item})
        if event in HIDDEN:
            return Recent(tuple(one for one in before.liked if one[0] != item), before.hidden | {item})
        return before
