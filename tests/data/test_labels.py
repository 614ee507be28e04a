"""Labels of items: the kind of a column is found, entries may be missing, and columns follow their items."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

import corank as cr
from corank.data.labels import Column, ItemTable, Labels, column_of, labels_of


@pytest.mark.parametrize(
    ("values", "kind", "listed"),
    [
        (np.array([3, 4]), "number", [3, 4]),
        (np.array([1.5, np.nan, np.inf]), "number", [1.5, None, None]),
        (np.array([True, False]), "flag", [True, False]),
        (["2003", "", " 1999 "], "number", [2003, None, 1999]),
        (["007", "8"], "text", ["007", "8"]),
        (["yes", "No", None], "flag", [True, False, None]),
        (["Comedy|Drama", "Drama", ""], "texts", [["Comedy", "Drama"], ["Drama"], None]),
        ([["b", "a", "a"], None, []], "texts", [["a", "b"], None, None]),
        (["red", None, "blue"], "text", ["red", None, "blue"]),
        ([datetime.date(2024, 1, 31), None], "text", ["2024-01-31", None]),
        ([1, "x"], "text", ["1", "x"]),
        ([None, ""], "number", [None, None]),
        (["nan", "1"], "text", ["nan", "1"]),
    ],
)
def test_kinds_are_found(values, kind, listed):
    column = column_of(values)
    assert column.kind == kind
    assert column.listed() == listed
    column.check("x", len(listed))


def test_labels_of_two_dimensions_are_left_out():
    assert labels_of({"vector": np.zeros((3, 2)), "year": np.array([1, 2, 3])}).columns.keys() == {"year"}


def test_titles_stay_texts():
    table = ItemTable.build([1, 2], {"title": ["1917", "Either|Or"]})
    assert table.labels.columns["title"].listed() == ["1917", "Either|Or"]


@pytest.mark.parametrize(
    "values", [["a", None, "b"], [1, 2, None], [True, None, False], [["a"], ["b", "c"], []], ["x|y", "", "z"]]
)
def test_columns_follow_their_items(values):
    column = column_of(values)
    listed = [*column.listed(), None]
    rows = np.array([2, -1, 0, 1, 1])
    taken = column.take(rows)
    taken.check("x", 5)
    assert taken.listed() == [listed[r] for r in rows]
    assert column_of(values[:0] or []).take(np.array([-1, -1])).listed() == [None, None]


def test_rows_of_a_table_are_sorted_by_id():
    table = cr.item_table({"item": [30, 10, 20], "year": [3, 1, 2], "tags": [["c"], ["a"], None]})
    assert table.items.ids.tolist() == [10, 20, 30]
    assert table.labels.columns["year"].listed() == [1, 2, 3]
    assert table.labels.columns["tags"].listed() == [["a"], None, ["c"]]
    assert repr(table) == "ItemTable(3 items, year, tags)"


def test_an_id_twice_is_named():
    with pytest.raises(cr.CorankError, match="has item 7 more than once"):
        cr.item_table({"item": [7, 8, 7], "year": [1, 2, 3]})


@pytest.mark.parametrize(
    ("column", "what"),
    [
        (Column("colour", np.zeros(2)), "no known kind"),
        (Column("number", np.zeros(2, np.float32)), "must be float64"),
        (Column("number", np.array([np.inf, 0])), "infinity"),
        (Column("number", np.zeros(3)), "one entry per item"),
        (Column("flag", np.array([0, 2], np.int8)), "stands for nothing"),
        (Column("text", np.array([0, 1], np.int32), ("a",)), "stands for nothing"),
        (Column("text", np.array([0, -2], np.int32), ("a",)), "stands for nothing"),
        (Column("text", np.array([0, 0], np.int32), ("b", "a")), "rising order"),
        (Column("text", np.array([0, 0], np.int32), (1,)), "not a text"),
        (Column("text", np.array([0, 0], np.int32), ("\ud800",)), "surrogates"),
        (Column("texts", np.array([0], np.int32), ("a",)), "where the texts"),
        (Column("texts", np.array([0], np.int32), ("a",), np.array([0, 1])), "where the texts"),
        (Column("texts", np.array([0], np.int32), ("a",), np.array([0, 2, 1])), "running total"),
        (Column("texts", np.array([-1], np.int32), ("a",), np.array([0, 1, 1])), "stands for nothing"),
    ],
)
def test_a_column_from_anybody_is_checked(column, what):
    with pytest.raises(ValueError, match=what):
        column.check("x", 2)


def test_labels_are_equal_by_their_entries():
    one = labels_of({"a": ["x", "y"], "b": [1.0, None]})
    assert one == labels_of({"a": ["x", "y"], "b": [1.0, None]})
    assert one != labels_of({"a": ["x", "z"], "b": [1.0, None]})
    assert one != Labels({})
