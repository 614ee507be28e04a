"""Maximal marginal relevance against the greedy choice written out."""

from __future__ import annotations

import numpy as np
import pytest

from corank.kernels.mmr import choose
from corank.kernels.threads import run
from reference import mmr


@pytest.mark.parametrize("dial", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_equal_to_the_slow_version(dial):
    rng = np.random.default_rng(int(10 * dial))
    lists, n, k = 20, 12, 7
    scores = -np.sort(-rng.normal(size=(lists, n)).astype(np.float32), axis=1)
    scores[3] = 1.0  # all alike
    similar = rng.random((lists, n, n)).astype(np.float32)
    similar = np.ascontiguousarray((similar + similar.transpose(0, 2, 1)) / 2)
    real = rng.integers(0, n + 1, lists)
    real[:3] = 0, 1, n
    order = np.empty((lists, k), np.int32)
    run(choose, lists, scores, real, similar, dial, order)
    for b in range(lists):
        want = mmr(scores[b, : real[b]].astype(np.float64), similar[b].astype(np.float64), dial, k)
        assert order[b].tolist() == want + [-1] * (k - len(want))


def test_a_dial_of_0_keeps_the_order_of_equal_scores():
    order = np.empty((1, 4), np.int32)
    choose(0, 1, np.ones((1, 4), np.float32), np.array([4]), np.ones((1, 4, 4), np.float32), 0.0, order)
    assert order.tolist() == [[0, 1, 2, 3]]
