from __future__ import annotations

import numpy as np
import pytest

import corank as cr

DAY = 86_400


def dated():
    """Item 1 was the hit of old, 2 is the hit of the last day, 3 lies between, 4 was touched once long ago."""
    item = [1] * 5 + [2] * 3 + [3] * 2 + [4]
    time = [0] * 5 + [100 * DAY] * 3 + [95 * DAY] * 2 + [0]
    return cr.from_arrays(user=np.arange(11), item=item, time=time)


def order(model):
    return [i for i, _ in model.recommend(histories=[[]])[0]]


def test_most_rows_first():
    assert order(cr.Popularity().fit(dated())) == [1, 2, 3, 4]


def test_scores_are_the_counts():
    assert [s for _, s in cr.Popularity().fit(dated()).recommend(histories=[[]])[0]] == [5, 3, 2, 1]


def test_a_window_counts_what_is_recent():
    assert order(cr.Popularity(days=2).fit(dated())) == [2, 1, 3, 4]
    assert order(cr.Popularity(days=6).fit(dated())) == [2, 3, 1, 4]
    assert order(cr.Popularity(days=1000).fit(dated())) == [1, 2, 3, 4]


def test_outside_the_window_the_old_order_holds():
    scores = dict(cr.Popularity(days=2).fit(dated()).recommend(histories=[[]])[0])
    assert 1 > scores[1] > scores[3] > scores[4] > 0


def test_a_window_needs_times():
    with pytest.raises(cr.CorankError, match="needs timestamps"):
        cr.Popularity(days=7).fit(cr.from_arrays(user=[1], item=[1]))


def test_everyone_gets_the_same_list():
    model = cr.Popularity().fit(dated())
    ranking = model.recommend(exclude_seen=False, k=4)
    assert (ranking.items == ranking.items[0]).all()


def test_values_do_not_count():
    data = cr.from_arrays(user=[1, 2, 3], item=[1, 1, 2], value=[1.0, 1.0, 99.0])
    assert order(cr.Popularity().fit(data)) == [1, 2]


def test_repeated_rows_count():
    data = cr.from_arrays(user=[1, 1, 1, 2, 3], item=[2, 2, 2, 1, 1], duplicates="keep")
    assert order(cr.Popularity().fit(data)) == [2, 1]
