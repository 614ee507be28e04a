"""Dual coordinate descent against its slow twin, the duality gap, and the gradient of the primal."""

from __future__ import annotations

import numpy as np
import pytest

from corank.kernels import collrank, pairs
from reference import hinge_list, item_features, svm_dual, svm_primal, svm_sweep

D, ITEMS = 4, 9


@pytest.fixture(params=range(6))
def problem(request):
    """Lists with ties, one level, one item and nothing among them."""
    rng = np.random.default_rng(request.param)
    lengths = np.concatenate([[0, 1, 5], rng.integers(2, ITEMS, 8)])
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    index = np.concatenate([np.sort(rng.choice(ITEMS, n, replace=False)) for n in lengths]).astype(np.int32)
    level = rng.integers(0, 3, index.size).astype(np.int32)
    level[indptr[2] : indptr[3]] = 1
    rows = lengths.size
    count = np.empty(rows, np.int64)
    pairs.comparable(0, rows, indptr, level, np.full(rows, 3, np.int32), count)
    pair_indptr = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
    high, low = np.empty((2, pair_indptr[-1]), np.int32)
    pairs.enumerate_pairs(0, rows, indptr, level, pair_indptr, high, low)
    U = rng.normal(size=(rows, D)).astype(np.float32)
    V = rng.normal(size=(ITEMS, D)).astype(np.float32)
    return rng, (indptr, index), level, (pair_indptr, high, low), U, V


def lists_of(lists, given):
    """(list, its items, its pairs, their items) of each list with pairs."""
    (indptr, index), (pair_indptr, high, low) = lists, given
    for i in np.flatnonzero(np.diff(pair_indptr)):
        items, mine = index[indptr[i] : indptr[i + 1]], slice(pair_indptr[i], pair_indptr[i + 1])
        yield i, items, mine, (items[high[mine]], items[low[mine]])


def solve_users(lists, given, V, reg, passes, most, tolerance, ceiling=np.inf, alpha=None, U=None):
    rows, n = lists[0].size - 1, lists[1].size
    alpha = np.zeros(given[1].size, np.float32) if alpha is None else alpha.copy()
    U = np.full((rows, V.shape[1]), 7, np.float32) if U is None else U.copy()
    score, loss = np.full(n, -1, np.float32), np.full(rows, -1.0)
    begin, ceiling = np.zeros(rows, np.int64), np.full(rows, ceiling)
    options = (V, reg, passes, most, tolerance, ceiling)
    collrank.user_steps(0, rows, *lists, *given, begin, *options, alpha, U, score, loss)
    return alpha, U, score, loss


@pytest.mark.parametrize("reg", [0.3, 2.0, 40.0])
def test_users_end_where_primal_meets_dual_and_the_gradient_vanishes(problem, reg):
    _, lists, _, given, _, V = problem
    alpha, U, score, loss = solve_users(lists, given, V, reg, 1, 5000, 1e-7)
    for i, items, mine, (high, low) in lists_of(lists, given):
        X = (V[high] - V[low]).astype(np.float64)
        w = U[i].astype(np.float64)
        value, gradient = svm_primal(w, X, reg)
        assert value == pytest.approx(svm_dual(alpha[mine].astype(np.float64), X, reg), rel=1e-5)
        assert np.abs(gradient).max() < 2e-3 * (1 + len(X))
        for f in range(D):  # the gradient of the twin is one, by differences
            step = 1e-6 * np.eye(D)[f]
            up, down = svm_primal(w + step, X, reg)[0], svm_primal(w - step, X, reg)[0]
            assert gradient[f] == pytest.approx((up - down) / 2e-6, abs=1e-3)
        np.testing.assert_allclose(alpha[mine], 2 * np.maximum(0, 1 - X @ w), atol=2e-2)
        np.testing.assert_allclose(score[lists[0][i] : lists[0][i + 1]], V[items] @ U[i], atol=1e-5)
        assert loss[i] == pytest.approx(value - 0.5 * reg * w @ w, rel=1e-4, abs=1e-5)


