"""The network of GC-MC against a dense twin, by numeric derivatives, under renumbering, and its dropouts."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from corank.nn.convolution import Graph, Network  # noqa: E402
from corank.nn.noise import Noise  # noqa: E402
from corank.nn.parameters import Layout  # noqa: E402
from corank.nn.sparse import Pattern  # noqa: E402

USERS, ITEMS, LEVELS = 9, 6, 3
VARIANTS = [
    {},
    {"stacked": False},
    {"sharing": "ordinal"},
    {"sharing": "basis", "stacked": False},
    {"symmetric": True, "shrink": 2.0},
    {"features": (4, 5), "bases": 3},
    {"features": (0, 5), "biased": False},
]


def ratings(seed=0, **features):
    """About half of all pairs, but none of user 0 and none of item 1."""
    rng = np.random.default_rng(seed)
    user, item = np.nonzero(rng.random((USERS, ITEMS)) < 0.5)
    keep = (user != 0) & (item != 1)
    user, item = user[keep], item[keep]
    return Graph(user, item, rng.integers(0, LEVELS, user.size), USERS, ITEMS, LEVELS, features)


def features(n, columns, seed=3):
    rng = np.random.default_rng(seed)
    row, column = np.nonzero(rng.random((n, columns)) < 0.6)
    return Pattern(row, column, (n, columns)), torch.from_numpy(rng.random(row.size).astype(np.float32))


def made(**options):
    net = Network(users=USERS, items=ITEMS, levels=LEVELS, hidden=13, dim=5, feature_dim=4, **options)
    layout = Layout(net.parameters())
    flat = torch.from_numpy(np.random.default_rng(1).normal(0, 0.7, layout.size).astype(np.float32))
    sides = zip(("user", "item"), (USERS, ITEMS), net.features, strict=True)
    return net, layout.views(flat), ratings(**{side: features(n, c) for side, n, c in sides if c})


def encoded(net, w, side, graph, visible=None, noise=None):
    """The vectors of one side."""
    return net.encode(w, graph, visible, noise)[("user", "item").index(side)]


def twin(net, w, side, graph):
    """The same, from adjacency matrices: one a level, one-hot inputs."""
    adjacency = torch.zeros(LEVELS, USERS, ITEMS)
    adjacency[graph.level, graph.user, graph.item] = 1
    if side == "item":
        adjacency = adjacency.transpose(1, 2)
    degree, mates = adjacency.sum((0, 2)) + net.shrink, adjacency.sum((0, 1)) + net.shrink
    scale = 1 / degree.clamp(min=1e-9)[:, None]
    if net.symmetric:
        scale = (scale / mates.clamp(min=1e-9)[None, :]).sqrt()
    found = []
    table = w[f"{side}.table"].view(adjacency.shape[2], -1, net.width)
    for level in range(LEVELS):
        own = {
            "own": lambda r: table[:, r],
            "ordinal": lambda r: table[:, : r + 1].sum(1),
            "basis": lambda r: sum(w[f"{side}.mix"][r, b] * table[:, b] for b in range(net.bases)),
        }[net.sharing](level)
        found.append((adjacency[level] * scale) @ own)
    first = torch.relu(torch.cat(found, 1) if net.stacked else sum(found))
    if side in graph.features:
        pattern, value = graph.features[side]
        index, ends, _ = pattern.by_row
        whole = torch.zeros(pattern.shape)
        whole[torch.repeat_interleave(torch.arange(len(ends) - 1), ends.diff()), index] = value
        first = torch.cat([first, torch.relu(whole @ w[f"{side}.features"] + w[f"{side}.features.bias"])], 1)
    return first @ w["user.last" if net.features == (0, 0) else f"{side}.last"]


@pytest.mark.parametrize("side", ["user", "item"])
@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_convolution_is_the_dense_one(options, side):
    net, w, graph = made(**options)
    torch.testing.assert_close(encoded(net, w, side, graph), twin(net, w, side, graph), rtol=1e-4, atol=1e-5)


def test_features_may_be_sparse_or_not():
    net, w, graph = made(features=(4, 5))
    pattern, value = graph.features["user"]
    whole = torch.zeros(pattern.shape)
    index, ends, _ = pattern.by_row
    whole[torch.repeat_interleave(ends.diff()), index] = value
    sparse = encoded(net, w, "user", graph)
    graph.features["user"] = whole
    torch.testing.assert_close(encoded(net, w, "user", graph), sparse)


@pytest.mark.parametrize("side", ["user", "item"])
def test_hidden_ratings_are_as_if_they_were_not_there(side):
    net, w, graph = made(symmetric=True)
    visible = np.random.default_rng(2).random(graph.user.size) < 0.6
    rest = [getattr(graph, name)[visible] for name in ("user", "item", "level")]
    without = Graph(*rest, USERS, ITEMS, LEVELS)
    torch.testing.assert_close(encoded(net, w, side, graph, visible), encoded(net, w, side, without))


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_odds_are_the_bilinear_form(options):
    net, w, graph = made(**options)
    user, item = torch.randn(USERS, 5), torch.randn(ITEMS, 5)
    odds = net.odds(w, Pattern(graph.user, graph.item, (USERS, ITEMS)), user, item)
    for n in range(0, graph.user.size, 5):
        u, v = user[graph.user[n]], item[graph.item[n]]
        right = sum(w["levels"][b] * (u @ w[f"{b}.decoder"] @ v) for b in range(net.bases))
        torch.testing.assert_close(odds[n], right + w["levels.bias"] if net.biased else right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_gradient_is_the_slope(options):
    """Along random directions, by central differences; ReLU makes corners, so steps are small and the bound 2 %."""
    net, _, graph = made(**options)
    pairs = Pattern(graph.user, graph.item, (USERS, ITEMS))
    layout = Layout(net.parameters())

    def loss(flat):
        views = layout.views(flat)
        vectors = [encoded(net, views, side, graph) for side in ("user", "item")]
        return torch.nn.functional.cross_entropy(net.odds(views, pairs, *vectors), torch.from_numpy(graph.level))

    flat = torch.from_numpy(np.random.default_rng(1).normal(0, 0.5, layout.size).astype(np.float32)).requires_grad_()
    loss(flat).backward()
    rng = np.random.default_rng(5)
    for _ in range(5):
        way = torch.from_numpy(rng.normal(size=layout.size).astype(np.float32))
        step = 1e-3 / math.sqrt(layout.size)
        with torch.no_grad():
            slope = (loss(flat + step * way).double() - loss(flat - step * way).double()) / (2 * step)
        assert float(slope) == pytest.approx(float(flat.grad @ way), rel=0.02, abs=0.05)


def test_renumbering_users_renumbers_their_vectors():
    net, w, graph = made()
    new = np.random.default_rng(4).permutation(USERS)
    order = np.lexsort((graph.item, new[graph.user]))
    other = Graph(new[graph.user][order], graph.item[order], graph.level[order], USERS, ITEMS, LEVELS)
    moved = dict(w)
    moved["item.table"] = w["item.table"].view(USERS, -1)[np.argsort(new)].view_as(w["item.table"])
    torch.testing.assert_close(encoded(net, moved, "user", other)[new], encoded(net, w, "user", graph))
    torch.testing.assert_close(encoded(net, moved, "item", other), encoded(net, w, "item", graph))


def test_node_dropout_takes_whole_neighbours_and_keeps_the_mean():
    net, w, graph = made(node_dropout=0.5)
    plain = dataclasses.replace(net, node_dropout=0.0)
    w["user.table"].abs_()  # so that ReLU is no corner, and the mean goes through
    truth = encoded(plain, w, "user", graph)
    drawn = torch.stack([encoded(net, w, "user", graph, noise=Noise(seed)) for seed in range(4000)])
    error = drawn.std(0) / math.sqrt(len(drawn))
    assert ((drawn.mean(0) - truth).abs() <= 4.5 * error + 1e-6).all()
    # A user with one rating is wholly there, doubled, or wholly gone.
    count = np.bincount(graph.user, minlength=USERS)
    one = int(np.flatnonzero(count == count[count > 0].min())[0])
    if count[one] == 1:
        share = (drawn[:, one].abs().sum(1) > 0).float().mean()
        assert abs(float(share) - 0.5) < 0.05


def test_cold_nodes_lose_all_their_ratings():
    net, w, graph = made(cold=0.25)
    w["user.table"].abs_()  # so that ReLU leaves nobody at 0
    truth = encoded(dataclasses.replace(net, cold=0.0), w, "user", graph)
    drawn = torch.stack([encoded(net, w, "user", graph, noise=Noise(seed)) for seed in range(1500)])
    rated = np.unique(graph.user)
    gone = (drawn[:, rated] == 0).all(2)
    assert float(gone.float().mean()) == pytest.approx(0.25, abs=0.02)
    torch.testing.assert_close(drawn[:, rated][~gone], truth[rated].expand(len(drawn), -1, -1)[~gone])


def test_dropout_takes_the_stated_share():
    net, w, _ = made(dropout=0.7)
    first = torch.ones(4000, w["user.last"].shape[0])
    w = {**w, "user.last": torch.eye(first.shape[1])}
    out = net.finish(w, "user", first, None, Noise(0))
    assert float((out == 0).float().mean()) == pytest.approx(0.7, abs=0.01)
    assert float(out.mean()) == pytest.approx(1.0, abs=0.03)
    assert torch.equal(net.finish(w, "user", first, None, None), first)


def test_without_features_both_sides_share_the_last_layer():
    shapes = made()[0].shapes()
    assert "user.last" in shapes
    assert "item.last" not in shapes
    assert "item.last" in made(features=(2, 3))[0].shapes()


def test_who_is_cold_is_so_in_every_layer():
    """Of the light encoder: such a node gets its layers' biases only, whatever the layer."""
    from corank.nn.light import Light

    _, _, graph = made()
    net = Light(users=graph.users, items=graph.items, levels=graph.levels, dim=4, layers=2, cold=0.4)
    layout = Layout(net.parameters())
    w = layout.views(torch.from_numpy(layout.initial_weights(np.random.default_rng(0))))
    for layer in range(2):
        w[f"{layer}.out.bias"].fill_(layer + 1.0)
    cold = []
    for seed in range(300):
        states = net.states(w, graph, None, Noise(seed))[1:]
        cold.append(torch.stack([(state["user"] == layer + 1).all(1) for layer, state in enumerate(states)]))
    rated = np.unique(graph.user)
    gone = torch.stack(cold)[:, :, rated]
    assert torch.equal(gone[:, 0], gone[:, 1])
    assert float(gone.float().mean()) == pytest.approx(0.4, abs=0.03)
