"""The kind of the values: detected on data of many shapes, kept by parts, overruled by the user."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import numpy as np
import pytest

import corank as cr
from corank.data.values import detect, words
from toys import play_counts

N = 20_000


def drawn(first: float, step: float, *shares: float) -> np.ndarray:
    """Values first, first + step, ... with these shares."""
    p = np.array(shares) / sum(shares)
    return first + step * np.random.default_rng(0).choice(p.size, N, p=p)


def random() -> np.random.Generator:
    return np.random.default_rng(1)


RATINGS = {
    "1 to 5": drawn(1, 1, 6, 11, 27, 34, 21),
    "1 to 5, love it or hate it": drawn(1, 1, 30, 8, 9, 15, 38),
    "1 to 5, mostly hate it": drawn(1, 1, 60, 10, 8, 8, 14),
    "4 and 5 only": drawn(4, 1, 60, 40),
    "half stars": drawn(0.5, 0.5, 1, 3, 2, 7, 4, 17, 10, 26, 8, 15),
    "1 to 10": drawn(1, 1, 1, 1, 2, 4, 8, 15, 22, 24, 13, 10),
    "0 to 10, mostly 0 (Book-Crossing)": drawn(0, 1, 62, 0.2, 0.3, 0.5, 1, 4, 3, 6.5, 9, 6, 7),
    "0 to 100 (Yahoo Music)": np.where(random().random(N) < 0.5, 10 * random().integers(0, 11, N), 90),
    "-10 to 10 (Jester)": random().uniform(-10, 10, N).round(2),
    "thumbs, 0 and 1": random().random(N) < 0.7,
    "clicks, 0 and seldom 1": random().random(N) < 0.03,
    "-1 and 1": np.where(random().random(N) < 0.8, 1, -1),
    "means of ratings": np.clip(random().normal(3.5, 0.5, N), 1, 5),
    "1 to 5 with a typing error": np.r_[55, drawn(1, 1, 6, 11, 27, 34, 21)],
    "share of a film that was watched": random().beta(0.5, 0.5, N),
}
COUNTS = {
    "plays, from one to many thousand": np.ceil(random().lognormal(5, 1.8, N)),
    "plays of at least 10": 9 + np.ceil(random().lognormal(3, 1.2, N)),
    "check-ins": random().zipf(2.0, N),
    "purchases, mostly 1": random().geometric(0.9, N),
    "purchases, nearly always 1": random().geometric(0.997, N),
    "quantities": drawn(1, 1, 70, 15, 8, 4, 2, 1, 0.5),
    "quantities, some returned": np.r_[-np.ones(N // 50), drawn(1, 1, 9, 5, 3, 2, 1, 0.5, 0.2, 0.1, 0.05)],
    "clicks with zeros": drawn(0, 1, 80, 15, 4, 1),
    "seconds watched": random().exponential(300, N),
    "hours played": random().lognormal(0, 1.5, N),
    "minutes near 200": random().poisson(200, N),
}


@pytest.mark.parametrize("name", RATINGS)
def test_ratings_are_detected(name):
    assert detect(RATINGS[name].astype(np.float32)) == "ratings"


@pytest.mark.parametrize("name", COUNTS)
def test_counts_are_detected(name):
    assert detect(COUNTS[name].astype(np.float32)) == "counts"


@pytest.mark.parametrize("value", [[], [1, 1, 1], [4.0], [-1, -1]])
def test_equal_values_say_nothing(value):
    assert detect(np.array(value, np.float32)) == "none"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([5, 3, 1, 4], "ratings"),
        ([1, 1, 1, 1, 5], "ratings"),
        ([0, 0, 0, 10], "ratings"),
        ([3, 1, 2, 40, 7], "counts"),
        ([0.5, 12.25, 3600, 80], "counts"),
    ],
)
def test_a_handful_of_rows(value, expected):
    assert detect(np.array(value, np.float32)) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((name, "ratings") for name in ("ml-100k", "ml-latest-small", "filmtrust", "douban", "flixster")),
        *((name, "ratings") for name in ("yahoo-music", "ciao", "ml-1m")),
        ("foursquare", "counts"),
        *((name, "none") for name in ("games", "beauty-bert4rec", "s3rec-beauty", "ml-1m-wu-oc50")),
    ],
)
def test_real_data(name, expected):
    root = Path(os.environ.get("CORANK_DATA", "../shared/data"))
    try:
        data = cr.datasets.load(name, root)
    except cr.CorankError as why:
        pytest.skip(str(why))
    assert data.values == expected


def plays() -> cr.Dataset:
    return play_counts(users=60, items=100, rows=1500)


def test_parts_share_the_kind_of_the_whole():
    data = plays()
    assert data.values == "counts"
    low = data.take(data.value <= 3)  # on their own they would look like ratings
    assert detect(low.value) == "ratings"
    ones = data.take(data.value == 1)
    assert {low.values, ones.values, low.compact().values, ones.join(low).values} == {"counts"}
    split = cr.holdout(data, seed=1)
    for parts in (split, split.refit(), cr.leave_last_out(data), cr.strong_generalization(data)):
        assert {part.values for part in (parts.train, parts.valid, parts.test)} == {"counts"}
    assert data.with_graph(items=cr.graph.from_edges([0, 1], [1, 2])).values == "counts"


def test_rows_without_values_joined_with_counts_are_counts():
    data = plays()
    bare = dataclasses.replace(data, value=np.ones_like(data.value), values="auto")
    assert bare.values == "none"
    assert bare.join(data).values == "counts"


def test_the_sum_of_rows_without_values_is_a_count():
    table = {"user": [1, 1, 1, 2], "item": [7, 7, 8, 7]}
    assert cr.from_arrays(**table).values == "none"
    assert cr.from_arrays(**table, duplicates="sum").values == "counts"
    assert cr.from_arrays(**table, duplicates="max").values == "none"
    alone = cr.from_arrays(user=[1, 2], item=[7, 7], duplicates="sum")
    assert alone.values == "none"  # nothing was summed
    stars = cr.from_arrays(user=[1, 1, 2], item=[7, 7, 7], value=[4, 5, 3], duplicates="sum")
    assert stars.values == "ratings"


def test_the_kind_can_be_overruled():
    table = {"user": [1, 1, 2], "item": [7, 8, 7], "value": [5, 3, 1]}
    assert cr.from_arrays(**table).values == "ratings"
    counts = cr.from_arrays(**table, values="counts")
    assert (counts.values, counts.value.tolist()) == ("counts", [5, 3, 1])
    bare = cr.from_arrays(**table, values="none")
    assert (bare.values, bare.value.tolist()) == ("none", [1, 1, 1])
    assert cr.from_arrays(**{**table, "value": [1, 900, 2]}, values="ratings").values == "ratings"


def test_mistakes():
    table = {"user": [1, 1], "item": [7, 8], "value": [5, -3]}
    with pytest.raises(cr.CorankError, match="values='count' is not a kind of values; did you mean 'counts'"):
        cr.from_arrays(**table, values="count")
    with pytest.raises(cr.CorankError, match="smallest value is -3"):
        cr.from_arrays(**table, values="counts")


def test_words():
    assert words(plays()).startswith("counts from 1 to ")
    assert words(cr.from_arrays(user=[1, 2], item=[1, 2], value=[0.5, 5])) == "ratings from 0.5 to 5"
    assert words(cr.from_arrays(user=[1, 2], item=[1, 2])) == "no values"


def test_describe_says_the_kind():
    assert plays().describe().as_dict()["values"] == "counts"
    assert "values      counts" in str(plays().describe())
    assert "values      none" in str(cr.from_arrays(user=[1, 2], item=[1, 2]).describe())
