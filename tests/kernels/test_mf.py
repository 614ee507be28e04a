"""The steps of MF against a slow twin, and along the gradient by differences; with other rows, and with dropout."""

from __future__ import annotations

import numpy as np
import pytest

from corank.kernels import mf, sgd, sse
from corank.kernels.random import FULL, kept
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


def one_epoch(entries, held, learned, lr, bias_lr, dropout=0.0, seed=17):
    learned = [array.copy() for array in learned]
    blocks = sgd.random_blocks(np.random.default_rng(9), entries, len(learned[0]), len(learned[2]))
    sgd.sweep(mf.step, blocks, seed, np.float32(lr), np.float32(bias_lr), kept(dropout), MEAN, *held, *learned)
    return blocks, learned


@pytest.mark.parametrize("side", [1, 3])
@pytest.mark.parametrize("bias_lr", [0.0, 0.02])
def test_equals_the_twin(monkeypatch, side, bias_lr):
    monkeypatch.setattr(sgd, "grid_side", lambda *sizes: side)
    entries, held, learned = problem()
    blocks, fast = one_epoch(entries, held, learned, 0.03, bias_lr)
    slow = [array.astype(np.float64) for array in learned]
    in_order(blocks, 0.03, bias_lr, held, slow)
    for a, b in zip(fast, slow, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
    assert (bias_lr == 0) == np.array_equal(fast[1], learned[1])


def in_order(blocks, lr, bias_lr, held, slow):
    """The steps of the twin, in the order of the kernel."""
    side = blocks.side
    for turn in range(side):  # the kernel has left the blocks in the order in which it went through them
        for group in range(side):
            block = group * side + (group + turn) % side
            at = slice(blocks.first[block], blocks.first[block + 1])
            ratings = zip(blocks.user[at], blocks.item[at], blocks.value[at], strict=True)
            mf_steps(ratings, lr, bias_lr, MEAN, *held, *slow)


def test_order_is_random_and_differs_between_blocks_and_seeds():
    entries, held, learned = problem()
    blocks, _ = one_epoch(entries, held, learned, 0.0, 0.0)
    assert not np.array_equal(blocks.value, entries.value)
    other = sgd.random_blocks(np.random.default_rng(9), entries, USERS, ITEMS)
    sgd.sweep(mf.step, other, 18, np.float32(0), np.float32(0), None, MEAN, *held, *learned)
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


def replacements(p_user, p_item, users=USERS, items=ITEMS):
    return sse.replacement(p_user, np.arange(users)), sse.replacement(p_item, np.arange(items))


@pytest.mark.parametrize("side", [1, 3])
def test_with_other_rows_it_equals_the_twin(monkeypatch, side):
    """Error and update are those of the rows that stand in, and blocks of a turn still share none."""
    monkeypatch.setattr(sgd, "grid_side", lambda *sizes: side)
    entries, held, learned = problem()
    other = sse.replace(np.random.default_rng(3), entries, *replacements(0.3, 0.2))
    blocks, fast = one_epoch(other, held, learned, 0.03, 0.03)
    slow = [array.astype(np.float64) for array in learned]
    in_order(blocks, 0.03, 0.03, held, slow)
    for a, b in zip(fast, slow, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
    for turn in range(side):
        parts = [(a * side + (a + turn) % side) for a in range(side)]
        for column in (blocks.user, blocks.item):
            sets = [set(column[blocks.first[k] : blocks.first[k + 1]].tolist()) for k in parts]
            assert sum(map(len, sets)) == len(set().union(*sets))


def test_only_rows_that_stand_in_move():
    entries = sgd.Entries(np.zeros(8, np.int32), np.ones(8, np.int32), np.full(8, 5, np.float32))
    _, held, learned = problem()
    other = sse.replace(np.random.default_rng(4), entries, *replacements(1.0, 1.0))
    assert 0 not in other.user
    assert 1 not in other.item
    _, after = one_epoch(other, held, learned, 0.03, 0.03)
    for rows, arrays in ((other.user, (0, 1)), (other.item, (2, 3))):
        for at in arrays:
            changed = (after[at] != learned[at]).reshape(len(after[at]), -1).any(axis=1)
            assert set(np.flatnonzero(changed)) == set(rows.tolist())


def test_rows_are_used_as_often_as_the_law_says(monkeypatch):
    """Where every error is 1 and steps are tiny, a bias counts the steps of its row."""
    monkeypatch.setattr(sgd, "grid_side", lambda *sizes: 3)
    rng, tiny, epochs = np.random.default_rng(4), 2.0**-30, 400
    entries, _, _ = problem()
    entries = entries._replace(value=np.full(400, MEAN + 1, np.float32))
    held = [np.zeros(size, np.float32) for size in (USERS, USERS, ITEMS, ITEMS)]
    flat = [np.zeros(shape, np.float32) for shape in ((USERS, D), USERS, (ITEMS, D), ITEMS)]
    used = np.zeros(USERS), np.zeros(ITEMS)
    for _ in range(epochs):
        other = sse.replace(rng, entries, *replacements(0.4, 0.1))
        _, (_, b, _, c) = one_epoch(other, held, flat, 0.0, tiny)
        used[0][:] += np.rint(b / tiny)
        used[1][:] += np.rint(c / tiny)
    for count, own, p in zip(used, entries[:2], (0.4, 0.1), strict=True):
        assert count.sum() == epochs * 400
        share = (1 - p) * np.bincount(own, minlength=count.size) / 400 + p / count.size
        noise = np.sqrt(epochs * 400 * share)  # rows that are not replaced add none: an upper bound
        assert (np.abs(count - epochs * 400 * share) < 5 * noise).all()


@pytest.mark.parametrize("dropout", [0.1, 0.6])
def test_dropout_moves_its_share_of_coordinates_and_further(dropout):
    """One rating, long vectors: each coordinate stays, or moves 1 / keep times as far, by a coin of its own."""
    rng, wide, lr, keep = np.random.default_rng(0), 400, 0.01, int(kept(dropout)) / int(FULL)
    assert abs(keep - (1 - dropout)) < 1e-5
    entries = sgd.Entries(np.zeros(1, np.int32), np.zeros(1, np.int32), np.float32([4.5]))
    held = [np.float32([0.3]) for _ in range(4)]
    start = [rng.normal(size=shape).astype(np.float32) * 0.1 for shape in ((1, wide), 1, (1, wide), 1)]
    _, whole = one_epoch(entries, held, start, lr, lr)
    moves = np.zeros((500, 2, wide), bool)
    for seed in range(500):
        _, after = one_epoch(entries, held, start, lr, lr, dropout, seed)
        np.testing.assert_array_equal(after[1], whole[1])  # biases move as ever
        np.testing.assert_array_equal(after[3], whole[3])
        for at in (0, 2):
            moved = after[at] != start[at]
            moves[seed, at // 2] = moved[0]
            further = start[at] + (whole[at] - start[at]) / keep
            np.testing.assert_allclose(after[at][moved], further[moved], rtol=1e-4, atol=1e-6)
    noise = np.sqrt(keep * (1 - keep) / 500)
    assert np.abs(moves.mean(axis=0) - keep).max() < 5 * noise  # each coordinate
    assert abs(moves.mean() - keep) < 5 * noise / np.sqrt(2 * wide)  # all of them
    both = (moves[:, 0] & moves[:, 1]).mean()  # of user and item: independent
    assert abs(both - keep**2) < 5 * np.sqrt(keep**2 / 500 / wide)
    neighbours = (moves[:, :, 1:] & moves[:, :, :-1]).mean()  # and of one coordinate and the next
    assert abs(neighbours - keep**2) < 5 * np.sqrt(keep**2 / 500 / wide)


@pytest.mark.parametrize("dropout", [0.0, 0.2])
@pytest.mark.parametrize("p", [0.0, 0.2])
def test_any_number_of_threads_gives_the_same_bits(monkeypatch, p, dropout):
    monkeypatch.setattr(sgd, "grid_side", lambda *sizes: 5)
    outcomes = []
    try:
        for count in (1, 2, 3):
            set_threads(count)
            entries, held, learned = problem(n=3000)
            entries = sse.replace(np.random.default_rng(1), entries, *replacements(p, p))
            outcomes.append(one_epoch(entries, held, learned, 0.05, 0.05, dropout)[1])
    finally:
        set_threads(None)
    for other in outcomes[1:]:
        for a, b in zip(outcomes[0], other, strict=True):
            np.testing.assert_array_equal(a, b)
