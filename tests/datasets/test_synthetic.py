"""Synthetic data: what the generators promise, checked against the truth that they return."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from corank import Dataset, from_arrays, leave_last_out, set_threads
from corank.datasets.synthetic import Synthetic, markov, realistic, simulation
from corank.errors import CorankError
from corank.experiment.experiment import Experiment

SMALL: dict[str, Callable[[int], Synthetic]] = {
    "simulation": lambda seed: simulation(users=300, items=80, rank=5, edge=0.02, noise=0.1, seed=seed),
    "realistic": lambda seed: realistic(users=300, items=120, rows=6_000, groups=6, seed=seed),
    "markov": lambda seed: markov(users=60, items=40, length=12, successors=2, seed=seed),
}


def columns(data: Dataset) -> list[Any]:
    graph = [] if data.user_graph is None else [data.user_graph.indptr, data.user_graph.index]
    return [data.user, data.item, data.value, *([] if data.time is None else [data.time]), *graph]


def same(a: Synthetic, b: Synthetic) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(columns(a.data), columns(b.data), strict=True))


def hit_rate(made: Synthetic, k: int) -> float:
    """Share of the last items that the oracle, knowing the rest, has among its k best, seen ones allowed."""
    data = made.data
    last = np.append(np.flatnonzero(np.diff(data.user)), len(data) - 1)
    rest = np.ones(len(data), np.bool_)
    rest[last] = False
    ranking = made.oracle.fit(data.take(rest)).recommend(k=k, exclude_seen=False)
    return float((ranking.items == data.item[last][:, None]).any(axis=1).mean())


@pytest.fixture
def default_threads() -> Iterator[None]:
    yield
    set_threads(None)


@pytest.fixture(scope="module")
def dissertation() -> Synthetic:
    """The dissertation's own setting: 1.4 million rows."""
    return simulation()


# ---- all generators --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SMALL)
def test_the_seed_alone_decides(kind: str, default_threads: None) -> None:
    set_threads(1)
    one = SMALL[kind](3)
    set_threads(3)
    assert same(one, SMALL[kind](3))
    other = SMALL[kind](4)
    assert not np.array_equal(one.data.item, other.data.item)
    if kind == "realistic":
        assert not np.array_equal(one.data.time, other.data.time)
        assert not np.array_equal(one.truth["taste"], other.truth["taste"])


@pytest.mark.parametrize("kind", SMALL)
def test_the_oracle_is_used_like_any_model(kind: str) -> None:
    made = SMALL[kind](0)
    split = made.split or leave_last_out(made.data)
    whole = made.oracle.fit(split.train)
    user = int(split.train.users.ids[7])
    best = whole.recommend([user], k=5)[user]
    assert len(best) == 5
    seen = set(split.train.item[split.train.user == 7].tolist())
    assert not seen & {item for item, _ in best}
    assert whole.name() == "oracle"
    assert np.isfinite(whole.predict([user, user], [0, 1])).all()


@pytest.mark.parametrize("kind", SMALL)
def test_the_oracle_finds_its_rows_when_users_and_items_were_dropped(kind: str) -> None:
    made = SMALL[kind](0)
    rows = (made.data.user % 3 > 0) & (made.data.item % 4 > 0)
    part = made.data.take(rows).compact()
    assert len(part.users) < len(made.data.users)
    assert len(part.items) < len(made.data.items)
    users, items = part.users.ids[part.user[:50]], part.items.ids[part.item[:50]]
    # The last item of a user may have been dropped: the Markov oracle is told the rows that are left, in both fits.
    whole = made.oracle.fit(made.data.take(rows)).predict(users, items)
    np.testing.assert_allclose(made.oracle.fit(part).predict(users, items), whole, rtol=1e-6)


@pytest.mark.parametrize("kind", SMALL)
def test_an_oracle_is_not_saved_and_takes_no_foreign_data(kind: str, tmp_path: Any) -> None:
    made = SMALL[kind](0)
    with pytest.raises(CorankError, match="not saved"):
        made.oracle.save(tmp_path / "oracle.corank")
    assert not list(tmp_path.iterdir())
    for user in ([0, 10**6], [-1, 2], ["a", "b"]):
        with pytest.raises(CorankError, match="the oracle was made with the user ids 0 to"):
            made.oracle.fit(from_arrays(user=user, item=[0, 1]))


