"""node2vec and DeepWalk features; what needs gensim is skipped without it."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import corank as cr
from corank.graph.node2vec import deepwalk, node2vec


@pytest.fixture(scope="module")
def two_rooms():
    """Nodes 0-19 and 20-39: half of the pairs within a room are edges, 1 % of those across; node 40 is alone."""
    rng = np.random.default_rng(0)
    room = np.arange(41) // 20
    A = np.triu(rng.random((41, 41)) < np.where(room[:, None] == room, 0.5, 0.01), 1)
    A[:, 40] = 0
    return cr.from_scipy((A | A.T).astype(np.float32))


@pytest.mark.parametrize("learn", [deepwalk, node2vec])
def test_neighbours_are_alike(two_rooms, learn):
    pytest.importorskip("gensim")
    vectors = learn(two_rooms, 16, walks=20, length=20, window=3, epochs=3, seed=1)
    assert vectors.shape == (41, 16)
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()
    assert (vectors[40] == 0).all()
    unit = vectors[:40] / np.linalg.norm(vectors[:40], axis=1, keepdims=True)
    cosine = unit @ unit.T
    same = np.arange(40)[:, None] // 20 == np.arange(40) // 20
    inside = cosine[same & ~np.eye(40, dtype=bool)]
    assert inside.mean() > cosine[~same].mean() + 0.2
    again = learn(two_rooms, 16, walks=20, length=20, window=3, epochs=3, seed=1)
    assert (again == vectors).all()
    assert (learn(two_rooms, 16, walks=20, length=20, window=3, epochs=3, seed=2) != vectors).any()


def hub():
    """Nodes 0-19 are alone, 20-38 know node 39 only: the numbers of the nodes are not their places by frequency."""
    A = np.zeros((40, 40), np.float32)
    A[20:39, 39] = A[39, 20:39] = 1
    return cr.from_scipy(A)


def test_negatives_follow_the_counts_of_the_nodes(monkeypatch):
    gensim = pytest.importorskip("gensim.models")
    made = []

    class Spy(gensim.Word2Vec):
        def make_cum_table(self, *given, **options):
            super().make_cum_table(*given, **options)
            made.append(self)

    monkeypatch.setattr(gensim, "Word2Vec", Spy)
    node2vec(hub(), 4, walks=20, length=10, window=2)
    counts = made[0].wv.expandos["count"].astype(float)
    assert made[0].wv.index_to_key[0] == "39"
    assert counts[0] > 5 * counts[1]
    share = np.diff(made[0].cum_table.astype(float), prepend=0) / made[0].cum_table[-1]
    np.testing.assert_allclose(share, counts**0.75 / (counts**0.75).sum(), atol=1e-6)


def test_every_node_has_a_code_in_the_tree_of_deepwalk():
    """Without one, a thread of gensim dies and the fit waits for it forever."""
    pytest.importorskip("gensim")
    found = []
    work = threading.Thread(target=lambda: found.append(deepwalk(hub(), 4, walks=20, length=10)), daemon=True)
    work.start()
    work.join(60)
    assert found
    assert (found[0][20:] != 0).any(axis=1).all()
    assert not found[0][:20].any()


def test_a_graph_without_edges_has_no_features():
    pytest.importorskip("gensim")
    assert (node2vec(cr.from_scipy(np.zeros((4, 4))), 8) == 0).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dim": 0}, "dim=0"),
        ({"p": 0}, "p=0"),
        ({"q": "x"}, "q='x'"),
        ({"walks": 1.5}, "walks=1.5"),
        ({"seed": -1}, "seed=-1"),
    ],
)
def test_wrong_options_are_a_sentence(two_rooms, options, words):
    with pytest.raises(cr.CorankError, match=words):
        node2vec(two_rooms, **options)


def test_the_missing_part_is_named(two_rooms, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(cr.MissingExtra, match=r"corank\[graph\]"):
        node2vec(two_rooms, 4, walks=1, length=2)
