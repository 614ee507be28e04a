"""SSE-PT beyond the contract: users in the network, their replacement, strangers."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import corank as cr
from corank.models.sse_pt import SSEPT

torch = pytest.importorskip("torch")

SMALL = {"dim": 6, "dim_user": 4, "max_len": 10, "epochs": 3, "batch_size": 16}
NONE = {"sse_user": 0.0, "sse_item": 0.0, "sse_target": 0.0}


@pytest.fixture(scope="module")
def data():
    """Half of the users go up, half go down: the same history continues by who it is."""
    rng = np.random.default_rng(6)
    rows = []
    for user in range(40):
        item = int(rng.integers(12))
        for time in range(9):
            rows.append((user, item, time))
            item = (item + (1 if user % 2 else -1)) % 12
    user, item, time = np.array(rows).T
    return cr.from_arrays(user=user, item=item, time=time, duplicates="keep")


def table(model, name):
    return model._views()[1][name].numpy()


def test_tables_have_the_published_shapes(data):
    model = SSEPT(**SMALL).fit(data)
    assert table(model, "user").shape == (40, 4)
    assert table(model, "item").shape == (12, 6)
    assert table(model, "position").shape == (10, 10)


def test_input_is_item_and_user_scaled_plus_position(data):
    """Without blocks the state is the layer norm of [sqrt(d) v; sqrt(d_u) u] + p."""
    model = SSEPT(**SMALL, blocks=0).fit(data)
    x = np.concatenate([math.sqrt(6) * table(model, "item")[7], math.sqrt(4) * table(model, "user")[3]])
    x = x + table(model, "position")[-1]
    x = (x - x.mean()) / np.sqrt(x.var() + 1e-5)
    x = x * table(model, "norm.gain") + table(model, "norm.bias")
    rows = cr.CSR(np.array([0, 1]), np.array([7], np.int32), np.ones(1, np.float32), 12)
    scores = model._score_known(np.array([3]), rows)
    np.testing.assert_allclose(scores[0], table(model, "item") @ x[:6], rtol=1e-4, atol=1e-5)


def test_users_of_one_label_share_a_vector(data):
    """Who goes up and who goes down is all there is to know of a user: two vectors do what forty do."""
    labelled = dataclasses.replace(data, user_labels={"way": np.where(np.arange(40) % 2, "up", "down")})
    model = SSEPT(**{**SMALL, "epochs": 60}, **NONE, lr=0.01, dropout=0.0, share="way").fit(labelled)
    assert table(model, "user").shape == (2, 4)
    rows = cr.CSR(np.arange(5), np.full(4, 7, np.int32), np.ones(4, np.float32), 12)  # all are at 7
    scores = model._score_known(np.array([0, 2, 1, 3]), rows)
    # Rows of one matrix product may round differently on some processors.
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(scores[2], scores[3], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(model.user_row_[[0, 2, 1, 3]], [0, 0, 1, 1])
    assert scores[0].argmax() == 6
    assert scores[2].argmax() == 8
    some = dataclasses.replace(data, user_labels={"way": np.array([None, "up", "down", 3.0] * 10, object)})
    assert table(SSEPT(**SMALL, share="way").fit(some), "user").shape == (4, 4)
    assert table(SSEPT(**SMALL, share="everyone").fit(data), "user").shape == (1, 4)


def test_a_label_that_is_not_there_is_named(data):
    with pytest.raises(cr.CorankError, match=r"share='way'.*no such label; they have none"):
        SSEPT(**SMALL, share="way").fit(data)
    labelled = dataclasses.replace(data, user_labels={"age": np.arange(40)})
    with pytest.raises(cr.CorankError, match="no such label; known are age"):
        SSEPT(**SMALL, share="way").fit(labelled)


def test_users_make_a_difference_and_strangers_are_the_mean(data):
    model = SSEPT(**SMALL).fit(data)
    rows = data.sequences().take(np.zeros(3, np.int64))
    scores = model._score_known(np.array([0, 1, 2]), rows)
    assert np.abs(scores[0] - scores[1]).max() > 1e-6
    users = table(model, "user")  # a view
    users[2] = np.delete(users, 2, axis=0).mean(axis=0)  # this user is now the mean of all, too
    as_mean = model._score_known(np.array([0, 1, 2]), rows)[2]
    np.testing.assert_allclose(model._score_histories(rows)[0], as_mean, rtol=1e-4, atol=1e-5)


def test_learns_whom_it_reads(data):
    """With one item to read, only the user tells whether to go up or down."""
    options = {"dim": 16, "dim_user": 8, "max_len": 1, "epochs": 400, "lr": 0.01, "dropout": 0.0, "window": 0.9}
    model = SSEPT(**options, **NONE).fit(data)
    users, first = np.arange(40), data.sequences().index[data.sequences().indptr[:-1]]
    scores = model._score_known(users, cr.CSR(np.arange(41), first, np.ones(40, np.float32), 12))
    up = scores[users, (first + 1) % 12] > scores[users, (first - 1) % 12]
    assert np.mean(up == users % 2) > 0.95


def test_nothing_replaced_is_no_change(data):
    plain = SSEPT(**SMALL, **NONE).fit(data)
    np.testing.assert_array_equal(plain.weights_, SSEPT(**SMALL, **NONE, sse_coupled=True).fit(data).weights_)
    for name in ("sse_user", "sse_item", "sse_target"):
        assert not np.array_equal(plain.weights_, SSEPT(**SMALL, **{**NONE, name: 0.4}).fit(data).weights_), name


def test_one_user_a_sequence_is_replaced(data):
    """The rate, uniformity and that history and targets stay; 40 users, 5 standard deviations."""
    model = SSEPT(**SMALL, **{**NONE, "sse_user": 0.8}, loss="bce", negatives=1).fit(data)
    rows, sequences = data.csr(), data.sequences()
    index = sequences.index.astype(np.int64)
    rng = np.random.default_rng(1)
    users = np.arange(40)
    counts = np.zeros((40, 40))
    for _ in range(500):
        for batch in model._examples(rng, users, sequences.indptr[:-1], np.full(40, 8), index, rows):
            assert batch.user.shape == (40,)
            np.testing.assert_array_equal(batch.item, index[batch.packed.at])
            np.testing.assert_array_equal(batch.target, index[batch.packed.at + 1])
            own = rows.take(users[batch.packed.row])
            taken = [set(own.index[a:b]) for a, b in zip(own.indptr[:-1], own.indptr[1:], strict=True)]
            assert not any(int(n) in t for n, t in zip(batch.negative[:, 0].tolist(), taken, strict=True))
            np.add.at(counts, (users, batch.user.numpy()), 1)
    n = counts.sum()
    assert abs(np.trace(counts) / n - (0.2 + 0.8 / 40)) < 5 * np.sqrt(0.2 / n)
    off = counts[~np.eye(40, dtype=bool)] / n
    np.testing.assert_allclose(off, 0.8 / 1600, atol=6 * np.sqrt(0.8 / 1600 / n))


@pytest.mark.parametrize("loss", ["bce", "gbce", "bpr", "bpr_max", "top1", "sampled_softmax"])
def test_every_loss_trains_the_users(data, loss):
    options = {**SMALL, **NONE, "negatives": 4, "loss": loss, "norm": "published"}
    before = SSEPT(**{**options, "lr": 1e-9}).fit(data)
    after = SSEPT(**{**options, "epochs": 15, "lr": 0.01}).fit(data)
    assert after.history_[-1]["loss"] < before.history_[-1]["loss"]
    assert np.abs(table(after, "user") - table(before, "user")).max(axis=1).min() > 1e-3


def test_resumed_training_ends_with_the_same_bits(data, tmp_path):
    make = lambda: SSEPT(**{**SMALL, "epochs": 4}, window=0.3)  # noqa: E731
    whole = make().fit(data)
    file = tmp_path / "part"
    make().fit(data, checkpoint=file, on_epoch=lambda entry: entry["epoch"] < 2)
    np.testing.assert_array_equal(make().fit(data, checkpoint=file).weights_, whole.weights_)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"sse_user": 1.2}, "sse_user"),
        ({"dim_user": 0}, "dim_user"),
        ({"heads": 3}, "heads must divide the hidden size 10"),
    ],
)
def test_bad_settings_are_sentences(data, options, word):
    with pytest.raises(cr.CorankError, match=word) as error:
        SSEPT(**{**SMALL, **options}).fit(data)
    assert "\n" not in str(error.value)


def test_attention_of_a_user(data):
    found = SSEPT(**SMALL).fit(data).attention(3)
    assert found["weights"].shape == (2, 1, 9, 9)
    assert len(found["items"]) == 9


def test_evaluation_knows_who_the_user_is():
    """A user whom fit saw is scored with the own vector, from the newest history; a stranger with the mean of all."""
    split = cr.leave_last_out(cr.synthetic.markov(users=40, items=30, length=12, seed=3).data)
    model = cr.SSEPT(dim=8, dim_user=8, epochs=3, max_len=12, sse_user=0.0).fit(split.train)
    users = np.arange(5, dtype=np.int32)
    histories = split.known("test").sequences().take(users)
    known, strange = model._score_known(users, histories), model._score_histories(histories)
    assert not np.allclose(known, strange)
    asked = []
    model._vectors = lambda users, histories: asked.extend(users) or type(model)._vectors(model, users, histories)
    cr.evaluate(model, split, ["ndcg@10"], bootstrap=0)
    assert sorted(asked) == sorted(np.unique(split.test.user))
