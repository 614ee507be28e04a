"""SASRec beyond the contract: the published network by a plain twin, packing, causality, resuming, its losses."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import corank as cr
import sequence_checks as check
from corank.models._sequence_options import LOSSES
from corank.models.sasrec import SASRec

torch = pytest.importorskip("torch")
F = torch.nn.functional


@pytest.fixture(scope="module")
def data():
    return check.cycles()


SMALL = {"dim": 8, "max_len": 12, "epochs": 3, "batch_size": 16}


@pytest.fixture(scope="module", params=["pre", "published"])
def model(request, data):
    return SASRec(**SMALL, norm=request.param, heads=2, dropout=0.1).fit(data)


def twin(model, items):
    """The network as published, left-padded, with ordinary torch: hidden states of the real tokens."""
    net, w = model._views()
    L, d, heads = model.max_len, net.width, model.heads
    pad = L - len(items)
    x = torch.zeros(L, d)
    x[pad:] = w["item"][torch.from_numpy(np.asarray(items))] * math.sqrt(d) + w["position"][pad:]
    real = (torch.arange(L) >= pad).float()[:, None]
    eps = 1e-8 if model.norm == "published" else 1e-5

    def norm(y, name):
        return F.layer_norm(y, (d,), w[f"{name}.gain"], w[f"{name}.bias"], eps)

    for b in range(model.blocks):
        q = norm(x, f"{b}.first")
        source = x if model.norm == "published" else q
        matrices, biases = w[f"{b}.qkv"].chunk(3), w[f"{b}.qkv.bias"].chunk(3)
        Q, K, V = (y @ m.t() + a for y, m, a in zip((q, source, source), matrices, biases, strict=True))
        out = torch.zeros(L, d)
        for h in range(heads):
            part = slice(h * d // heads, (h + 1) * d // heads)
            scores = Q[:, part] @ K[:, part].t() / math.sqrt(d // heads)
            scores = scores.masked_fill(real[:, 0][None, :] == 0, -(2.0**32))
            scores = scores.masked_fill(torch.ones(L, L).triu(1) > 0, -(2.0**32))
            out[:, part] = torch.softmax(scores, -1) @ V[:, part]
        if model.norm == "published":
            x = q + out
            z = norm(x, f"{b}.second")
            kept = z
        else:
            x = x + out @ w[f"{b}.join"].t() + w[f"{b}.join.bias"]
            z = norm(x, f"{b}.second")
            kept = x
        y = torch.relu(z @ w[f"{b}.in"].t() + w[f"{b}.in.bias"])
        x = (kept + y @ w[f"{b}.out"].t() + w[f"{b}.out.bias"]) * real
    return norm(x, "norm")[pad:].numpy()


def test_packed_equals_alone_equals_padded(model):
    check.check_packed_equals_alone(model, twin)


def test_scores_are_those_of_the_last_state(model):
    check.check_scores_are_those_of_the_last_state(model, twin)


def test_the_future_does_not_leak(model):
    check.check_the_future_does_not_leak(model, least=1e-6)


def test_known_users_are_scored_from_their_newest_items(data, model):
    known = model._score(np.arange(len(data.users), dtype=np.int32))
    np.testing.assert_allclose(known, model._score_histories(data.sequences()), rtol=1e-4, atol=1e-5)


def test_order_matters(model):
    one, other = (model.recommend(histories=[h], k=3, exclude_seen=False) for h in ([1, 2, 3, 9], [9, 3, 2, 1]))
    assert np.abs(one.scores - other.scores).max() > 1e-4


def test_no_times_means_the_order_of_rows(data):
    order = np.argsort(data.time, kind="stable")
    bare = dataclasses.replace(data.take(order), time=None)
    np.testing.assert_array_equal(SASRec(**SMALL).fit(data).weights_, SASRec(**SMALL).fit(bare).weights_)


def test_learns_what_comes_next(data):
    model = SASRec(dim=16, max_len=12, epochs=60, batch_size=16, dropout=0.1).fit(data)
    ranking = model.recommend(histories=[[3, 4, 5], [11, 12, 13, 14], [19]], k=1)
    assert ranking.items[:, 0].tolist() == [6, 15, 0]


@pytest.mark.parametrize(("loss", "norm"), [("softmax", "pre"), *((loss, "published") for loss in LOSSES)])
def test_overfits_eight_sequences(loss, norm):
    assert check.share_of_learned_steps(lambda **o: SASRec(**o, loss=loss, norm=norm)) > 0.95


def test_loss_is_that_of_the_formula(data):
    """One batch, no dropout: the first loss that is reported, by hand from the weights before the step."""
    options = {**SMALL, "dropout": 0.0, "batch_size": 1000, "epochs": 1}
    model = SASRec(**options, lr=1e-9).fit(data)
    total, count = 0.0, 0
    rows = data.sequences()
    for user in range(rows.rows):
        items = rows.index[rows.indptr[user] : rows.indptr[user + 1]][-model.max_len - 1 :]
        if items.size < 2:
            continue
        logits = torch.from_numpy(twin(model, items[:-1]) @ model.item_factors_.T)
        total += float(F.cross_entropy(logits, torch.from_numpy(items[1:].astype(np.int64)), reduction="sum"))
        count += items.size - 1
    assert model.history_[0]["loss"] == pytest.approx(total / count, rel=1e-4)


@pytest.mark.parametrize(
    "options",
    [{}, {"norm": "published", "loss": "bce", "negatives": 2}, {"sse_item": 0.1, "sse_target": 0.1, "window": 0.5}],
    ids=["default", "published", "sse"],
)
def test_resumed_training_ends_with_the_same_bits(data, tmp_path, options):
    make = lambda **more: SASRec(**{**SMALL, **options, **more})  # noqa: E731
    check.check_resumed_training_ends_with_the_same_bits(make, data, tmp_path)


def test_any_number_of_threads_where_batches_are_dealt_out(data, monkeypatch):
    from corank.models import _sequence_steps

    monkeypatch.setattr(_sequence_steps, "WORTH", 0)
    found = []
    for count in (1, 2, 3):
        cr.set_threads(count)
        found.append(SASRec(**SMALL).fit(data).weights_)
    cr.set_threads(None)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_no_replacement_is_no_change(data):
    plain = SASRec(**SMALL).fit(data)
    zero = SASRec(**SMALL, sse_item=0.0, sse_target=0.0, window=0.0).fit(data)
    np.testing.assert_array_equal(plain.weights_, zero.weights_)
    for name in ("sse_item", "sse_target", "window"):
        assert not np.array_equal(plain.weights_, SASRec(**SMALL, **{name: 0.5}).fit(data).weights_), name
    coupled = SASRec(**SMALL, sse_coupled=True).fit(data)
    np.testing.assert_array_equal(plain.weights_, coupled.weights_)


def test_patience_keeps_the_best_epoch(data):
    split = cr.leave_last_out(data)
    options = {**SMALL, "epochs": 40, "lr": 0.02}
    model = SASRec(**options, patience=3).fit(split.train, valid=split.valid)
    values = [h["ndcg@10"] for h in model.history_]
    best = int(np.argmax(values)) + 1
    assert len(values) == min(40, best + 3)
    short = SASRec(**{**options, "epochs": best}).fit(split.train)
    np.testing.assert_array_equal(model.weights_, short.weights_)


def test_attention_can_be_read(model):
    found = model.attention(history=[4, 5, 6, 7])
    assert found["items"] == [4, 5, 6, 7]
    assert found["weights"].shape == (2, 2, 4, 4)
    np.testing.assert_allclose(found["weights"].sum(-1), 1, rtol=1e-5)
    assert not np.triu(found["weights"], 1).any()
    of_user = model.attention(5)
    assert len(of_user["items"]) == min(model.max_len, model.user_length_[model.users_.codes([5])[0]])
    assert model.attention(history=[])["weights"].shape == (2, 2, 0, 0)
    with pytest.raises(cr.CorankError, match="one user or one history"):
        model.attention()
    with pytest.raises(cr.CorankError, match="unknown user"):
        model.attention(4711)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"max_len": 0}, "max_len"),
        ({"sse_item": 1.5}, "sse_item"),
        ({"sse_target": -0.1}, "sse_target"),
        ({"window": 2.0}, "window"),
        ({"dim": 9, "heads": 2}, "heads must divide"),
        ({"dropout": 1.0}, "dropout"),
        ({"loss": "hinge"}, "softmax"),
    ],
)
def test_bad_settings_are_sentences(data, options, word):
    with pytest.raises(cr.CorankError, match=word) as error:
        SASRec(**{**SMALL, **options}).fit(data)
    assert "\n" not in str(error.value)


def test_users_of_one_item_teach_nothing():
    """Beside others they change nothing; alone they are refused."""
    rows = {"user": [1, 1, 2, 2], "item": [1, 2, 2, 1], "time": [0, 1, 2, 3]}
    more = {"user": [*rows["user"], 3], "item": [*rows["item"], 2], "time": [*rows["time"], 4]}
    one, other = (SASRec(**SMALL).fit(cr.from_arrays(**table)) for table in (rows, more))
    assert np.array_equal(one.weights_, other.weights_)
    with pytest.raises(cr.CorankError, match="no user has two items"):
        SASRec(**SMALL).fit(cr.from_arrays(user=[1, 2, 3], item=[1, 2, 2]))


def test_an_empty_history_gets_what_is_popular(data, model):
    best = np.argmax(np.bincount(data.csr().index, minlength=20))
    assert model.recommend(histories=[[]], k=1).items[0, 0] == best


def test_steps_get_shorter_at_the_end(data, monkeypatch):
    """cooldown=0.5 of 8 epochs: full steps for half of them, then 4/4, 3/4, 2/4, 1/4 of lr."""
    from corank.nn.loop import Trainer

    heard = []
    plain = Trainer.set_lr
    monkeypatch.setattr(Trainer, "set_lr", lambda self, lr: heard.append(lr) or plain(self, lr))
    SASRec(**{**SMALL, "epochs": 8, "lr": 0.01, "cooldown": 0.5}).fit(data)
    np.testing.assert_allclose(heard, 0.01 * np.array([1, 1, 1, 1, 1, 0.75, 0.5, 0.25]))


def test_bfloat16_learns_the_same_to_its_precision(data):
    check.check_bfloat16_learns_about_the_same(lambda **more: SASRec(**SMALL, **more), data)


def test_defaults_follow_the_shape_of_the_data():
    """Short histories get more dropout, large catalogues a sampled loss, and many users fewer epochs."""

    def used(users, items, length):
        data = cr.synthetic.markov(users=users, items=items, length=length).data
        model = cr.SASRec()
        model._choose(data, data.csr())
        return model.used_params()

    short, long = used(500, 100, 8), used(60, 300, 150)
    assert short["dropout"] == 0.5
    assert long["dropout"] == 0.2
    assert short["loss"] == "softmax"
    assert used(300, 6_000, 30)["loss"] == "sampled_softmax"
    assert (short["batch_size"], long["batch_size"]) == (128, 32)
    assert short["epochs"] == 60
    assert used(60_000, 100, 3)["epochs"] < 20
    given = cr.SASRec(dropout=0.1, loss="bce", batch_size=7, epochs=3)
    given._choose(*(lambda d: (d, d.csr()))(cr.synthetic.markov(users=20, items=30, length=5).data))
    assert [given.used_params()[k] for k in ("dropout", "loss", "batch_size", "epochs")] == [0.1, "bce", 7, 3]