def test_a_user_sweep_is_that_of_the_twin(problem):
    rng, lists, _, given, _, V = problem
    before = rng.uniform(0, 2, given[1].size).astype(np.float32)  # duals from an earlier epoch
    alpha, U, _, _ = solve_users(lists, given, V, 1.5, 2, 2, np.inf, alpha=before)
    for i, _, mine, (high, low) in lists_of(lists, given):
        X = (V[high] - V[low]).astype(np.float64)
        expected = svm_sweep(before[mine], X, 1.5, [*range(len(X))] * 2)
        np.testing.assert_allclose(alpha[mine], expected, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(U[i], X.T @ expected / 1.5, rtol=1e-3, atol=1e-4)


def test_a_user_whose_objective_does_not_fall_stays(problem):
    _, lists, _, given, U, V = problem
    alpha, same, score, loss = solve_users(lists, given, V, 1.0, 1, 3, np.inf, ceiling=-1.0, U=U)
    np.testing.assert_array_equal(same, U)
    assert (score == -1).all()
    assert (loss == -1).all()
    assert alpha.any()  # what was learned of the dual is kept


def test_lists_without_pairs_stay(problem):
    _, lists, _, given, U, V = problem
    _, after, _, _ = solve_users(lists, given, V, 1.0, 1, 3, np.inf, U=U)
    empty = np.diff(given[0]) == 0
    assert empty[:3].all()
    np.testing.assert_array_equal(after[empty], U[empty])
    assert (after[~empty] != U[~empty]).any(axis=1).all()


def sweep_items(lists, given, U, reg, alpha, V, order, begin):
    alpha, V = alpha.copy(), V.copy()
    collrank.item_sweep(order, begin, *lists, *given, U, reg, alpha, V)
    return alpha, V


def test_an_item_sweep_is_that_of_the_twin(problem):
    """Working on the scores of one user at a time gives what a sweep over the whole of V gives."""
    rng, lists, _, given, U, _ = problem
    reg, pair_indptr = 3.0, given[0]
    users = np.repeat(np.arange(len(U)), np.diff(pair_indptr))
    parts = [np.concatenate(side) for side in zip(*(p for *_, p in lists_of(lists, given)), strict=True)]
    X = item_features(users, *parts, U, ITEMS)
    before = rng.uniform(0, 2, users.size).astype(np.float32)
    start = (X.T @ before / reg).reshape(ITEMS, D).astype(np.float32)
    order, begin = rng.permutation(len(U)), (rng.random(len(U)) * np.diff(pair_indptr)).astype(np.int64)
    alpha, V = sweep_items(lists, given, U, reg, before, start, order, begin)
    walk = [pair_indptr[i] + (begin[i] + t) % n for i in order for n in [np.diff(pair_indptr)[i]] for t in range(n)]
    expected = svm_sweep(before, X, reg, walk)
    np.testing.assert_allclose(alpha, expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(V.ravel(), X.T @ expected / reg, rtol=1e-3, atol=1e-4)


def test_items_end_where_primal_meets_dual(problem):
    rng, lists, _, given, U, _ = problem
    reg, rows = 3.0, len(U)
    users = np.repeat(np.arange(rows), np.diff(given[0]))
    parts = [np.concatenate(side) for side in zip(*(p for *_, p in lists_of(lists, given)), strict=True)]
    X = item_features(users, *parts, U, ITEMS)
    alpha, V = np.zeros(users.size, np.float32), np.zeros((ITEMS, D), np.float32)
    last = -np.inf
    for _ in range(400):
        alpha, V = sweep_items(lists, given, U, reg, alpha, V, rng.permutation(rows), np.zeros(rows, np.int64))
        dual = svm_dual(alpha.astype(np.float64), X, reg)
        assert dual >= last - 1e-5 * abs(last)  # each step is the best along its coordinate
        last = dual
    value, gradient = svm_primal(V.astype(np.float64).ravel(), X, reg)
    assert value == pytest.approx(last, rel=1e-4)
    assert np.abs(gradient).max() < 5e-3 * len(X) ** 0.5


def test_a_user_of_zeros_moves_no_item(problem):
    _, lists, _, given, U, V = problem
    alpha, after = sweep_items(
        lists, given, 0 * U, 1.0, np.zeros(given[1].size, np.float32), V, np.arange(len(U)), np.zeros(len(U), np.int64)
    )
    np.testing.assert_array_equal(after, V)
    np.testing.assert_array_equal(alpha, 2.0)  # the margin is 0 whatever V is, so 1 - alpha / 2 = 0


def test_loss_is_the_sum_over_pairs(problem):
    rng, lists, level, given, _, _ = problem
    score = rng.normal(size=lists[1].size).astype(np.float32)
    out = np.empty(lists[0].size - 1)
    collrank.losses(0, out.size, lists[0], *given, score, out)
    for i in range(out.size):
        mine = slice(lists[0][i], lists[0][i + 1])
        assert out[i] == pytest.approx(hinge_list(score[mine].astype(np.float64), level[mine])[0], rel=1e-5, abs=1e-9)


def test_weights_are_what_the_duals_say(problem):
    rng, lists, _, given, _, _ = problem
    alpha = rng.uniform(0, 2, given[1].size).astype(np.float32)
    out = np.empty(lists[1].size, np.float32)
    collrank.weights(0, lists[0].size - 1, lists[0], *given, alpha, 2.0, out)
    expected = np.zeros(lists[1].size)
    for i in range(lists[0].size - 1):
        for t in range(given[0][i], given[0][i + 1]):
            expected[lists[0][i] + given[1][t]] += alpha[t] / 2
            expected[lists[0][i] + given[2][t]] -= alpha[t] / 2
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


def test_shuffle_keeps_the_pairs_and_knows_its_stream(problem):
    _, lists, _, (pair_indptr, high, low), _, _ = problem
    rows = lists[0].size - 1

    def shuffled(seed, stream):
        a, b = high.copy(), low.copy()
        collrank.shuffle(0, rows, pair_indptr, stream, seed, a, b)
        return np.stack([a, b], axis=1)

    one = shuffled(1, np.arange(rows))
    for i in range(rows):
        mine = slice(pair_indptr[i], pair_indptr[i + 1])
        assert sorted(map(tuple, one[mine])) == sorted(zip(high[mine], low[mine], strict=True))
    np.testing.assert_array_equal(one, shuffled(1, np.arange(rows)))
    assert (one != shuffled(2, np.arange(rows))).any()
    assert (one != shuffled(1, np.zeros(rows, np.int64))).any()


def test_every_order_is_as_likely_as_another():
    """Three pairs have six orders."""
    count = 6000
    pair_indptr = 3 * np.arange(count + 1, dtype=np.int64)
    high = np.tile(np.arange(3, dtype=np.int32), count)
    collrank.shuffle(0, count, pair_indptr, np.arange(count), 0, high, high.copy())
    _, seen = np.unique(high.reshape(count, 3), axis=0, return_counts=True)
    assert seen.size == 6
    assert np.abs(seen - 1000).max() < 5 * np.sqrt(1000)
