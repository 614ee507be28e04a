"""Ratings as a graph: weights of edges, sums over them, features; and the decoder by its formula."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from corank.nn.noise import Noise  # noqa: E402
from corank.nn.parameters import Layout  # noqa: E402
from corank.nn.rating_graph import BilinearDecoder, RatingGraph, feature_layer, feature_parameters  # noqa: E402
from corank.nn.sparse import Pattern  # noqa: E402

USERS, ITEMS, LEVELS, DIM = 4, 3, 2, 5


def ratings(**options):
    """User 3 and no item is without ratings."""
    user, item, level = np.array([[0, 0, 0], [0, 1, 1], [0, 2, 0], [1, 0, 1], [2, 0, 0], [2, 1, 0]]).T
    return RatingGraph(user, item, level, USERS, ITEMS, LEVELS, **options)


def weights_of(parameters, seed=0):
    layout = Layout(parameters)
    flat = np.random.default_rng(seed).normal(size=layout.size).astype(np.float32)
    return layout.views(torch.from_numpy(flat))


# ---- edges -------------------------------------------------------------------------------------------------------


def test_an_edge_weighs_one_over_the_degree_of_its_receiver():
    assert ratings().weights("user").tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1, 1 / 2, 1 / 2])
    assert ratings().weights("item").tolist() == pytest.approx([1 / 3, 1 / 2, 1, 1 / 3, 1 / 3, 1 / 2])


def test_shrink_is_added_to_degrees():
    assert ratings(shrink=1.0).weights("user").tolist() == pytest.approx([1 / 4, 1 / 4, 1 / 4, 1 / 2, 1 / 3, 1 / 3])


@pytest.mark.parametrize("side", ["user", "item"])
def test_symmetric_weights_are_those_of_both_degrees(side):
    degrees = np.array([3 * 3, 3 * 2, 3 * 1, 1 * 3, 2 * 3, 2 * 2])
    assert ratings(symmetric=True).weights(side).tolist() == pytest.approx(1 / np.sqrt(degrees))


def test_invisible_edges_weigh_nothing_and_count_nothing():
    visible = np.array([True, False, True, True, False, False])
    assert ratings().weights("user", visible).tolist() == pytest.approx([1 / 2, 0, 1 / 2, 1, 0, 0])


def test_given_degrees_replace_counted_ones():
    graph = ratings(symmetric=True, degrees={"item": np.array([10, 20, 30], np.float32)})
    degrees = np.array([3 * 10, 3 * 20, 3 * 30, 1 * 10, 2 * 10, 2 * 20])
    assert graph.weights("user").tolist() == pytest.approx(1 / np.sqrt(degrees))


@pytest.mark.parametrize("per_level", [True, False])
@pytest.mark.parametrize("side", ["user", "item"])
def test_messages_are_summed_over_edges(side, per_level):
    graph = ratings()
    other = ITEMS if side == "user" else USERS
    messages, weight = torch.randn(other, LEVELS, DIM), torch.rand(graph.user.size)
    wanted = torch.zeros(graph.nodes(side), LEVELS, DIM)
    for n in range(graph.user.size):
        i, j = (graph.user[n], graph.item[n]) if side == "user" else (graph.item[n], graph.user[n])
        wanted[i, graph.level[n]] += weight[n] * messages[j, graph.level[n]]
    found = graph.aggregate(side, weight, messages.view(-1, DIM), per_level=per_level)
    torch.testing.assert_close(found, wanted.view(-1, DIM) if per_level else wanted.sum(1))


def test_sums_per_level_and_over_levels_can_be_asked_of_one_graph():
    graph, messages = ratings(), torch.ones(ITEMS * LEVELS, DIM)
    weight = graph.weights("user")
    shapes = [graph.aggregate("user", weight, messages, per_level=stacked).shape[0] for stacked in (True, False, True)]
    assert shapes == [USERS * LEVELS, USERS, USERS * LEVELS]


def test_without_noise_nothing_is_dropped():
    graph = ratings()
    weight = graph.weights("user")
    assert graph.drop_neighbors("user", weight, 0.5, None) is weight
    assert graph.draw_warm("user", 0.5, None) is None
    assert graph.only_warm("user", weight, None) is weight


def test_dropped_neighbors_lose_all_their_edges():
    graph = ratings()
    for seed in range(20):
        weight = graph.drop_neighbors("user", torch.ones(graph.user.size), 0.5, Noise(seed)).numpy()
        for item in range(ITEMS):
            assert np.unique(weight[graph.item == item]).size == 1
        assert set(weight.tolist()) <= {0.0, 2.0}


def test_cold_nodes_lose_all_their_edges():
    graph = ratings()
    warm = torch.tensor([True, False, True, False])
    assert graph.only_warm("user", torch.ones(6), warm).tolist() == [1, 1, 1, 0, 1, 1]


# ---- features and decoder ----------------------------------------------------------------------------------------


def test_unseen_users_get_the_features_of_zeros():
    w = weights_of(feature_parameters("user", 7, 4))
    torch.testing.assert_close(feature_layer(w, "user", None), feature_layer(w, "user", torch.zeros(1, 7)))


@pytest.mark.parametrize("node_bias", [True, False])
@pytest.mark.parametrize("level_bias", [True, False])
@pytest.mark.parametrize("bases", [1, 3])
def test_logits_are_the_bilinear_form(bases, level_bias, node_bias):
    decoder = BilinearDecoder(dim=DIM, levels=LEVELS, bases=bases, level_bias=level_bias, node_bias=node_bias)
    w = weights_of(decoder.parameters())
    graph = ratings()
    user, item = torch.randn(USERS, DIM), torch.randn(ITEMS, DIM)
    logits = decoder.logits(w, Pattern(graph.user, graph.item, (USERS, ITEMS)), user, item)
    for n in range(graph.user.size):
        u, v = user[graph.user[n]], item[graph.item[n]]
        wanted = sum(w["decoder.mix"][b] * (u @ w[f"decoder.{b}"] @ v) for b in range(bases))
        if node_bias:
            wanted = wanted + u @ w["decoder.user"] + v @ w["decoder.item"]
        if level_bias:
            wanted = wanted + w["decoder.bias"]
        torch.testing.assert_close(logits[n], wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("cells", [1, 1 << 19])
@pytest.mark.parametrize("node_bias", [True, False])
def test_ratings_are_expected_under_the_softmax_of_the_logits(monkeypatch, node_bias, cells):
    import corank.nn.rating_graph as module

    monkeypatch.setattr(module, "CELLS", cells)
    decoder = BilinearDecoder(dim=DIM, levels=LEVELS, node_bias=node_bias)
    w, values = weights_of(decoder.parameters()), np.array([1, 4], np.float32)
    arrays = {name: view.numpy() for name, view in w.items()}
    user, item = torch.randn(USERS, DIM), torch.randn(ITEMS, DIM)
    rows, columns = (side.ravel() for side in np.indices((USERS, ITEMS)))
    logits = decoder.logits(w, Pattern(rows, columns, (USERS, ITEMS)), user, item)
    wanted = (torch.softmax(logits, 1) @ torch.from_numpy(values)).numpy()
    found = decoder.rate_all(arrays, values, user.numpy(), item.numpy())
    np.testing.assert_allclose(found.ravel(), wanted, rtol=1e-4)
    pairs = decoder.rate_pairs(arrays, values, user.numpy(), item.numpy(), rows, columns)
    np.testing.assert_allclose(pairs, wanted, rtol=1e-4)
