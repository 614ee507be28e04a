"""The steps of BPR against a slow twin and along the gradient by differences; negatives are free and uniform."""

from __future__ import annotations

import numpy as np
import pytest

from corank.kernels import bpr, sgd
from corank.kernels.sample import _start
from corank.kernels.threads import set_threads
from reference import bpr_loss, bpr_steps, bpr_user_loss

USERS, ITEMS, D = 30, 40, 5


def rows_of(lengths, items=ITEMS, seed=0):
    rng = np.random.default_rng(seed)
    index = np.concatenate([np.sort(rng.permutation(items)[:n]) for n in lengths]).astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return indptr, index


def entries_of(indptr, index):
    user = np.repeat(np.arange(indptr.size - 1, dtype=np.int32), np.diff(indptr))
    return sgd.Entries(user, index, np.ones(index.size, np.float32))


def random_rows(seed=0):
    """Users without items, with one, with nearly all and with all of them, and random ones."""
    lengths = np.random.default_rng(seed).integers(0, ITEMS, USERS)
    lengths[:5] = 0, 1, ITEMS - 1, ITEMS, 2
    return rows_of(lengths, seed=seed)


def vectors(seed=0, users=USERS, items=ITEMS):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape).astype(np.float32) for shape in ((users, D), (items, D), items)]


def one_epoch(rows, learned, negatives=1, lr=0.05, bias_lr=0.05, reg=0.01, deal=9):
    learned = [array.copy() for array in learned]
    blocks = sgd.deal(np.random.default_rng(deal), entries_of(*rows), len(learned[0]), len(learned[1]))
    rates = [np.float32(x) for x in (lr, bias_lr, reg)]
    sgd.sweep(bpr.step, blocks, 17, negatives, *rates, *learned)
    return blocks, learned


def triples(blocks, rows, turn, group, negatives):
    """What the kernel draws for a block, by looking every item up in the whole row."""
    indptr, index = rows
    stripe = (group + turn) % blocks.side
    block = group * blocks.side + stripe
    low, high = blocks.first[block], blocks.first[block + 1]
    members = blocks.members[blocks.member_first[stripe] : blocks.member_first[stripe + 1]]
    state = np.empty(1, np.uint64)
    _start(state, 17, block)
    spare = [np.zeros(high, column.dtype) for column in (blocks.user, blocks.item, blocks.value)]
    sgd.shuffle(state, low, high, *spare)  # brings the stream to where the kernel's was
    for u, i in zip(blocks.user[low:high], blocks.item[low:high], strict=True):
        mine = set(index[indptr[u] : indptr[u + 1]].tolist())
        for _ in range(negatives):
            drawn = (members[sgd.below(state, members.size)] for _ in range(bpr.TRIES))
            j = next((j for j in drawn if j not in mine), None)
            if j is not None:
                yield u, i, j


