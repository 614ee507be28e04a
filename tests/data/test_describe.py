"""The portrait of a dataset, by hand values."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import corank as cr
from corank.data.describe import describe


def test_counts_by_hand() -> None:
    data = cr.from_arrays(
        user=["a", "a", "a", "b", "b", "c"],
        item=[1, 2, 1, 1, 3, 1],
        value=[5, 3, 4, 5, 1, 5],
        time=[978_300_760, 978_300_761, 978_300_762, 978_387_160, 978_300_764, 978_300_765],
        duplicates="keep",
        user_graph=cr.from_scipy(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]])),
    )
    d = describe(data)
    assert (d.rows, d.users, d.items, d.repeated) == (6, 3, 3, 1)
    assert d.density == pytest.approx(5 / 9)
    assert d.value_counts == {1.0: 1, 3.0: 1, 4.0: 1, 5.0: 3}
    assert (d.value.min, d.value.median, d.value.max, d.value.mean) == (1, 4.5, 5, pytest.approx(23 / 6))
    assert (d.user_rows.min, d.user_rows.low, d.user_rows.median, d.user_rows.high, d.user_rows.max) == (
        1,
        1.5,
        2,
        2.5,
        3,
    )
    assert (d.item_rows.min, d.item_rows.max, d.item_rows.mean) == (1, 4, 2)
    assert d.top1_share == d.top10_share == pytest.approx(4 / 6)
    assert d.gini == pytest.approx((2 * (3 + 3 + 0)) / (2 * 3 * 6))  # mean absolute difference over twice the mean
    assert d.times == (978_300_760, 978_387_160)
    assert d.dates == ("2000-12-31T22:12:40+00:00", "2001-01-01T22:12:40+00:00")
    assert (d.user_edges, d.item_edges) == (2, None)


def test_gini_equals_its_definition() -> None:
    rng = np.random.default_rng(0)
    data = cr.from_arrays(user=np.arange(500), item=rng.zipf(1.5, 500) % 40)
    counts = np.bincount(data.item)
    slow = np.abs(counts[:, None] - counts[None, :]).mean() / (2 * counts.mean())
    assert describe(data).gini == pytest.approx(slow)
    equal = cr.from_arrays(user=[1, 2, 3], item=[1, 2, 3])
    assert describe(equal).gini == 0


def test_top_share_of_a_known_catalogue() -> None:
    item = np.repeat(np.arange(200), np.where(np.arange(200) < 2, 50, 1))
    d = describe(cr.from_arrays(user=np.arange(item.size), item=item))
    assert d.top1_share == pytest.approx(100 / 298)
    assert d.top10_share == pytest.approx(118 / 298)


@pytest.mark.parametrize("time", [[0, 5], [1999, 2021], [978_300_760_000, 978_300_761_000], [-5, 978_300_760]])
def test_times_that_are_not_unix_seconds_stay_numbers(time: list[int]) -> None:
    d = describe(cr.from_arrays(user=[1, 2], item=[1, 2], time=time))
    assert d.times == tuple(time)
    assert d.dates is None
    assert f"{time[0]:,} to {time[1]:,}" in str(d)


def test_many_different_values_are_not_counted() -> None:
    user = np.arange(3000)
    few_then_many = np.where(user < 1500, 1.0, user)
    for value in (user + 0.5, few_then_many):
        assert describe(cr.from_arrays(user=user, item=user, value=value)).value_counts == {}


def test_empty_and_single_rows_have_a_portrait() -> None:
    empty = describe(cr.from_arrays(user=[], item=[], time=[]))
    assert (empty.rows, empty.times, empty.value_counts) == (0, None, {})
    assert math.isnan(empty.gini)
    assert json.loads(json.dumps(empty.as_dict(), allow_nan=False))["gini"] is None
    assert str(empty).splitlines()[0].split() == ["rows", "0"]
    one = describe(cr.from_arrays(user=["u"], item=["i"], value=[4], time=[978_300_760]))
    assert (one.density, one.gini, one.top1_share, one.value.median) == (1, 0, 1, 4)
    assert "2000-12-31 to 2000-12-31 (0.0 days)" in str(one)
    kept = cr.from_arrays(user=[1, 2], item=[1, 2]).take(np.zeros(2, np.bool_))
    assert (describe(kept).users, describe(kept).density, describe(kept).user_rows.max) == (2, 0, 0)


def test_real_data(shared_data: Path) -> None:
    d = cr.read_csv(shared_data / "ml-100k" / "u.data").describe()
    assert (d.rows, d.users, d.items, d.repeated) == (100_000, 943, 1_682, 0)
    assert d.value_counts == {1: 6_110, 2: 11_370, 3: 27_145, 4: 34_174, 5: 21_201}
    assert d.density == pytest.approx(0.06305, abs=1e-5)
    assert d.dates is not None
    assert (d.dates[0][:10], d.dates[1][:10]) == ("1997-09-20", "1998-04-22")
    assert (d.user_rows.min, d.user_rows.max) == (20, 737)
    text = str(d)
    assert "density     6.305 %" in text
    assert "4: 34.2%" in text
    assert max(len(line) for line in text.splitlines()) <= 100
    plain = json.loads(json.dumps(d.as_dict(), allow_nan=False))
    assert plain["value_counts"]["4"] == 34_174
    assert plain["user_rows"]["median"] == d.user_rows.median
    assert plain["dates"] == list(d.dates)
