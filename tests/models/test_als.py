from __future__ import annotations

import itertools

import numpy as np
import pytest

import corank as cr
import reference


def random_data(seed=0, users=30, items=20, n=250, duplicates="last"):
    rng = np.random.default_rng(seed)
    return cr.from_arrays(
        user=rng.integers(0, users, n),
        item=rng.integers(0, items, n),
        value=rng.integers(1, 6, n),
        duplicates=duplicates,
    )


@pytest.mark.parametrize("reg_power", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("duplicates", ["last", "keep"])
def test_objective_is_the_true_one(reg_power, duplicates):
    data = random_data(duplicates=duplicates)
    model = cr.ALS(dim=5, epochs=3, reg_power=reg_power).fit(data)
    np.testing.assert_allclose(model.history_[-1]["objective"], reference.als_objective(model, data), rtol=1e-5)


@pytest.mark.parametrize("dim", [1, 7, 32])
@pytest.mark.parametrize("reg", [0.001, 0.12, 5.0])
def test_objective_never_rises(dim, reg):
    history = cr.ALS(dim=dim, reg=reg, epochs=25).fit(random_data(1)).history_
    for before, after in itertools.pairwise(entry["objective"] for entry in history):
        assert after <= before * (1 + 1e-6)


def test_vectors_that_vanish_are_zero():
    """Not ever smaller numbers, with which a processor is ten times slower."""
    model = cr.ALS(dim=4, epochs=30, reg=2.0).fit(random_data(1))
    assert np.abs(model.user_factors_).max() == np.abs(model.item_factors_).max() == 0


def test_users_end_at_their_minimum():
    data = random_data(2)
    model = cr.ALS(dim=4, epochs=2, reg=0.3, reg_power=0.5, reg_bias=1.5).fit(data)
    for u in range(len(data.users)):
        mine = data.user == u
        items = data.item[mine]
        target = data.value[mine].astype(float) - model.mean_ - model.item_bias_[items]
        x, b = reference.als_row(target, model.item_factors_[items], 0.3 * mine.sum() ** 0.5, 1.5)
        np.testing.assert_allclose(model.user_factors_[u], x, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(model.user_bias_[u], b, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("duplicates", ["last", "keep"])
def test_fold_in_of_a_training_user_is_that_user(duplicates):
    data = random_data(3, duplicates=duplicates)
    model = cr.ALS(dim=6).fit(data)
    scores = model._score(np.arange(len(data.users), dtype=np.int32))
    np.testing.assert_array_equal(model._score_histories(data.sequences()), scores)


def test_fold_in_does_not_depend_on_the_order_of_the_history():
    data = random_data(4)
    model = cr.ALS(dim=6).fit(data)
    ratings = {0: 5.0, 3: 1.0, 7: 4.0}
    one = model.recommend(histories=[ratings], k=5)
    other = model.recommend(histories=[dict(reversed(ratings.items()))], k=5)
    np.testing.assert_allclose(one.scores, other.scores, rtol=1e-4)


def test_a_low_rating_in_a_history_counts_against():
    rows = [(u, i, 5.0 if (u + i) % 2 == 0 else 1.0) for u in range(30) for i in range(12) if (u * 7 + i * 3) % 5]
    user, item, value = zip(*rows, strict=True)
    model = cr.ALS(dim=4).fit(cr.from_arrays(user=user, item=item, value=value))
    ranking = model.recommend(histories=[{0: 5.0, 2: 5.0}, {0: 1.0, 2: 1.0}], k=4)
    assert (ranking.items % 2 == [[0], [1]]).all()


def test_a_bare_history_means_likes():
    model = cr.ALS(dim=4).fit(random_data(5))
    assert model.liked_ == 5.0
    bare, rated = model.recommend(histories=[[1, 2]]), model.recommend(histories=[{1: 5.0, 2: 5.0}])
    np.testing.assert_array_equal(bare.scores, rated.scores)


def test_recovers_a_rank_one_matrix_with_biases():
    rng = np.random.default_rng(6)
    u, v = rng.standard_normal(60), rng.standard_normal(50)
    b, c = rng.standard_normal(60), rng.standard_normal(50)
    full = 3 + b[:, None] + c + np.outer(u, v)
    known = rng.random(full.shape) < 0.5
    user, item = np.nonzero(known)
    model = cr.ALS(dim=1, reg=1e-4, reg_bias=1e-3, epochs=60).fit(
        cr.from_arrays(user=user, item=item, value=full[known])
    )
    user, item = np.nonzero(~known)
    assert np.sqrt(np.mean((model.predict(user, item) - full[~known]) ** 2)) < 0.02


def test_biases_alone_are_shrunken_means():
    """Heavy regularisation leaves the biases only; with one rating a user, an item's bias is its shrunken mean
    residual.
    """
    data = cr.from_arrays(user=np.arange(6), item=[0, 0, 0, 1, 1, 1], value=[5.0, 5, 5, 1, 1, 1])
    model = cr.ALS(dim=2, reg=1e6, reg_bias=3.0, epochs=200).fit(data)
    assert np.abs(model.item_factors_).max() < 1e-3
    # Stationary: b_i = sum(2 - b_u) / (3 + 3) and b_u = (2 - b_i) / (1 + 3), so b_i = 6/7.
    np.testing.assert_allclose(model.item_bias_, [6 / 7, -6 / 7], rtol=1e-3)
    np.testing.assert_allclose(model.user_bias_[:3], 2 / 7, rtol=1e-3)


def test_users_and_items_without_ratings_get_the_mean_and_the_other_bias():
    data = random_data(7)
    model = cr.ALS(dim=3).fit(data.take((data.user > 0) & (data.item > 0)))
    assert not model.user_factors_[0].any()
    assert model.user_bias_[0] == model.item_bias_[0] == 0
    np.testing.assert_allclose(model.predict([0], [0]), [model.mean_])
    np.testing.assert_allclose(model.predict([0], [5]), [model.mean_ + model.item_bias_[5]], rtol=1e-6)


def test_a_repeated_pair_is_two_ratings_not_their_sum():
    data = cr.from_arrays(user=[1, 1, 2], item=[1, 1, 1], value=[4.0, 4.0, 4.0], duplicates="keep")
    np.testing.assert_allclose(cr.ALS().fit(data).predict([1, 2], [1, 1]), 4.0, atol=1e-4)


@pytest.mark.parametrize("offset", [-1000.0, 0.0, 1000.0])
def test_the_level_of_the_ratings_does_not_matter(offset):
    data = random_data(8)
    moved = cr.from_arrays(user=data.user, item=data.item, value=data.value + offset)
    one, other = cr.ALS(dim=4).fit(data), cr.ALS(dim=4).fit(moved)
    np.testing.assert_allclose(other.predict([3, 4], [5, 6]) - offset, one.predict([3, 4], [5, 6]), atol=0.02)


@pytest.mark.slow
def test_rating_error_on_movielens(shared_data):
    """ML-100K, the publisher's first fold; reg is chosen on a part of the training ratings, the test ratings are read
    once.
    """
    base, test = (np.loadtxt(shared_data / "ml-100k" / f"u1.{part}", dtype=np.int64) for part in ("base", "test"))
    rows = np.concatenate([base, test])
    data = cr.from_arrays(user=rows[:, 0], item=rows[:, 1], value=rows[:, 2])
    train, test = data.take(np.arange(len(base))), data.take(np.arange(len(base), len(rows)))
    inner = cr.holdout(train, test=0.1, valid=0.0)

    def rmse(model, part):
        return float(np.sqrt(np.mean((model._predict(part.user, part.item) - part.value) ** 2)))

    by_reg = {reg: rmse(cr.ALS(reg=reg).fit(inner.train), inner.test) for reg in (0.06, 0.12, 0.24)}
    best = min(by_reg, key=by_reg.__getitem__)
    assert best == 0.12  # the default
    assert rmse(cr.ALS(reg=best).fit(train), test) < 0.935
