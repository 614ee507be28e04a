"""GRU4Rec beyond the contract: the network is torch's GRU, packing, causality, learning, resuming."""

from __future__ import annotations

import numpy as np
import pytest

import corank as cr
from corank.models.gru4rec import GRU4Rec

torch = pytest.importorskip("torch")

SMALL = {"dim": 8, "max_len": 12, "epochs": 3, "batch_size": 16}


@pytest.fixture(scope="module")
def data():
    """Cycles of items with some noise: item i is followed by i + 1 nine times of ten."""
    rng = np.random.default_rng(4)
    rows = []
    for user in range(60):
        item = int(rng.integers(20))
        for time in range(int(rng.integers(1, 25))):
            rows.append((user, item, time))
            item = (item + 1) % 20 if rng.random() < 0.9 else int(rng.integers(20))
    user, item, time = np.array(rows).T
    return cr.from_arrays(user=user, item=item, time=time, duplicates="keep")


@pytest.fixture(scope="module", params=[{}, {"blocks": 2, "tied": False}], ids=["default", "two layers, untied"])
def model(request, data):
    return GRU4Rec(**SMALL, **request.param).fit(data)


def history(seed, length, items=20):
    return np.random.default_rng(seed).integers(0, items, length)


def hidden(model, *histories):
    """Hidden states of all tokens of each history, from one packed batch."""
    from corank.nn.batches import Batch, pack

    length = np.array([len(one) for one in histories])
    packed = pack(np.cumsum(length) - length, length, slack=6)
    net, w = model._views()
    position = torch.from_numpy(model.max_len - length[packed.row] + packed.step)
    batch = Batch(packed, torch.from_numpy(np.concatenate(histories)[packed.at]), position, None)
    with torch.no_grad():
        out, last = net.encode(w, batch, None).numpy(), net.encode_last(w, batch).numpy()
    np.testing.assert_allclose(out[packed.last], last, rtol=1e-5, atol=1e-6)
    return [out[packed.last[r] - length[r] + 1 : packed.last[r] + 1] for r in range(length.size)]


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
    histories = [history(seed, length) for seed, length in enumerate((12, 1, 5, 11, 3, 7, 7))]
    together = hidden(model, *histories)
    for one, found in zip(histories, together, strict=True):
        np.testing.assert_allclose(found, hidden(model, one)[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found, twin(model, one), rtol=1e-4, atol=1e-5)


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
    histories = [history(seed, length) for seed, length in enumerate((12, 1, 5, 30))]
    rows = cr.CSR(np.r_[0, np.cumsum([12, 1, 5, 30])], np.concatenate(histories).astype(np.int32), np.ones(48), 20)
    for one, found in zip(histories, model._score_histories(rows), strict=True):
        state = twin(model, one[-model.max_len :])[-1]
        np.testing.assert_allclose(found, model.item_factors_ @ state, rtol=1e-4, atol=1e-4)


def test_the_future_does_not_leak(model):
    one = history(3, 10)
    before = hidden(model, one, history(4, 8))[0]
    for t in (1, 5, 9):
        other = one.copy()
        other[t] = (other[t] + 1) % 20
        after = hidden(model, other, history(4, 8))[0]
        np.testing.assert_allclose(after[:t], before[:t], rtol=1e-5, atol=1e-6)
        assert (np.abs(after[t:] - before[t:]).max(axis=1) > 1e-5).all()


@pytest.mark.parametrize(("loss", "least"), [("softmax", 0.95), ("bce", 0.95), ("bpr_max", 0.95), ("top1", 0.9)])
def test_overfits_eight_sequences(loss, least):
    """Random sequences: there is nothing to learn but themselves. The next item beats all that are not in the sequence.

    (Items of the sequence are no negatives of bce; the gradient of top1 vanishes at large differences of scores.)
    """
    rng = np.random.default_rng(5)
    sequences = [rng.permutation(40)[:9] for _ in range(8)]
    data = cr.from_arrays(user=np.repeat(np.arange(8), 9), item=np.concatenate(sequences), time=np.tile(range(9), 8))
    options = {"dim": 32, "max_len": 10, "dropout": 0.0, "lr": 0.003, "epochs": 300, "batch_size": 8, "negatives": 32}
    model = GRU4Rec(**options, loss=loss).fit(data)
    codes = [data.items.codes(one) for one in sequences]
    right = []
    for own, state in zip(codes, hidden(model, *[own[:8] for own in codes]), strict=True):
        scores = state @ model.item_factors_.T
        others = np.setdiff1d(np.arange(len(data.items)), own)
        right += (scores[range(1, 8), own[2:]] > scores[1:, others].max(axis=1)).tolist()
    assert np.mean(right) > least


def test_beats_popularity_on_a_markov_chain():
    """The next item depends on the last one, and all items are equally popular."""
    split = cr.leave_last_out(cr.synthetic.markov(users=400, items=60, length=15, seed=1).data)
    value = {}
    for model in (GRU4Rec(dim=32, max_len=15, epochs=15, batch_size=64, lr=0.003), cr.Popularity()):
        value[model.name()] = cr.evaluate(model.fit(split.train), split, ["ndcg@10"], bootstrap=0)["ndcg@10"]
    assert value["gru4rec"] > 0.6
    assert value["popularity"] < 0.2


@pytest.mark.parametrize("options", [{}, {"loss": "bpr_max", "negatives": 8, "sse_item": 0.1, "window": 0.5}])
def test_resumed_training_ends_with_the_same_bits(data, tmp_path, options):
    make = lambda: GRU4Rec(**{**SMALL, "epochs": 5}, **options)  # noqa: E731
    whole = make().fit(data)
    file = tmp_path / "part"
    make().fit(data, checkpoint=file, on_epoch=lambda entry: entry["epoch"] < 3)
    again = make().fit(data, checkpoint=file)
    np.testing.assert_array_equal(again.weights_, whole.weights_)
    assert [h["loss"] for h in again.history_] == [h["loss"] for h in whole.history_]


def test_options_change_what_is_learned(data):
    plain = GRU4Rec(**SMALL).fit(data).weights_
    for options in ({"sse_item": 0.5}, {"sse_target": 0.5}, {"window": 0.5}, {"dropout": 0.0}, {"loss": "top1"}):
        assert not np.array_equal(plain, GRU4Rec(**SMALL, **options).fit(data).weights_), options
    half = GRU4Rec(**SMALL, bf16=True).fit(data)
    assert half.weights_.dtype == np.float32
    np.testing.assert_allclose(half.weights_, plain, atol=0.02)
    assert GRU4Rec(**SMALL, tied=False).fit(data).weights_.size == plain.size + 20 * 8