@pytest.mark.parametrize("kind", ["simulation", "realistic"])
def test_an_oracle_of_known_users_refuses_histories(kind: str) -> None:
    made = SMALL[kind](0)
    with pytest.raises(CorankError, match="knows only the generated users"):
        made.oracle.fit(made.data).recommend(histories=[[0, 1]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: simulation(users=0), "users=0 must be a whole number of at least 1"),
        (lambda: simulation(rank=2.5), "rank=2.5 must be a whole number"),
        (lambda: simulation(seed=-1), "seed=-1 must be a whole number of at least 0"),
        (lambda: simulation(edge=1.5), "edge=1.5 is a share or probability"),
        (lambda: simulation(weight=float("nan")), "weight=nan is a share"),
        (lambda: simulation(noise=-1), "noise=-1 must be a number between 0"),
        (lambda: simulation(train=0.7, test=0.4), "at most all cells"),
        (lambda: simulation(users=3, items=3, train=0.01), "need a row each"),
        (lambda: simulation(valid=1.0), "need a row each"),
        (lambda: simulation(users=100_000, edge=0.5), "lower it"),
        (lambda: realistic(users=-5), "users=-5 must be a whole number"),
        (lambda: realistic(items=5), "items=5 must be a whole number of at least 20"),
        (lambda: realistic(rows=9_999), "rows=9,999 must lie between 10,000"),
        (lambda: realistic(rows=500_001), "and 500,000 "),
        (lambda: realistic(groups=1_001), "groups=1001 is more than items=1000"),
        (lambda: realistic(levels=1), "levels=1 must be a whole number of at least 2"),
        (lambda: realistic(friends=2_000), "friends=2000 must be below users=2000"),
        (lambda: realistic(homophily=-0.1), "homophily=-0.1 is a share"),
        (lambda: realistic(drift=-1), "drift=-1 must be a number between 0 and 10"),
        (lambda: realistic(concentration=0), "concentration=0 must be a number between 0.01"),
        (lambda: markov(length=1), "length=1 must be a whole number of at least 2"),
        (lambda: markov(predictability=1.1), "predictability=1.1 is a share or probability"),
        (lambda: markov(items=5, successors=5), "successors=5 must be below items=5"),
        (lambda: markov(users=True), "users=True must be a whole number"),
    ],
)
def test_bad_arguments_get_one_sentence(make: Callable[[], Synthetic], message: str) -> None:
    with pytest.raises(CorankError) as caught:
        make()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


# ---- the dissertation's simulation -----------------------------------------------------------------------------------


def test_neighbours_are_averaged_not_summed(dissertation: Synthetic) -> None:
    # By hand: sums give a standard deviation of 131, no propagation gives sqrt(50) = 7.07.
    assert abs(float(dissertation.data.value.std()) - 1.13) < 0.02
    graph, weight = simulation(users=30, items=20, rank=3, edge=0.05, steps=2, train=0.3, test=0.2, seed=5), 0.6
    start = simulation(users=30, items=20, rank=3, edge=0.05, steps=0, train=0.3, test=0.2, seed=5)
    links = graph.data.user_graph
    assert links is not None
    U = start.truth["user_factors"]
    for _ in range(2):
        moved = U.copy()
        for i in range(30):
            near = links.index[links.indptr[i] : links.indptr[i + 1]]
            if near.size:
                moved[i] = weight * U[near].mean(axis=0) + (1 - weight) * U[i]
        U = moved
    np.testing.assert_allclose(graph.truth["user_factors"], U, rtol=1e-12)
    assert (np.diff(links.indptr) == 0).any()  # somebody without friends took part


def test_the_graph_is_erdos_renyi(dissertation: Synthetic) -> None:
    graph = dissertation.data.user_graph
    assert graph is not None
    matrix = graph.scipy()
    assert abs(matrix - matrix.T).sum() == 0
    assert matrix.diagonal().sum() == 0
    assert set(np.unique(matrix.data)) == {1.0}
    pairs, p = 10_000 * 9_999 / 2, 0.001
    assert abs(graph.index.size / 2 - pairs * p) < 5 * np.sqrt(pairs * p * (1 - p))
    # Degrees are binomial: mean and variance agree, which a graph with hubs or a biased numbering of pairs would break.
    degree = np.diff(graph.indptr)
    assert abs(degree.var() / degree.mean() - 1) < 0.08
    halves = degree[:5_000].mean(), degree[5_000:].mean()
    assert abs(halves[0] - halves[1]) < 5 * np.sqrt(2 * 10 / 5_000)


@pytest.mark.parametrize("edge", [0.0, 0.7, 1.0])
def test_sparse_and_dense_graphs_are_exact(edge: float) -> None:
    graph = simulation(users=40, items=10, rank=2, edge=edge, train=0.5, test=0.2).data.user_graph
    assert graph is not None
    matrix = graph.scipy().toarray()
    assert (matrix == matrix.T).all()
    assert np.trace(matrix) == 0
    assert abs(matrix.sum() / 2 - 780 * edge) <= 5 * np.sqrt(780 * edge * (1 - edge))


