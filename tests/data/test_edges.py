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
