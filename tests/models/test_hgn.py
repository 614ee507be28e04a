"""HGN beyond the contract: the state is that of the paper's formulas, gates that learn, packing, causality, users."""

from __future__ import annotations

import numpy as np
import pytest

import sequence_checks as check
from corank.models.hgn import HGN

torch = pytest.importorskip("torch")

SMALL = {"dim": 8, "max_len": 12, "epochs": 3, "batch_size": 16}
GATES = ("feature.item", "feature.user", "feature.bias", "instance.item", "instance.user")


def make(**more):
    return HGN(**{**SMALL, **more})


@pytest.fixture(scope="module")
def data():
    return check.cycles()


@pytest.fixture(scope="module", params=[{}, {"order": 3, "pool": "max"}], ids=["mean", "max"])
def model(request, data):
    return make(**request.param, lr=0.01).fit(data)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def parts(model, items, user=None):
    """(p_u, union, the last items) by the formulas of the paper, for the last position."""
    w = {name: view.numpy().astype(np.float64) for name, view in model._views()[1].items()}
    L = model.order
    p = w["user"].mean(axis=0) if user is None else w["user"][user]
    own = w["input"][items[-L:]]
    gated, gates = [], []
    for place, x in zip(range(L - len(own), L), own, strict=True):  # the last item has the last place
        y = sigmoid(w["feature.item"] @ x + w["feature.user"] @ p + w["feature.bias"]) * x
        gates.append(sigmoid(w["instance.item"][0] @ y + w["instance.user"][place] @ p))
        gated.append(y)
    weighted = [gate * y for gate, y in zip(gates, gated, strict=True)]
    return p, sum(weighted) / sum(gates) if model.pool == "mean" else np.max(weighted, axis=0), own


def twin(model, items, user=None):
    out = []
    for t in range(len(items)):
        p, union, own = parts(model, items[: t + 1], user)
        out.append(p + union + own.sum(axis=0))
    return np.array(out)


def test_packed_equals_alone_equals_the_formulas(model):
    check.check_packed_equals_alone(model, twin)


def test_scores_are_those_of_the_last_state(model):
    check.check_scores_are_those_of_the_last_state(model, twin)


def test_the_score_of_a_user_is_that_of_the_paper(model):
    """p_u . q_j + union . q_j + sum_l x_l . q_j + b_j: q is a table of its own."""
    table, bias = (model._views()[1][name].numpy() for name in ("item", "item.bias"))
    assert np.abs(bias).max() > 1e-3  # biases start at 0 and are learned
    histories = [check.history(1, 9), check.history(2, 2)]
    scores = model._score_known(np.array([3, 50]), check.csr(histories))
    for user, one, found in zip((3, 50), histories, scores, strict=True):
        p, union, own = parts(model, one, user)
        for j in range(check.ITEMS):
            q, b = table[j], bias[j]
            assert found[j] == pytest.approx(p @ q + union @ q + sum(x @ q for x in own) + b, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("pool", ["mean", "max"])
def test_all_gates_learn(data, pool):
    """In the released code the instance gate keeps its initial weights."""
    before, after = make(pool=pool, lr=1e-9).fit(data), make(pool=pool, lr=0.01).fit(data)
    net, w = before._views()
    leaves = {name: view.clone().requires_grad_() for name, view in w.items()}
    batch = check.packed_batch(before, [check.history(seed, 9) for seed in range(60)], np.arange(60))
    net.encode(leaves, batch, None).square().sum().backward()
    for name in GATES:
        assert leaves[name].grad.abs().max() > 1e-7, name
        assert (after._views()[1][name] - w[name]).abs().max() > 1e-3, name


def test_the_future_does_not_leak(data):
    """Nor does anything before the last `order` items matter."""
    for order in (5, 2):
        check.check_the_future_does_not_leak(make(order=order).fit(data), reach=order, least=1e-6)


@pytest.mark.parametrize(("loss", "pool"), [("softmax", "mean"), ("bpr", "mean"), ("softmax", "max")])
def test_overfits_eight_sequences(loss, pool):
    assert check.share_of_learned_steps(lambda **options: HGN(**options, loss=loss, pool=pool), first=0) > 0.95


def test_beats_popularity_on_a_markov_chain():
    check.check_beats_popularity_on_a_markov_chain(HGN(dim=32, max_len=15, epochs=15, batch_size=64, lr=0.005))


@pytest.mark.parametrize("options", [{}, {"loss": "bpr", "negatives": 3, "sse_user": 0.3, "targets": "last"}])
def test_resumed_training_ends_with_the_same_bits(data, tmp_path, options):
    check.check_resumed_training_ends_with_the_same_bits(lambda **more: make(**options, **more), data, tmp_path)


def test_options_change_what_is_learned(data):
    others = [{"sse_user": 0.5}, {"sse_item": 0.5}, {"sse_target": 0.5}, {"window": 0.5}, {"dropout": 0.0}]
    others += [{"order": 3}, {"pool": "max"}, {"loss": "bpr", "negatives": 3}, {"targets": "last"}]
    check.check_options_change_what_is_learned(make, data, others)
    check.check_bfloat16_learns_about_the_same(make, data)
