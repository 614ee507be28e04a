"""STAMP beyond the contract: the state is that of the paper's formulas, packing, causality, learning."""

from __future__ import annotations

import numpy as np
import pytest

import sequence_checks as check
from corank.models.stamp import STAMP

torch = pytest.importorskip("torch")

SMALL = {"dim": 8, "max_len": 12, "epochs": 3, "batch_size": 16}


def make(**more):
    return STAMP(**{**SMALL, **more})


@pytest.fixture(scope="module")
def data():
    return check.cycles()


@pytest.fixture(scope="module", params=[True, False], ids=["released", "paper"])
def model(request, data):
    return make(add_mean=request.param, lr=0.02).fit(data)


def twin(model, items):
    """Equations 3 to 9 of the paper, item by item."""
    w = {name: view.numpy().astype(np.float64) for name, view in model._views()[1].items()}
    out = []
    for t in range(len(items)):
        x = w["item"][items[: t + 1]]
        m_s, m_t = x.mean(axis=0), x[-1]
        m_a = np.zeros(model.dim)
        for one in x:
            inner = w["attention.item"] @ one + w["attention.last"] @ m_t + w["attention.mean"] @ m_s
            m_a += (w["attention.weights"][0] @ (1 / (1 + np.exp(-inner - w["attention.bias"])))) * one
        if model.add_mean:
            m_a += m_s
        h_s = np.tanh(w["session"] @ m_a + w["session.bias"])
        h_t = np.tanh(w["last"] @ m_t + w["last.bias"])
        out.append(h_s * h_t)
    return np.array(out)


def test_packed_equals_alone_equals_the_formulas(model):
    check.check_packed_equals_alone(model, twin)


def test_the_formulas_far_from_zero(data):
    """Small weights would hide what is wrong in the attention."""
    model = make().fit(data)
    for name, view in model._views()[1].items():
        view.mul_(3) if name == "item" else view.mul_(3).add_(0.1)
    check.check_packed_equals_alone(model, twin)
    assert np.abs(twin(model, check.history(0, 9))).max() > 0.05


def test_scores_are_those_of_the_last_state(model):
    check.check_scores_are_those_of_the_last_state(model, twin)


def test_the_future_does_not_leak(model):
    check.check_the_future_does_not_leak(model, least=1e-6)


@pytest.mark.parametrize("loss", ["softmax", "bpr_max"])
def test_overfits_eight_sequences(loss):
    assert check.share_of_learned_steps(lambda **o: STAMP(**{**o, "lr": 0.005}, loss=loss)) > 0.95


def test_beats_popularity_on_a_markov_chain():
    check.check_beats_popularity_on_a_markov_chain(STAMP(dim=32, max_len=15, epochs=15, batch_size=64, lr=0.005))


@pytest.mark.parametrize("options", [{}, {"loss": "sampled_softmax", "negatives": 8, "targets": "last"}])
def test_resumed_training_ends_with_the_same_bits(data, tmp_path, options):
    check.check_resumed_training_ends_with_the_same_bits(lambda **more: make(**options, **more), data, tmp_path)


def test_options_change_what_is_learned(data):
    others = [{"sse_item": 0.5}, {"sse_target": 0.5}, {"window": 0.5}, {"dropout": 0.0}, {"add_mean": False}]
    others += [{"loss": "bce", "negatives": 2}, {"targets": "last"}, {"max_len": 4}]
    check.check_options_change_what_is_learned(make, data, others)
    check.check_bfloat16_learns_about_the_same(make, data)
