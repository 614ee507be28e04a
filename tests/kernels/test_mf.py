"""The steps of MF against a slow twin, and along the gradient by differences."""

from __future__ import annotations

import numpy as np
import pytest

from corank.kernels import mf, sgd
from corank.kernels.threads import set_threads
from reference import mf_loss, mf_steps

USERS, ITEMS, D, MEAN = 30, 40, 5, np.float32(3.1)


def problem(seed=0, users=USERS, items=ITEMS, n=400):
    rng = np.random.default_rng(seed)
    entries = sgd.Entries(
        rng.integers(0, users, n).astype(np.int32),
        rng.integers(0, items, n).astype(np.int32),
        rng.integers(1, 6, n).astype(np.float32),
    )
    held = [rng.uniform(0.01, 0.5, size).astype(np.float32) for size in (users, users, items, items)]
    shapes = ((users, D), users, (items, D), items)
    return entries, held, [rng.normal(size=shape).astype(np.float32) for shape in shapes]


def one_epoch(entries, held, learned, lr, bias_lr):
    learned = [array.copy() for array in learned]
    blocks = sgd.deal(np.random.default_rng(9), entries, len(learned[0]), len(learned[2]))
    sgd.sweep(mf.step, blocks, 17, np.float32(lr), np.float32(bias_lr), MEAN, *held, *learned)
    return blocks, learned


@pytest.mark.parametrize("side", [1, 3])
@pytest.mark.parametrize("bias_lr", [0.0, 0.02])
def test_equals_the_twin(monkeypatch, side, bias_lr):
    monkeypatch.setattr(sgd, "sides", lambda *sizes: side)
    entries, held, learned = problem()
    blocks, fast = one_epoch(entries, held, learned, 0.03, bias_lr)
    slow = [array.astype(np.float64) for array in learned]
    for turn in range(side):  # the kernel has left the blocks in the order in which it went through them
        for group in range(side):
            block = group * side + (group + turn) % side
            at = slice(blocks.first[block], blocks.first[block + 1])
            ratings = zip(blocks.user[at], blocks.item[at], blocks.value[at], strict=True)
            mf_steps(ratings, 0.03, bias_lr, MEAN, *held, *slow)
    for a, b in zip(fast, slow, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
    assert (bias_lr == 0) == np.array_equal(fast[1], learned[1])


def test_order_is_random_and_differs_between_blocks_and_seeds():
    entries, held, learned = problem()
    blocks, _ = one_epoch(entries, held, learned, 0.0, 0.0)
    assert not np.array_equal(blocks.value, entries.value)
    other = sgd.deal(np.random.default_rng(9), entries, USERS, ITEMS)
    sgd.sweep(mf.step, other, 18, np.float32(0), np.float32(0), MEAN, *held, *learned)
    assert not np.array_equal(blocks.value, other.value)


@pytest.mark.parametrize("seed", range(5))
def test_a_step_goes_along_half_the_gradient(seed):
    _, held, learned = problem(seed, 1, 1, 1)
    entries = sgd.Entries(np.zeros(1, np.int32), np.zeros(1, np.int32), np.float32([4.5]))
    lr = 0.01
    _, after = one_epoch(entries, held, learned, lr, lr)
    at = np.concatenate([array.ravel() for array in learned]).astype(np.float64)
    moved = np.concatenate([array.ravel() for array in after])
    weights = [float(array[0]) for array in held]

    def loss(z):
        return mf_loss(4.5, MEAN, z[:D], z[D], z[D + 1 : -1], z[-1], weights)

    eye = 1e-4 * np.eye(at.size)
    gradient = np.array([(loss(at + e) - loss(at - e)) / 2e-4 for e in eye])
    np.testing.assert_allclose((at - moved) / lr, gradient / 2, rtol=2e-3, atol=2e-3)


def test_any_number_of_threads_gives_the_same_bits(monkeypatch):
    monkeypatch.setattr(sgd, "sides", lambda *sizes: 5)
    outcomes = []
    try:
        for count in (1, 2, 3):
            set_threads(count)
            outcomes.append(one_epoch(*problem(n=3000), 0.05, 0.05)[1])
    finally:
        set_threads(None)
    for other in outcomes[1:]:
        for a, b in zip(outcomes[0], other, strict=True):
            np.testing.assert_array_equal(a, b)
