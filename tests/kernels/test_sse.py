"""Who stands in for whom, and how often: against the stated odds, drawn many times with fixed seeds."""

from __future__ import annotations

import numpy as np
import pytest

from corank.kernels import mf, sgd, sse

N = 12
POOL = np.array([0, 2, 3, 4, 5, 7, 8, 9, 10, 11], np.int32)


def graph_of(edges, rows=N):
    pairs = np.array(sorted(edges))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(pairs[:, 0], minlength=rows))]).astype(np.int64)
    return indptr, pairs[:, 1].astype(np.int32)


GRAPH = graph_of(
    [(0, k) for k in (2, 3, 4, 1, 0)]  # a loop and a neighbour who takes no part
    + [(3, k) for k in POOL if k != 3]  # everybody is a neighbour
    + [(4, 11), (5, 2), (5, 8)]  # row 2 has none
)


def odds(j, p, rho, pool, graph):
    """p(j, k) for all k, from its definition."""
    out = np.zeros(N)
    if graph is None:
        out[pool] = p / pool.size
        out[j] += 1 - p
        return out
    near = set(graph[1][graph[0][j] : graph[0][j + 1]].tolist()) & set(pool.tolist()) - {j}
    if len(near) == pool.size - 1:
        rho = 1.0  # all are neighbours: it makes no difference, even at 0
    q = p / (rho * len(near) + pool.size - 1 - len(near))
    for k in pool:
        out[k] = 1 - p if k == j else rho * q if k in near else q
    return out


def entries_of(user, item):
    user = np.asarray(user, np.int32)
    return sgd.Entries(user, np.broadcast_to(np.int32(item), user.shape).copy(), np.arange(user.size, dtype=np.float32))


def within(counts, share, sigmas=5):
    """Whether counts are those of so many draws with these shares, but for chance."""
    n = counts.sum()
    return (np.abs(counts - n * share) <= sigmas * np.sqrt(n * share * (1 - share)) + 1e-9).all()


@pytest.mark.parametrize("j", [0, 2, 3, 4, 5, 11])
@pytest.mark.parametrize(
    ("p", "rho", "graph"),
    [
        (0.3, 1.0, None),
        (1.0, 1.0, None),
        (0.4, 6.0, GRAPH),
        (1.0, 1.5, GRAPH),
        (0.7, 0.25, GRAPH),
        (1.0, 0.0, GRAPH),
        (1.0, 1e9, GRAPH),
    ],
)
def test_odds_are_the_stated_ones(j, p, rho, graph):
    entries = entries_of(np.full(200_000, j), 1)
    one = sse.replacement(p, POOL, rho, graph)
    none = sse.replacement(0.0, np.arange(N))
    drawn = sse.replace(np.random.default_rng(j), entries, one, none)
    assert within(np.bincount(drawn.user, minlength=N), odds(j, p, rho, POOL, graph))
    np.testing.assert_array_equal(drawn.item, entries.item)
    np.testing.assert_array_equal(drawn.value, entries.value)
    flipped = sgd.Entries(entries.item, entries.user, entries.value)  # the same for items
    drawn = sse.replace(np.random.default_rng(j), flipped, none, one)
    assert within(np.bincount(drawn.item, minlength=N), odds(j, p, rho, POOL, graph))
    np.testing.assert_array_equal(drawn.user, flipped.user)


@pytest.mark.parametrize(
    ("p_user", "p_item"), [(0.3, 0.2), (0.05, 0.9), (0.0, 0.1), (0.1, 0.0), (1.0, 0.5), (0.01, 0.01)]
)
def test_coins_of_user_and_item_are_independent(p_user, p_item):
    n = 400_000
    step, sides = np.empty(n, np.int64), np.empty(n, np.uint8)
    end = sse._draw_steps(7, p_user, p_item, step, sides)
    assert (np.diff(step[:end]) > 0).all()
    fell = np.zeros(n, np.int64)
    fell[step[:end]] = sides[:end]
    share = np.array([(1 - p_user) * (1 - p_item), p_user * (1 - p_item), (1 - p_user) * p_item, p_user * p_item])
    assert within(np.bincount(fell, minlength=4), share)
    pairs = fell[:-1:2] * 4 + fell[1::2]  # a step says nothing of the next one
    assert within(np.bincount(pairs, minlength=16), np.outer(share, share).ravel())


def test_coins_at_the_ends_of_the_scale():
    step, sides = np.empty(50, np.int64), np.empty(50, np.uint8)
    assert sse._draw_steps(1, 1.0, 1.0, step, sides) == 50
    np.testing.assert_array_equal(step, np.arange(50))
    assert (sides == 3).all()
    assert sse._draw_steps(1, 1e-300, 0.0, step, sides) == 0
    assert sse._draw_steps(1, 0.5, 0.5, step[:0], sides[:0]) == 0


def test_zero_draws_nothing_and_copies_nothing():
    rng, entries, none = np.random.default_rng(0), entries_of(POOL, 2), sse.replacement(0.0, POOL)
    before = rng.bit_generator.state
    assert sse.replace(rng, entries, none, none) is entries
    assert sse.split(rng, entries, 3, none, none) is entries
    assert rng.bit_generator.state == before


