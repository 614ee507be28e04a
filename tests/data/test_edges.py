"""What a graph is: the rules for loops, repeats, weights and nodes, and graphs from columns of ids."""

from __future__ import annotations

import numpy as np
import pytest

import corank as cr
from corank.data import CSR
from corank.graph import encode, from_edges, power_sum, side_graph, symmetric, tidy


def random_graph(n, p, seed=0, directed=False):
    rng = np.random.default_rng(seed)
    A = (rng.random((n, n)) < p) * rng.random((n, n))
    np.fill_diagonal(A, 0)
    return cr.from_scipy(A if directed else np.maximum(A, A.T))


# ---- rules for graphs --------------------------------------------------------------------------------------------


def test_loops_repeats_and_zeros():
    messy = CSR(
        np.array([0, 4, 6, 6]), np.array([2, 0, 1, 2, 2, 0], np.int32), np.array([1, 5, 0, 2, 3, 4], np.float32), 3
    )
    want = [[0, 0, 3], [4, 0, 3], [0, 0, 0]]
    assert tidy(messy).scipy().toarray().tolist() == want
    assert symmetric(messy).scipy().toarray().tolist() == np.maximum(want, np.transpose(want)).tolist()
    assert (encode(messy, depth=2).words == encode(tidy(messy), depth=2).words).all()
    assert messy.index.tolist() == [2, 0, 1, 2, 2, 0]  # the input is not touched
    assert messy.value.tolist() == [1, 5, 0, 2, 3, 4]


def test_a_node_without_neighbours_keeps_itself():
    empty = CSR(np.zeros(5, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), 4)
    for theta in (None, 5):
        dna = encode(empty, depth=3, capacity=10, theta=theta)
        assert (dna.ones() == dna.filter.slices).all()
        assert dna.contains(np.arange(4), np.arange(4)).all()
    assert power_sum(empty, 2).index.size == 0
    assert side_graph(empty, "dna-2", capacity=10).index.size == 0


def test_weights_above_zero_are_edges():
    graph = random_graph(40, 0.1)
    ones = graph._replace(value=np.ones_like(graph.value))
    assert (encode(graph, depth=2).words == encode(ones, depth=2).words).all()


def broken(**changes):
    good = {"indptr": np.array([0, 1, 2]), "index": np.array([1, 0], np.int32), "value": np.ones(2, np.float32)}
    return CSR(**{**good, "columns": 2, **changes})


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (broken(index=np.array([1, 2], np.int32)), "names node 2"),
        (broken(index=np.array([-1, 0], np.int32)), "names node -1"),
        (broken(value=np.array([1, -2], np.float32)), "weight -2"),
        (broken(value=np.array([1, np.nan], np.float32)), "weight nan"),
        (broken(value=np.array([1, np.inf], np.float32)), "weight inf"),
        (broken(columns=3), "2 x 3"),
        (broken(indptr=np.array([0, 2, 1])), "indptr"),
        (CSR(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), 0), "no nodes"),
    ],
)
def test_a_graph_that_is_none_is_refused(graph, words):
    for use in (encode, tidy, symmetric, lambda g: power_sum(g, 2), lambda g: side_graph(g, "dna-2")):
        with pytest.raises(cr.CorankError, match=words):
            use(graph)


# ---- edges -------------------------------------------------------------------------------------------------------


def test_edges_of_strings_and_ints():
    graph, nodes = from_edges(["ann", "bob", "ann", "cy"], ["bob", "ann", "dan", "cy"])
    assert nodes.ids.tolist() == ["ann", "bob", "cy", "dan"]
    assert graph.scipy().toarray().tolist() == [[0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]]
    graph, nodes = from_edges([5, 5], [7, 7], [1, 2], directed=True)
    assert nodes.ids.tolist() == [5, 7]
    assert graph.scipy().toarray().tolist() == [[0, 3], [0, 0]]
    assert from_edges([5, 5], [7, 7], directed=True)[0].value.tolist() == [1]  # no weights: listed twice is once
    mixed, nodes = from_edges([1, 2], ["2", "x"])  # a column of digits beside one with words
    assert nodes.ids.tolist() == ["1", "2", "x"]
    assert mixed.index.size == 4


def test_edges_over_known_nodes():
    nodes = cr.Vocab(np.array([1, 2, 3, 9]))
    graph, same = from_edges([1, 2], [2, 9], nodes=nodes)
    assert same is nodes
    assert graph.rows == 4
    with pytest.raises(cr.CorankError, match="unknown node 4"):
        from_edges([1], [4], nodes=nodes)


def test_bad_edges():
    with pytest.raises(cr.CorankError, match="2 sources and 1 targets"):
        from_edges([1, 2], [1])
    with pytest.raises(cr.CorankError, match="1 weights and 2 edges"):
        from_edges([1, 2], [2, 3], [1])
    with pytest.raises(cr.CorankError, match="edge '2' to '3' has the weight -1"):
        from_edges([1, 2], [2, 3], [1, -1])
    with pytest.raises(cr.CorankError, match="no nodes"):
        from_edges([], [])
    with pytest.raises(cr.CorankError, match="the weight column holds something that is not a number"):
        from_edges([1], [3], ["a"])


# ---- a graph for a dataset -------------------------------------------------------------------------------------------


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
        "the graph: ' dan' is not the user 'dan' of the data, and only case or blanks differ (2 nodes so): "
        "write ids alike in both"
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
    with pytest.raises(cr.CorankError, match="the users of the data are integers, and of its nodes 'ann' is none"):
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
