"""What FMC, FPMC and TransRec share: pairs, last items, early stopping, and data that says little."""

from __future__ import annotations

import itertools
import logging

import numpy as np
import pytest

import corank as cr

MODELS = [cr.FMC, cr.FPMC, cr.TransRec]
each = pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.name())


def learned(model):
    return {k: v for k, v in model._learned().items() if isinstance(v, np.ndarray)}


def assert_same(one, other):
    for name, value in learned(one).items():
        np.testing.assert_array_equal(value, learned(other)[name], err_msg=name)


@pytest.fixture(scope="module")
def chain():
    made = cr.synthetic.markov(users=400, items=60, length=12, predictability=0.9)
    return made, cr.leave_last_out(made.data)


@each
def test_learns_a_markov_chain(kind, chain):
    made, split = chain
    model = kind(dim=32).fit(split.train, valid=split.valid)
    contenders = (model, made.oracle.fit(split.train), cr.Popularity().fit(split.train))
    ndcg, most, least = (cr.evaluate(one, split, ["ndcg@10"], bootstrap=0)["ndcg@10"] for one in contenders)
    assert ndcg > 0.9 * most
    assert least < 0.3 * most
    follows = made.truth["successors"][:, 0]
    after = model.recommend(histories=[[item] for item in range(60)], k=1).items[:, 0]
    assert (after == follows).mean() > (0.3 if kind is cr.TransRec else 0.95)  # neighbours on the circle are near


@each
def test_loss_falls_and_early_stopping_keeps_the_best_epoch(kind, chain):
    _, split = chain
    model = kind(dim=16).fit(split.train, valid=split.valid)
    losses = [entry["loss"] for entry in model.history_]
    assert losses[-1] < 0.7 * losses[0]
    best = max(entry["ndcg@10"] for entry in model.history_)
    assert cr.evaluate(model, split, ["ndcg@10"], part="valid", bootstrap=0)["ndcg@10"] == pytest.approx(best)
    assert len(model.history_) < model.epochs_  # three times the usual number were allowed
    usual = kind().settled(split.train, split.train.csr()).epochs
    assert model.epochs_ == 3 * usual
    assert model.params()["epochs"] is None


@each
def test_samples_are_all_consecutive_pairs_and_no_other(kind, monkeypatch):
    data = cr.from_arrays(
        user=[1, 0, 0, 0, 2, 1, 0], item=[5, 1, 2, 1, 3, 6, 9], time=[2, 1, 2, 3, 1, 1, 4], duplicates="keep"
    )
    seen, step = [], kind._steps
    monkeypatch.setattr(kind, "_steps", lambda self, samples, lr: (seen.append(samples), step(self, samples, lr)))
    kind(epochs=3, dim=2, negatives=4).fit(data)
    ids = data.items.ids
    for samples in seen:
        found = sorted((u, ids[i], ids[j]) for u, i, j in zip(*samples[:3], strict=True))
        assert found == [(0, 1, 2), (0, 1, 9), (0, 2, 1), (1, 6, 5)]
        for u, negative in zip(samples.user, samples.negative, strict=True):
            assert not set(ids[negative]) & set(ids[data.item[data.user == u]])
    assert len({tuple(samples.last) for samples in seen}) > 1  # each epoch in an order of its own


@each
def test_only_the_last_item_of_a_history_counts_for_known_users(kind, chain):
    _, split = chain
    model = kind(dim=8, epochs=3).fit(split.train)
    users = np.arange(20, dtype=np.int32)
    last = split.train.sequences()
    scores = model._score(users)
    np.testing.assert_allclose(model._score_known(users, last.take(users)), scores, rtol=1e-5, atol=1e-6)
    short = model._score_known(users, cr.CSR(np.arange(21), last.index[last.indptr[1:21] - 1], np.ones(20), 60))
    np.testing.assert_allclose(short, scores, rtol=1e-5, atol=1e-6)
    other = model._score_known(users, last.take(users + 100))
    assert np.abs(other - scores).max() > 1e-3
    rows = model._training_rows()
    np.testing.assert_array_equal(rows.index[rows.indptr[1:] - 1], model.user_last_)
    np.testing.assert_array_equal(rows.merged().index, model.seen_index_)


@each
def test_an_item_of_validation_only_is_passed_over(kind):
    """Item 99 is known to no training row: the item before it says what comes next."""
    user, item = np.repeat(np.arange(30), 5), np.tile([0, 1, 2, 3, 4], 30)
    item[3::5], item[4::5] = 3, np.where(np.arange(30) % 2, 4, 3)
    item[3::5][::2] = 99  # of even users the validation item
    data = cr.from_arrays(user=user, item=item, time=np.arange(150))
    split = cr.leave_last_out(data)
    assert not np.isin(data.items.codes([99]), split.train.item).any()
    model = kind(dim=4, epochs=5).fit(split.train)
    assert np.isfinite(cr.evaluate(model, split, ["ndcg@10"], bootstrap=0)["ndcg@10"])
    cold = int(data.items.codes([99])[0])
    assert not model.item_leads_[cold]
    assert_close = np.testing.assert_allclose
    known = model.recommend(histories=[[0, 1]], k=5, exclude_seen=False)
    passed = model.recommend(histories=[[0, 1, 99, 99]], k=5, exclude_seen=False)
    if kind is not cr.FPMC:  # whose vector of a user depends on all pairs
        assert_close(passed.scores, known.scores, rtol=1e-6)
    # A history without any item that training knows is an unknown one: the most popular items.
    counts = np.bincount(split.train.item, minlength=len(data.items))
    for history in ([99], []):
        ranking = model.recommend(histories=[history], k=3, exclude_seen=False)
        assert counts[ranking.items[0]].tolist() == sorted(counts, reverse=True)[:3]


