"""The list loss against the urn it stands for, its gradient against differences, and the queues against counting."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from corank.kernels import plackett_luce
from corank.kernels.threads import run, set_threads
from reference import differences, plackett_luce_loss

FULL = 2**62


def evaluate(score, order, indptr=None, top=FULL):
    score, order = np.asarray(score, np.float32), np.asarray(order, np.int32)
    indptr = np.array([0, score.size]) if indptr is None else indptr
    gradient, curvature = np.empty((2, score.size), np.float32)
    loss = np.empty(indptr.size - 1)
    plackett_luce.evaluate(0, loss.size, indptr, order, top, score, gradient, curvature, loss)
    return gradient, curvature, loss


def test_three_items_by_hand():
    a, b, c = (math.exp(1 / (1 + math.exp(-x))) for x in (0.3, -1.0, 2.0))
    _, _, loss = evaluate([0.3, -1.0, 2.0], [2, 0, 1])
    assert loss[0] == pytest.approx(-math.log(c / (a + b + c) * a / (a + b)), rel=1e-6)


def test_all_orders_have_probability_one():
    score = [0.5, -2.0, 1.0, 3.0]
    total = sum(math.exp(-evaluate(score, order)[2][0]) for order in itertools.permutations(range(4)))
    assert total == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("top", [FULL, 1, 3, 7])
def test_a_thousand_random_lists(top):
    """Loss equals the urn's, gradient equals its differences, and curvature bounds its second derivative."""
    rng = np.random.default_rng(top % 1000)
    lengths = rng.integers(0, 12, 1000)
    lengths[:20] = [*[0] * 10, *[1] * 10]
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    score = (rng.choice([0.1, 1, 5, 20], 1000).repeat(lengths) * rng.normal(size=indptr[-1])).astype(np.float32)
    order = np.concatenate([rng.permutation(n) for n in lengths]).astype(np.int32)
    gradient, curvature, loss = evaluate(score, order, indptr, top)
    for r in range(1000):
        mine = slice(indptr[r], indptr[r + 1])
        x, queue = score[mine].astype(float), order[mine].tolist()

        def f(x, queue=queue):
            return plackett_luce_loss(x, queue, top)

        assert loss[r] == pytest.approx(f(x), rel=1e-5, abs=1e-6)
        np.testing.assert_allclose(gradient[mine], differences(f, x), atol=2e-6, rtol=1e-4)
        if r % 20 == 0 and x.size:
            hessian = np.array(
                [differences(lambda y, p=p, f=f: differences(f, y, 1e-3)[p], x, 1e-3) for p in range(x.size)]
            )
            bound = np.diag(curvature[mine].astype(float))
            assert np.linalg.eigvalsh(bound - (hessian + hessian.T) / 2).min() > -1e-4
    assert (curvature >= 0).all()


def test_a_long_list():
    """More positions than one product of the totals could hold."""
    rng = np.random.default_rng(0)
    score, order = rng.normal(size=3000).astype(np.float32), rng.permutation(3000)
    gradient, _, loss = evaluate(score, order)
    weight = np.exp(1 / (1 + np.exp(-score.astype(float))))[order]
    tails = np.cumsum(weight[::-1])[::-1]
    assert loss[0] == pytest.approx(np.log(tails / weight).sum(), rel=1e-6)
    h = np.log(weight)
    np.testing.assert_allclose(gradient[order], h * (1 - h) * (weight * np.cumsum(1 / tails) - 1), atol=1e-5)


@pytest.mark.parametrize("size", [1e3, 1e30, np.inf])
def test_extreme_scores_stay_finite(size):
    for part in evaluate(np.array([size, -size, 0, size, -size]), [4, 2, 0, 1, 3]):
        assert np.isfinite(part).all()


# ---- queues ------------------------------------------------------------------------------------------------------


