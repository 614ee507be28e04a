"""The feedback store: what users did, in SQLite or PostgreSQL, in the order in which it was acknowledged.

Every event has a number, and numbers are committed in increasing order: whoever has read up to a number misses nothing
below it. So several processes can share a store, and each reads on from where it was. An event is acknowledged when it
is on disk.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from ..errors import CorankError, MissingExtra, show
from .settings import without_password

LIKED = ("click", "like", "play", "purchase", "rating")  # events that become part of the history of a user
HIDDEN = ("dislike", "hide")  # after them, an item is not recommended to the user again
SEEN = ("view",)  # recorded only
EVENTS = (*LIKED, *HIDDEN, *SEEN)
FORGET = "forget"  # what the user did before is deleted
WAIT = 2  # seconds for a database that does not answer
TURN = 15  # seconds until another process has written to a SQLite file
PAUSE = 1.0  # seconds between attempts to reach a database that is gone
ORDER = 7_262_914_531  # key of PostgreSQL's lock by which numbers are committed in order
PAGE = 5_000  # rows read at a time

_id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_tables = sa.MetaData()
FEEDBACK = sa.Table(
    "corank_feedback",
    _tables,
    sa.Column("id", _id, primary_key=True, autoincrement=True),
    sa.Column("user", sa.Text, nullable=False, index=True),
    sa.Column("item", sa.Text),  # NULL: the user asked to be forgotten
    sa.Column("event", sa.String(16), nullable=False),
    sa.Column("value", sa.Double),  # a rating
    sa.Column("time", sa.BigInteger, nullable=False),  # unix seconds
    sa.Column("model", sa.String(64)),  # that recommended the item
    sa.Column("key", sa.String(200), unique=True),  # chosen by the client: a repeated event is stored once
    sqlite_autoincrement=True,  # numbers of deleted rows are not used again
)
COUNTS = sa.Table(
    "corank_counts",
    _tables,
    sa.Column("model", sa.String(64), primary_key=True),
    sa.Column("event", sa.String(16), primary_key=True),
    sa.Column("count", sa.BigInteger, nullable=False),
)
NEWEST = sa.select(sa.func.max(FEEDBACK.c.id))
READ = sa.select(FEEDBACK.c.id, FEEDBACK.c.user, FEEDBACK.c.item, FEEDBACK.c.event, FEEDBACK.c.value)


class Event(NamedTuple):
    """One event as it is written."""

    user: str
    item: str | None
    event: str
    value: float | None = None
    time: int = 0
    model: str | None = None
    key: str | None = None


class StoreDown(Exception):
    """The store cannot be reached or written to now."""


class Store:
    """A feedback store. Its methods may be called from any thread; they raise `StoreDown`."""

    def __init__(self, url: str, *, new: bool = True) -> None:
        """Open a store, with its tables; a URL that is wrong is a `CorankError`. new : make it if it is not there."""
        self.shown = without_password(url)
        self.engine = _engine(url)
        self.file = _sqlite_file(self.engine)
        self._inode: int | None = None
        self._retry = 0.0  # time before which a store that is down is not asked again
        self._why = ""
        self._lock = threading.RLock()
        self._watch: sqlite3.Connection | None = None
        if not new and self.file is not None and not self.file.exists():
            raise CorankError(f"there is no feedback store {self.file}: give the --store of `corank serve`")
        try:
            if self.file is not None:
                self.file.parent.mkdir(parents=True, exist_ok=True)
            _tables.create_all(self.engine)
            if self.file is not None:
                self._inode = self.file.stat().st_ino
        except (sa.exc.SQLAlchemyError, OSError) as why:
            remedy = "give a SQLite file in a folder that can be written to"
            if self.file is None:
                remedy = "check the URL, and that the database runs and can be reached"
            raise CorankError(f"cannot open the feedback store {self.shown}: {_reason(why)}; {remedy}") from None

    @property
    def up(self) -> bool:
        return not self._why

    def write(self, events: Sequence[Event]) -> None:
        """Store events, in order and in one transaction; one whose key is known already is there already."""
        now = int(time.time())
        rows = [event._replace(time=event.time or now)._asdict() for event in events]
        with self._begun() as connection:
            if self.engine.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(ORDER)))
            for forgotten, part in _runs(rows):
                if forgotten:
                    names = [row["user"] for row in part]
                    connection.execute(sa.delete(FEEDBACK).where(FEEDBACK.c.user.in_(names)))
                connection.execute(self._insert(FEEDBACK).on_conflict_do_nothing(index_elements=["key"]), part)

    def version(self) -> int:
        """A number that differs from the last one if events were added meanwhile; cheap enough for every request."""
        self._check()
        if self.file is None:
            with self._begun() as connection:
                return int(connection.scalar(NEWEST) or 0)
        try:
            with self._lock:
                if self._watch is None:
                    self._watch = sqlite3.connect(self.file, timeout=TURN, check_same_thread=False)
                # Changes whenever another connection has committed, in this process or in another one.
                return int(self._watch.execute("PRAGMA data_version").fetchone()[0])
        except sqlite3.Error as why:
            raise self._down(str(why)) from why

    def position(self) -> int:
        """The number of the newest event."""
        with self._begun() as connection:
            return int(connection.scalar(NEWEST) or 0)

    def since(self, position: int) -> list[Any]:
        """(id, user, item, event, value) of the events after a number, in order."""
        with self._begun() as connection:
            return list(connection.execute(READ.where(FEEDBACK.c.id > position).order_by(FEEDBACK.c.id)))

    def of(self, users: Sequence[str], upto: int) -> list[Any]:
        """The events of some users, up to a number, in order."""
        asked = READ.where(FEEDBACK.c.user.in_(users), FEEDBACK.c.id <= upto).order_by(FEEDBACK.c.id)
        with self._begun() as connection:
            return list(connection.execute(asked))

    def export(self, after: int = 0) -> Iterator[list[Any]]:
        """All events in pages: id, user, item, event, value, time and model of each. None is held by the database."""
        columns = [FEEDBACK.c[name] for name in ("id", "user", "item", "event", "value", "time", "model")]
        while True:
            asked = sa.select(*columns).where(FEEDBACK.c.id > after).order_by(FEEDBACK.c.id).limit(PAGE)
            with self._begun() as connection:
                page = list(connection.execute(asked))
            if not page:
                return
            yield page
            after = page[-1].id

    def count(self, more: Mapping[tuple[str, str], int]) -> None:
        """Add to the counts of (model, event)."""
        added = self._insert(COUNTS)
        keys = [COUNTS.c.model, COUNTS.c.event]
        add = added.on_conflict_do_update(index_elements=keys, set_={"count": COUNTS.c.count + added.excluded["count"]})
        with self._begun() as connection:
            connection.execute(add, [{"model": m, "event": e, "count": n} for (m, e), n in sorted(more.items())])

    def counts(self) -> dict[tuple[str, str], int]:
        """The counts of (model, event)."""
        with self._begun() as connection:
            return {(row.model, row.event): int(row.count_) for row in connection.execute(_COUNTED)}

    def close(self) -> None:
        self.engine.dispose()
        if self._watch is not None:
            self._watch.close()

    def _insert(self, table: sa.Table) -> Any:
        return (postgresql if self.engine.dialect.name == "postgresql" else sqlite).insert(table)

    def _begun(self) -> _Begun:
        return _Begun(self)

    def _check(self) -> None:
        """Raise at once where the store was down a moment ago, or where its file is gone."""
        if self._why and time.monotonic() < self._retry:
            raise StoreDown(self._why)
        if self.file is not None:
            # SQLite would go on writing to a file that has been removed, and all of it would be lost.
            try:
                there = self.file.stat().st_ino
            except OSError:
                raise self._down(f"the file {self.file} is gone: put it back, or restart the service") from None
            if there != self._inode:
                raise self._down(f"the file {self.file} was replaced by another one: restart the service")

    def _down(self, why: str) -> StoreDown:
        with self._lock:
            self._why, self._retry = why, time.monotonic() + PAUSE
        return StoreDown(why)

    def _is_up(self) -> None:
        if self._why:
            with self._lock:
                self._why = ""


DEFECTS = (sa.exc.DataError, sa.exc.IntegrityError)  # the database is well: what was written is wrong
_COUNTED = sa.select(COUNTS.c.model, COUNTS.c.event, COUNTS.c.count.label("count_"))


class _Begun:
    """A transaction; failures of the database are `StoreDown`."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def __enter__(self) -> sa.Connection:
        self.store._check()
        try:
            self.context = self.store.engine.begin()
            return self.context.__enter__()
        except sa.exc.SQLAlchemyError as why:
            raise self.store._down(_reason(why)) from why

    def __exit__(self, kind: Any, why: Any, where: Any) -> None:
        try:
            self.context.__exit__(kind, why, where)
        except sa.exc.SQLAlchemyError as failed:
            raise self.store._down(_reason(failed)) from failed
        if isinstance(why, sa.exc.SQLAlchemyError) and not isinstance(why, DEFECTS):
            raise self.store._down(_reason(why)) from why
        self.store._is_up()