def test_the_cells_are_distinct_and_the_parts_have_their_shares(dissertation: Synthetic) -> None:
    data, split = dissertation.data, dissertation.split
    assert split is not None
    cells = data.user.astype(np.int64) * 2_000 + data.item
    assert (np.diff(np.sort(cells)) > 0).all()
    assert len(data) == 1_400_000
    assert (len(split.train), len(split.valid), len(split.test)) == (950_000, 50_000, 400_000)
    assert len(split.refit().train) == 1_000_000
    parts = [part.user.astype(np.int64) * 2_000 + part.item for part in (split.train, split.valid, split.test)]
    assert np.array_equal(np.sort(np.concatenate(parts)), np.sort(cells))
    # Uniform: rows of the users (and items) have the spread of a draw without replacement.
    for counts, size in ((np.bincount(split.test.user), 2_000), (np.bincount(split.test.item), 10_000)):
        assert abs(counts.mean() - 0.02 * size) < 1e-9
        assert abs(counts.var() / (size * 0.02 * 0.98) - 1) < 0.15


def test_ratings_without_noise_are_what_the_oracle_predicts(dissertation: Synthetic) -> None:
    assert dissertation.split is not None
    test = dissertation.split.test
    oracle = dissertation.oracle.fit(dissertation.split.train)
    users, items = test.users.ids[test.user], test.items.ids[test.item]
    np.testing.assert_allclose(oracle.predict(users, items), test.value, rtol=1e-5, atol=1e-6)
    scores = oracle._score(test.user[:5])
    np.testing.assert_allclose(scores[np.arange(5), test.item[:5]], test.value[:5], rtol=1e-4, atol=1e-5)
    noisy = simulation(users=2_000, items=500, rank=5, edge=0.005, noise=0.5, seed=1)
    data = noisy.data
    error = noisy.oracle.fit(data).predict(data.users.ids[data.user], data.items.ids[data.item]) - data.value
    assert abs(error.std() - 0.5) < 0.01


def test_every_cell_can_be_asked_for() -> None:
    made = simulation(users=7, items=5, rank=2, edge=0.5, train=0.6, test=0.4, valid=0)
    assert len(made.data) == 35
    assert made.split is not None
    assert len(made.split.valid) == 0
    assert len(simulation(users=1, items=50, rank=2, train=0.5, test=0.5).data) == 50


# ---- Markov sequences ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("predictability", "successors"), [(0.0, 1), (0.3, 1), (0.8, 3), (1.0, 2)])
def test_transition_rates_equal_the_dial(predictability: float, successors: int) -> None:
    made = markov(users=2_000, items=50, length=20, predictability=predictability, successors=successors)
    follows = made.truth["successors"]
    assert all(np.unique(row).size == successors for row in follows)
    assert (follows != np.arange(50)[:, None]).all()
    assert (np.bincount(follows.ravel(), minlength=50) == successors).all()
    item = made.data.item.reshape(2_000, 20)
    rate = predictability + (1 - predictability) * successors / 50
    for s in range(successors):
        hit = (item[:, 1:] == follows[item[:, :-1], s]).mean()
        each = rate / successors
        assert abs(hit - each) <= 5 * np.sqrt(each * (1 - each) / (2_000 * 19))
    counts = np.bincount(made.data.item, minlength=50)
    assert abs(counts / counts.mean() - 1).max() < 0.35  # nobody is popular


def test_hit_rate_of_the_markov_oracle() -> None:
    assert hit_rate(markov(predictability=1.0), k=1) == 1.0
    assert hit_rate(markov(predictability=1.0, successors=4), k=4) == 1.0
    assert abs(hit_rate(markov(predictability=0.6, users=4_000), k=1) - (0.6 + 0.4 / 200)) < 0.04
    assert abs(hit_rate(markov(predictability=0.0, users=4_000), k=10) - 0.05) < 0.02


def test_markov_rows_have_their_step_as_time() -> None:
    data = markov(users=3, items=9, length=4).data
    assert data.time is not None
    assert data.time.tolist() == [0, 1, 2, 3] * 3
    assert Experiment(data=data).make_split().name == "leave-last-out"


def test_the_markov_oracle_reads_histories() -> None:
    made = markov(users=50, items=30, length=8, successors=2, predictability=0.9)
    oracle, follows = made.oracle.fit(made.data), made.truth["successors"]
    ranking = oracle.recommend(histories=[[3, 9], [9, 3], []], k=2, exclude_seen=False)
    assert set(ranking.items[0].tolist()) == set(follows[9].tolist())
    assert set(ranking.items[1].tolist()) == set(follows[3].tolist())
    assert ranking.scores[0] == pytest.approx(0.45 + 0.1 / 30)
    assert ranking.scores[2] == pytest.approx(1 / 30)
    rows = oracle._score(np.arange(50, dtype=np.int32))
    np.testing.assert_allclose(rows.sum(axis=1), 1, rtol=1e-5)
    assert type(oracle).order_matters
