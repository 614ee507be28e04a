"""Comparisons: read, split with their rows, and refused where they make no sense."""

from __future__ import annotations

import numpy as np
import pytest

import corank as cr


@pytest.fixture
def data():
    return cr.Dataset.from_comparisons(["ann", "ann", "bob"], ["tea", "tea", "rye"], ["milk", "rye", "tea"])


def test_rows_are_the_items_compared(data):
    rows = {(data.users.ids[u], data.items.ids[i]) for u, i in zip(data.user, data.item, strict=True)}
    assert rows == {("ann", "tea"), ("ann", "milk"), ("ann", "rye"), ("bob", "rye"), ("bob", "tea")}
    named = [(data.users.ids[u], data.items.ids[a], data.items.ids[b]) for u, a, b in data.comparisons]
    assert named == [("ann", "tea", "milk"), ("ann", "tea", "rye"), ("bob", "rye", "tea")]


def test_a_comparison_goes_with_its_rows(data):
    no_milk = data.take(data.items.ids[data.item] != "milk")
    assert len(no_milk.comparisons) == 2
    small = no_milk.compact()
    assert len(small.items) == 2
    assert {small.items.ids[a] for a in small.comparisons[:, 1]} == {"tea", "rye"}
    milk = data.take(data.items.ids[data.item] == "milk")
    assert len(milk.comparisons) == 0
    assert len(no_milk.join(milk).comparisons) == 2


def test_numbers_as_ids():
    data = cr.Dataset.from_comparisons(np.array([7, 7]), np.array([1, 3]), np.array([2, 2]))
    assert data.items.ids.tolist() == [1, 2, 3]
    assert data.comparisons.tolist() == [[0, 0, 1], [0, 2, 1]]


@pytest.mark.parametrize(
    ("user", "preferred", "other", "expected"),
    [
        ([1], [5], [5], "compares item 5 with itself"),
        ([1, 1], [5, 6], [6, 5], "and the reverse"),
        ([1, 2], [5], [6], "one preferred and one other"),
        ([1], [5], ["a"], "all integers or all strings"),
    ],
)
def test_nonsense_is_a_sentence(user, preferred, other, expected):
    with pytest.raises(cr.CorankError, match=expected):
        cr.Dataset.from_comparisons(user, preferred, other)


def test_different_users_may_disagree():
    assert len(cr.Dataset.from_comparisons([1, 2], [5, 6], [6, 5]).comparisons) == 2
