"""Loss, gradient and curvature of a sorted list against all pairs, one by one; few levels and many, ties and all."""

from __future__ import annotations

import numpy as np
import pytest

from corank.kernels import pairs, windows
from reference import hinge_list, logistic_pairs


def work(n, width, dtype):
    size = windows.work_size(n, width)
    return np.empty(size, dtype), np.empty(size, dtype), np.empty(n, dtype), np.empty(n, dtype)


def prepared(m, level):
    n, width = len(m), int(level.max()) + 1
    order = np.arange(n, dtype=np.int32)
    up, down = np.empty((2, n), np.int32)
    active, gradient = np.empty((2, n), np.float32)
    precise = np.empty(n)
    loss = windows.evaluate(m, level, width, order, up, down, active, gradient, precise, *work(n, width, np.float64))
    return loss, gradient, (level, width, order, up, down, active)


def hessian_times(state, b):
    width = state[1]
    out = np.empty_like(b)
    windows.hessian_product(b, *state, *work(b.size, width, np.float32), out)
    return out


def random_list(rng, longest=30, levels=12):
    n = int(rng.integers(1, longest))
    m = (rng.normal(size=n) * rng.choice([0.1, 1, 3])).astype(np.float32)
    if rng.random() < 0.4:
        m = np.round(m * 2) / 2  # ties, and margins of exactly 1
    level = np.unique(rng.integers(0, rng.integers(1, levels), n), return_inverse=True)[1].astype(np.int32)
    return m, level


@pytest.mark.parametrize("seed", range(10))
def test_equals_all_pairs(seed):
    """1,000 random lists: one-item and one-level lists, ties of scores and of ratings among them."""
    rng = np.random.default_rng(seed)
    for _ in range(100):
        m, level = random_list(rng)
        loss, gradient, state = prepared(m, level)
        expected, expected_gradient, hessian = hinge_list(m.astype(np.float64), level)
        assert loss == pytest.approx(expected, rel=1e-5, abs=1e-5)
        np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-4, atol=1e-4)
        b = rng.normal(size=m.size).astype(np.float32)
        np.testing.assert_allclose(hessian_times(state, b), hessian @ b, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("n", [70, 150, 400])
def test_many_levels(n):
    """More levels than lanes: the tree gives the same sums."""
    rng = np.random.default_rng(n)
    m = rng.normal(size=n).astype(np.float32)
    level = rng.permutation(n).astype(np.int32)
    loss, gradient, state = prepared(m, level)
    expected, expected_gradient, hessian = hinge_list(m.astype(np.float64), level)
    assert loss == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-4, atol=1e-3)
    b = rng.normal(size=n).astype(np.float32)
    np.testing.assert_allclose(hessian_times(state, b), hessian @ b, rtol=1e-3, atol=2e-2)


def test_gradient_equals_differences():
    rng = np.random.default_rng(3)
    for _ in range(20):
        m, level = random_list(rng)
        _, gradient, _ = prepared(m, level)
        for j in range(m.size):
            step = np.zeros(m.size)
            step[j] = 1e-5
            up, down = (hinge_list(m + sign * step, level)[0] for sign in (1, -1))
            assert gradient[j] == pytest.approx((up - down) / 2e-5, rel=1e-3, abs=1e-2)


def test_an_old_order_changes_nothing():
    """Starting from any order, a good or a bad one, gives the same sorted scores."""
    rng = np.random.default_rng(4)
    for start in (np.arange(300), np.arange(300)[::-1], rng.permutation(300)):
        score = rng.normal(size=300).astype(np.float32)
        order = start.astype(np.int32)
        windows._sort(score, order)
        assert (np.diff(score[order]) >= 0).all()
        assert sorted(order.tolist()) == list(range(300))


def test_pairs_equal_windows_and_formula():
    rng = np.random.default_rng(5)
    for _ in range(50):
        m, level = random_list(rng)
        n = m.size
        indptr, count = np.array([0, n], np.int64), np.empty(1, np.int64)
        pairs.comparable(0, 1, indptr, level, np.array([level.max() + 1], np.int32), count)
        assert count[0] == sum(level[j] != level[k] for j in range(n) for k in range(j))
        high, low = np.empty((2, count[0]), np.int32)
        pairs.enumerate_pairs(0, 1, indptr, level, np.array([0, count[0]], np.int64), high, low)
        assert (level[high] > level[low]).all()
        gradient, curvature, out = np.empty(n, np.float32), np.empty(count[0], np.float32), np.empty(n, np.float32)
        b = rng.normal(size=n).astype(np.float32)
        for kind, expected in (
            (pairs.SQUARED_HINGE, hinge_list(m.astype(np.float64), level)),
            (pairs.LOGISTIC, logistic_pairs(m.astype(np.float64), high, low)),
        ):
            assert pairs.evaluate(m, high, low, kind, gradient, curvature) == pytest.approx(
                expected[0], rel=1e-5, abs=1e-5
            )
            np.testing.assert_allclose(gradient, expected[1], rtol=1e-3, atol=1e-3)
            if kind == pairs.LOGISTIC or not np.isclose(np.abs(np.subtract.outer(m, m)), 1).any():
                pairs.hessian_product(b, high, low, curvature, out)
                np.testing.assert_allclose(out, expected[2] @ b, rtol=1e-3, atol=1e-3)


def test_logistic_loss_of_far_pairs_is_finite():
    m = np.array([500.0, -500.0], np.float32)
    one, two = np.array([0], np.int32), np.array([1], np.int32)
    gradient, curvature = np.empty(2, np.float32), np.empty(1, np.float32)
    assert pairs.evaluate(m, one, two, pairs.LOGISTIC, gradient, curvature) == 0
    assert pairs.evaluate(m, two, one, pairs.LOGISTIC, gradient, curvature) == pytest.approx(1000)
    assert np.isfinite(gradient).all()
