"""Sums of powers beside dense matrices, and the graphs that models smooth over; every bad input is refused."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import corank as cr
from corank.graph import KINDS, encode, power_sum, side_graph, symmetric
from corank.graph import powers as graphs


def random_graph(n, p, seed=0, directed=False):
    rng = np.random.default_rng(seed)
    A = (rng.random((n, n)) < p) * rng.random((n, n))
    np.fill_diagonal(A, 0)
    return cr.from_scipy(A if directed else np.maximum(A, A.T))


@pytest.mark.parametrize("height", [1, 7, 1000])
@pytest.mark.parametrize(("depth", "weights"), [(1, ()), (2, ()), (2, (0.3,)), (3, (0.01, 0.05)), (6, (0, 1, 0, 0, 2))])
def test_power_sum_equals_dense(monkeypatch, depth, weights, height):
    monkeypatch.setattr(graphs, "_ENTRIES", 40 * height)
    graph = random_graph(40, 0.08, seed=depth, directed=True)
    A = graph.scipy().toarray().astype(np.float64)
    want = sum(a * np.linalg.matrix_power(A, p) for p, a in enumerate((1, *(weights or (1,) * (depth - 1))), 1))
    np.fill_diagonal(want, 0)
    got = power_sum(graph, depth, weights)
    np.testing.assert_allclose(got.scipy().toarray(), want, rtol=1e-6)
    assert got.index.size == np.count_nonzero(want)
    assert got.index.dtype == np.int32
    assert got.value.dtype == np.float32


@pytest.mark.parametrize(("depth", "weights"), [(1, ()), (2, (0.3,)), (3, (0.5, 0.05)), (3, (2, 0)), (4, (0, 0, 3))])
def test_a_threshold_cuts_the_highest_power_alone(depth, weights):
    """As the dissertation cuts G^3: entries of G^d below it are dropped, before weights; lower powers stay whole."""
    graph = random_graph(40, 0.08, seed=depth, directed=True)
    A = graph.scipy().toarray().astype(np.float64)
    powers = [np.linalg.matrix_power(A, p) for p in range(1, depth + 1)]
    cut = float(np.median(powers[-1][powers[-1] > 0])) * 1.0001  # no entry is at the cut, up to rounding
    powers[-1] = np.where(powers[-1] >= cut, powers[-1], 0)
    want = sum(a * power for a, power in zip((1, *weights), powers, strict=True))
    np.fill_diagonal(want, 0)
    got = power_sum(graph, depth, weights, threshold=cut)
    np.testing.assert_allclose(got.scipy().toarray(), want, rtol=1e-6)
    assert got.index.size == np.count_nonzero(want)


def test_a_thresholded_power_keeps_entries_at_the_threshold():
    """Walks are whole numbers: with the published threshold of 4, pairs with exactly 4 walks of three steps stay."""
    A = (random_graph(30, 0.15, seed=9).scipy().toarray() > 0).astype(float)
    cube = np.linalg.matrix_power(A, 3)
    assert (cube == 4).any()
    assert ((cube > 0) & (cube < 4)).any()
    want = A + 0.05 * A @ A + 0.0005 * np.where(cube >= 4, cube, 0)
    np.fill_diagonal(want, 0)
    for made in (
        power_sum(cr.from_scipy(A), 3, (0.05, 0.0005), threshold=4),
        side_graph(cr.from_scipy(A), "g3", weights=(0.05, 0.0005), threshold=4),
    ):
        np.testing.assert_allclose(made.scipy().toarray(), want, rtol=1e-6)


def test_power_sum_options():
    graph = random_graph(5, 0.5)
    for depth, weights, threshold, words in (
        (0, (), 0, "depth=0"),
        (3, (1,), 0, "1 weights for depth 3"),
        (2, (-1,), 0, "weights=-1"),
        (2, (1,), -1, "threshold=-1"),
        (2, (1,), math.nan, "threshold=nan"),
    ):
        with pytest.raises(cr.CorankError, match=words):
            power_sum(graph, depth, weights, threshold)


@pytest.mark.parametrize("kind", KINDS)
def test_side_graphs(kind):
    graph = random_graph(30, 0.05, directed=True)
    n, A = 30, symmetric(graph).scipy().toarray()
    made = side_graph(graph, kind, capacity=20, seed=2)
    M = made.scipy().toarray()
    assert (M == M.T).all()
    assert (np.diag(M) == 0).all()
    assert made.index.size == np.count_nonzero(M)
    assert (made.index.dtype, made.value.dtype, made.indptr.dtype) == (np.int32, np.float32, np.int64)
    for a, b in itertools.pairwise(made.indptr):
        assert (np.diff(made.index[a:b]) > 0).all()
    if kind == "none":
        assert M.shape == (n, n)
        assert not M.any()
    elif kind == "g":
        assert (M == A).all()
    elif kind.startswith("g"):
        np.testing.assert_allclose(M, power_sum(symmetric(graph), int(kind[1])).scipy().toarray())
    else:
        B = encode(symmetric(graph), depth=int(kind[4]), capacity=20, seed=2).bits().scipy().toarray()
        alone = A.sum(axis=1) == 0
        assert alone.any()
        assert B[alone].any()
        B[alone] = 0  # its own bits could only tie it to strangers
        assert M.shape == (n + B.shape[1],) * 2
        assert (M[:n, n:] == B).all()
        assert not M[n:, n:].any()
        assert (M[:n, :n] == (0 if kind == "dna-1" else A)).all()
        heavy = side_graph(graph, kind, capacity=20, seed=2, weights=[0.5]).scipy().toarray()
        assert (heavy[:n, n:] == 0.5 * B).all()


@pytest.mark.parametrize("kind", ["dna-1", "dna-2"])
def test_whoever_has_no_neighbours_has_no_ties(kind):
    """A filter of 4 bits, so that chance would give everybody something in common."""
    A = np.zeros((40, 40))
    A[0, 1] = A[1, 0] = A[2, 3] = 1
    made = side_graph(cr.from_scipy(A), kind, capacity=1, error=0.5).scipy().toarray()
    assert (made[:4].sum(axis=1) > 0).all()
    assert not made[4:40].any()
    bits = made[:40, 40:]
    assert (bits[:4] @ bits[:4].T > 0).all()  # strangers share bits here
    assert not made[:, 4:40].any()


def test_theta_reaches_the_filters_of_a_side_graph():
    graph = symmetric(random_graph(60, 0.1))
    made = side_graph(graph, "dna-2", capacity=20, theta=5, seed=2)
    B = encode(graph, depth=2, capacity=20, theta=5, seed=2).bits()
    assert B.index.size < encode(graph, depth=2, capacity=20, seed=2).bits().index.size
    np.testing.assert_array_equal(made.scipy().toarray()[:60, 60:], B.scipy().toarray())


def test_side_graph_options():
    graph = random_graph(5, 0.5)
    with pytest.raises(cr.CorankError, match="did you mean 'dna-2'"):
        side_graph(graph, "dna2")
    with pytest.raises(cr.CorankError, match="one number above 0"):
        side_graph(graph, "dna-2", weights=(1, 2))
