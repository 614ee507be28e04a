"""Shared negatives: how often each item is drawn, and that the log-q correction undoes it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from corank.nn.negatives import SharedNegatives

COUNT = np.array([0, 1, 16, 0, 81, 256, 0])


def shares(negatives, targets=(), draws=400, seed=0):
    rng = np.random.default_rng(seed)
    found = np.concatenate([negatives.draw(rng, np.asarray(targets, np.int64)) for _ in range(draws)])
    return np.bincount(found, minlength=COUNT.size) / found.size


@pytest.mark.parametrize("power", [0.0, 0.5, 0.75, 1.0])
def test_popular_items_are_drawn_by_their_count_to_a_power(power):
    negatives = SharedNegatives("popular", COUNT, 100, power)
    weight = np.where(COUNT > 0, COUNT**power, 0.0)
    found = shares(negatives)
    np.testing.assert_allclose(found, weight / weight.sum(), atol=5 * math.sqrt(0.25 / 40_000))
    assert not found[COUNT == 0].any()
    np.testing.assert_allclose(np.exp(negatives.log_probability), weight / weight.sum(), rtol=1e-5)


def test_uniform_draws_are_those_of_the_generator():
    """So that results of earlier versions stay."""
    found = SharedNegatives("uniform", COUNT, 50).draw(np.random.default_rng(3), np.zeros(4, np.int64))
    np.testing.assert_array_equal(found, np.random.default_rng(3).integers(0, 7, 50))
    assert SharedNegatives("uniform", COUNT, 50).log_probability is None


def test_targets_of_the_step_are_drawn_once_each():
    targets = np.array([5, 5, 2, 1, 4, 5, 2, 2, 2, 1])
    rng = np.random.default_rng(0)
    for k in (1, 4, 9):
        found = SharedNegatives("batch", COUNT, k).draw(rng, targets)
        assert found.size == k
        assert (np.bincount(found, minlength=7) <= np.bincount(targets, minlength=7)).all()
    every = SharedNegatives("batch", COUNT, 100).draw(rng, targets)
    assert sorted(every) == sorted(targets)
    found = shares(SharedNegatives("batch", COUNT, 3), targets, draws=4000)
    np.testing.assert_allclose(found, np.bincount(targets, minlength=7) / 10, atol=0.025)
    np.testing.assert_allclose(
        np.exp(SharedNegatives("batch", COUNT, 3).log_probability), COUNT / COUNT.sum(), rtol=1e-5
    )


@pytest.mark.parametrize("k", [1, 2, 3])
def test_log_q_makes_the_negatives_stand_for_all_other_items(k):
    """Over all possible draws, the expected sum of the negatives in the softmax is that of the other items."""
    torch = pytest.importorskip("torch")
    from corank.nn import losses

    generator = torch.Generator().manual_seed(1)
    hidden, table = torch.randn(1, 3, generator=generator), torch.randn(4, 3, generator=generator)
    logq = torch.from_numpy(SharedNegatives("popular", np.array([1, 20, 300, 4000]), k, 0.5).log_probability)
    scores, target = (hidden @ table.t())[0].exp(), torch.tensor([2])
    expected = 0.0
    for drawn in itertools.product(range(4), repeat=k):
        negative = torch.tensor(drawn)
        options = {"log_q": True, "log_probability": logq[negative]}
        loss = losses.next_item_loss("sampled_softmax", hidden, table, target, negative, **options)
        chance = float(logq[negative].sum().exp())
        expected += chance * (float(loss.exp()) - 1) * float(scores[2])
    assert expected == pytest.approx(float(scores[[0, 1, 3]].sum()), rel=1e-4)


@pytest.mark.parametrize("every", [True, False])
def test_targets_are_the_tokens_after_the_inputs(every):
    from corank.nn.batches import targets

    begin, length = np.array([10, 3, 40]), np.array([2, 1, 4])
    expected = [11, 12, 4, 41, 42, 43, 44] if every else [12, 4, 44]
    assert targets(begin, length, every).tolist() == expected
