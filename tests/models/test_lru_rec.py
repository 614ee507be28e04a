"""LRURec beyond the contract: equal to a loop with complex numbers, packing, causality, learning, resuming."""

from __future__ import annotations

import math

import numpy as np
import pytest

import corank as cr
from corank.models.lru_rec import LRURec, initial_lambda

torch = pytest.importorskip("torch")
F = torch.nn.functional

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


@pytest.fixture(scope="module", params=[{}, {"blocks": 1, "lr": 0.02}], ids=["default", "one block"])
def model(request, data):
    return LRURec(**{**SMALL, **request.param}).fit(data)


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


def plain(w, items, dim, blocks):
    """The network as the paper has it: a loop over the items with complex numbers, one sequence, no packing."""

    def norm(y, name):
        return F.layer_norm(y, (dim,), w[f"{name}.gain"], w[f"{name}.bias"])

    x = norm(w["item"][items], "norm")
    for b in range(blocks):
        nu, theta, gamma = (torch.exp(row) for row in w[f"{b}.lambda"])
        decay = torch.exp(torch.complex(-nu, theta))
        B = torch.complex(w[f"{b}.B"][0::2], w[f"{b}.B"][1::2])
        offset = torch.complex(w[f"{b}.B.bias"][0::2], w[f"{b}.B.bias"][1::2])
        C = torch.complex(w[f"{b}.C"][:, 0::2], -w[f"{b}.C"][:, 1::2])  # Re(C h) = C_re h_re - C_im h_im
        h, out = torch.zeros(2 * dim, dtype=torch.complex64), []
        for token in x:
            h = decay * h + gamma * (B @ token.to(torch.complex64) + offset)
            out.append((C @ h).real + w[f"{b}.C.bias"])
        x = norm(x + torch.stack(out), f"{b}.recurrent")
        y = F.gelu(x @ w[f"{b}.in"].t() + w[f"{b}.in.bias"]) @ w[f"{b}.out"].t() + w[f"{b}.out.bias"]
        x = norm(x + y, f"{b}.forward")
    return x


def twin(model, items):
    with torch.no_grad():
        return plain(model._views()[1], torch.from_numpy(items), model.dim, model.blocks).numpy()