def _runs(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[bool, list[dict[str, Any]]]]:
    """Rows in order, cut where events change to requests to be forgotten and back."""
    part: list[dict[str, Any]] = []
    for row in rows:
        if part and (part[0]["event"] == FORGET) != (row["event"] == FORGET):
            yield part[0]["event"] == FORGET, part
            part = []
        part.append(row)
    if part:
        yield part[0]["event"] == FORGET, part


def _engine(url: str) -> sa.Engine:
    """The engine of a URL: sqlite:///feedback.sqlite or postgresql://user:password@host/name."""
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError:
        raise CorankError(
            f"{show(without_password(url))} is not the URL of a store: give sqlite:///feedback.sqlite or "
            "postgresql://user:password@host/database"
        ) from None
    kind = parsed.drivername.partition("+")[0]
    if kind == "sqlite":
        if not parsed.database or parsed.database == ":memory:":
            raise CorankError("the feedback store must be a file, so that it survives: give sqlite:///feedback.sqlite")
        if Path(parsed.database).is_dir():
            raise CorankError(
                f"the feedback store {parsed.database} is a folder: give a file in it, such as "
                f"{Path(parsed.database) / 'feedback.sqlite'}"
            )
        engine = sa.create_engine(parsed, connect_args={"timeout": TURN})
        sa.event.listen(engine, "connect", _prepare_sqlite)
        return engine
    if kind not in ("postgresql", "postgres"):
        raise CorankError(f"a store of kind {kind!r} is not supported: give sqlite:///FILE or postgresql://...")
    arguments = {
        "connect_timeout": WAIT,
        "tcp_user_timeout": 1000 * WAIT,
        "options": f"-c statement_timeout={1000 * WAIT}",
    }
    try:
        return sa.create_engine(
            parsed.set(drivername="postgresql+psycopg"),
            connect_args=arguments,
            pool_size=4,
            pool_timeout=WAIT,
            pool_pre_ping=True,
        )
    except ModuleNotFoundError:
        raise MissingExtra("a PostgreSQL store", "serve,postgres") from None


def _prepare_sqlite(connection: Any, record: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")  # readers and the writer do not wait for each other
    cursor.execute("PRAGMA synchronous=FULL")  # an acknowledged event survives a power cut
    cursor.close()


def _sqlite_file(engine: sa.Engine) -> Path | None:
    if engine.dialect.name != "sqlite":
        return None
    return Path(os.path.abspath(str(engine.url.database)))


def _reason(why: BaseException) -> str:
    """The first line of what a database says, without the statement and its values, which are personal data."""
    text = str(getattr(why, "orig", None) or why).strip().splitlines()
    return text[0] if text else type(why).__name__
