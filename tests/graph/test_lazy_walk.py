"""Shells beside breadth-first search, by bits beside exact ones, and the nodes that meet nobody."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse.csgraph import shortest_path

import corank as cr
from corank.graph import encode
from corank.graph.lazy_walk import shells
from graphs import random_graph


def walked(graph, depth, walk):
    """The same from distances, dense, each row a distribution; the share of an empty shell goes to the one before."""
    A = graph.scipy().toarray() > 0
    distance = shortest_path(A, unweighted=True)
    out = np.zeros(A.shape)
    for i in range(len(A)):
        if not A[i].any():
            continue
        for s in range(depth + 1):
            there = distance[i] == min(s, distance[i][np.isfinite(distance[i])].max())
            out[i, there] += math.comb(depth, s) * walk**s * (1 - walk) ** (depth - s) / there.sum()
        np.testing.assert_allclose(out[i].sum(), 1)
    return out / np.sqrt(np.square(out).sum() / A.any(axis=1).sum())


@pytest.mark.parametrize(("kind", "depth"), [("g", 1), ("g2", 2), ("g3", 3), ("g6", 6)])
@pytest.mark.parametrize("walk", [0.3, 0.6])
def test_exact_shells_are_those_of_breadth_first_search(kind, depth, walk):
    graph = random_graph(40, 1, share=0.04, weighted=True)
    assert (np.diff(graph.indptr) == 0).any()  # some meet nobody
    alike = walked(graph, depth, walk)
    used = np.flatnonzero(alike.any(axis=0))
    found = shells(graph, kind, walk=walk)
    assert found.columns == used.size
    np.testing.assert_allclose(found.scipy().toarray(), alike[:, used], rtol=1e-5)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("error", [0.5, 0.2])
def test_shells_of_filters_are_the_exact_ones_where_no_bits_collide(depth, error):
    graph = random_graph(40, 2, share=0.05)
    exact = shells(graph, f"g{depth}" if depth > 1 else "g").scipy()
    bits = shells(graph, f"dna-{depth}", capacity=5_000, error=error).scipy()
    np.testing.assert_allclose((bits @ bits.T).toarray(), (exact @ exact.T).toarray(), rtol=1e-4, atol=1e-7)


def test_bits_that_collide_are_met_once():
    """A bit belongs to the first shell that sets it, and a row has no more bits than its filter."""
    graph = random_graph(40, 3)
    found = shells(graph, "dna-2", capacity=2, error=0.3)
    np.testing.assert_array_equal(np.diff(found.indptr), encode(graph, depth=2, capacity=2, error=0.3).ones())
    assert found.value.min() > 0


def test_theta_limits_the_filters():
    graph = random_graph(60, 3)
    found = shells(graph, "dna-2", capacity=20, theta=5, seed=4)
    limited = encode(graph, depth=2, capacity=20, theta=5, seed=4).ones()
    np.testing.assert_array_equal(np.diff(found.indptr), limited)
    assert limited.sum() < encode(graph, depth=2, capacity=20, seed=4).ones().sum()


def test_a_walk_that_stays_meets_itself_and_one_that_never_does_only_others():
    graph = random_graph(20, 4, share=0.3)
    np.testing.assert_allclose(shells(graph, "g", walk=0.0).scipy().toarray(), np.eye(20))
    assert not shells(graph, "g", walk=1.0).scipy().toarray().diagonal().any()


def test_direction_does_not_matter_and_nobody_meets_nobody():
    graph = random_graph(20, 5)
    one_way = cr.from_scipy(np.triu(graph.scipy().toarray()))
    for kind in ("g2", "dna-2"):
        one, other = shells(graph, kind), shells(one_way, kind)
        np.testing.assert_array_equal(one.scipy().toarray(), other.scipy().toarray())
        assert shells(cr.from_scipy(np.zeros((5, 5))), kind).index.size == 0
