"""What every model promises about updates: new rows, users and items are in, and nothing else has changed."""

from __future__ import annotations

import numpy as np
import pytest

import corank as cr
from board import ITEMS, USERS, missing_item, own_items

CANNOT = ("fmc", "fpmc", "gcmc", "graph_ae", "trans_rec")


@pytest.fixture
def rated(cls):
    return cls.predicts_ratings or cls.needs_ratings


def rows(pairs, rated, **more):
    """New rows: the item's colour is that of the user, or it is rated low."""
    user, item = np.array(pairs).T
    value = np.where(user % 2 == item % 2, 5.0, 1.0) if rated else None
    return cr.from_arrays(user=user, item=item, value=value, time=10_000 + np.arange(user.size), **more)


@pytest.fixture
def new(cls, rated):
    """A known user takes one item more, two new users come, and a new item with even users, old and new."""
    pairs = [(3, missing_item(3)), (101, 1), (101, 3), (101, 5), (100, 0), (100, 2), (100, 4), (100, 6)]
    pairs += [(u, 50) for u in range(0, 12, 2)] + [(100, 50)]
    if rated:
        pairs += [(u, 50) for u in range(1, 12, 2)] + [(100, 7), (101, 8), (100, 9), (101, 10)]
    return rows(pairs, rated)


@pytest.fixture
def updated(cls, trained, new):
    if cls.name() in CANNOT:
        with pytest.raises(cr.CorankError, match="cannot take in new rows without a refit"):
            trained.update(new)
        pytest.skip("cannot")
    return trained.update(new)


def test_the_old_model_stays_as_it_is(cls, board, trained, updated):
    assert trained.users_.ids.tolist() == list(range(USERS))
    assert trained.items_.ids.tolist() == list(range(ITEMS))
    assert [i for i, _ in trained.recommend([3], k=1)[3]] == [i for i, _ in trained.recommend([3], k=1)[3]]
    again = type(trained)(**trained.params()).fit(board)
    for name, value in trained._learned().items():
        if isinstance(value, np.ndarray):
            np.testing.assert_allclose(value, getattr(again, name), rtol=1e-4, atol=1e-5, err_msg=name)


def test_users_items_and_seen_items_have_grown(updated):
    assert updated.users_.ids.tolist() == [*range(USERS), 100, 101]
    assert updated.items_.ids.tolist() == [*range(ITEMS), 50]
    full = updated.recommend(k=ITEMS + 1)
    assert not {0, 2, 4, 6, 50} & {item for item, _ in full[100]}
    assert missing_item(3) not in {item for item, _ in full[3]}
    assert 50 in {item for item, _ in full[12]}
    assert 50 not in {item for item, _ in full[2]}


def test_users_without_new_rows_keep_their_scores(cls, trained, updated):
    users = [user for user in range(13, USERS)]
    pairs = np.repeat(users, ITEMS), np.tile(np.arange(ITEMS), len(users))
    before, after = trained.predict(*pairs), updated.predict(*pairs)
    if cls.name() == "popularity":
        assert (after >= before).all()
    else:
        np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-5)


def test_new_users_are_answered_as_their_history(cls, rated, trained, updated):
    if cls.name() == "popularity":
        pytest.skip("not personal")
    right = updated.recommend([101], k=3, items=list(range(ITEMS)))[101]
    assert all(item % 2 == 1 for item, _ in right), right


def test_a_new_item_goes_to_the_right_users(cls, updated):
    """Even users took item 50 (odd ones rated it low): other even users should prefer it more than odd ones do."""
    if cls.name() == "popularity":
        pytest.skip("not personal")
    users = np.arange(12, USERS)
    scores = updated._score(updated.users_.codes(users))
    standing = (scores[:, -1] - scores.mean(axis=1)) / scores.std(axis=1)  # item 50 is the last one
    assert standing[users % 2 == 0].min() > standing[users % 2 == 1].max() + 0.2


def test_an_updated_model_is_saved_and_updated_again(rated, updated, tmp_path):
    updated.save(tmp_path / "m.corank")
    loaded = cr.load(tmp_path / "m.corank")
    np.testing.assert_array_equal(loaded.recommend(k=5).items, updated.recommend(k=5).items)
    twice = loaded.update(rows([(7, 60), (9, 60), (200, 60), (200, 1)], rated))
    assert twice.items_.ids.tolist() == [*range(ITEMS), 50, 60]
    assert 200 in twice.users_.ids
    assert np.isfinite(twice.recommend(k=3).scores).all()


def test_rows_that_are_known_change_little(cls, board, trained, rated):
    """The same rows again: nobody has seen anything new, and the right answer stays the right one."""
    if cls.name() in (*CANNOT, "popularity"):
        pytest.skip("not personal, or cannot be updated")
    mine = board.take(np.isin(board.user, [4, 5]))
    again = trained.update(mine)
    np.testing.assert_array_equal(again.seen_index_, trained.seen_index_)
    if not cls.order_matters:  # there the same items in the same order again are another history
        ranking = again.recommend([4, 5], k=1)
        assert ranking.items[:, 0].tolist() == [missing_item(4), missing_item(5)]


def test_mistakes_are_sentences(cls, model):
    with pytest.raises(cr.CorankError, match="update takes a dataset and got a list"):
        model.update([1])
    with pytest.raises(cr.CorankError, match="no rows to update with"):
        model.update(cr.from_arrays(user=[1], item=[1]).take(np.array([], int)))
    with pytest.raises(cr.CorankError, match="the users of this model are integers"):
        model.update(cr.from_arrays(user=["ann"], item=[1]))
    with pytest.raises(cr.NotFitted):
        cls().update(cr.from_arrays(user=[1], item=[1]))


def test_ids_as_text_are_the_same_ids(cls, rated, model):
    if cls.name() in CANNOT:
        pytest.skip("cannot")
    new = cr.from_arrays(user=["3", "3"], item=["1", "77"], value=[5.0, 1.0] if rated else None)
    assert model.update(new).items_.ids.tolist() == [*range(ITEMS), 77]


def test_own_items_of_the_board(cls):
    assert own_items(3)[0] == 1  # what the new rows above rely on
