"""Random walks: steps along edges, with the stated odds."""

from __future__ import annotations

import itertools

import numpy as np

import corank as cr
from corank.kernels.threads import run
from corank.kernels.walks import walk


def walks(A, count, length, p=1.0, q=1.0, seed=0):
    graph = cr.from_scipy(np.asarray(A, np.float32))
    ladder = np.concatenate([np.cumsum(graph.value[a:b], dtype=float) for a, b in itertools.pairwise(graph.indptr)])
    out = np.full((count * graph.rows, length), -9, np.int32)
    run(walk, len(out), seed, p, q, graph.indptr, graph.index, ladder, out)
    return out


def test_walks_follow_edges_and_end_where_there_is_none():
    A = np.zeros((5, 5))
    A[0, 1] = A[1, 2] = A[2, 0] = A[2, 3] = 1  # 3 is a dead end, 4 alone
    paths = walks(A, 50, 6)
    assert (paths[:, 0] == np.tile(np.arange(5), 50)).all()
    for path in paths.tolist():
        for a, b in itertools.pairwise(path):
            assert b == -1 if a in (3, 4, -1) else A[a, b]


def test_steps_have_node2vec_odds():
    """From 0 to 1, then: back to 0 with weight 2 / p, to 2 (near 0) with 1, to 3 (far) with 3 / q; 5 deviations."""
    A = np.zeros((4, 4))
    A[0, 1] = A[0, 2] = 1
    A[1, 0], A[1, 2], A[1, 3] = 2, 1, 3
    A[2, 0] = A[3, 1] = 1
    for p, q in ((1.0, 1.0), (0.25, 4.0), (4.0, 0.5), (2.0, 2.0)):
        paths = walks(A, 40_000, 3, p, q, seed=3)
        from_0 = paths[(paths[:, 0] == 0) & (paths[:, 1] == 1)]
        assert abs((paths[paths[:, 0] == 0, 1] == 1).mean() - 0.5) < 5 * 0.5 / np.sqrt(40_000)
        want = np.array([2 / p, 0, 1, 3 / q])
        want /= want.sum()
        got = np.bincount(from_0[:, 2], minlength=4) / len(from_0)
        assert (np.abs(got - want) <= 5 * np.sqrt(want * (1 - want) / len(from_0))).all(), (p, q, got, want)


def test_threads_and_seeds():
    A = np.random.default_rng(0).random((30, 30)) < 0.2
    try:
        cr.set_threads(1)
        one = walks(A, 5, 10, 0.5, 2.0)
        cr.set_threads(2)
        assert (walks(A, 5, 10, 0.5, 2.0) == one).all()
    finally:
        cr.set_threads(None)
    assert (walks(A, 5, 10, 0.5, 2.0, seed=1) != one).any()
