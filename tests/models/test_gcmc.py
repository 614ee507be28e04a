"""GC-MC beyond the contract: the formula by a plain twin, unseen and cold-start users, resuming, real data."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import corank as cr
from corank.data import CSR
from corank.models._node_features import feature_rows
from corank.models._rating_graph import rating_levels
from corank.models.gcmc import GCMC
from graphs import tribes

torch = pytest.importorskip("torch")

SMALL = {"dim": 6, "hidden": 15, "feature_dim": 5, "epochs": 3, "capacity": 5, "batches": 2}
SMALL |= {"dropout": 0.5, "node_dropout": 0.3, "shrink": 1.0, "squared": 0.9, "weight_decay": 0.1}
USERS, ITEMS = 30, 20


@pytest.fixture(scope="module")
def data():
    return tribes(USERS, ITEMS, cold=4)


@pytest.fixture(scope="module", params=["stack", "sum"])
def model(request, data):
    return GCMC(**SMALL, accumulate=request.param, node_bias=True).fit(data)


def views(model):
    return model._encoder(), model._arrays()


def bits(graph, capacity, seed=0, theta=None):
    return feature_rows(graph, "dna-2", alpha=0.0, capacity=capacity, error=0.1, theta=theta, walk_dim=1, seed=seed)


# ---- the formula -------------------------------------------------------------------------------------------------


def test_predictions_are_expected_ratings(model):
    _, w = views(model)
    users, items = np.array([3, 7, 29], np.int32), np.array([0, 11, 19], np.int32)
    for u, i, found in zip(users, items, model._predict(users, items), strict=True):
        left, right = model.user_factors_[u], model.item_factors_[i]
        logits = w["decoder.bias"] + left @ w["decoder.user"] + right @ w["decoder.item"]
        logits += sum(w["decoder.mix"][b] * (left @ w[f"decoder.{b}"] @ right) for b in range(model.bases))
        odds = np.exp(logits - logits.max())
        assert found == pytest.approx(float(odds @ model.levels_ / odds.sum()), rel=1e-5)
        assert model._score(np.array([u], np.int32))[0, i] == pytest.approx(found, rel=1e-5)


def test_users_are_made_of_their_ratings(data, model):
    """The first layer of one user, written out."""
    net, w = views(model)
    user = 4
    mine = data.take(data.user == user)
    levels = model.levels_.tolist()
    table = w["user.table"].reshape(ITEMS, len(levels), net.width)
    first = np.zeros((len(levels), net.width))
    for item, value in zip(mine.item, mine.value, strict=True):
        first[levels.index(value)] += table[item, levels.index(value)] / (len(mine) + model.shrink)
    first = np.maximum(first.ravel() if net.stacked else first.sum(0), 0)
    rest = bits(data.user_graph, model.capacity).take(np.array([user]))
    share = np.bincount(rest.index, rest.value, rest.columns) / rest.value.sum()
    first = np.concatenate([first, np.maximum(share @ w["user.features"] + w["user.features.bias"], 0)])
    np.testing.assert_allclose(first @ w["user.output"], model.user_factors_[user], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("normalize", ["left", "symmetric"])
@pytest.mark.parametrize("accumulate", ["stack", "sum"])
@pytest.mark.parametrize("sharing", ["own", "ordinal", "basis"])
def test_a_history_is_encoded_as_fit_does(data, accumulate, sharing, normalize):
    """Without features, a known user's own ratings as a history give that user's scores."""
    plain = GCMC(**SMALL, features="none", accumulate=accumulate, sharing=sharing, normalize=normalize).fit(data)
    known = np.unique(data.user)
    found = plain._score_histories(data.sequences().take(known))
    np.testing.assert_allclose(found, plain._score(known.astype(np.int32)), rtol=1e-4, atol=1e-4)


def test_a_history_tells_the_rating(data):
    model = GCMC(**{**SMALL, "epochs": 30}, features="none").fit(data)
    likes_even, likes_odd = model.recommend(histories=[{0: 5.0, 1: 1.0, 2: 5.0}, {0: 1.0, 1: 5.0, 3: 5.0}], k=5).items
    assert (likes_even % 2 == 0).all()
    assert (likes_odd % 2 == 1).all()


# ---- graphs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("features", ["g", "g2", "dna-1", "dna-2"])
def test_cold_users_are_told_apart_by_their_friends(data, features):
    options = {**SMALL, "epochs": 40, "weight_decay": 0.01, "capacity": 30, "feature_dim": 16, "cold": 0.2}
    model = GCMC(**options, features=features).fit(data)
    cold = np.arange(USERS - 4, USERS)
    assert not np.isin(cold, data.user).any()
    right = (np.arange(ITEMS)[None, :] % 2) == (cold % 2)[:, None]
    scores = model._score(cold.astype(np.int32))
    assert (np.where(right, scores, np.inf).min(1) > np.where(right, -np.inf, scores).max(1)).all()


def test_without_a_graph_cold_users_get_one_answer(data):
    scores = GCMC(**SMALL, features="none").fit(data)._score(np.arange(USERS - 4, USERS, dtype=np.int32))
    np.testing.assert_allclose(scores, np.broadcast_to(scores[0], scores.shape), rtol=1e-5)


def test_dna_has_the_bits_of_the_dissertation(data):
    for capacity, columns in ((10, 96), (100, 960), (79, 760)):
        assert bits(data.user_graph, capacity).columns == columns


def test_auto_is_dna_where_there_is_a_graph_and_nothing_where_there_is_none(data):
    assert GCMC(**SMALL).fit(data).columns_ == [48, ITEMS]
    bare = dataclasses.replace(data, user_graph=None)
    assert GCMC(**SMALL).fit(bare).columns_ == [0, 0]


def test_features_without_a_graph_are_refused(data):
    with pytest.raises(cr.CorankError, match="neither a user graph nor an item graph"):
        GCMC(features="g").fit(dataclasses.replace(data, user_graph=None))


def test_sparse_and_whole_features_learn_the_same(data, monkeypatch):
    import corank.models._node_features as module

    found = []
    for share in (0.0, 2.0):
        monkeypatch.setattr(module, "DENSE", share)
        found.append(GCMC(**SMALL).fit(data)._score(np.arange(USERS, dtype=np.int32)))
    np.testing.assert_allclose(*found, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kind", ["node2vec", "deepwalk"])
def test_walks_as_features_have_the_width_that_is_asked_for(data, kind):
    pytest.importorskip("gensim")
    for options, width in (({}, 128), ({"walk_dim": 24}, 24)):
        model = GCMC(**SMALL, features=kind, **options).fit(data)
        assert model.columns_ == [width, ITEMS]
        assert np.isfinite(model._score(np.arange(USERS, dtype=np.int32))).all()


def test_walks_are_those_of_the_graph_module(data):
    pytest.importorskip("gensim")
    from corank.graph import symmetric
    from corank.graph.node2vec import node2vec

    found = feature_rows(
        data.user_graph, "node2vec", alpha=0, capacity=1, error=0.1, theta=None, walk_dim=7, seed=3
    ).scipy()
    np.testing.assert_array_equal(found.toarray(), node2vec(symmetric(data.user_graph), 7, seed=3))


def test_theta_limits_the_filters(data):
    free, limited = bits(data.user_graph, 10), bits(data.user_graph, 10, theta=3)
    assert limited.index.size < free.index.size
    one, other = (GCMC(**SMALL, theta=theta).fit(data) for theta in (None, 3.0))
    assert np.abs(one.user_factors_ - other.user_factors_).max() > 1e-4
    with pytest.raises(cr.CorankError, match="theta=3\\) with features='g': theta limits"):
        GCMC(**SMALL, theta=3.0, features="g").fit(data)


# ---- learning ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hide", [True, False])
def test_a_step_does_not_see_what_it_predicts(data, monkeypatch, hide):
    from corank.models.gcmc import GCMCEncoder
    from corank.nn.rating_graph import BilinearDecoder

    encode, logits = GCMCEncoder.encode, BilinearDecoder.logits
    seen, asked = [], []

    def spy_encode(self, w, graph, visible=None, noise=None):
        if noise is not None:
            seen.append(np.ones(graph.user.size, bool) if visible is None else visible)
        return encode(self, w, graph, visible, noise)

    def spy_logits(self, w, pairs, user, item):
        asked.append(pairs)
        return logits(self, w, pairs, user, item)

    monkeypatch.setattr(GCMCEncoder, "encode", spy_encode)
    monkeypatch.setattr(BilinearDecoder, "logits", spy_logits)
    GCMC(**{**SMALL, "batches": 3, "epochs": 1}, hide=hide).fit(data)
    order = np.lexsort((data.item, data.user))
    if not hide:
        assert all(visible.all() for visible in seen)
        return
    assert (sum((~visible).astype(int) for visible in seen) == 1).all()  # each rating is predicted once per epoch
    for visible, pairs in zip(seen, asked, strict=True):
        np.testing.assert_array_equal(pairs.by_row[0].numpy(), data.item[order][~visible])


@pytest.mark.parametrize("options", [{}, {"average": 0.9}], ids=["plain", "average"])
def test_resumed_fit_ends_with_the_same_bits(data, tmp_path, options):
    def make():
        return GCMC(**{**SMALL, "epochs": 6}, **options)

    def die(entry):
        if entry["epoch"] == 3:
            raise KeyboardInterrupt

    file = tmp_path / "state"
    whole = make().fit(data)
    with pytest.raises(KeyboardInterrupt):
        make().fit(data, checkpoint=file, on_epoch=die)
    assert file.exists()
    again = make().fit(data, checkpoint=file)
    assert len(again.history_) == 6
    for name in ("weights_", "user_factors_", "item_factors_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(whole, name), err_msg=name)


def test_stopping_keeps_the_best_of_validation(data):
    rng = np.random.default_rng(0)
    part = rng.random(len(data)) < 0.3
    train, valid = data.take(~part), data.take(part)
    model = GCMC(**{**SMALL, "epochs": 60, "lr": 0.1, "patience": 3}).fit(train, valid=valid)
    errors = [entry["rmse"] for entry in model.history_]
    best = int(np.argmin(errors))
    assert len(errors) == best + 4 or len(errors) == 60
    off = model._predict(valid.user, valid.item) - valid.value
    assert np.sqrt(np.square(off).mean()) == pytest.approx(errors[best], rel=1e-6)


def test_averaged_weights_are_a_running_mean(data):
    """One step per epoch: the mean is that of the weights after each step, by the stated rule."""
    options = {**SMALL, "batches": 1, "epochs": 4}
    walked = [GCMC(**{**options, "epochs": n}).fit(data).weights_ for n in (1, 2, 3, 4)]
    mean = GCMC(**options).fit(data)._layout().initial_weights(np.random.default_rng(0))
    model = GCMC(**options, average=0.2, level_bias=True).fit(data)
    at = model._layout().offset["decoder.bias"]
    count = np.bincount(model._level(data.value))
    mean[at : at + count.size] = np.log(count / count.sum())
    for step, weights in enumerate(walked, 1):
        mean += (1 - min(0.2, step / (step + 9))) * (weights - mean)
    np.testing.assert_allclose(model.weights_, mean, rtol=1e-4, atol=1e-5)


def test_renumbering_changes_nothing_but_numbers(data):
    """Other ids, in another order: another start, so compared where learning forgets it."""
    back = cr.from_arrays(user=-data.users.ids[data.user], item=data.item, value=data.value)
    options = {**SMALL, "features": "none", "epochs": 60}
    one, other = GCMC(**options).fit(data), GCMC(**options).fit(back)
    users = np.unique(data.user)
    found = [
        m.predict(np.repeat(ids, ITEMS), np.tile(np.arange(ITEMS), users.size))
        for m, ids in ((one, users), (other, -users))
    ]
    assert np.corrcoef(*found)[0, 1] > 0.97


# ---- levels ------------------------------------------------------------------------------------------------------


def test_levels_are_the_values_or_groups_of_them():
    assert rating_levels(np.array([3.0, 1, 3, 5]), 10).tolist() == [1, 3, 5]
    many = np.arange(100, dtype=np.float32)
    assert rating_levels(many, 4).tolist() == [12.0, 37.0, 62.0, 87.0]
    assert rating_levels(np.array([1.0, 1, 1, 1, 1, 1, 2, 3]), 2).size == 2


def test_a_value_goes_to_the_nearest_level():
    model = GCMC()
    model.levels_ = np.array([1, 3, 10], np.float32)
    assert model._level(np.array([-5.0, 1.9, 2.1, 6.4, 6.6, 99])).tolist() == [0, 0, 1, 1, 2, 2]


def test_many_values_are_learned_too(data):
    rng = np.random.default_rng(0)
    fine = dataclasses.replace(data, value=data.value + rng.random(len(data)).astype(np.float32) / 10)
    model = GCMC(**{**SMALL, "epochs": 40, "levels": 8}).fit(fine)
    assert model.levels_.size <= 8
    off = model._predict(fine.user, fine.item) - fine.value
    assert np.sqrt(np.square(off).mean()) < 0.8 * fine.value.std()


def test_divergence_is_a_sentence(data):
    with pytest.raises(cr.CorankError, match="lower lr") as error:
        GCMC(**{**SMALL, "lr": 10.0, "epochs": 200, "squared": 0.0, "weight_decay": 100.0}).fit(data)
    assert "\n" not in str(error.value)


# ---- real data ---------------------------------------------------------------------------------------------------


def test_flixster_is_learned(shared_data):
    pytest.importorskip("h5py")
    split = cr.datasets.load_split("flixster", root=shared_data)
    model = GCMC(epochs=3, batches=4, dropout=0.5, node_dropout=0.3, features="g", hidden=50, dim=32).fit(split.train)
    off = model._predict(split.test.user, split.test.item) - split.test.value
    assert np.sqrt(np.square(off).mean()) < 0.96 * split.test.value.std()


def test_csr_of_a_history_may_be_empty(model):
    none = CSR(np.zeros(3, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), ITEMS)
    assert np.isfinite(model._score_histories(none)).all()