def queues(levels, zeros, columns, seed=0, stream=None):
    """Lists that own the columns 0, 2, 4, ... with these levels, and room for `zeros` more."""
    own = np.array([len(one) for one in levels])
    own_indptr = np.concatenate([[0], np.cumsum(own)]).astype(np.int64)
    own_index = np.concatenate([2 * np.arange(n) for n in own]).astype(np.int32)
    level = np.concatenate(levels).astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum(own + zeros)]).astype(np.int64)
    index, order = np.zeros((2, indptr[-1]), np.int32)
    for r, one in enumerate(levels):
        index[indptr[r] : indptr[r] + own[r]] = 2 * np.arange(own[r])
        order[indptr[r] : indptr[r + 1]] = np.arange(own[r] + zeros)
        order[indptr[r] : indptr[r] + own[r]] = np.argsort(-np.asarray(one), kind="stable")
    stream = np.arange(own.size) if stream is None else stream
    args = (seed, stream, own_indptr, own_index, level, columns, indptr, index, order)
    run(plackett_luce.queue, own.size, *args, cost=indptr)
    return [(index[a:b], order[a:b]) for a, b in itertools.pairwise(indptr)]


@pytest.mark.parametrize("columns", [25, 40, 1000])
def test_own_columns_by_falling_level_then_others_once(columns):
    rng = np.random.default_rng(1)
    levels = [rng.integers(0, 3, rng.integers(1, 10)) for _ in range(200)]
    for level, (index, order) in zip(levels, queues(levels, 12, columns), strict=True):
        n = level.size
        assert sorted(order) == list(range(n + 12))
        assert (np.diff(level[order[:n]]) <= 0).all()
        assert (order[n:] == np.arange(n, n + 12)).all()
        assert (index[:n] == 2 * np.arange(n)).all()
        assert np.unique(index).size == n + 12
        assert index.min() >= 0
        assert index.max() < columns


def test_a_list_may_take_every_column():
    index, _ = queues([np.zeros(3)], 4, 7)[0]
    assert sorted(index) == list(range(7))


def test_ties_fall_equally_often():
    drawn = queues([np.array([1, 0, 1, 1])] * 12_000, 0, 8)
    found, counts = np.unique([order for _, order in drawn], axis=0, return_counts=True)
    assert len(found) == 6
    assert (found[:, 3] == 1).all()
    assert np.abs(counts - 2000).max() < 5 * math.sqrt(2000)


@pytest.mark.parametrize("columns", [8, 30])
def test_other_columns_are_drawn_equally_often(columns):
    """By rejection (30) and from the list of what is left (8); the first of them as often as the last."""
    drawn = queues([np.zeros(2)] * 12_000, 3, columns)
    for at in (2, 3, 4):
        counts = np.bincount([index[at] for index, _ in drawn], minlength=columns)
        assert counts[0] == counts[2] == 0
        expected = 12_000 / (columns - 2)
        assert np.abs(np.delete(counts, [0, 2]) - expected).max() < 5 * math.sqrt(expected)


def test_the_stream_decides_and_not_the_place():
    levels = [np.zeros(9)] * 4
    first, other, again, _ = queues(levels, 5, 60, stream=np.array([7, 8, 7, 9]))
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert any((a != b).any() for a, b in zip(first, other, strict=True))


def test_another_seed_is_another_queue():
    one, two = (queues([np.zeros(20)], 10, 90, seed=seed)[0] for seed in (1, 2))
    assert any((a != b).any() for a, b in zip(one, two, strict=True))


def test_threads_change_nothing():
    rng = np.random.default_rng(2)
    levels = [rng.integers(0, 2, rng.integers(1, 10)) for _ in range(300)]
    found = []
    for count in (1, 2, 3):
        set_threads(count)
        found.append(queues(levels, 4, 50))
    set_threads(None)
    for other in found[1:]:
        for (a, b), (c, d) in zip(found[0], other, strict=True):
            assert (a == c).all()
            assert (b == d).all()
