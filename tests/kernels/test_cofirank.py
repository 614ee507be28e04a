"""The NDCG surrogate against all orders of small lists, the assignment against scipy, the dual against its bound."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from corank.kernels import cofirank, ndcg_bound
from reference import cofirank_loss, cofirank_parts, one_minus_ndcg


def lists_of(values, top, items=None):
    """Lists with these ratings; the items are drawn where they matter."""
    lengths = [len(v) for v in values]
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rng = np.random.default_rng(0)
    index = np.arange(indptr[-1]) if items is None else [i for n in lengths for i in rng.permutation(items)[:n]]
    some = np.array([np.unique(v).size > 1 for v in values])
    n, flat = int(indptr[-1]), np.concatenate([np.asarray(v, np.float32) for v in values])
    parts = cofirank_parts(max(lengths), top)
    lists = ndcg_bound.NdcgLists(indptr, np.asarray(index, np.int32), flat, np.zeros(n), np.zeros(n), some, *parts)
    ndcg_bound.gains(0, len(values), lists)
    return lists


def evaluate(lists, score):
    gradient, out = np.zeros(score.size), np.empty(lists.some.size)
    ndcg_bound.losses(0, out.size, lists, np.asarray(score, np.float32), gradient, out)
    return out, gradient


@pytest.fixture(params=range(30))
def small(request):
    rng = np.random.default_rng(request.param)
    n = int(rng.integers(2, 7))
    value = rng.integers(0, 4, n).astype(float)
    value[:2] = [0, 3]
    score = (rng.normal(size=n) * rng.choice([0.01, 0.5, 4])).astype(np.float32)
    if request.param % 3 == 0:
        score = np.round(score)  # ties of scores
    return value, score, int(rng.integers(1, n + 2))


def test_loss_is_the_largest_over_all_orders(small):
    value, score, top = small
    (loss,), _ = evaluate(lists_of([value], top), score)
    assert loss == pytest.approx(cofirank_loss(score.astype(float), value, top), rel=1e-6, abs=1e-9)


def test_loss_is_a_bound_of_the_error(small):
    value, score, top = small
    (loss,), _ = evaluate(lists_of([value], top), score)
    assert loss >= one_minus_ndcg(value, np.argsort(-score, kind="stable"), top) - 1e-9
    assert loss >= one_minus_ndcg(value, np.lexsort((value, -score)), top) - 1e-9  # ties in the worst order too


def test_gradient_equals_differences(small):
    value, _, top = small
    rng = np.random.default_rng(9)
    score = rng.normal(size=value.size).astype(np.float32)  # no ties: differentiable but for rare kinks
    _, gradient = evaluate(lists_of([value], top), score)
    for j in range(value.size):
        step = np.zeros(value.size)
        step[j] = 1e-5
        up, down = (cofirank_loss(score + s * step, value, top) for s in (1, -1))
        assert gradient[j] == pytest.approx((up - down) / 2e-5, abs=1e-6)


def test_held_anchors_bound_the_loss_and_touch_it(small):
    value, score, top = small
    lists, rng = lists_of([value], top), np.random.default_rng(1)
    (here,), _ = evaluate(lists, score)
    held = lists.anchor.copy()
    assert here == pytest.approx(cofirank_loss(score.astype(float), value, top), abs=1e-6)
    for _ in range(5):
        other = (score + rng.normal(size=value.size)).astype(np.float32)
        (loss,), _ = evaluate(lists, other)
        assert loss + (lists.anchor - held) @ other >= loss - 1e-9


def test_ideal_order_with_wide_gaps_costs_nothing():
    value = [3, 2, 2, 0, 1]
    (loss,), gradient = evaluate(lists_of([value], 5), 100.0 * np.array([9, 7, 5, 1, 3]))
    assert loss == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(gradient, 0, atol=1e-12)


@pytest.mark.parametrize("top", [1, 5, 10, 60])
def test_worst_order_is_the_best_assignment(top):
    rng = np.random.default_rng(top)
    for _ in range(60):
        n = int(rng.integers(2, 60))
        value = rng.integers(0, 5, n)
        value[0], value[1] = 0, 5
        lists = lists_of([value], top)
        score = rng.normal(size=n) * rng.choice([0.001, 0.1, 2])
        place = np.empty(n, np.int64)
        ndcg_bound.worst_order(score, lists.gain, lists.discount, lists.decay, ndcg_bound.workspace(n), place)
        profit = lists.decay[:, None] * score - lists.discount[:, None] * lists.gain
        assert sorted(place) == list(range(n))
        assert profit[place, np.arange(n)].sum() == pytest.approx(profit[linear_sum_assignment(-profit)].sum())


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_end(bad):
    """A list of such scores has no worst order; the search for one must stop all the same."""
    value = [3, 2, 2, 0, 1]
    for score in ([1, bad, 2, 3, 4], [bad] * 5, [bad, -bad, 0, 1, 2]):
        loss, _ = evaluate(lists_of([value], 5), np.array(score, np.float64))
        assert loss.size == 1


def test_lists_of_one_level_or_one_item_do_not_count():
    lists = lists_of([[3, 3, 3], [2], [1, 2]], 10)
    out, gradient = evaluate(lists, np.arange(6.0))
    assert out[:2].tolist() == [0, 0]
    assert out[2] >= 0
    assert not gradient[:4].any()


def test_huge_ratings_do_not_overflow():
    lists = lists_of([[5000.0, 4999.0, 0.0]], 10)
    assert np.isfinite(lists.gain).all()
    assert np.isfinite(evaluate(lists, np.zeros(3))[0]).all()


@pytest.fixture
def problem():
    rng = np.random.default_rng(3)
    values = [rng.integers(0, 4, n) for n in (5, 1, 7, 8, 6)] + [np.full(4, 2)]
    lists = lists_of(values, 4, items=9)
    U, V = rng.normal(size=(6, 3)).astype(np.float32), rng.normal(size=(9, 3)).astype(np.float32)
    owner = np.repeat(np.arange(6), np.diff(lists.indptr))
    score = np.einsum("nf,nf->n", U[owner], V[lists.index]).astype(np.float32)
    evaluate(lists, score)  # anchors
    return rng, lists, owner, U, V, score


def held_loss(lists, anchor, score):
    """Sum of the losses with the anchors held."""
    out, _ = evaluate(lists, score)
    return out.sum() + ((lists.anchor - anchor) * np.asarray(score, float))[lists.some[owner_of(lists)]].sum()


def owner_of(lists):
    return np.repeat(np.arange(lists.some.size), np.diff(lists.indptr))


def test_items_end_where_primal_meets_dual(problem):
    rng, lists, owner, U, V, _ = problem
    reg, anchor = 0.8, lists.anchor.copy()
    mixed, height = lists.anchor.copy(), np.zeros(6)
    V = np.zeros_like(V)
    last = 0.0
    for _ in range(600):
        cofirank.item_sweep(rng.permutation(6), lists, U, reg, 3, mixed, height, V)
        expected = np.zeros(V.shape)
        np.add.at(expected, lists.index, ((anchor - mixed) / reg)[:, None] * U[owner])
        dual = height.sum() - 0.5 * reg * (expected**2).sum()
        assert dual >= last - 1e-6
        last = dual
    np.testing.assert_allclose(V, expected, atol=2e-4)
    primal = held_loss(lists, anchor, np.einsum("nf,nf->n", U[owner], V[lists.index])) + 0.5 * reg * (V**2).sum()
    assert primal == pytest.approx(dual, rel=0.02)
    assert primal >= dual - 1e-4


def solve_users(lists, V, reg, passes, ceiling, U, score):
    mixed, height = lists.anchor.copy(), np.zeros(len(U))
    cofirank.user_steps(0, len(U), lists, V, reg, passes, 1e-4, ceiling, mixed, height, U, score)
    return mixed, height


def test_users_end_where_primal_meets_dual(problem):
    _, lists, owner, U, V, score = problem
    reg, anchor, before = 0.8, lists.anchor.copy(), U.copy()
    mixed, height = solve_users(lists, V, reg, 3000, np.full(6, np.inf), U, score)
    for i in np.flatnonzero(lists.some):
        mine = owner == i
        w = ((anchor - mixed)[mine, None] * V[lists.index[mine]]).sum(0) / reg
        dual = height[i] - 0.5 * reg * w @ w
        np.testing.assert_allclose(score[mine], V[lists.index[mine]] @ U[i], rtol=1e-4, atol=1e-5)
        one = lists_of([lists.value[mine]], 4)
        primal = held_loss(one, anchor[mine], score[mine]) + 0.5 * reg * U[i] @ U[i]
        assert dual - 1e-6 <= primal <= dual * 1.02 + 1e-3
    np.testing.assert_array_equal(U[~lists.some], before[~lists.some])


def test_a_user_whose_objective_does_not_fall_stays(problem):
    _, lists, _, U, V, score = problem
    before, scores = U.copy(), score.copy()
    solve_users(lists, V, 0.8, 5, np.full(6, -1.0), U, score)
    np.testing.assert_array_equal(U, before)
    np.testing.assert_array_equal(score, scores)
