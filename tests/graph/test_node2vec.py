"""node2vec and DeepWalk features; what needs gensim is skipped without it."""

from __future__ import annotations

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
