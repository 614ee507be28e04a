"""A graph for a dataset: nodes matched by id, users without rows, unknown items, and ids that do not fit."""

from __future__ import annotations

import numpy as np
import pytest

import corank as cr
from corank.graph import from_edges


def rated(**labels):
    return cr.from_arrays(
        user=["bob", "dan", "bob"], item=[7, 7, 9], value=[1, 2, 3], time=[5, 6, 7], user_labels=labels
    )


def pairs(graph, vocab):
    A = graph.scipy().tocoo()
    return {(vocab.ids[i], vocab.ids[j]): float(w) for i, j, w in zip(A.row, A.col, A.data, strict=True)}


def test_friends_without_rows_become_users(caplog):
    data = rated(age=np.array([40, 50]), name=np.array(["B", "D"], object), tall=np.array([True, False]))
    with caplog.at_level("INFO", logger="corank.reading"):
        joined = data.with_graph(users=from_edges(["ann", "dan", "cy"], ["bob", "ann", "cy"], [2, 3, 1]))
    assert caplog.messages == ["the graph: 2 edges between users; 2 users without rows (ann, cy) were added"]
    assert joined.users.ids.tolist() == ["ann", "bob", "cy", "dan"]
    assert joined.users.ids[joined.user].tolist() == ["bob", "dan", "bob"]
    assert (joined.item == data.item).all()
    assert (joined.time == data.time).all()
    want = {("ann", "bob"): 2, ("ann", "dan"): 3}
    assert pairs(joined.user_graph, joined.users) == want | {(b, a): w for (a, b), w in want.items()}
    assert joined.item_graph is None
    assert joined.user_labels["age"].tolist() == [-1, 40, -1, 50]
    assert joined.user_labels["name"].tolist() == ["", "B", "", "D"]
    assert joined.user_labels["tall"].tolist() == [-1, 1, -1, 0]
    assert data.users.ids.tolist() == ["bob", "dan"]  # a dataset is a value
    again = joined.with_graph(users=from_edges(["bob"], ["dan"]))  # the new graph instead of the old one
    assert pairs(again.user_graph, again.users) == {("bob", "dan"): 1, ("dan", "bob"): 1}
    assert again.users == joined.users


def test_unknown_items_are_left_out_unless_asked_for(caplog):
    edges = from_edges([7, 8, 9], [8, 9, 7])
    with caplog.at_level("INFO", logger="corank.reading"):
        data, more = (rated().with_graph(items=edges, new_items=new) for new in (False, True))
    assert caplog.messages == [
        "the graph: 1 edge between items; 1 item without rows (8) was left out, with its edges",
        "the graph: 3 edges between items; 1 item without rows (8) was added",
    ]
    assert data.items.ids.tolist() == [7, 9]
    assert pairs(data.item_graph, data.items) == {(7, 9): 1, (9, 7): 1}
    assert more.items.ids.tolist() == [7, 8, 9]
    assert more.items.ids[more.item].tolist() == [7, 7, 9]
    assert data.user_graph is more.user_graph is None


def test_some_of_those_who_are_new_are_named(caplog):
    with caplog.at_level("INFO", logger="corank.reading"):
        rated().with_graph(users=from_edges(["a", "b", "c", "d", "bob"], ["dan"] * 5))
    assert "4 users without rows (a, b, c, ...) were added" in caplog.text


def warned(caplog):
    """The warnings alone: after a command has run, notices are captured too."""
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


def test_edges_about_others_than_the_data(caplog):
    rated().with_graph(users=from_edges(["bob", "ann"], ["cy", "dan"]))  # half of them are known
    assert warned(caplog) == []
    rated().with_graph(users=from_edges(["bob", "ann"], ["cy", "eve"]))
    assert warned(caplog) == [
        "the graph: 3 of its 4 nodes are users without rows: is it a table of edges between users, with their ids?"
    ]
    caplog.clear()
    rated().with_graph(items=from_edges([7, 1], [2, 3]))
    assert "the graph: 3 of its 4 nodes are items without rows" in caplog.text


def test_ids_that_differ_by_case_only(caplog):
    rated().with_graph(users=from_edges(["bob", "Bob"], ["dan", " dan"]))
    assert warned(caplog) == [
        "the graph: ' dan' is not the user 'dan' of the data, but only case or blanks differ (2 nodes so): "
        "use the same ids in both"
    ]


def test_directions_and_both_sides():
    data = rated().with_graph(from_edges(["ann"], ["bob"], directed=True), from_edges([9], [7]))
    assert pairs(data.user_graph, data.users) == {("ann", "bob"): 1}
    assert pairs(data.item_graph, data.items) == {(7, 9): 1, (9, 7): 1}


def test_comparisons_move_with_their_users_and_items():
    data = cr.Dataset.from_comparisons(user=["b", "c"], preferred=["x", "z"], other=["z", "x"])
    joined = data.with_graph(from_edges(["a"], ["b"]), from_edges(["y"], ["x"]), new_items=True)
    named = [(joined.users.ids[u], joined.items.ids[i], joined.items.ids[j]) for u, i, j in joined.comparisons.tolist()]
    assert named == [("b", "x", "z"), ("c", "z", "x")]


def test_ids_of_two_types():
    ints = cr.from_arrays(user=[1, 2], item=[1, 1])
    with pytest.raises(cr.CorankError, match="the users of the data are integers and node 'ann' is not"):
        ints.with_graph(users=from_edges(["1", "2"], ["2", "ann"]))
    texts = cr.from_arrays(user=["1", "x"], item=[1, 1])
    assert texts.with_graph(users=from_edges([1, 1], [2, 3])).users.ids.tolist() == ["1", "2", "3", "x"]


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        (from_edges(["x"], ["y"]), "none of its 2 nodes is among the 2 users of the data .such as x and bob"),
        ([("bob", "dan")], "users=list: give a file of edges, or what corank.graph.from_edges"),
        ((["bob"], ["dan"]), "users=tuple: give a file"),
        (from_edges(["bob"], ["dan"])[0], "users=CSR: give a file"),
        ((from_edges(["bob"], ["dan"])[0], cr.Vocab(np.array(["bob"], object))), "2 nodes and 1 ids"),
        ("nowhere.csv", "file 'nowhere.csv' does not exist"),
    ],
)
def test_what_cannot_be_joined_is_a_sentence(edges, words):
    with pytest.raises(cr.CorankError, match=words):
        rated().with_graph(users=edges)
