"""Caser beyond the contract: the state is that of the paper's formulas, packing, causality, learning, users."""

from __future__ import annotations

import numpy as np
import pytest

import corank as cr
import sequence_checks as check
from corank.models.caser import Caser

torch = pytest.importorskip("torch")

SMALL = {"dim": 8, "max_len": 12, "epochs": 3, "batch_size": 16, "horizontal": 3, "vertical": 2}
FORMS = [{}, {"order": 3, "horizontal": 0}, {"order": 1, "vertical": 0}]


def make(**more):
    return Caser(**{**SMALL, **more})


@pytest.fixture(scope="module")
def data():
    return check.cycles()


@pytest.fixture(scope="module", params=FORMS, ids=["default", "vertical", "horizontal"])
def model(request, data):
    return make(**request.param, lr=0.01).fit(data)


def twin(model, items, user=None):
    """Section 3 of the paper, one window, one filter and one place at a time; [z; p_u] of each position."""
    w = {name: view.numpy().astype(np.float64) for name, view in model._views()[1].items()}
    L, d = model.order, model.dim
    vector = w["user"].mean(axis=0) if user is None else w["user"][user]
    out = []
    for t in range(len(items)):
        image = np.zeros((L, d))
        for row in range(L):
            if t - L + 1 + row >= 0:
                image[row] = w["input"][items[t - L + 1 + row]]
        found = []
        for k in range(model.vertical):
            found += [w["columns"][k] @ image[:, column] + w["columns.bias"][k] for column in range(d)]
        for h in range(1, L + 1):
            for k in range(model.horizontal):
                filter_ = w[f"rows.{h}"][k].reshape(h, d)
                places = [
                    max(0.0, (image[i : i + h] * filter_).sum() + w[f"rows.{h}.bias"][k]) for i in range(L - h + 1)
                ]
                found.append(max(places))
        z = np.maximum(w["join"] @ np.array(found) + w["join.bias"], 0)
        out.append(np.concatenate([z, vector]))
    return np.array(out)


def test_packed_equals_alone_equals_the_formulas(model):
    check.check_packed_equals_alone(model, twin)


def test_scores_are_those_of_the_last_state(model):
    check.check_scores_are_those_of_the_last_state(model, twin)


def test_the_score_of_a_user_is_that_of_the_paper(model):
    """W'_j . [z; p_u] + b'_j, with the vector of the user."""
    table, bias = (model._views()[1][name].numpy() for name in ("item", "item.bias"))
    assert np.abs(bias).max() > 1e-3  # biases start at 0 and are learned
    histories = [check.history(1, 9), check.history(2, 2)]
    scores = model._score_known(np.array([3, 50]), check.csr(histories))
    for user, one, found in zip((3, 50), histories, scores, strict=True):
        state = twin(model, one, user)[-1]
        for j in range(check.ITEMS):
            assert found[j] == pytest.approx(table[j] @ state + bias[j], rel=1e-4, abs=1e-5)


def test_the_future_does_not_leak(data):
    """Nor does anything before the last `order` items matter."""
    for order in (5, 2):
        wide = make(order=order, horizontal=16, lr=0.01).fit(data)  # so many that no state is 0 in all filters
        check.check_the_future_does_not_leak(wide, reach=order, least=1e-6)


@pytest.mark.parametrize("loss", ["softmax", "bce", "bpr_max"])
def test_overfits_eight_sequences(loss):
    assert check.share_of_learned_steps(lambda **options: Caser(**options, loss=loss), first=0) > 0.95


def test_beats_popularity_on_a_markov_chain():
    check.check_beats_popularity_on_a_markov_chain(Caser(dim=32, max_len=15, epochs=8, batch_size=64, lr=0.003))


@pytest.mark.parametrize(
    "options", [{}, {"loss": "bce", "negatives": 3, "sse_user": 0.3, "sse_item": 0.1, "targets": "last"}]
)
def test_resumed_training_ends_with_the_same_bits(data, tmp_path, options):
    check.check_resumed_training_ends_with_the_same_bits(lambda **more: make(**options, **more), data, tmp_path)


def test_options_change_what_is_learned(data):
    others = [{"sse_user": 0.5}, {"sse_item": 0.5}, {"sse_target": 0.5}, {"window": 0.5}, {"dropout": 0.0}]
    others += [{"order": 3}, {"horizontal": 4}, {"vertical": 1}, {"loss": "bce", "negatives": 3}, {"targets": "last"}]
    check.check_options_change_what_is_learned(make, data, others)
    check.check_bfloat16_learns_about_the_same(make, data)


def test_similar_items_do_not_depend_on_biases(data):
    """Two items that are chosen in the same places are similar, however often each of them is."""
    model = make().fit(data)
    before = model.similar_items([4], k=5)
    model._views()[1]["item.bias"][:] = torch.linspace(-5, 5, check.ITEMS)
    np.testing.assert_array_equal(model.similar_items([4], k=5).items, before.items)
    assert model.item_factors_.shape == (20, 16)


def test_some_filter_is_needed(data):
    with pytest.raises(cr.CorankError, match="without filters no item is read"):
        make(horizontal=0, vertical=0).fit(data)
