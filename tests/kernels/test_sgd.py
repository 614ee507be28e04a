"""The deal: each entry in its block, blocks of a turn strangers to each other, any two items together equally often."""

from __future__ import annotations

import numpy as np
import pytest

from corank.kernels import sgd
from corank.kernels.random import seek

USERS, ITEMS, SIDE = 50, 41, 4


@pytest.fixture
def entries():
    rng = np.random.default_rng(0)
    pairs = rng.permutation(USERS * ITEMS)[:600]
    user, item = (pairs // ITEMS).astype(np.int32), (pairs % ITEMS).astype(np.int32)
    return sgd.Entries(user, item, np.arange(600, dtype=np.float32))


@pytest.fixture
def blocks(entries, monkeypatch):
    monkeypatch.setattr(sgd, "grid_side", lambda *sizes: SIDE)
    return sgd.random_blocks(np.random.default_rng(1), entries, USERS, ITEMS)


def part_of(blocks, block):
    at = slice(blocks.first[block], blocks.first[block + 1])
    return blocks.user[at], blocks.item[at], blocks.value[at]


def test_every_entry_is_dealt_once(entries, blocks):
    assert blocks.first[-1] == 600
    order = np.argsort(blocks.value)
    for dealt, given in zip((blocks.user, blocks.item, blocks.value), entries, strict=True):
        np.testing.assert_array_equal(dealt[order], given)


def test_blocks_of_a_turn_share_neither_users_nor_items(blocks):
    for turn in range(SIDE):
        parts = [part_of(blocks, a * SIDE + (a + turn) % SIDE) for a in range(SIDE)]
        for column in (0, 1):
            sets = [set(part[column].tolist()) for part in parts]
            assert sum(map(len, sets)) == len(set().union(*sets))


def test_all_turns_together_are_all_blocks():
    seen = {a * SIDE + (a + turn) % SIDE for turn in range(SIDE) for a in range(SIDE)}
    assert seen == set(range(SIDE * SIDE))


def test_places_and_members_agree(blocks):
    assert sorted(blocks.members) == list(range(ITEMS))
    assert set(np.diff(blocks.member_first)) <= {ITEMS // SIDE, ITEMS // SIDE + 1}
    for stripe in range(SIDE):
        members = blocks.members[blocks.member_first[stripe] : blocks.member_first[stripe + 1]]
        np.testing.assert_array_equal(blocks.item_place[members], np.arange(members.size))
        for group in range(SIDE):
            assert set(part_of(blocks, group * SIDE + stripe)[1]) <= set(members)
    assert blocks.user_place.max() <= USERS // SIDE


def test_any_two_items_meet_equally_often():
    rng, times = np.random.default_rng(2), 4000
    together = np.zeros((ITEMS, ITEMS))
    for _ in range(times):
        part, *_ = sgd._assign(rng, ITEMS, SIDE)
        together += part[:, None] == part
    share = together[~np.eye(ITEMS, dtype=bool)] / times
    expected = share.mean()
    assert abs(expected - 0.23) < 0.01  # one in four, but for oneself
    assert np.abs(share - expected).max() < 5 * np.sqrt(expected * (1 - expected) / times)


def test_small_data_is_one_block():
    assert sgd.grid_side(1, 1, 1) == sgd.grid_side(19_999, 1000, 1000) == sgd.grid_side(10**6, 7, 10**5) == 1


def test_large_data_has_enough_blocks_and_small_ones():
    assert sgd.grid_side(1_000_000, 6_040, 3_706) == 16
    assert sgd.grid_side(1_000_000, 6_040, 100) == 3  # stripes of at least 32 items
    side = sgd.grid_side(10**9, 10**7, 10**6)
    assert (10**7 / side) * (10**6 / side) / 8 < 17e6


def test_shuffle_keeps_entries_together_and_is_uniform():
    counts = np.zeros((5, 5))
    state = np.empty(1, np.uint64)
    seek(state, 3, 0)
    for _ in range(5000):
        user, item, value = np.arange(7, dtype=np.int32), np.arange(7, dtype=np.int32) * 2, np.arange(7, dtype="f4") * 3
        sgd.shuffle(state, 1, 6, user, item, value)
        assert (user[0], user[6]) == (0, 6)
        np.testing.assert_array_equal(item, user * 2)
        np.testing.assert_array_equal(value, user * 3)
        counts[np.arange(5), user[1:6] - 1] += 1
    assert np.abs(counts - 1000).max() < 5 * np.sqrt(1000)