def test_who_is_alone_stays():
    alone = sse.replacement(1.0, np.array([3]), 9.0, GRAPH)
    assert (sse.replace(np.random.default_rng(0), entries_of(np.full(20, 3), 0), alone, alone).user == 3).all()


def test_neighbours_who_take_no_part_loops_and_repeats_are_left_out():
    indptr, index = graph_of([(0, k) for k in (4, 2, 2, 3, 1, 0)] + [(1, 2), (3, 11), (3, 0)])
    one = sse.replacement(0.5, POOL, 2.0, (indptr, index))
    rows = [POOL[one.near[a:b]].tolist() for a, b in zip(one.indptr[:-1], one.indptr[1:], strict=True)]
    assert rows == [[0, 2, 3, 4], [2], [0, 3, 11], *([k] for k in POOL[3:])]  # each with itself
    assert sse.replacement(0.5, POOL, 1.0, GRAPH).place.size == 0  # all alike: no need to look


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan")])
def test_a_probability_is_one(wrong):
    with pytest.raises(ValueError, match="between 0 and 1"):
        sse.replacement(wrong, POOL)


@pytest.mark.parametrize("wrong", [-0.5, float("nan"), float("inf")])
def test_rho_is_a_ratio(wrong):
    with pytest.raises(ValueError, match="rho"):
        sse.replacement(0.1, POOL, wrong, GRAPH)


def test_split_keeps_the_number_of_steps_and_their_owners():
    rng = np.random.default_rng(3)
    user = np.sort(rng.choice(POOL, 90_000)).astype(np.int32)
    entries = sgd.Entries(user, np.full(user.size, 6, np.int32), np.full(user.size, 3, np.int32))
    out = sse.split(rng, entries, 3, sse.replacement(0.2, POOL), sse.replacement(0.1, np.arange(N)))
    n = user.size
    np.testing.assert_array_equal(out.user[:n], entries.user)
    np.testing.assert_array_equal(out.item[:n], entries.item)
    either = 0.2 + 0.1 - 0.02
    left = out.value[:n]
    binomial = np.array([either**3, 3 * either**2 * (1 - either), 3 * either * (1 - either) ** 2, (1 - either) ** 3])
    assert within(np.bincount(left, minlength=4), binomial)  # coins of its own for each of the three
    assert left.sum() + (out.user.size - n) == 3 * n
    owner = -1 - out.value[n:]
    np.testing.assert_array_equal(np.bincount(owner, minlength=N), np.bincount(user, 3 - left, minlength=N))
    same = (out.user[n:] == owner) & (out.item[n:] == 6)  # a row may be drawn to stand in for itself
    both, one, other = 0.2 * 0.1 / (10 * 12), 0.2 * 0.9 / 10, 0.8 * 0.1 / 12
    chance = (both + one + other) / either
    assert within(np.bincount(same, minlength=2), np.array([1 - chance, chance]))


def test_the_mean_step_is_that_of_the_double_sum():
    """From one start, the mean of many tiny epochs of SSE-MF is sum over (j, k) of p(u, j) p(i, k) gradient(j, k)."""
    rng, d, lr, times = np.random.default_rng(5), 2, np.float32(1e-3), 6000
    user, item = np.array([0, 0, 2, 3], np.int32), np.array([4, 2, 0, 4], np.int32)
    entries = sgd.Entries(user, item, np.float32([5, 1, 3, 4]))
    X, V = (rng.normal(size=(N, d)).astype(np.float32) for _ in range(2))
    zero = np.zeros(N, np.float32)
    replacements = sse.replacement(0.3, POOL, 4.0, GRAPH), sse.replacement(0.2, POOL)
    moved = np.zeros((times, 2, N, d))
    for k in range(times):
        x, v = X.copy(), V.copy()
        blocks = sgd.random_blocks(rng, sse.replace(rng, entries, *replacements), N, N)
        rest = (lr, np.float32(0), None, np.float32(0), zero, zero, zero, zero)
        sgd.sweep(mf.step, blocks, k, *rest, x, zero.copy(), v, zero.copy())
        moved[k] = (x - X) / lr, (v - V) / lr
    expected = np.zeros((2, N, d))
    for u, i, y in zip(*entries, strict=True):
        by_user, by_item = odds(u, 0.3, 4.0, POOL, GRAPH), odds(i, 0.2, 1.0, POOL, None)
        error = y - X.astype(np.float64) @ V.T
        expected[0] += by_user[:, None] * ((error * by_item) @ V)
        expected[1] += by_item[:, None] * ((error.T * by_user) @ X)
    off = moved.mean(axis=0) - expected
    # 5 standard errors, and the little that the four steps of an epoch see of each other
    assert (np.abs(off) < 5 * moved.std(axis=0) / np.sqrt(times) + 20 * lr).all()
    assert np.abs(expected).max() > 10 * np.abs(off).max()
