"""`targets`: every position of a sequence is predicted, or each prefix as a sample of its own."""

import numpy as np
import pytest

import corank as cr
from corank.data import CSR
from corank.nn import batches

pytest.importorskip("torch")


def test_prefixes_are_all_histories_that_have_a_next_item():
    start, stop = np.array([0, 5, 6]), np.array([5, 6, 9])  # of 5, 1 and 3 items
    for most in (1, 2, 3, 100):
        found = [tuple(map(int, row)) for row in zip(*batches.prefixes(start, stop, most), strict=True)]
        expected = [
            (history, max(first, target - most), min(target - first, most))
            for history, (first, last) in enumerate(zip(start, stop, strict=True))
            for target in range(first + 1, last)
        ]
        assert found == expected


def sequences(rows=3000, users=300, items=30, seed=0):
    """Each user goes round a ring of items from a random start, now and then jumping."""
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(users), rows // users)
    step = np.where(rng.random(user.size) < 0.1, rng.integers(0, items, user.size), 1)
    item = (np.cumsum(step) + 7 * user) % items
    return cr.from_arrays(user=user, item=item, time=np.arange(user.size))


@pytest.mark.parametrize("name", ["sasrec", "sse_pt", "gru4rec"])
@pytest.mark.parametrize("loss", ["softmax", "bce", "sampled_softmax"])
def test_a_model_learns_from_prefixes_what_it_learns_from_positions(name, loss):
    data = sequences()
    model = cr.find(name)(targets="last", loss=loss, dim=16, max_len=8, epochs=8, negatives=8, lr=0.01, dropout=0.0)
    model.fit(data)
    hits = 0
    for start in range(30):
        history = [(start + t) % 30 for t in range(5)]
        ranked = model.recommend(histories=[history], k=3, exclude_seen=False).items[0]
        hits += (start + 5) % 30 in list(ranked)
    assert hits > 24


def test_the_loss_of_a_step_is_that_of_its_prefixes():
    """Without dropout and with one step per epoch, the first loss is the mean over all (prefix, next item) pairs."""
    data = sequences(rows=60, users=6, items=7)
    seen = []
    model = cr.SASRec(targets="last", loss="softmax", dim=8, max_len=4, epochs=1, batch_size=1000, dropout=0.0, lr=1e-9)
    model.fit(data, on_epoch=lambda epoch: seen.append(epoch["loss"]))
    losses = []
    rows = data.sequences()
    for user in range(6):
        items = rows.index[rows.indptr[user] : rows.indptr[user + 1]]
        for t in range(1, items.size):
            history = CSR(np.array([0, t]), items[:t], np.ones(t, np.float32), 7)
            scores = model._score_histories(history)[0].astype(np.float64)
            losses.append(np.log(np.exp(scores).sum()) - scores[items[t]])
    assert seen == pytest.approx([np.mean(losses)], rel=1e-4)


def test_a_window_has_no_meaning_for_prefixes():
    with pytest.raises(cr.CorankError, match="targets='all'"):
        cr.SASRec(targets="last", window=0.5, epochs=1).fit(sequences())


@pytest.mark.parametrize("options", [{"norm": "published"}, {"bf16": True}, {"blocks": 0}, {"attention_dropout": 0.3}])
def test_prefixes_in_every_form_of_the_blocks(options):
    model = cr.SSEPT(targets="last", dim=8, dim_user=4, max_len=6, epochs=1, dropout=0.1, **options)
    assert np.isfinite(model.fit(sequences(rows=600, users=60)).weights_).all()
