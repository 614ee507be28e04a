"""What every model promises on every kind of data: it answers, with finite numbers, in the ids it was given."""

from __future__ import annotations

import numpy as np
import pytest

import corank as cr
from board import ITEMS, USERS, assert_same_ranking, assert_sane


def ask(model, rows):
    """Any fitted model answers in all ways with finite numbers."""
    ranking = model.recommend(k=3, exclude_seen=False)
    assert_sane(ranking, rows, min(3, len(model.items_)))
    assert (ranking.items >= 0).all()
    first = model.items_.ids[:1].tolist()
    assert_sane(model.recommend(histories=[first], k=3), 1, min(3, len(model.items_)))
    assert np.isfinite(model.predict(model.users_.ids[:1], first)).all()
    return ranking


def refuses(cls, data):
    """A model that learns from differences between ratings, or from what comes next, says so where there is none."""
    alone = cls.order_matters and np.bincount(data.user).max() < 2
    if not cls.needs_ratings and not alone:
        return False
    with pytest.raises(cr.CorankError, match="different" if cls.needs_ratings else "two items"):
        cls().fit(data)
    return True


def test_one_user(new):
    ask(new().fit(cr.from_arrays(user=[1, 1, 1], item=[1, 2, 3], value=[1.0, 2.0, 3.0])), 1)


def test_one_item(cls, new):
    data = cr.from_arrays(user=[1, 2, 3], item=[1, 1, 1], value=[1.0, 2.0, 3.0])
    if refuses(cls, data):
        return
    model = new().fit(data)
    ask(model, 3)
    assert model.recommend([1]).items.tolist() == [[-1]]


def test_one_row(cls, new):
    data = cr.from_arrays(user=[1], item=[1])
    if not refuses(cls, data):
        ask(new().fit(data), 1)


def test_all_ratings_equal(cls, new):
    rng = np.random.default_rng(0)
    data = cr.from_arrays(user=rng.integers(0, 9, 50), item=rng.integers(0, 8, 50), value=np.full(50, 3.0))
    if refuses(cls, data):
        return
    model = new().fit(data)
    ask(model, len(data.users))
    if cls.predicts_ratings:
        np.testing.assert_allclose(model.predict(data.users.ids[data.user], data.items.ids[data.item]), 3.0, atol=1e-3)


def test_users_with_one_event(cls, new):
    data = cr.from_arrays(user=np.arange(12), item=np.arange(12) % 5)
    if not refuses(cls, data):
        ask(new().fit(data), 12)


def test_repeated_rows(new):
    data = cr.from_arrays(user=[1, 1, 1, 2, 2], item=[1, 1, 2, 2, 3], value=[4.0, 4.0, 2, 3, 5], duplicates="keep")
    assert len(data) == 5
    model = new().fit(data)
    ask(model, 2)
    assert np.abs(model.predict([1], [1])).max() < 100


def test_items_without_rows(new, board):
    train = board.take(board.item > 2)
    model = new().fit(train)
    ask(model, USERS)
    assert np.isfinite(model.predict([0] * 3, [0, 1, 2])).all()
    assert_sane(model.recommend(histories=[[0]], k=3), 1, 3)


def test_users_without_rows(new, board):
    model = new().fit(board.take(board.user > 2))
    ranking = ask(model, USERS)
    assert np.isfinite(ranking.scores[:3]).all()
    assert model.recommend([0], k=ITEMS).items.min() >= 0


def test_rows_of_value_zero(cls, new):
    data = cr.from_arrays(user=[1, 1, 2], item=[1, 2, 2], value=[0.0, 0.0, 0.0])
    if not refuses(cls, data):
        ask(new().fit(data), 2)


@pytest.mark.parametrize(
    ("user", "item"),
    [
        (["ann", "ann", "bob", "bob", "cy"], ["tea", "milk", "tea", "rye", "rye"]),
        (["Žofie", "Žofie", "名前", "名前", "🦊"], ["čaj", "ミルク", "čaj", "ra'k\n", ""]),
        ([2**40, 2**40, 2**41, 2**41, -5], [2**62, 7, 2**62, -(2**60), -(2**60)]),
    ],
    ids=["strings", "unicode", "huge"],
)
def test_ids_go_in_and_come_out(new, tmp_path, user, item):
    model = new().fit(cr.from_arrays(user=user, item=item, value=[5.0, 1.0, 4.0, 2.0, 3.0]))
    ask(model, 3)
    ranking = model.recommend(user[:1], k=3)
    assert {i for i, _ in ranking[user[0]]} == set(item) - set(item[:2])
    frame = model.recommend(k=2).to_frame()
    assert set(frame["user"].to_list()) == set(user)
    assert set(frame["item"].to_list()) <= set(item)
    model.save(tmp_path / "ids.corank")
    again = cr.load(tmp_path / "ids.corank")
    assert_same_ranking(again.recommend(user[:1], k=3), ranking)
    assert (again.users_, again.items_) == (model.users_, model.items_)


def test_values_that_are_no_numbers_stop_at_the_door():
    for bad in (np.nan, np.inf, -np.inf):
        with pytest.raises(cr.CorankError, match="finite"):
            cr.from_arrays(user=[1, 1], item=[1, 2], value=[1.0, bad])
