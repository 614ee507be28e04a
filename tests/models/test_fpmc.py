"""FPMC: the score is that of the paper; taste is learned beside the chain, also of unseen users."""

from __future__ import annotations

import numpy as np
import pytest

import corank as cr


def test_score_is_taste_plus_transition():
    data = cr.from_arrays(user=[0, 0, 0, 1, 1], item=[10, 20, 30, 20, 40], time=[1, 2, 3, 1, 2])
    model = cr.FPMC(dim=2, epochs=1).fit(data)
    rng = np.random.default_rng(0)
    p, P, V = (rng.normal(size=s).astype(np.float32) for s in ((2, 2), (4, 2), (4, 4)))
    model.user_factors_[:], model.last_factors_[:], model.item_factors_[:] = p, P, V
    q, Q = V[:, :2], V[:, 2:]
    last = [1, 1]  # 20: nothing follows 30 and 40
    expected = [[p[u] @ q[j] + P[last[u]] @ Q[j] for j in range(4)] for u in (0, 1)]
    np.testing.assert_allclose(model._score(np.array([0, 1], np.int32)), expected, rtol=1e-5)
    # A known user with a newer history keeps the own vector, an unseen one with one item has none.
    newer = cr.CSR(np.array([0, 2]), np.array([1, 0], np.int32), np.ones(2, np.float32), 4)
    known = model._score_known(np.array([1], np.int32), newer)
    np.testing.assert_allclose(known, [[p[1] @ q[j] + P[0] @ Q[j] for j in range(4)]], rtol=1e-5)
    unseen = model._score_histories(newer.take(np.array([0]))._replace(indptr=np.array([0, 1]), index=newer.index[1:]))
    np.testing.assert_allclose(unseen, [P[0] @ Q.T], rtol=1e-5)


def taste_data(seed=0, users=300, groups=4, each=25, length=16):
    """Each user has a group of items and takes them in random order: the last item tells the group, and so does the
    user; an item of another group now and then makes the last item alone unreliable.
    """
    rng = np.random.default_rng(seed)
    items = np.arange(users)[:, None] % groups * each + np.argsort(rng.random((users, each)), axis=1)[:, :length]
    strange = rng.random(items.shape) < 0.4
    items[strange] = rng.integers(0, groups * each, int(strange.sum()))
    user = np.repeat(np.arange(users), length)
    return cr.from_arrays(user=user, item=items.ravel(), time=np.tile(np.arange(length), users), duplicates="first")


def test_learns_the_taste_of_users_that_the_last_item_does_not_tell():
    data = taste_data()
    split = cr.leave_last_out(data)
    fmc, fpmc = (cls(dim=16).fit(split.train, valid=split.valid) for cls in (cr.FMC, cr.FPMC))
    group = {}
    for name, model in (("fmc", fmc), ("fpmc", fpmc)):
        top = model.recommend(k=5).items
        group[name] = (top // 25 == np.arange(300)[:, None] % 4).mean()
    assert group["fpmc"] > 0.85
    assert group["fmc"] < group["fpmc"] - 0.1
    # Folded in from their histories, the same users are told apart as well.
    histories = split.train.sequences()
    unseen = np.argsort(-fpmc._score_histories(histories), axis=1)[:, :5]
    assert (unseen // 25 == np.arange(300)[:, None] % 4).mean() > 0.8


def test_sse_of_users_shares_their_vectors():
    """When any user stands in for any other, no taste can be learned."""
    split = cr.leave_last_out(taste_data())
    model = cr.FPMC(dim=16, epochs=60, sse_user=1.0).fit(split.train)
    top = model.recommend(k=5).items
    alone = cr.FPMC(dim=16, epochs=60).fit(split.train).recommend(k=5).items
    right = [(items // 25 == np.arange(300)[:, None] % 4).mean() for items in (top, alone)]
    assert right[0] < right[1] - 0.1


def test_users_without_pairs_have_no_vector_and_take_no_part():
    data = cr.from_arrays(user=[0, 0, 1, 2, 2], item=[0, 1, 2, 1, 0], time=[0, 1, 0, 0, 1])
    model = cr.FPMC(dim=4, epochs=20, sse_user=0.5).fit(data)
    assert not model.user_factors_[1].any()
    assert model.user_factors_[[0, 2]].any(axis=1).all()


@pytest.mark.slow
def test_published_figure(shared_data):
    """Games, 100 sampled negatives: published NDCG@10 .4680."""
    split = cr.leave_last_out(cr.datasets.load("games", root=shared_data))
    model = cr.FPMC(epochs=15).fit(split.train)
    assert cr.evaluate(model, split, ["ndcg@10"], protocol="sampled", bootstrap=0)["ndcg@10"] > 0.4680
