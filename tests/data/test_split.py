"""Splits: nothing lost, nothing twice, order kept, fixed by the seed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corank as cr

SPLITS: dict[str, Callable[[cr.Dataset, int], cr.Split]] = {
    "last": lambda data, seed: cr.leave_last_out(data),
    "row": lambda data, seed: cr.holdout(data, seed=seed),
    "user": lambda data, seed: cr.holdout(data, by="user", test=0.3, valid=0.2, seed=seed),
    "time": lambda data, seed: cr.time_cut(data),
    "fixed": lambda data, seed: cr.fixed_per_user(data, train=5, valid=2, at_least=3, seed=seed),
    "strong": lambda data, seed: cr.strong_generalization(data, users=0.2, seed=seed),
    "cold": lambda data, seed: cr.cold_users(data, users=0.2, seed=seed),
}


@pytest.fixture(scope="module")
def data() -> cr.Dataset:
    rng = np.random.default_rng(0)
    user, item = rng.integers(0, 40, 900), rng.integers(0, 60, 900)
    return cr.from_arrays(user=user, item=item, value=rng.integers(1, 6, 900), time=rng.integers(0, 300, 900))


def rows(data: cr.Dataset) -> list[tuple]:
    """Rows with external ids, sorted."""
    time = [0] * len(data) if data.time is None else data.time.tolist()
    return sorted(zip(data.users.ids[data.user], data.items.ids[data.item], data.value.tolist(), time, strict=True))


def parts(split: cr.Split) -> list[cr.Dataset]:
    return [split.train, split.valid, split.test, *([split.history] if split.history is not None else [])]


@pytest.mark.parametrize("kind", SPLITS)
def test_parts_are_disjoint_rows_of_the_data(data: cr.Dataset, kind: str) -> None:
    split = SPLITS[kind](data, 0)
    together = sorted(row for part in parts(split) for row in rows(part))
    if kind in ("last", "row", "user", "time"):
        assert together == rows(data)
    else:
        assert len(set(together)) == len(together)
        assert set(together) <= set(rows(data))
    assert all(len(part) for part in parts(split))
    assert split.users.tolist() == sorted(set(split.test.users.ids[split.test.user].tolist()))


@pytest.mark.parametrize("kind", SPLITS)
def test_a_split_depends_on_data_and_seed_alone(data: cr.Dataset, kind: str) -> None:
    first, again, other = (SPLITS[kind](data, seed) for seed in (0, 0, 1))
    assert rows(first.test) == rows(again.test)
    assert first.name == again.name
    if kind not in ("last", "time"):
        assert rows(first.test) != rows(other.test)
        assert first.name != other.name


def test_leave_last_out_by_hand() -> None:
    user = ["a", "b", "a", "a", "b", "a", "c", "c", "c"]
    item = [1, 1, 2, 3, 2, 4, 1, 2, 3]
    time = [5, 1, 9, 7, 2, 8, 3, 3, 3]
    split = cr.leave_last_out(cr.from_arrays(user=user, item=item, time=time))
    # a in time order: 1 3 4 2; b has two rows and only trains; c has equal times and keeps the order of the file.
    assert [r[:2] for r in rows(split.test)] == [("a", 2), ("c", 3)]
    assert [r[:2] for r in rows(split.valid)] == [("a", 4), ("c", 2)]
    assert [r[:2] for r in rows(split.train)] == [("a", 1), ("a", 3), ("b", 1), ("b", 2), ("c", 1)]


def test_leave_last_out_without_times_takes_the_order_of_the_file() -> None:
    split = cr.leave_last_out(cr.from_arrays(user=[1, 2, 1, 1, 2, 2], item=[3, 3, 1, 2, 1, 2]))
    assert [r[:2] for r in rows(split.test)] == [(1, 2), (2, 2)]
    assert [r[:2] for r in rows(split.valid)] == [(1, 1), (2, 1)]
    assert split.known("test").sequences().index.tolist() == [2, 0, 2, 0]  # codes of 3 1 3 1


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9), st.integers(0, 3)), min_size=3, max_size=60))
def test_the_last_row_is_never_before_what_is_known(triples) -> None:
    user, item, time = (list(column) for column in zip(*triples, strict=True))
    data = cr.from_arrays(user=user, item=item, time=time, duplicates="keep")
    if np.bincount(data.user).max() < 3:
        with pytest.raises(cr.CorankError, match=r"no user has enough rows|users has one row"):
            cr.leave_last_out(data)
        return
    split = cr.leave_last_out(data)
    for u in np.unique(split.test.user):
        last = split.test.time[split.test.user == u]
        before = split.valid.time[split.valid.user == u]
        assert last.size == before.size == 1
        assert last[0] >= before[0] >= split.train.time[split.train.user == u].max()


def test_holdout_shares() -> None:
    data = cr.from_arrays(user=np.repeat(np.arange(50), 20), item=np.tile(np.arange(20), 50))
    split = cr.holdout(data.take(slice(0, 100)), test=0.29, valid=0.07)
    assert (len(split.test), len(split.valid)) == (29, 7)  # 0.29 * 100 is 28.99... in binary
    split = cr.holdout(data, test=0.25, valid=0.1, by="user")
    assert set(np.bincount(split.test.user)) == {5}
    assert set(np.bincount(split.valid.user)) == {2}
    short = cr.from_arrays(user=[0, 0, 0, 1], item=[0, 1, 2, 0])
    split = cr.holdout(short, test=0.5, valid=0, by="user")
    assert np.bincount(split.train.user).tolist() == [2, 1]  # rounded down: everyone keeps a training row
    assert len(split.valid) == 0


def test_holdout_draws_fairly() -> None:
    """Each row is as likely a test row as any other, whatever its place in the file."""
    data = cr.from_arrays(user=np.repeat([0, 1], [10, 30]), item=np.arange(40), time=np.arange(40))
    for by in ("row", "user"):
        hits = np.zeros(40)
        for seed in range(600):
            hits[cr.holdout(data, test=0.2, valid=0.1, by=by, seed=seed).test.item] += 1
        assert abs(hits - 120).max() < 4.5 * np.sqrt(600 * 0.2 * 0.8)


def test_time_cut_by_hand() -> None:
    time = [10, 20, 30, 40, 50, 60, 70, 80, 80, 80]
    data = cr.from_arrays(user=range(10), item=range(10), time=time)
    split = cr.time_cut(data, test=0.1, valid=0.2)
    assert split.test.time.tolist() == [80, 80, 80]  # one moment is never cut apart
    assert len(split.valid) == 0  # its share went with that moment
    assert split.train.time.tolist() == [10, 20, 30, 40, 50, 60, 70]
    split = cr.time_cut(data, test=0.4, valid=0.2)
    assert split.test.time.tolist() == [70, 80, 80, 80]
    assert split.valid.time.tolist() == [50, 60]
    assert split.train.time.tolist() == [10, 20, 30, 40]
    assert len(cr.time_cut(data, test=0.1, valid=0).valid) == 0
    assert cr.time_cut(dataclasses.replace(data, time=np.arange(10)), test=0.9, valid=0).train.time.tolist() == [0]


def test_time_cut_leaks_nothing(data: cr.Dataset) -> None:
    split = cr.time_cut(data, test=0.2, valid=0.1)
    assert split.train.time.max() < split.valid.time.min() <= split.valid.time.max() < split.test.time.min()


def test_fixed_per_user(data: cr.Dataset) -> None:
    split = cr.fixed_per_user(data, train=8, valid=2, at_least=5)
    lengths = np.bincount(data.user)
    kept = np.flatnonzero(lengths >= 15)
    assert len(split.train.users) == kept.size < len(data.users)  # shorter users are gone, and so are their ids
    assert set(np.bincount(split.train.user)) == {8}
    assert set(np.bincount(split.valid.user)) == {2}
    assert np.bincount(split.test.user).tolist() == (lengths[kept] - 10).tolist()
    some = cr.fixed_per_user(data, train=8, test=3)
    assert set(np.bincount(some.test.user)) == {3}
    assert len(some.valid) == 0
    assert "8 per user for training, 2 for validation, the rest for test" in split.name


def test_strong_generalization_hides_the_users(data: cr.Dataset) -> None:
    split = cr.strong_generalization(data, users=0.2, target=0.25)
    test, valid = set(split.test.user.tolist()), set(split.valid.user.tolist())
    assert len(test) == len(valid) == 8
    assert not test & valid
    assert not (test | valid) & set(split.train.user.tolist())
    assert set(split.history.user.tolist()) == test | valid
    assert set(split.test.item.tolist()) <= set(split.train.item.tolist())
    for u in test:
        assert (split.test.user == u).sum() <= max(1, 0.25 * (data.user == u).sum())
    assert split.known("test") is split.known("valid") is split.history


def test_cold_users_have_no_row_to_learn_from_but_a_neighbour(
    data: cr.Dataset, caplog: pytest.LogCaptureFixture
) -> None:
    split = cr.cold_users(data, users=0.2)
    test, valid = set(split.test.user.tolist()), set(split.valid.user.tolist())
    assert len(test) == len(valid) == 8
    assert not test & valid
    assert not (test | valid) & set(split.train.user.tolist())
    for user in test:  # all rows of things that others took too
        mine = data.user == user
        assert (split.test.user == user).sum() == np.isin(data.item[mine], split.train.item).sum()
    assert set(split.refit().train.user.tolist()) & valid == valid
    assert "no user graph" in caplog.text
    graph = np.zeros((40, 40))
    graph[:10, 10:20] = 1  # directed: who is pointed at has a neighbour too
    tied = dataclasses.replace(data, user_graph=cr.from_scipy(graph))
    split = cr.cold_users(tied, users=0.4)
    held = np.concatenate([split.test.user, split.valid.user])
    assert np.unique(held).size == 16
    assert held.max() < 20
    assert split.train.user_graph is not None


def test_what_is_known_and_refit(data: cr.Dataset) -> None:
    split = cr.leave_last_out(data)
    assert split.known("valid") is split.train
    assert rows(split.known("test")) == sorted(rows(split.train) + rows(split.valid))
    final = split.refit()
    assert rows(final.train) == sorted(rows(split.train) + rows(split.valid))
    assert len(final.valid) == 0
    assert final.test is split.test
    strong = cr.strong_generalization(data)
    final = strong.refit()
    assert not set(final.train.user.tolist()) & set(strong.test.user.tolist())
    assert set(strong.valid.user.tolist()) <= set(final.train.user.tolist())
    assert "train" in repr(split)


def test_bad_input_is_answered_with_a_sentence(data: cr.Dataset) -> None:
    empty, two = data.take(slice(0, 0)), data.take(slice(0, 2))
    timeless = dataclasses.replace(data, time=None)
    one_moment = dataclasses.replace(data, time=np.zeros(len(data), np.int64))
    pairs = cr.from_arrays(user=[0, 0, 1, 1], item=[0, 1, 0, 1])
    lonely = cr.from_scipy(np.zeros((40, 40)))
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: cr.leave_last_out(empty), "has 0 rows"),
        (lambda: cr.leave_last_out(two), "has 2 rows"),
        (lambda: cr.leave_last_out(pairs), "no user has enough rows"),
        (lambda: cr.holdout(data, test=0), "test=0 and valid=0.1 are fractions"),
        (lambda: cr.holdout(data, test=0.6, valid=0.4), "sum must lie between 0 and 1"),
        (lambda: cr.holdout(data, test=float("nan")), "test=nan"),
        (lambda: cr.holdout(data, by="item"), "by='item' is not known"),  # type: ignore[arg-type]
        (lambda: cr.holdout(data, seed=-1), "seed=-1"),
        (lambda: cr.holdout(empty), "has 0 rows"),
        (lambda: cr.holdout(pairs, by="user", test=0.1), "no user has enough rows"),
        (lambda: cr.time_cut(timeless), "needs timestamps"),
        (lambda: cr.time_cut(one_moment), "leaves nothing to train on"),
        (lambda: cr.time_cut(data, test=1.5), "test=1.5"),
        (lambda: cr.fixed_per_user(data, train=0), "train >= 1"),
        (lambda: cr.fixed_per_user(data, train=500), "no user has 500 training"),
        (lambda: cr.fixed_per_user(empty, train=5), "the largest number of rows of a user is 0"),
        (lambda: cr.fixed_per_user(data, train=5, seed=1.5), "seed=1.5"),  # type: ignore[arg-type]
        (lambda: cr.strong_generalization(data, users=0.5), "users=0.5"),
        (lambda: cr.strong_generalization(data, target=1), "target=1"),
        (lambda: cr.strong_generalization(data, min_rows=1), "min_rows=1"),
        (lambda: cr.strong_generalization(pairs), "too few to hold out"),
        (lambda: cr.cold_users(data, users=0.5), "users=0.5"),
        (lambda: cr.cold_users(pairs), "2 users have rows: too few to hold out"),
        (lambda: cr.cold_users(dataclasses.replace(data, user_graph=lonely)), "0 users have rows and a neighbour"),
        (lambda: cr.leave_last_out(data).known("train"), "part='train' is not known"),  # type: ignore[arg-type]
        (lambda: cr.Split(data, data, pairs, "mixed"), "different users or items"),
    ]
    for ask, sentence in cases:
        with pytest.raises(cr.CorankError, match=sentence):
            ask()
    lonely = cr.from_arrays(user=np.repeat(np.arange(20), 5), item=np.arange(100))
    with pytest.raises(cr.CorankError, match="no test row is left"):
        cr.strong_generalization(lonely, users=0.2)


@pytest.mark.parametrize(
    "split",
    [cr.leave_last_out, cr.holdout, cr.time_cut, partial(cr.fixed_per_user, train=1), cr.strong_generalization],
)
def test_what_is_no_dataset_is_a_sentence(split):
    frame = pl.DataFrame({"user": [1, 2], "item": [3, 4]})
    with pytest.raises(cr.CorankError, match=r"takes a dataset and got a DataFrame: make one with from_frame\("):
        split(frame)
    parts = cr.holdout(cr.from_arrays(user=np.arange(20) % 5, item=np.arange(20)))
    with pytest.raises(cr.CorankError, match="takes a dataset and got a Split: pass one of its parts"):
        split(parts)
