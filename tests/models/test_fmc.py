"""FMC: the score is that of the paper, and users do not count."""

from __future__ import annotations

import numpy as np
import pytest

import corank as cr


@pytest.fixture(scope="module")
def model():
    data = cr.from_arrays(user=[0, 0, 0, 1, 1], item=[10, 20, 30, 20, 40], time=[1, 2, 3, 1, 2])
    return cr.FMC(dim=2, epochs=1).fit(data)


def test_score_is_the_product_of_last_and_next(model):
    model.last_factors_[:] = [[1, 2], [0, -1], [3, 0], [0, 0]]
    model.item_factors_[:] = [[1, 0], [0, 1], [1, 1], [2, -1]]
    # User 0 ends with 30 and user 1 with 40, which nothing follows: 20 decides for both.
    np.testing.assert_allclose(model._score(np.array([0, 1], np.int32)), [[0, -1, -1, 1]] * 2)
    np.testing.assert_allclose(model.predict([0], [40]), [1])
    ranking = model.recommend(histories=[[20, 10]], k=4, exclude_seen=False)
    assert ranking.items.tolist() == [[2, 1, 0, 3]]  # 1 * 1 + 2 * 1, 2, 1, 2 - 2
    assert ranking.scores.tolist() == [[3, 2, 1, 0]]


def test_two_users_with_one_last_item_are_one_user():
    data = cr.synthetic.markov(users=200, items=30, length=6).data
    model = cr.FMC(dim=8, epochs=2).fit(data)
    users = np.arange(200, dtype=np.int32)
    scores = model._score(users)
    for item in range(30):
        same = scores[model.user_last_ == item]
        if len(same):
            np.testing.assert_allclose(same, same[:1].repeat(len(same), 0), rtol=1e-4, atol=1e-6)
    with pytest.raises(cr.CorankError, match="no vector per user"):
        model.similar_users([0])


@pytest.mark.slow
def test_published_figure(shared_data):
    """Games, 100 sampled negatives: published NDCG@10 .4456 and recall@10 .6358."""
    split = cr.leave_last_out(cr.datasets.load("games", root=shared_data))
    model = cr.FMC(epochs=15).fit(split.train)
    report = cr.evaluate(model, split, ["ndcg@10", "recall@10"], protocol="sampled", bootstrap=0)
    assert report["ndcg@10"] > 0.4456
    assert report["recall@10"] > 0.6358
