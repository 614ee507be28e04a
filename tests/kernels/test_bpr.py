"""The steps of BPR against a slow twin and along the gradient by differences; negatives are free and uniform."""

from __future__ import annotations

import numpy as np
import pytest

from corank.kernels import bpr, sgd, sse
from corank.kernels.random import FULL, kept, seek
from corank.kernels.threads import run, set_threads
from reference import bpr_loss, bpr_steps, bpr_user_loss

USERS, ITEMS, D = 30, 40, 5


def rows_of(lengths, items=ITEMS, seed=0):
    rng = np.random.default_rng(seed)
    index = np.concatenate([np.sort(rng.permutation(items)[:n]) for n in lengths]).astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return indptr, index


def entries_of(indptr, index, negatives=1):
    user = np.repeat(np.arange(indptr.size - 1, dtype=np.int32), np.diff(indptr))
    return sgd.Entries(user, index, np.full(index.size, negatives, np.int32))


def random_rows(seed=0):
    """Users without items, with one, with nearly all and with all of them, and random ones."""
    lengths = np.random.default_rng(seed).integers(0, ITEMS, USERS)
    lengths[:5] = 0, 1, ITEMS - 1, ITEMS, 2
    return rows_of(lengths, seed=seed)


def vectors(seed=0, users=USERS, items=ITEMS):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape).astype(np.float32) for shape in ((users, D), (items, D), items)]


def one_epoch(
    rows, learned, negatives=1, lr=0.05, bias_lr=0.05, reg=0.01, deal=9, p_user=0.0, p_item=0.0, dropout=0.0, seed=17
):
    learned = [array.copy() for array in learned]
    users, items = len(learned[0]), len(learned[1])
    rng = np.random.default_rng(deal)
    replacements = (
        sse.replacement(p_user, np.unique(entries_of(*rows).user)),
        sse.replacement(p_item, np.unique(rows[1])),
    )
    entries = entries_of(*rows, negatives)
    partition = sgd.random_partition(rng, users, items, sgd.grid_side(rows[1].size, users, items))
    steps = sse.split(rng, entries, negatives, *replacements)
    if steps is not entries:
        draw_negatives(23, partition, rows, steps)
    blocks = sgd.sort_into_blocks(partition, steps)
    rates = [np.float32(x) for x in (lr, bias_lr, reg)]
    sgd.sweep(bpr.step, blocks, seed, *rates, kept(dropout), *learned)
    return blocks, learned


def draw_negatives(seed, partition, rows, steps):
    n = rows[1].size
    run(bpr.negatives, steps.item.size - n, seed, partition, *rows, steps.item[n:], steps.value[n:])


def triples(blocks, rows, turn, group):
    """What the kernel draws for a block, by looking every item up in the whole row."""
    indptr, index = rows
    stripe = (group + turn) % blocks.side
    block = group * blocks.side + stripe
    low, high = blocks.first[block], blocks.first[block + 1]
    members = blocks.members[blocks.member_first[stripe] : blocks.member_first[stripe + 1]]
    state = np.empty(1, np.uint64)
    seek(state, 17, block)
    spare = [np.zeros(high, column.dtype) for column in (blocks.user, blocks.item, blocks.value)]
    sgd.shuffle(state, low, high, *spare)  # brings the stream to where the kernel's was
    for u, i, count in zip(*(c[low:high].tolist() for c in (blocks.user, blocks.item, blocks.value)), strict=True):
        if count < 0 and -1 - count != i:  # something is replaced: the negative is known
            yield u, i, -1 - count
        mine = set(index[indptr[u] : indptr[u + 1]].tolist())
        for _ in range(count):
            drawn = (members[sgd.random_below(state, members.size)] for _ in range(bpr.TRIES))
            j = next((j for j in drawn if j not in mine), None)
            if j is not None:
                yield u, i, j


@pytest.mark.parametrize("side", [1, 3])
@pytest.mark.parametrize("negatives", [1, 3])
@pytest.mark.parametrize("bias_lr", [0.0, 0.05])
@pytest.mark.parametrize("p", [0.0, 0.3])
def test_equals_the_twin(monkeypatch, side, negatives, bias_lr, p):
    monkeypatch.setattr(sgd, "grid_side", lambda *sizes: side)
    rows, learned = random_rows(), vectors()
    blocks, fast = one_epoch(rows, learned, negatives, bias_lr=bias_lr, p_user=p, p_item=p / 2)
    assert (blocks.value < 0).any() == (p > 0)
    slow = [array.astype(np.float64) for array in learned]
    for turn in range(side):
        for group in range(side):
            bpr_steps(triples(blocks, rows, turn, group), 0.05, bias_lr, 0.01, *slow)
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
    monkeypatch.setattr(sgd, "grid_side", lambda *sizes: 4)
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