@pytest.mark.parametrize("side", [1, 3])
@pytest.mark.parametrize("negatives", [1, 3])
@pytest.mark.parametrize("bias_lr", [0.0, 0.05])
def test_equals_the_twin(monkeypatch, side, negatives, bias_lr):
    monkeypatch.setattr(sgd, "sides", lambda *sizes: side)
    rows, learned = random_rows(), vectors()
    blocks, fast = one_epoch(rows, learned, negatives, bias_lr=bias_lr)
    slow = [array.astype(np.float64) for array in learned]
    for turn in range(side):
        for group in range(side):
            bpr_steps(triples(blocks, rows, turn, group, negatives), 0.05, bias_lr, 0.01, *slow)
    for a, b in zip(fast, slow, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
    assert (bias_lr == 0) == np.array_equal(fast[2], learned[2])


@pytest.mark.parametrize("seed", range(5))
def test_a_step_goes_along_the_gradient(seed):
    """One user, one item taken and one not: the triple is known."""
    learned, lr, reg = vectors(seed, 1, 2), 0.01, 0.3
    _, after = one_epoch(rows_of([1], items=2, seed=seed), learned, lr=lr, bias_lr=lr, reg=reg)
    i = int(rows_of([1], items=2, seed=seed)[1][0])
    at = np.concatenate([array.ravel() for array in learned]).astype(np.float64)
    moved = np.concatenate([array.ravel() for array in after])

    def loss(z):
        V, bias = z[D : 3 * D].reshape(2, D), z[3 * D :]
        return bpr_loss(z[:D], V[i], V[1 - i], bias[i], bias[1 - i], reg)

    eye = 1e-4 * np.eye(at.size)
    gradient = np.array([(loss(at + e) - loss(at - e)) / 2e-4 for e in eye])
    np.testing.assert_allclose((at - moved) / lr, gradient, rtol=2e-3, atol=2e-3)


def test_negatives_are_free_and_uniform_over_the_deals(monkeypatch):
    """With vectors at 0 and tiny steps a bias counts how often an item was the winner or the loser of a triple."""
    monkeypatch.setattr(sgd, "sides", lambda *sizes: 4)
    rows = rows_of([6])  # fewer than a stripe has, so that there is always a negative
    taken = np.zeros(ITEMS, bool)
    taken[rows[1]] = True
    tiny, lost = 1e-6, np.empty((500, ITEMS))
    for deal in range(500):
        learned = [np.zeros((1, D), np.float32), np.zeros((ITEMS, D), np.float32), np.zeros(ITEMS, np.float32)]
        _, (_, _, bias) = one_epoch(rows, learned, 5, 0.0, tiny, 0.0, deal)
        lost[deal] = -bias / (tiny / 2)
    np.testing.assert_allclose(lost[:, taken], -5, rtol=1e-3)  # only ever winners, each as often as asked
    lost = lost[:, ~taken]
    assert lost.min() > -0.5  # only ever losers
    off = lost.mean(axis=0) - 5 * 6 / lost.shape[1]
    assert np.abs(off / (lost.std(axis=0) / np.sqrt(500))).max() < 4


def test_who_has_everything_is_left_alone():
    learned = vectors(0, 1, ITEMS)
    _, after = one_epoch(rows_of([ITEMS]), learned)
    for a, b in zip(learned, after, strict=True):
        np.testing.assert_array_equal(a, b)


def test_any_number_of_threads_gives_the_same_bits(monkeypatch):
    monkeypatch.setattr(sgd, "sides", lambda *sizes: 5)
    outcomes = []
    try:
        for count in (1, 2, 3):
            set_threads(count)
            outcomes.append(one_epoch(random_rows(3), vectors(), 3)[1])
    finally:
        set_threads(None)
    for other in outcomes[1:]:
        for a, b in zip(outcomes[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("taken", [[], [0], [9], [0, 1, 2], [3, 4, 8], [0, 2, 4, 6, 8], list(range(1, 10))])
def test_free_items_are_drawn_uniformly(taken):
    index = np.array([7, *taken, 7], np.int32)  # a row in the middle of others
    state = np.empty(1, np.uint64)
    _start(state, 1, 1)
    drawn = [bpr._free(state, index, 1, 1 + len(taken), 10) for _ in range(5000)]
    counts = np.bincount(drawn, minlength=10)
    free = np.setdiff1d(np.arange(10), taken)
    assert counts[taken].sum() == 0
    expected = 5000 / free.size
    assert np.abs(counts[free] - expected).max() < 5 * np.sqrt(expected) + 1e-9


@pytest.mark.parametrize(("every", "negatives"), [(1, 1), (1, 4), (3, 2)])
def test_losses_are_those_of_the_sampled_triples(every, negatives):
    indptr, index = random_rows(1)
    U, V, bias = vectors(1)
    loss, count = np.empty(USERS), np.empty(USERS, np.int64)
    bpr.losses(0, USERS, indptr, index, every, negatives, 0.2, U, V, bias, loss, count)
    state = np.empty(1, np.uint64)
    for r in range(USERS):
        low, high = indptr[r], indptr[r + 1]
        sampled = [index[p] for p in range(low, high) if p % every == 0] if high - low < ITEMS else []
        _start(state, 0, r)
        total = 0.0
        for i in sampled:
            for _ in range(negatives):
                j = bpr._free(state, index, low, high, ITEMS)
                u, v, w = (x.astype(np.float64) for x in (U[r], V[i], V[j]))
                total += bpr_loss(u, v, w, float(bias[i]), float(bias[j]), 0.2)
        assert count[r] == negatives * len(sampled)
        np.testing.assert_allclose(loss[r], total, rtol=1e-5)


def fold(rows, V, bias, passes, lr=0.1, reg=0.05):
    X = np.full((rows[0].size - 1, D), np.nan, np.float32)
    bpr.fold_in(0, len(X), *rows, passes, 1, np.float32(lr), np.float32(reg), V, bias, X)
    return X


def test_fold_in_ends_near_the_minimum():
    _, V, bias = vectors(2)
    rows = rows_of([3, 10, 25], seed=2)
    X = fold(rows, V, bias, passes=400)
    for r in range(3):
        taken = rows[1][rows[0][r] : rows[0][r + 1]].tolist()
        x = np.zeros(D)
        for _ in range(300):  # plain gradient descent by differences
            slope = [
                (bpr_user_loss(x + e, taken, V, bias, 0.05) - bpr_user_loss(x - e, taken, V, bias, 0.05)) / 2e-4
                for e in 1e-4 * np.eye(D)
            ]
            x -= 0.4 * np.array(slope)
        best, found = (bpr_user_loss(z, taken, V, bias, 0.05) for z in (x, X[r].astype(np.float64)))
        assert found < best * 1.02


def test_fold_in_of_nothing_and_of_everything_is_zero():
    _, V, bias = vectors()
    assert not fold(rows_of([0, ITEMS]), V, bias, 5).any()


def test_fold_in_does_not_depend_on_the_company():
    _, V, bias = vectors()
    indptr, index = rows_of([4, 7, 4])
    together = fold((indptr, index), V, bias, 10)
    for r in range(3):
        mine = index[indptr[r] : indptr[r + 1]]
        np.testing.assert_array_equal(fold((np.array([0, mine.size]), mine), V, bias, 10)[0], together[r])
