"""The encoder of GC-MC against a dense twin, by numeric derivatives, under renumbering, and its dropouts."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from corank.models.gcmc import GCMCEncoder  # noqa: E402
from corank.nn.noise import Noise  # noqa: E402
from corank.nn.parameters import Layout  # noqa: E402
from corank.nn.rating_graph import BilinearDecoder, RatingGraph  # noqa: E402
from corank.nn.sparse import Pattern  # noqa: E402

USERS, ITEMS, LEVELS = 9, 6, 3
VARIANTS = [
    {},
    {"stacked": False},
    {"sharing": "ordinal"},
    {"sharing": "basis", "stacked": False},
    {"symmetric": True, "shrink": 2.0},
    {"columns": (4, 5), "bases": 3},
    {"columns": (0, 5)},
]
RULE = ("symmetric", "shrink")  # options of the graph, the others are of the encoder


def ratings(**options):
    """About half of all pairs, but none of user 0 and none of item 1."""
    rng = np.random.default_rng(0)
    user, item = np.nonzero(rng.random((USERS, ITEMS)) < 0.5)
    keep = (user != 0) & (item != 1)
    user, item = user[keep], item[keep]
    return RatingGraph(user, item, rng.integers(0, LEVELS, user.size), USERS, ITEMS, LEVELS, **options)


def features(n, columns, seed=3):
    rng = np.random.default_rng(seed)
    row, column = np.nonzero(rng.random((n, columns)) < 0.6)
    return Pattern(row, column, (n, columns)), torch.from_numpy(rng.random(row.size).astype(np.float32))


def made(**options):
    rule = {name: options.pop(name) for name in RULE if name in options}
    net = GCMCEncoder(users=USERS, items=ITEMS, levels=LEVELS, hidden=13, dim=5, feature_dim=4, **options)
    layout = Layout(net.parameters())
    flat = torch.from_numpy(np.random.default_rng(1).normal(0, 0.7, layout.size).astype(np.float32))
    sides = zip(("user", "item"), (USERS, ITEMS), net.columns, strict=True)
    return net, layout.views(flat), ratings(features={side: features(n, c) for side, n, c in sides if c}, **rule)


def encoded(net, w, side, graph, visible=None, noise=None):
    """The vectors of one side."""
    return net.encode(w, graph, visible, noise)[("user", "item").index(side)]


def dense(sparse):
    """Features as one matrix."""
    pattern, value = sparse
    whole = torch.zeros(pattern.shape)
    whole[pattern.places()] = value
    return whole


def twin(net, w, side, graph):
    """The same, from one adjacency matrix per level and one-hot inputs."""
    adjacency = torch.zeros(LEVELS, USERS, ITEMS)
    adjacency[graph.level, graph.user, graph.item] = 1
    if side == "item":
        adjacency = adjacency.transpose(1, 2)
    degree, other = adjacency.sum((0, 2)) + graph.shrink, adjacency.sum((0, 1)) + graph.shrink
    scale = 1 / degree.clamp(min=1e-9)[:, None]
    if graph.symmetric:
        scale = (scale / other.clamp(min=1e-9)[None, :]).sqrt()
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
        whole = dense(graph.features[side])
        first = torch.cat([first, torch.relu(whole @ w[f"{side}.features"] + w[f"{side}.features.bias"])], 1)
    return first @ w["output" if net.columns == (0, 0) else f"{side}.output"]


@pytest.mark.parametrize("side", ["user", "item"])
@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_convolution_is_the_dense_one(options, side):
    net, w, graph = made(**options)
    torch.testing.assert_close(encoded(net, w, side, graph), twin(net, w, side, graph), rtol=1e-4, atol=1e-5)


def test_features_may_be_sparse_or_not():
    net, w, graph = made(columns=(4, 5))
    sparse = encoded(net, w, "user", graph)
    graph.features["user"] = dense(graph.features["user"])
    torch.testing.assert_close(encoded(net, w, "user", graph), sparse)


@pytest.mark.parametrize("side", ["user", "item"])
def test_hidden_ratings_are_as_if_they_were_not_there(side):
    net, w, graph = made(symmetric=True)
    visible = np.random.default_rng(2).random(graph.user.size) < 0.6
    rest = [getattr(graph, name)[visible] for name in ("user", "item", "level")]
    without = RatingGraph(*rest, USERS, ITEMS, LEVELS, symmetric=True)
    torch.testing.assert_close(encoded(net, w, side, graph, visible), encoded(net, w, side, without))


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_gradient_equals_differences(options):
    """Along random directions, by central differences; ReLU makes corners, so steps are small and the bound 2 %."""
    net, _, graph = made(**options)
    decoder = BilinearDecoder(dim=5, levels=LEVELS, node_bias=True)
    pairs = Pattern(graph.user, graph.item, (USERS, ITEMS))
    layout = Layout(net.parameters() | decoder.parameters())

    def loss(flat):
        views = layout.views(flat)
        vectors = [encoded(net, views, side, graph) for side in ("user", "item")]
        return torch.nn.functional.cross_entropy(decoder.logits(views, pairs, *vectors), torch.from_numpy(graph.level))

    flat = torch.from_numpy(np.random.default_rng(1).normal(0, 0.5, layout.size).astype(np.float32)).requires_grad_()
    loss(flat).backward()
    rng = np.random.default_rng(5)
    for _ in range(5):
        direction = torch.from_numpy(rng.normal(size=layout.size).astype(np.float32))
        step = 1e-3 / math.sqrt(layout.size)
        with torch.no_grad():
            ends = [loss(flat + sign * step * direction).double() for sign in (1, -1)]
        difference = float(ends[0] - ends[1]) / (2 * step)
        assert difference == pytest.approx(float(flat.grad @ direction), rel=0.02, abs=0.05)


def test_renumbering_users_renumbers_their_vectors():
    net, w, graph = made()
    new = np.random.default_rng(4).permutation(USERS)
    order = np.lexsort((graph.item, new[graph.user]))
    other = RatingGraph(new[graph.user][order], graph.item[order], graph.level[order], USERS, ITEMS, LEVELS)
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
    net, w, graph = made(dropout=0.7)
    first = torch.ones(4000, w["output"].shape[0])
    w = {**w, "output": torch.eye(first.shape[1])}
    out = net.dense(w, "user", graph, first, Noise(0))
    assert float((out == 0).float().mean()) == pytest.approx(0.7, abs=0.01)
    assert float(out.mean()) == pytest.approx(1.0, abs=0.03)
    assert torch.equal(net.dense(w, "user", graph, first), first)


def test_without_features_both_sides_share_the_last_layer():
    assert [name for name in made()[0].parameters() if "output" in name] == ["output"]
    separate = made(columns=(2, 3))[0].parameters()
    assert [name for name in separate if "output" in name] == ["user.output", "item.output"]
