"""The realistic generator: tails, groups, friends, drift and ratings, checked against its truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, spearmanr

from corank import Dataset, leave_last_out
from corank.datasets.market import PERIOD, START
from corank.datasets.synthetic import Synthetic, preference, realistic


def gini(counts: np.ndarray) -> float:
    x = np.sort(counts)
    n = x.size
    return float((2 * np.arange(1, n + 1) - n - 1) @ x / (n * x.sum()))


def all_distinct(data: Dataset) -> bool:
    pairs = np.sort(data.user.astype(np.int64) * len(data.items) + data.item)
    return bool((np.diff(pairs) > 0).all())


@pytest.fixture(scope="module")
def market() -> Synthetic:
    return realistic()


def test_shape_of_the_market(market: Synthetic) -> None:
    data = market.data
    assert (len(data), len(data.users), len(data.items)) == (100_000, 2_000, 1_000)
    counts = np.bincount(data.user)
    assert counts.min() >= 5
    assert all_distinct(data)
    assert data.time is not None
    assert data.time.min() >= START
    assert data.time.max() < START + 2 * 365 * 86_400
    assert (np.diff(data.time)[np.diff(data.user) == 0] >= 0).all()
    assert set(np.unique(data.value)) == {1, 2, 3, 4, 5}
    assert 3.3 < data.value.mean() < 3.9
    assert data.item_labels["title"][17] == f"Item 17 of group {data.item_labels['group'][17]}"
    assert np.array_equal(np.unique(data.item_labels["group"]), np.arange(20))
    assert len(data.user_labels["group"]) == 2_000


def test_popularity_and_activity_have_heavy_tails(market: Synthetic) -> None:
    assert gini(np.bincount(market.data.item, minlength=1_000)) > 0.45
    activity = np.bincount(market.data.user)
    assert gini(activity) > 0.35
    assert np.median(activity) < 0.75 * activity.mean()
    logs = np.log(activity - 4.0)
    skew = ((logs - logs.mean()) ** 3).mean() / logs.std() ** 3
    assert abs(skew) < 0.3  # log-normal: the logarithm is not skewed


def test_friends_are_mostly_of_the_same_group(market: Synthetic) -> None:
    graph = market.data.user_graph
    assert graph is not None
    matrix = graph.scipy()
    assert abs(matrix - matrix.T).sum() == 0
    assert matrix.diagonal().sum() == 0
    assert abs(graph.index.size / 2_000 - 8) < 0.5
    group = market.truth["user_group"]

    def alike(made: Synthetic) -> float:
        links = made.data.user_graph
        assert links is not None
        return float((group[np.repeat(np.arange(2_000), np.diff(links.indptr))] == group[links.index]).mean())

    shares = np.bincount(group) / 2_000
    chance = float((shares**2).sum())
    # The repeated ties that are dropped are nearly all inside groups, hence a little below 0.8.
    assert 0.7 < alike(market) < 0.8 + chance
    assert abs(alike(realistic(homophily=0.0)) - chance) < 0.02


def test_influence_draws_friends_together() -> None:
    def distance(made: Synthetic) -> float:
        links, taste = made.data.user_graph, made.truth["taste"]
        assert links is not None
        ends = np.repeat(np.arange(2_000), np.diff(links.indptr))
        return float(np.abs(taste[ends] - taste[links.index]).sum(axis=1).mean())

    assert distance(realistic(influence=0.6)) < 0.7 * distance(realistic(influence=0.0))


def test_no_friends_is_an_empty_graph() -> None:
    graph = realistic(friends=0, users=100, items=100, rows=1_000).data.user_graph
    assert graph is not None
    assert graph.index.size == 0


def test_truth_is_made_of_probabilities(market: Synthetic) -> None:
    truth = market.truth
    np.testing.assert_allclose(truth["taste"].sum(axis=1), 1, rtol=1e-5)
    assert (truth["taste"] > 0).all()
    for p in (0, 23):
        mass = np.bincount(truth["item_group"], truth["popularity"][p], minlength=20)
        np.testing.assert_allclose(mass, 1, rtol=1e-5)


def test_drift_moves_popularity() -> None:
    still, moving = realistic(drift=0.0), realistic(drift=1.0)
    assert np.array_equal(still.truth["popularity"][0], still.truth["popularity"][23])

    def moved(made: Synthetic, kind: str) -> float:
        """Total variation, within groups, between the first and the last third of the two years."""
        data, group = made.data, made.truth["item_group"]
        assert data.time is not None
        if kind == "truth":
            early, late = made.truth["popularity"][:8].mean(axis=0), made.truth["popularity"][16:].mean(axis=0)
        else:
            third = (data.time - START) // (2 * 365 * 86_400 // 3)
            early, late = (np.bincount(data.item[third == t], minlength=1_000) for t in (0, 2))
            early, late = (c / np.maximum(np.bincount(group, c), 1)[group] for c in (early, late))
        return float(np.abs(early - late).sum() / 40)

    assert moved(moving, "truth") > 0.3
    assert moved(moving, "rows") > moved(still, "rows") + 0.1


def test_frequencies_equal_the_stated_probabilities() -> None:
    """The first choice of each user has no item excluded: its counts follow taste x popularity exactly."""
    users = 200_000
    made = realistic(users=users, items=40, rows=5 * users, groups=4, drift=1.0, seed=2)
    data, truth = made.data, made.truth
    assert data.time is not None
    first = np.flatnonzero(np.append(True, np.diff(data.user) > 0))
    period = (data.time[first] - START) // PERIOD
    group = truth["item_group"]
    # Expected counts by period and item: the sum over the users of that period.
    expected, observed = np.zeros((24, 40)), np.zeros((24, 40))
    np.add.at(observed, (period, data.item[first]), 1)
    for p in range(24):
        who = data.user[first][period == p]
        expected[p] = truth["taste"][who].sum(axis=0, dtype=np.float64)[group] * truth["popularity"][p]
    big = expected > 5
    statistic = ((observed - expected)[big] ** 2 / expected[big]).sum()
    assert abs(expected.sum() - users) < 1
    assert big.sum() > 500
    # Users differ, so that the variance is a little below Poisson: the statistic must lie in the middle of its law.
    assert chi2.ppf(1e-6, 0.7 * big.sum()) < statistic < chi2.ppf(1 - 1e-6, big.sum())


def test_later_choices_are_renormalised_over_what_is_left() -> None:
    """Calibration of the last of 5 choices from 20 items, where repeats are common."""
    users = 60_000
    made = realistic(users=users, items=20, rows=5 * users, groups=2, drift=0.0, friends=0, seed=3)
    data, truth = made.data, made.truth
    law = truth["taste"][:, truth["item_group"]].astype(np.float64) * truth["popularity"][0]
    left = law.copy()
    last = np.append(np.flatnonzero(np.diff(data.user)), len(data) - 1)
    before = np.ones(len(data), np.bool_)
    before[last] = False
    left[data.user[before], data.item[before]] = 0
    left /= left.sum(axis=1, keepdims=True)
    observed = np.bincount(data.item[last], minlength=20)
    spread = np.sqrt((left * (1 - left)).sum(axis=0))
    assert (np.abs(observed - left.sum(axis=0)) < 5 * spread).all()
    # The chance given to what happened is, on average, what it should be.
    given = left[np.arange(users), data.item[last]]
    should = (left**2).sum(axis=1)
    assert abs(given.mean() - should.mean()) < 5 * given.std() / np.sqrt(users)


def test_ratings_follow_the_preference(market: Synthetic) -> None:
    data = market.data
    liking = preference(market.truth, data.user, data.item)
    assert spearmanr(liking, data.value).statistic > 0.6
    expected = market.oracle.fit(data)._predict(data.user, data.item)
    # Unbiased within every tenth of the predictions, so nothing that knows the pair has a lower RMSE.
    for part in np.array_split(np.argsort(expected), 10):
        error = data.value[part] - expected[part]
        assert abs(error.mean()) < 5 * error.std() / np.sqrt(part.size)
    assert ((data.value - expected) ** 2).mean() < 0.6 * data.value.var()


def test_the_oracle_beats_popularity_on_the_last_event(market: Synthetic) -> None:
    split = leave_last_out(market.data)
    known = split.known("test")
    oracle = market.oracle.fit(known)
    target = np.empty(2_000, np.int32)
    target[split.test.user] = split.test.item
    hits = (oracle.recommend(k=10).items == target[:, None]).any(axis=1).mean()
    seen = np.zeros((2_000, 1_000), np.bool_)
    seen[known.user, known.item] = True
    counts = np.where(seen, -1, np.bincount(known.item, minlength=1_000))
    popular = (np.argsort(-counts, axis=1, kind="stable")[:, :10] == target[:, None]).any(axis=1).mean()
    assert 0.15 < hits < 0.6
    assert 0.02 < popular < 0.6 * hits
    # The oracle's own scores are the log of the stated probability, at the period of the last event.
    truth, u = market.truth, 11
    law = np.log(truth["taste"][u, truth["item_group"]] * truth["popularity"][truth["last_period"][u]])
    np.testing.assert_allclose(oracle._score(np.array([u], np.int32))[0], law, rtol=1e-4)


def test_a_million_rows_of_heavy_use() -> None:
    """A quarter of all cells: rejection alone would crawl here."""
    made = realistic(users=8_000, items=500, rows=1_000_000, seed=1)
    assert len(made.data) == 1_000_000
    assert np.bincount(made.data.user).max() == 250
    assert all_distinct(made.data)
