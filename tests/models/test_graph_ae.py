"""Graph AE beyond the contract: the formula by a plain twin, unseen and cold-start users, depth, real data."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import corank as cr
from corank.data import CSR
from corank.models._node_features import feature_rows
from corank.models.graph_ae import GraphAE, LightEncoder
from graphs import tribes

torch = pytest.importorskip("torch")

SMALL = {"dim": 6, "feature_dim": 5, "epochs": 3, "capacity": 5, "batches": 2, "shrink": 1.0}
SMALL |= {"dropout": 0.3, "node_dropout": 0.3}
USERS, ITEMS, COLD = 30, 20, 4


@pytest.fixture(scope="module")
def data():
    return tribes(USERS, ITEMS, cold=COLD)


@pytest.fixture(scope="module", params=["left", "symmetric"])
def model(request, data):
    return GraphAE(**SMALL, layers=3, normalize=request.param).fit(data)


def twin(model, data):
    """The vectors of all users and items, with dense matrices and loops over levels."""
    w = {name: array.astype(float) for name, array in model._arrays().items()}
    there = np.zeros((len(model.levels_), USERS, ITEMS))
    there[model._level(data.value), data.user, data.item] = 1
    degree = [there.sum((0, 2))[:, None] + model.shrink, there.sum((0, 1))[None, :] + model.shrink]
    h = [w["user.embedding"] + w["side.embedding"][0], w["item.embedding"] + w["side.embedding"][1]]
    total = [0, 0]
    for layer in range(model.layers):
        matrices = w[f"{layer}.messages"].reshape(model.dim, len(model.levels_), model.dim)
        new = []
        for side in (0, 1):
            scale = 1 / (np.sqrt(degree[0] * degree[1]) if model.normalize == "symmetric" else degree[side])
            edges = there * scale
            first = sum((a if side == 0 else a.T) @ h[1 - side] @ matrices[:, r] for r, a in enumerate(edges))
            new.append(np.tanh(first) @ w[f"{layer}.output"] + w[f"{layer}.output.bias"])
            total[side] = total[side] + new[side] / (layer + 1)
        h = new
    filters = {"capacity": model.capacity, "error": model.error, "theta": None}
    rows = feature_rows(data.user_graph, "dna-2", alpha=0.0, walk_dim=1, seed=0, **filters)
    bits = rows.scipy().toarray()
    bits = bits / bits.sum(1, keepdims=True)
    total[0] = total[0] + np.maximum(bits @ w["user.features"] + w["user.features.bias"], 0) @ w["user.features.output"]
    return *total, w


def test_vectors_and_predictions_equal_a_dense_twin(data, model):
    user, item, w = twin(model, data)
    np.testing.assert_allclose(model.user_factors_, user, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(model.item_factors_, item, rtol=1e-3, atol=1e-4)
    forms = np.stack([user @ w[f"decoder.{b}"] @ item.T for b in range(model.bases)], 2)
    logits = forms @ w["decoder.mix"] + w["decoder.bias"]
    logits += (user @ w["decoder.user"])[:, None] + item @ w["decoder.item"]
    odds = np.exp(logits - logits.max(2, keepdims=True))
    wanted = odds @ model.levels_ / odds.sum(2)
    np.testing.assert_allclose(model._score(np.arange(USERS, dtype=np.int32)), wanted, rtol=1e-3)
    users, items = np.array([3, 7, 29], np.int32), np.array([0, 11, 19], np.int32)
    np.testing.assert_allclose(model._predict(users, items), wanted[users, items], rtol=1e-3)


def test_gradients_are_those_of_numbers(data):
    """The loss of a step against its differences, along a random direction of each parameter."""
    model = GraphAE(**{**SMALL, "dropout": 0.0, "node_dropout": 0.0}, layers=2).fit(data)
    layout = model._layout()
    order = np.lexsort((data.item, data.user))
    value = data.value[order].astype(np.float32)
    graph = model._graph(data.user[order], data.item[order], value, USERS, features=model._features(data))
    loss = model._loss(model._encoder(), graph, value, np.arange(value.size) % 2 == 0, 0)
    flat = torch.from_numpy(model.weights_.copy())
    layout.views(flat)["user.features.bias"][:] = 0.5  # away from the kink of ReLU
    leaves = {name: view.detach().requires_grad_() for name, view in layout.views(flat).items()}
    loss(leaves).backward()
    rng = np.random.default_rng(0)
    for name, leaf in leaves.items():
        direction = torch.from_numpy(rng.normal(size=tuple(leaf.shape)).astype(np.float32))
        direction /= direction.norm()
        with torch.no_grad():
            ends = [float(loss({**leaves, name: leaf + step * direction})) for step in (-1e-2, 1e-2)]
        difference = (ends[1] - ends[0]) / 2e-2
        assert float((leaf.grad * direction).sum()) == pytest.approx(difference, rel=0.05, abs=2e-4), name


@pytest.mark.parametrize("normalize", ["left", "symmetric"])
def test_a_history_is_encoded_as_fit_does(data, normalize):
    """Without features, a known user's own ratings as a history give that user's scores."""
    plain = GraphAE(**SMALL, layers=3, features="none", normalize=normalize).fit(data)
    known = np.unique(data.user)
    found = plain._score_histories(data.sequences().take(known))
    np.testing.assert_allclose(found, plain._score(known.astype(np.int32)), rtol=1e-4, atol=1e-4)


def test_a_history_may_be_empty(model):
    none = CSR(np.zeros(3, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), ITEMS)
    assert np.isfinite(model._score_histories(none)).all()


def test_a_side_without_a_graph_has_no_features(model):
    assert model.columns_ == [48, 0]


@pytest.mark.parametrize("features", ["g", "dna-2"])
def test_cold_users_are_told_apart_by_their_friends(data, features):
    options = {**SMALL, "epochs": 60, "capacity": 30, "feature_dim": 16, "cold": 0.2}
    model = GraphAE(**options, features=features).fit(data)
    cold = np.arange(USERS - COLD, USERS)
    assert not np.isin(cold, data.user).any()
    right = (np.arange(ITEMS)[None, :] % 2) == (cold % 2)[:, None]
    scores = model._score(cold.astype(np.int32))
    assert (np.where(right, scores, np.inf).min(1) > np.where(right, -np.inf, scores).max(1)).all()


def test_without_a_graph_cold_users_get_one_answer(data):
    scores = GraphAE(**SMALL, features="none").fit(data)._score(np.array([0, USERS - 2, USERS - 1], np.int32))
    assert not np.allclose(scores[1], scores[0], rtol=1e-3)
    # Layers of a node without ratings are their biases alone: the id is told to neighbours, of which there are none.
    np.testing.assert_allclose(scores[1], scores[2], rtol=1e-5)


def test_features_without_a_graph_are_refused(data):
    with pytest.raises(cr.CorankError, match=r"GraphAE.*neither a user graph nor an item graph"):
        GraphAE(features="g").fit(dataclasses.replace(data, user_graph=None))


def test_deeper_layers_see_further(data):
    """What one user says reaches a user who shares no item, in two layers and not in one."""
    user, item = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 1, 2, 2])
    change = {}
    for layers in (1, 2, 3):
        found = []
        for first in (1.0, 5.0):
            chain = cr.from_arrays(user=user, item=item, value=np.array([first, 5.0, 1, 5, 1]))
            model = GraphAE(dim=4, layers=layers, epochs=1, batches=1, lr=1e-9, normalize="left").fit(chain)
            found.append(model.user_factors_)
        change[layers] = np.abs(found[0] - found[1]).max(1) > 1e-6
    assert change[1].tolist() == [True, False, False]
    assert change[2].tolist() == [True, False, False]  # the item that tells of user 0 is met two layers further on
    assert change[3].tolist() == [True, True, False]


def test_a_cold_node_is_cold_in_every_layer(data):
    """It gets the biases of the layers only, whatever the layer."""
    from corank.nn.loop import one_thread
    from corank.nn.noise import Noise
    from corank.nn.parameters import Layout
    from corank.nn.rating_graph import RatingGraph

    level = data.value.astype(int) - 1
    graph = RatingGraph(data.user.copy(), data.item.copy(), level, USERS, ITEMS, 5)
    encoder = LightEncoder(users=USERS, items=ITEMS, levels=5, dim=4, layers=2, cold=0.4)
    layout = Layout(encoder.parameters())
    w = layout.views(torch.from_numpy(layout.initial_weights(np.random.default_rng(0))))
    for layer in range(2):
        w[f"{layer}.output.bias"].fill_(layer + 1.0)
    cold = []
    with one_thread():  # threads of torch wait for each other after each of many small operations
        for seed in range(300):
            states = encoder.states(w, graph, None, Noise(seed))[1:]
            cold.append(torch.stack([(state["user"] == layer + 1).all(1) for layer, state in enumerate(states)]))
    rated = np.unique(graph.user)
    gone = torch.stack(cold)[:, :, rated]
    assert torch.equal(gone[:, 0], gone[:, 1])
    assert float(gone.float().mean()) == pytest.approx(0.4, abs=0.03)


def test_resumed_fit_ends_with_the_same_bits(data, tmp_path):
    def die(entry):
        if entry["epoch"] == 3:
            raise KeyboardInterrupt

    file, make = tmp_path / "state", lambda: GraphAE(**{**SMALL, "epochs": 5})
    whole = make().fit(data)
    with pytest.raises(KeyboardInterrupt):
        make().fit(data, checkpoint=file, on_epoch=die)
    again = make().fit(data, checkpoint=file)
    for name in ("weights_", "user_factors_", "item_factors_", "item_states_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(whole, name), err_msg=name)


def test_flixster_is_learned(shared_data):
    pytest.importorskip("h5py")
    split = cr.datasets.load_split("flixster", root=shared_data)
    model = GraphAE(epochs=4, features="none").fit(split.train)
    off = model._predict(split.test.user, split.test.item) - split.test.value
    assert np.sqrt(np.square(off).mean()) < 0.9 * split.test.value.std()