def share_of_negatives(mine, chance):
    """How likely each item is to be the negative of somebody who has `mine`, when k is the item with `chance` of k."""
    free = np.setdiff1d(np.arange(chance.size), mine)
    share = np.zeros(chance.size)
    share[free] = chance[mine].sum() / free.size + (chance[free].sum() - chance[free]) / (free.size - 1)
    return share


def test_negatives_of_other_rows_are_the_owners_and_uniform():
    """What is drawn depends on the user whom the triple belongs to, not on who stands in, and never is the item."""
    rows = rows_of([6, 90, 40], items=100)  # a row to look through, and one to cut in two first
    entries = entries_of(*rows)
    everyone, everything = sse.replacement(1.0, np.arange(3)), sse.replacement(1.0, np.arange(100))
    counts = np.zeros((3, 100))
    for deal in range(700):
        rng = np.random.default_rng(deal)
        steps = sse.split(rng, entries, 1, everyone, everything)
        assert not steps.value[: entries.user.size].any()
        owner, item = -1 - steps.value[entries.user.size :], steps.item[entries.user.size :]
        partition = sgd.random_partition(rng, 3, 100, 4)
        draw_negatives(deal, partition, rows, steps)
        drawn = -1 - steps.value[entries.user.size :]
        np.testing.assert_array_equal(partition.stripe[drawn], partition.stripe[item])
        found = drawn != item
        assert found[owner != 1].all()  # of ten free items, a stripe may have none but the item itself
        np.add.at(counts, (owner[found], drawn[found]), 1)
    for owner in range(3):
        mine = rows[1][rows[0][owner] : rows[0][owner + 1]]
        assert counts[owner][mine].sum() == 0
        if owner != 1:
            expected = 700 * mine.size * share_of_negatives(mine, np.full(100, 0.01))
            assert expected.sum() == pytest.approx(counts[owner].sum())
            # Draws of a deal share their stripes, so they vary by more than their number says.
            assert (np.abs(counts[owner] - expected) < 8 * np.sqrt(expected) + 1e-9).all()


def test_replaced_items_win_as_often_as_the_law_says(monkeypatch):
    """As above, by biases: winners are the items of the rows, and with probability p any item that somebody has."""
    monkeypatch.setattr(sgd, "grid_side", lambda *sizes: 2)
    rows, p, tiny, epochs = rows_of([4, 4, 5], items=80), 0.4, 2.0**-24, 600
    total = np.zeros(80)
    for deal in range(epochs):
        learned = [np.zeros((3, D), np.float32), np.zeros((80, D), np.float32), np.zeros(80, np.float32)]
        _, (_, _, bias) = one_epoch(rows, learned, 2, 0.0, tiny, 0.0, deal, p_item=p)
        total += bias / (tiny / 2)
    pool = np.unique(rows[1])
    wins, losses = np.zeros((2, 80))
    for r in range(3):
        mine = rows[1][rows[0][r] : rows[0][r + 1]]
        chance = np.zeros(80)
        chance[pool] = p / pool.size
        chance[mine] += (1 - p) / mine.size
        wins += 2 * epochs * mine.size * chance
        losses += 2 * epochs * mine.size * share_of_negatives(mine, chance)
    assert abs(total.sum()) < 1e-3 * wins.sum()
    assert (np.abs(total - (wins - losses)) < 6 * np.sqrt(wins + losses)).all()


def test_only_rows_that_stand_in_and_negatives_move():
    rows, learned = rows_of([3] + [1] * 29), vectors()
    blocks, after = one_epoch(rows, learned, 2, p_user=1.0, p_item=1.0)
    steps = blocks.value < 0
    assert steps.sum() == 2 * rows[1].size
    users, items = set(blocks.user[steps].tolist()), set(blocks.item[steps].tolist())
    touched = items | set((-1 - blocks.value[steps]).tolist())
    assert set(np.flatnonzero((after[0] != learned[0]).any(axis=1))) == users
    assert set(np.flatnonzero((after[1] != learned[1]).any(axis=1))) == touched
    assert len(users) < 30
    assert len(touched) < ITEMS