@each
def test_users_with_one_event_learn_nothing_and_are_answered(kind):
    rng = np.random.default_rng(0)
    user = np.concatenate([np.repeat(np.arange(20), 2), np.arange(20, 25)])
    item = np.concatenate([np.tile([0, 1], 20), rng.integers(2, 6, 5)])
    data = cr.from_arrays(user=user, item=item, time=np.arange(45))
    model = kind(dim=4, epochs=30).fit(data)
    assert np.isfinite(model.recommend(k=3).scores).all()
    assert (model.recommend(histories=[[0]], k=1).items == 1).all()
    with pytest.raises(cr.CorankError, match="two items"):
        kind().fit(data.take(data.user >= 20))


@each
def test_a_catalogue_of_two_items(kind):
    everyone_has_both = cr.from_arrays(user=[0, 0, 1, 1], item=[0, 1, 1, 0], time=[0, 1, 0, 1])
    model = kind(epochs=2).fit(everyone_has_both)
    assert [entry["loss"] for entry in model.history_] == [0, 0]  # nobody has a negative
    assert np.isfinite(model.recommend(k=2, exclude_seen=False).scores).all()
    again = cr.from_arrays(user=[0, 0, 0, 1, 1], item=[0, 0, 0, 1, 1], time=range(5), duplicates="keep")
    model = kind(epochs=60).fit(again)  # an item is followed by itself
    assert model.recommend(histories=[[0], [1]], k=1, exclude_seen=False).items.tolist() == [[0], [1]]


@each
def test_more_negatives_than_items_are_drawn_with_replacement(kind):
    data = cr.from_arrays(user=[0, 0, 1, 1], item=[0, 1, 2, 3], time=[0, 1, 0, 1])
    model = kind(epochs=5, negatives=50, dim=3).fit(data)
    assert model.recommend(histories=[[0]], k=1).items.tolist() == [[1]]


@each
def test_rows_without_times_and_with_equal_times_are_in_the_order_of_the_file(kind, caplog):
    columns = {"user": [0, 0, 0, 1, 1], "item": [3, 1, 2, 2, 3]}
    still = cr.from_arrays(**columns, time=[7] * 5)
    with caplog.at_level(logging.WARNING, "corank"):
        timeless = kind(epochs=3, dim=2).fit(cr.from_arrays(**columns))
    assert "the rows have no times" in caplog.text
    assert_same(timeless, kind(epochs=3, dim=2).fit(still))
    assert_same(timeless, kind(epochs=3, dim=2).fit(cr.from_arrays(**columns, time=range(5))))


@each
@pytest.mark.parametrize("options", [{}, {"sse_item": 0.4}, {"sse_user": 0.4, "sse_item": 0.2, "negatives": 3}])
def test_killed_it_goes_on_where_it_was(kind, options, chain, tmp_path, monkeypatch):
    from corank.models import _transitions

    if not hasattr(kind, "sse_user"):
        options = {k: v for k, v in options.items() if k != "sse_user"}
    monkeypatch.setattr(_transitions, "CHUNK", 1000)  # several parts per epoch
    train = chain[1].train

    def die(entry):
        if entry["epoch"] == 3:
            raise KeyboardInterrupt

    make = lambda: kind(dim=4, epochs=4, **options)  # noqa: E731
    whole = make().fit(train)
    with pytest.raises(KeyboardInterrupt):
        make().fit(train, checkpoint=tmp_path / "part", on_epoch=die)
    assert_same(make().fit(train, checkpoint=tmp_path / "part"), whole)
    for threads, kept in itertools.product((1, 3), (whole,)):
        cr.set_threads(threads)
        assert_same(make().fit(train), kept)


@each
def test_replaced_last_items_know_nothing_of_the_next(kind, chain):
    """With sse_item = 1 any item stands in for the last one: without users what can be learned is what is popular."""
    _, split = chain
    apart, mixed = (kind(dim=16, epochs=40, sse_item=p).fit(split.train) for p in (0.0, 1.0))
    ndcg = [cr.evaluate(m, split, ["ndcg@10"], bootstrap=0)["ndcg@10"] for m in (apart, mixed)]
    assert ndcg[1] < (0.3 if kind is cr.FMC else 1.0) * ndcg[0]  # users of this data stay on one part of the circle


@each
def test_steps_that_are_too_long_are_a_sentence(kind, chain):
    with pytest.raises(cr.CorankError, match=r"lower lr \(now") as error:
        kind(lr=1e6, reg=1.0, epochs=5).fit(chain[1].train)
    assert "\n" not in str(error.value)


@each
def test_a_hyper_parameter_of_other_models(kind):
    with pytest.raises(TypeError, match="targets"):
        kind(targets="last")
    with pytest.raises(cr.CorankError, match="has no hyper-parameter 'targets'"):
        kind().set_params(targets="last")