def test_packed_equals_alone_equals_the_loop(model):
    histories = [history(seed, length) for seed, length in enumerate((12, 1, 5, 11, 3, 7, 7))]
    together = hidden(model, *histories)
    for one, found in zip(histories, together, strict=True):
        np.testing.assert_allclose(found, hidden(model, one)[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found, twin(model, one), rtol=1e-4, atol=1e-5)


def test_gradients_are_those_of_the_loop(data):
    """One step of training without dropout against autograd through the loop, sequence by sequence."""
    model = LRURec(**{**SMALL, "dropout": 0.0, "batch_size": 1000, "lr": 0.02}).fit(data)
    rows = data.sequences()
    users = np.flatnonzero(np.diff(rows.indptr) > 1)
    stop, length = rows.indptr[users + 1], np.minimum(np.diff(rows.indptr)[users] - 1, model.max_len)
    args = users, stop - 1 - length, length, rows.index.astype(np.int64), data.csr()
    (part,) = model._examples(np.random.default_rng(0), *args)
    net, w = model._views()
    mine, loop = ({name: view.clone().requires_grad_() for name, view in w.items()} for _ in range(2))
    model._loss(net, mine, part).backward()
    total = 0.0
    for end, n in zip(stop, length, strict=True):
        items = torch.from_numpy(rows.index[end - 1 - n : end].astype(np.int64))
        logits = plain(loop, items[:-1], model.dim, model.blocks) @ loop["item"].t() + loop["item.bias"]
        total = total + F.cross_entropy(logits, items[1:], reduction="sum")
    (total / int(length.sum())).backward()
    for name, leaf in mine.items():
        assert leaf.grad.abs().max() > 0, name
        torch.testing.assert_close(leaf.grad, loop[name].grad, rtol=1e-3, atol=1e-6, msg=name)


def test_scores_are_those_of_the_last_state_and_the_bias(model):
    histories = [history(seed, length) for seed, length in enumerate((12, 1, 5, 30))]
    rows = cr.CSR(np.r_[0, np.cumsum([12, 1, 5, 30])], np.concatenate(histories).astype(np.int32), np.ones(48), 20)
    bias = model._views()[1]["item.bias"].numpy()
    assert np.abs(bias).min() > 0  # it was learned
    for one, found in zip(histories, model._score_histories(rows), strict=True):
        state = twin(model, one[-model.max_len :])[-1]
        np.testing.assert_allclose(found, model.item_factors_ @ state + bias, rtol=1e-4, atol=1e-4)


def test_the_future_does_not_leak(model):
    one = history(3, 10)
    before = hidden(model, one, history(4, 8))[0]
    for t in (1, 5, 9):
        other = one.copy()
        other[t] = (other[t] + 1) % 20
        after = hidden(model, other, history(4, 8))[0]
        np.testing.assert_allclose(after[:t], before[:t], rtol=1e-5, atol=1e-6)
        assert (np.abs(after[t:] - before[t:]).max(axis=1) > 1e-6).all()


def test_lambda_starts_in_the_ring():
    nu, theta, gamma = np.exp(initial_lambda(np.random.default_rng(0), 4000))
    radius = np.exp(-nu)
    assert 0.8 <= radius.min() < 0.802
    assert 0.988 < radius.max() <= 0.99
    np.testing.assert_allclose(np.mean(radius**2), (0.8**2 + 0.99**2) / 2, atol=0.01)  # uniform in the area
    assert 0 < theta.min() < 0.01
    assert 2 * math.pi - 0.01 < theta.max() <= 2 * math.pi
    np.testing.assert_allclose(gamma**2, 1 - radius**2, rtol=1e-9)


def test_a_state_of_white_noise_has_the_variance_of_the_noise():
    """What gamma is for: without it, slow elements would outweigh the others."""
    from corank import nn

    rng = np.random.default_rng(1)
    nu, theta, gamma = (torch.from_numpy(row) for row in np.exp(initial_lambda(rng, 50)))
    noise = torch.from_numpy(rng.normal(size=(200 * 400, 50, 2)) @ np.array([1, 1j]) / math.sqrt(2)) * gamma
    states = nn.linear_recurrence(noise, [200] * 400, torch.polar(torch.exp(-nu), theta))
    spread = states[-200:].abs().square().mean(0)
    np.testing.assert_allclose(spread, 1, atol=0.4)
    assert abs(float(spread.mean()) - 1) < 0.05


@pytest.mark.parametrize("loss", ["softmax", "bce", "sampled_softmax"])
def test_overfits_eight_sequences(loss):
    """Random sequences: nothing to learn but themselves. The next item beats all that are not in the sequence."""
    rng = np.random.default_rng(5)
    sequences = [rng.permutation(40)[:9] for _ in range(8)]
    data = cr.from_arrays(user=np.repeat(np.arange(8), 9), item=np.concatenate(sequences), time=np.tile(range(9), 8))
    options = {"dim": 32, "max_len": 10, "dropout": 0.0, "lr": 0.003, "epochs": 200, "batch_size": 8, "negatives": 32}
    model = LRURec(**options, loss=loss).fit(data)
    codes = [data.items.codes(one) for one in sequences]
    bias, right = model._views()[1]["item.bias"].numpy(), []
    for own, state in zip(codes, hidden(model, *[own[:8] for own in codes]), strict=True):
        scores = state @ model.item_factors_.T + bias
        others = np.setdiff1d(np.arange(len(data.items)), own)
        right += (scores[range(1, 8), own[2:]] > scores[1:, others].max(axis=1)).tolist()
    assert np.mean(right) > 0.95


def test_beats_popularity_on_a_markov_chain():
    """The next item depends on the last one, and all items are equally popular."""
    split = cr.leave_last_out(cr.synthetic.markov(users=400, items=60, length=15, seed=1).data)
    value = {}
    for model in (LRURec(dim=32, max_len=15, epochs=15, batch_size=64, lr=0.003), cr.Popularity()):
        value[model.name()] = cr.evaluate(model.fit(split.train), split, ["ndcg@10"], bootstrap=0)["ndcg@10"]
    assert value["lru_rec"] > 0.6
    assert value["popularity"] < 0.2


def test_remembers_what_was_long_ago():
    """The item after nine fillers is the first one: only a state that lasts can tell."""
    rng = np.random.default_rng(2)
    rows = []
    for user in range(200):
        first = int(rng.integers(4))
        items = [first, *(4 + rng.integers(0, 12, 9)), 16 + first]
        rows += [(user, int(item), time) for time, item in enumerate(items)]
    user, item, time = np.array(rows).T
    data = cr.from_arrays(user=user, item=item, time=time, duplicates="keep")
    model = LRURec(dim=16, max_len=12, epochs=25, lr=0.01, dropout=0.1, targets="last").fit(data)
    hits = 0
    for trial in range(40):
        given = [trial % 4, *(4 + np.random.default_rng(100 + trial).integers(0, 12, 9))]
        best = model.recommend(histories=[[int(i) for i in given]], items=[16, 17, 18, 19], k=1).items[0, 0]
        hits += best == data.items.codes([16 + trial % 4])[0]
    assert hits > 30


@pytest.mark.parametrize("options", [{}, {"loss": "bpr_max", "negatives": 8, "sse_item": 0.1, "window": 0.5}])
def test_resumed_training_ends_with_the_same_bits(data, tmp_path, options):
    make = lambda: LRURec(**{**SMALL, "epochs": 5}, **options)  # noqa: E731
    whole = make().fit(data)
    file = tmp_path / "part"
    make().fit(data, checkpoint=file, on_epoch=lambda entry: entry["epoch"] < 3)
    again = make().fit(data, checkpoint=file)
    np.testing.assert_array_equal(again.weights_, whole.weights_)
    assert [h["loss"] for h in again.history_] == [h["loss"] for h in whole.history_]


def test_options_change_what_is_learned(data):
    plain = LRURec(**SMALL).fit(data).weights_
    for options in ({"sse_item": 0.5}, {"targets": "last"}, {"dropout": 0.0}, {"loss": "top1"}, {"weight_decay": 0.0}):
        assert not np.array_equal(plain, LRURec(**SMALL, **options).fit(data).weights_), options
    half = LRURec(**SMALL, bf16=True).fit(data)
    assert half.weights_.dtype == np.float32
    np.testing.assert_allclose(half.weights_, plain, atol=0.02)


def test_lambda_and_the_bias_are_not_decayed(data):
    """A huge decay with a tiny learning rate: embeddings shrink, and what says how long a state lasts does not."""
    start, end = (LRURec(**SMALL, lr=1e-4, weight_decay=decay).fit(data)._views()[1] for decay in (0.0, 2000.0))
    assert np.abs(end["item"]).mean() < 0.5 * np.abs(start["item"]).mean()
    np.testing.assert_allclose(end["0.lambda"], start["0.lambda"], atol=0.01)