@pytest.mark.parametrize("dropout", [0.1, 0.6])
def test_dropout_moves_its_share_of_coordinates_and_further(dropout):
    """One triple, long vectors: each coordinate stays, or moves 1 / keep times as far, by a coin of its own."""
    rng, wide, keep = np.random.default_rng(0), 300, int(kept(dropout)) / int(FULL)
    rows = rows_of([1], items=2)
    i = int(rows[1][0])
    start = [rng.normal(size=shape).astype(np.float32) * 0.1 for shape in ((1, wide), (2, wide), 2)]
    _, whole = one_epoch(rows, start, reg=0.3)
    moves = np.zeros((500, 3, wide), bool)
    for seed in range(500):
        _, after = one_epoch(rows, start, reg=0.3, dropout=dropout, seed=seed)
        np.testing.assert_array_equal(after[2], whole[2])  # biases move as ever
        for at, side, row in ((0, 0, 0), (1, 1, i), (2, 1, 1 - i)):
            new, old = after[side][row], start[side][row]
            moves[seed, at] = moved = new != old
            further = old + (whole[side][row] - old) / keep
            np.testing.assert_allclose(new[moved], further[moved], rtol=1e-4, atol=1e-6)
    noise = np.sqrt(keep * (1 - keep) / 500)
    assert np.abs(moves.mean(axis=0) - keep).max() < 5 * noise
    assert abs(moves.mean() - keep) < 5 * noise / np.sqrt(3 * wide)
    for one, other in ((0, 1), (0, 2), (1, 2)):  # independent of each other
        both = (moves[:, one] & moves[:, other]).mean()
        assert abs(both - keep**2) < 5 * np.sqrt(keep**2 / 500 / wide)


@pytest.mark.parametrize("options", [{}, {"p_user": 0.2, "p_item": 0.2}, {"p_user": 0.2, "dropout": 0.2}])
def test_any_number_of_threads_gives_the_same_bits(monkeypatch, options):
    monkeypatch.setattr(sgd, "grid_side", lambda *sizes: 5)
    outcomes = []
    try:
        for count in (1, 2, 3):
            set_threads(count)
            outcomes.append(one_epoch(random_rows(3), vectors(), 3, **options)[1])
    finally:
        set_threads(None)
    for other in outcomes[1:]:
        for a, b in zip(outcomes[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("taken", [[], [0], [9], [0, 1, 2], [3, 4, 8], [0, 2, 4, 6, 8], list(range(1, 10))])
def test_free_items_are_drawn_uniformly(taken):
    index = np.array([7, *taken, 7], np.int32)  # a row in the middle of others
    state = np.empty(1, np.uint64)
    seek(state, 1, 1)
    drawn = [sgd.random_absent(state, index, 1, 1 + len(taken), 10) for _ in range(5000)]
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
        seek(state, 0, r)
        total = 0.0
        for i in sampled:
            for _ in range(negatives):
                j = sgd.random_absent(state, index, low, high, ITEMS)
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


@pytest.mark.parametrize(("lr", "reg"), [(0.1, 0.05), (0.1, 0.0), (0.5, 2.0), (0.9, 1.5), (0.1, 9.9999)])
def test_the_steps_of_each_item_add_up_to_the_fold_in(lr, reg):
    """Each item of the row has a coordinate of its own, so that a step in the wrong part is seen there."""
    index = np.array([3, 10, 17, 25], np.int32)
    _, V, bias = vectors(4)
    V = np.column_stack([V, np.zeros((ITEMS, 4), np.float32)])
    V[index, D + np.arange(4)] = 1
    options = (30, 2, np.float32(lr), np.float32(reg), V, bias)
    X = np.empty((1, D + 4), np.float32)
    bpr.fold_in(0, 1, np.array([0, 4]), index, *options, X)
    parts = np.zeros((4, D + 4))
    bpr.fold_in_parts(index, *options, parts)
    np.testing.assert_allclose(parts.sum(axis=0), X[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(parts[:, D:], np.diag(X[0, D:]), rtol=1e-4, atol=1e-5)
    assert (np.diag(parts[:, D:]) > 0).all()


def test_the_parts_of_everything_are_zero():
    _, V, bias = vectors()
    parts = np.zeros((ITEMS, D))
    bpr.fold_in_parts(np.arange(ITEMS, dtype=np.int32), 5, 1, np.float32(0.1), np.float32(0.1), V, bias, parts)
    assert not parts.any()
