"""The feedback store, on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import threading

import pytest

import corank as cr
from corank.serve.export import write_feedback
from corank.serve.recent import RecentEvents
from corank.serve.store import FORGET, Event, Store, StoreDown


@pytest.fixture
def store(url):
    made = Store(url)
    yield made
    made.close()


def liked(events: RecentEvents, user: str) -> list[str]:
    found = events.of([user]).get(user)
    return [] if found is None else [item for item, _ in found.liked]


def test_events_are_part_of_the_next_answer(store):
    events = RecentEvents(store, most=10)
    assert events.of(["ann"]) == {}
    store.write([Event("ann", "1", "click"), Event("bob", "2", "rating", 4.5)])
    assert liked(events, "ann") == ["1"]
    assert events.of(["bob"])["bob"].liked == (("2", 4.5),)
    store.write([Event("ann", "2", "like"), Event("ann", "3", "view")])
    assert liked(events, "ann") == ["1", "2"]


def test_events_of_another_process_are_seen(store, url):
    events, other = RecentEvents(store, most=10), Store(url)
    assert liked(events, "ann") == []
    other.write([Event("ann", "1", "click")])
    assert liked(events, "ann") == ["1"]
    other.close()


def test_events_survive_a_restart(store, url):
    store.write([Event("ann", str(n), "click") for n in range(5)])
    store.close()
    again = Store(url)
    assert liked(RecentEvents(again, most=3), "ann") == ["2", "3", "4"]
    again.close()


def test_the_last_word_on_an_item_counts(store):
    events = RecentEvents(store, most=10)
    store.write([Event("ann", "1", "click"), Event("ann", "2", "click"), Event("ann", "1", "dislike")])
    found = events.of(["ann"])["ann"]
    assert found.liked == (("2", None),)
    assert found.hidden == {"1"}
    store.write([Event("ann", "1", "like")])
    found = events.of(["ann"])["ann"]
    assert found.liked == (("2", None), ("1", None))
    assert not found.hidden


def test_an_event_that_is_sent_again_is_stored_once(store):
    for _ in range(3):
        store.write([Event("ann", "1", "click", key="order-1"), Event("ann", "2", "click")])
    assert [row.item for page in store.export() for row in page] == ["1", "2", "2", "2"]


def test_a_user_who_asks_to_be_forgotten_is(store, url):
    events, elsewhere = RecentEvents(store, most=10), RecentEvents(Store(url), most=10)
    store.write([Event("ann", "1", "click"), Event("bob", "1", "click")])
    assert liked(elsewhere, "ann") == ["1"]
    store.write([Event("ann", None, FORGET), Event("ann", "9", "click")])
    assert liked(events, "ann") == liked(elsewhere, "ann") == ["9"]
    assert [(row.user, row.item) for page in store.export() for row in page] == [
        ("bob", "1"),
        ("ann", None),
        ("ann", "9"),
    ]
    elsewhere.store.close()


def test_memory_is_bounded(store):
    events = RecentEvents(store, most=2, users=3)
    store.write([Event(f"u{n}", str(i), "click") for n in range(10) for i in range(4)])
    for n in range(10):
        assert liked(events, f"u{n}") == ["2", "3"]
    assert len(events._known) == 3
    store.write([Event("u0", "9", "click")])
    assert liked(events, "u0") == ["3", "9"]


def test_writers_at_once_are_never_missed_by_readers(store, url):
    """Eight threads write while one reads on: every number below the last one read has been read."""
    stores = [Store(url) for _ in range(4)]
    position, seen, stop = store.position(), [], threading.Event()

    def write(at: int) -> None:
        for n in range(20):
            stores[at % 4].write([Event(f"w{at}", str(n), "click")])

    def read() -> None:
        nonlocal position
        while not stop.is_set() or store.position() > position:
            for row in store.since(position):
                position = row.id
                seen.append((row.user, row.item))

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=write, args=(at,)) for at in range(8)]
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    reader.join()
    assert sorted(seen) == sorted((f"w{at}", str(n)) for at in range(8) for n in range(20))
    for at in range(8):
        assert [item for user, item in seen if user == f"w{at}"] == [str(n) for n in range(20)]
    for one in stores:
        one.close()


def test_counts_add_up(store):
    store.count({("a", "shown"): 3, ("b", "shown"): 1})
    store.count({("a", "shown"): 4, ("a", "clicked"): 1})
    assert store.counts() == {("a", "shown"): 7, ("b", "shown"): 1, ("a", "clicked"): 1}


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_exported_feedback_is_a_table_to_fit(store, url, tmp_path, ending):
    store.write([Event(str(n % 7), str(n % 5), "click", time=1000 + n) for n in range(35)])
    store.write([Event("1", "2", "rating", 4.0, 2000), Event("1", None, FORGET), Event("2", "0", "click", time=3000)])
    path = tmp_path / f"rows.{ending}"
    assert write_feedback(url, path) == 31
    table = cr.read_parquet(path) if ending == "parquet" else cr.read_csv(path)
    assert len(table.users) == 6  # user 1 was forgotten
    assert table.time is not None
    with pytest.raises(cr.CorankError, match=r"must be .csv, .tsv or .parquet"):
        write_feedback(url, tmp_path / "rows.xls")


def test_a_store_that_is_gone_says_so_and_recovers(store, url, tmp_path, request, monkeypatch):
    monkeypatch.setattr("corank.serve.store.PAUSE", 0.05)
    events = RecentEvents(store, most=10)
    store.write([Event("ann", "1", "click")])
    assert liked(events, "ann") == ["1"]
    file, away = tmp_path / "f.sqlite", tmp_path / "away.sqlite"
    if url.startswith("sqlite"):
        file.rename(away)
    else:
        request.getfixturevalue("cluster").stop()
    with pytest.raises(StoreDown):
        store.write([Event("ann", "2", "click")])
    assert not store.up
    assert liked(events, "ann") == ["1"]  # as it was read before
    assert events.stale
    if url.startswith("sqlite"):
        away.rename(file)
    else:
        request.getfixturevalue("cluster").start()
    import time

    time.sleep(0.1)
    store.write([Event("ann", "3", "click")])
    assert liked(events, "ann") == ["1", "3"]
    assert store.up
    assert not events.stale


def test_a_full_disk_is_a_store_that_is_down(tmp_path):
    store = Store(f"sqlite:///{tmp_path}/f.sqlite")
    import sqlalchemy as sa

    @sa.event.listens_for(store.engine, "connect")
    def small(connection, record):  # the limit of a database stands for that of a disk
        connection.execute("PRAGMA max_page_count=20")

    store.engine.dispose()
    many = ([Event("ann", f"{n}-{'x' * 400}", "click")] * 10 for n in range(1000))
    with pytest.raises(StoreDown, match="full"):
        list(map(store.write, many))
    stored = [row.item for page in Store(f"sqlite:///{tmp_path}/f.sqlite").export() for row in page]
    assert len(stored) % 10 == 0  # a transaction is stored whole or not at all


def test_a_removed_sqlite_file_is_not_written_to(tmp_path):
    """SQLite would go on writing to a file that no name leads to."""
    store = Store(f"sqlite:///{tmp_path}/f.sqlite")
    store.write([Event("ann", "1", "click")])
    (tmp_path / "f.sqlite").unlink()
    with pytest.raises(StoreDown, match="is gone"):
        store.write([Event("ann", "2", "click")])


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("feedback", "is not the URL of a store"),
        ("sqlite://", "must be a file"),
        ("mysql://localhost/x", "kind 'mysql' is not supported"),
        ("sqlite:///{folder}", "is a folder: give a file in it, such as .*/feedback.sqlite"),
        ("sqlite:////proc/nothing/here.sqlite", "cannot open the feedback store .* in a folder that can be written to"),
        ("postgresql://ann:secret@127.0.0.1:1/x", r"cannot open the feedback store postgresql://ann:\*\*\*@"),
        ("postgres://ann:secret@127.0.0.1:1/x", "check the URL, and that the database runs"),
    ],
)
def test_wrong_urls_get_a_sentence_without_the_password(url, says, tmp_path):
    url = url.format(folder=tmp_path)
    if url.startswith("postgres"):
        pytest.importorskip("psycopg")
    with pytest.raises(cr.CorankError, match=says) as error:
        Store(url)
    assert "secret" not in str(error.value)
