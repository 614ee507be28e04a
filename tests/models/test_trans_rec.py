"""TransRec: the score is that of the paper, items stay in the unit ball, unseen users move as everybody does."""

from __future__ import annotations

import numpy as np
import pytest

import corank as cr


@pytest.mark.parametrize("distance", ["l2", "l1"])
def test_score_is_the_bias_minus_the_distance(distance):
    data = cr.from_arrays(user=[0, 0, 0, 1, 1], item=[10, 20, 30, 20, 40], time=[1, 2, 3, 1, 2])
    model = cr.TransRec(dim=3, epochs=1, distance=distance).fit(data)
    rng = np.random.default_rng(0)
    G, t, T, b = (0.4 * rng.normal(size=s).astype(np.float32) for s in ((4, 3), 3, (2, 3), 4))
    model.item_factors_[:], model.translation_[:], model.user_translations_[:], model.item_bias_[:] = G, t, T, b

    def score(u, i, j):
        gap = G[i] + t + (0 if u is None else T[u]) - G[j]
        return b[j] - (np.abs(gap).sum() if distance == "l1" else np.square(gap).sum())

    expected = [[score(u, i, j) for j in range(4)] for u, i in ((0, 2), (1, 3))]
    np.testing.assert_allclose(model._score(np.array([0, 1], np.int32)), expected, rtol=1e-4, atol=1e-5)
    newer = cr.CSR(np.array([0, 2]), np.array([1, 0], np.int32), np.ones(2, np.float32), 4)
    np.testing.assert_allclose(
        model._score_known(np.array([1], np.int32), newer), [[score(1, 0, j) for j in range(4)]], rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(
        model._score_histories(newer), [[score(None, 0, j) for j in range(4)]], rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("distance", ["l2", "l1"])
def test_items_stay_in_the_ball_and_users_start_at_zero(distance):
    data = cr.synthetic.markov(users=200, items=40, length=8).data
    lonely = cr.from_arrays(
        user=np.append(data.user, 999), item=np.append(data.item, 0), time=np.append(data.time, 0), duplicates="keep"
    )
    model = cr.TransRec(dim=8, epochs=10, distance=distance).fit(lonely)
    norms = np.linalg.norm(model.item_factors_, axis=1)
    assert norms.max() < 1 + 1e-5
    assert np.ptp(norms) > 1e-3  # not all on the sphere
    assert model.translation_.any()
    moved = model.user_translations_.any(axis=1)
    assert moved[:-1].all()
    assert not moved[-1]  # one event, no pair
    still = cr.TransRec(dim=8, epochs=10, distance=distance, reg=5.0).fit(lonely)
    assert np.abs(still.user_translations_).mean() < 0.5 * np.abs(model.user_translations_).mean()


def test_l1_learns_a_chain_too():
    made = cr.synthetic.markov(users=400, items=60, length=12, predictability=0.9)
    split = cr.leave_last_out(made.data)
    model = cr.TransRec(dim=32, distance="l1").fit(split.train, valid=split.valid)
    ndcg = [cr.evaluate(m, split, ["ndcg@10"], bootstrap=0)["ndcg@10"] for m in (model, made.oracle.fit(split.train))]
    assert ndcg[0] > 0.7 * ndcg[1]


@pytest.mark.slow
def test_published_figure(shared_data):
    """Games, 100 sampled negatives: published NDCG@10 .4557."""
    split = cr.leave_last_out(cr.datasets.load("games", root=shared_data))
    model = cr.TransRec(epochs=15).fit(split.train)
    assert cr.evaluate(model, split, ["ndcg@10"], protocol="sampled", bootstrap=0)["ndcg@10"] > 0.4557
