"""GRU4Rec beyond the contract: the network is torch's GRU, packing, causality, learning, resuming."""

from __future__ import annotations

import numpy as np
import pytest

import sequence_checks as check
from corank.models.gru4rec import GRU4Rec

torch = pytest.importorskip("torch")

SMALL = {"dim": 8, "max_len": 12, "epochs": 3, "batch_size": 16}


@pytest.fixture(scope="module")
def data():
    return check.cycles()


@pytest.fixture(scope="module", params=[{}, {"blocks": 2, "tied": False}], ids=["default", "two layers, untied"])
def model(request, data):
    return GRU4Rec(**SMALL, **request.param).fit(data)


def twin(model, items):
    """The same states by torch.nn.GRU."""
    w = model._views()[1]
    gru = torch.nn.GRU(model.dim, model.dim, model.blocks, batch_first=True)
    with torch.no_grad():
        for b in range(model.blocks):
            for mine, theirs in (("in", "ih"), ("state", "hh")):
                getattr(gru, f"weight_{theirs}_l{b}").copy_(w[f"{b}.{mine}"])
                getattr(gru, f"bias_{theirs}_l{b}").copy_(w[f"{b}.{mine}.bias"])
        table = w["item" if model.tied else "input"]
        return gru(table[torch.from_numpy(items)][None] * model.dim**0.5)[0][0].numpy()


def test_packed_equals_alone_equals_torch(model):
    check.check_packed_equals_alone(model, twin)


def test_gradients_are_those_of_torch(data):
    """One step of training without dropout against autograd through torch.nn.GRU, sequence by sequence."""
    from corank import nn

    model = GRU4Rec(**{**SMALL, "dropout": 0.0, "epochs": 1, "batch_size": 1000, "blocks": 2}).fit(data)
    rows = data.sequences()
    users = np.flatnonzero(np.diff(rows.indptr) > 1)
    stop, length = rows.indptr[users + 1], np.minimum(np.diff(rows.indptr)[users] - 1, model.max_len)
    args = users, stop - 1 - length, length, rows.index.astype(np.int64), data.csr()
    (part,) = model._examples(np.random.default_rng(0), *args)
    net, w = model._views()
    mine = {name: view.clone().requires_grad_() for name, view in w.items()}
    model._loss(net, mine, part).backward()
    plain = {name: view.clone().requires_grad_() for name, view in w.items()}
    total = 0.0
    for end, n in zip(stop, length, strict=True):
        items = torch.from_numpy(rows.index[end - 1 - n : end].astype(np.int64))
        x = plain["item"][items[:-1]] * model.dim**0.5
        for b in range(2):
            h, out = torch.zeros(model.dim), []
            for step in x:
                gi = plain[f"{b}.in"] @ step + plain[f"{b}.in.bias"]
                gh = plain[f"{b}.state"] @ h + plain[f"{b}.state.bias"]
                r, z = torch.sigmoid(gi[:8] + gh[:8]), torch.sigmoid(gi[8:16] + gh[8:16])
                h = (1 - z) * torch.tanh(gi[16:] + r * gh[16:]) + z * h
                out.append(h)
            x = torch.stack(out)
        total = total + torch.nn.functional.cross_entropy(x @ plain["item"].t(), items[1:], reduction="sum")
    (total / int(length.sum())).backward()
    assert set(mine) == set(nn.Layout(net.parameters()).parameters)
    for name, leaf in mine.items():
        torch.testing.assert_close(leaf.grad, plain[name].grad, rtol=1e-3, atol=1e-6, msg=name)


def test_scores_are_those_of_the_last_state(model):
    check.check_scores_are_those_of_the_last_state(model, twin)


def test_the_future_does_not_leak(model):
    check.check_the_future_does_not_leak(model)


@pytest.mark.parametrize(("loss", "least"), [("softmax", 0.95), ("bce", 0.95), ("bpr_max", 0.95), ("top1", 0.9)])
def test_overfits_eight_sequences(loss, least):
    """(The gradient of top1 vanishes at large differences of scores.)"""
    assert check.share_of_learned_steps(lambda **o: GRU4Rec(**{**o, "epochs": 300}, loss=loss)) > least


def test_beats_popularity_on_a_markov_chain():
    check.check_beats_popularity_on_a_markov_chain(GRU4Rec(dim=32, max_len=15, epochs=15, batch_size=64, lr=0.003))


@pytest.mark.parametrize("options", [{}, {"loss": "bpr_max", "negatives": 8, "sse_item": 0.1, "window": 0.5}])
def test_resumed_training_ends_with_the_same_bits(data, tmp_path, options):
    make = lambda **more: GRU4Rec(**{**SMALL, **options, **more})  # noqa: E731
    check.check_resumed_training_ends_with_the_same_bits(make, data, tmp_path)


def test_options_change_what_is_learned(data):
    make = lambda **more: GRU4Rec(**{**SMALL, **more})  # noqa: E731
    others = [{"sse_item": 0.5}, {"sse_target": 0.5}, {"window": 0.5}, {"dropout": 0.0}, {"loss": "top1"}]
    check.check_options_change_what_is_learned(make, data, others)
    check.check_bfloat16_learns_about_the_same(make, data)
    assert make(tied=False).fit(data).weights_.size == make().fit(data).weights_.size + 20 * 8
