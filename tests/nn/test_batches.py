"""Batches: every token has its slot, little padding, and draws have the distribution that they say."""

from __future__ import annotations

import numpy as np
import pytest

from corank.nn import batches


def lengths_of(seed, size=60, most=200):
    return np.random.default_rng(seed).integers(1, most, size)


@pytest.mark.parametrize("slack", [0, 64, 10_000])
def test_every_token_has_one_slot(slack):
    length = lengths_of(0)
    begin = 1000 * np.arange(length.size)
    packed = batches.pack(begin, length, slack)
    real = np.arange(packed.at.size) if packed.real is None else packed.real
    tokens = sorted(packed.at[real].tolist())
    assert tokens == sorted(1000 * r + t for r in range(length.size) for t in range(length[r]))
    np.testing.assert_array_equal(packed.at, begin[packed.row] + packed.step)
    np.testing.assert_array_equal(packed.step[packed.last], length - 1)
    np.testing.assert_array_equal(packed.row[packed.last], np.arange(length.size))


def test_groups_are_rectangles():
    length = lengths_of(1)
    packed = batches.pack(np.zeros_like(length), length)
    start = 0
    for count, slots in packed.groups:
        row = packed.row[start : start + count * slots].reshape(count, slots)
        step = packed.step[start : start + count * slots].reshape(count, slots)
        assert (row == row[:, :1]).all()
        np.testing.assert_array_equal(step, np.minimum(np.arange(slots), length[row] - 1))
        start += count * slots
    assert start == packed.at.size


@pytest.mark.parametrize("size", [1, 3, 300])
def test_recent_slots_hold_the_newest_tokens_of_the_sequence(size):
    length = lengths_of(2)
    begin = 1000 * np.arange(length.size)
    packed = batches.pack(begin, length)
    slots = np.arange(packed.at.size) if packed.real is None else packed.real
    at, there = packed.recent(size, slots)
    for slot, places, real in zip(slots[::37], at[::37], there[::37], strict=True):
        first = begin[packed.row[slot]]
        expected = [t for t in range(packed.at[slot] - size + 1, packed.at[slot] + 1) if t >= first]
        assert packed.at[places[real > 0]].tolist() == expected
        assert real.tolist() == [0] * (size - len(expected)) + [1] * len(expected)


def test_padding_is_little():
    length = lengths_of(2, size=128)
    packed = batches.pack(np.zeros_like(length), length)
    assert packed.at.size < 1.08 * length.sum()
    assert len(packed.groups) < 40
    assert batches.pack(np.zeros_like(length), length, 0).real is None


def test_equal_lengths_need_no_padding():
    packed = batches.pack(np.arange(5), np.full(5, 7))
    assert packed.real is None
    assert packed.groups == [(5, 7)]


def test_an_empty_sequence_is_refused():
    with pytest.raises(ValueError, match="no tokens"):
        batches.pack(np.zeros(2, np.int64), np.array([3, 0]))


def test_parts_share_the_work():
    length = lengths_of(3, size=128)
    parts = batches.deal(length, 2)
    assert sorted(np.concatenate(parts).tolist()) == list(range(128))
    assert abs(length[parts[0]].sum() / length.sum() - 0.5) < 0.02
    assert len(batches.deal(length[:1], 2)) == 1


def test_the_newest_items_by_default():
    rng = np.random.default_rng(0)
    begin, length = batches.windows(rng, np.array([0, 4]), np.array([4, 14]), 5, 0.0)
    assert begin.tolist() == [0, 8]  # items 0..3; items 8..13: five inputs, the last is a target only
    assert length.tolist() == [3, 5]
    assert rng.random() == np.random.default_rng(0).random()  # nothing was drawn


def test_windows_start_anywhere_but_at_the_newest():
    """Rows of 10 items and 4 inputs: with chance .3 a start in 0..4, uniformly, else 5; bounds at 5 deviations."""
    n = 40_000
    begin, length = batches.windows(np.random.default_rng(5), np.zeros(n, np.int64), np.full(n, 10), 4, 0.3)
    assert (length == 4).all()
    count = np.bincount(begin, minlength=6)
    assert count.size == 6
    assert abs(count[5] / n - 0.7) < 5 * np.sqrt(0.21 / n)
    np.testing.assert_allclose(count[:5] / n, 0.06, atol=5 * np.sqrt(0.06 * 0.94 / n))


def test_short_rows_have_no_other_window():
    begin, length = batches.windows(np.random.default_rng(5), np.zeros(50, np.int64), np.full(50, 5), 4, 1.0)
    assert (begin == 0).all()
    assert (length == 4).all()


def test_replacement_has_its_rate_and_is_uniform():
    n, size, p = 60_000, 12, 0.25
    out = batches.replace(np.random.default_rng(6), np.full(n, 3), p, size)
    count = np.bincount(out, minlength=size) / n
    assert count.size == size
    assert abs(count[3] - (1 - p + p / size)) < 5 * np.sqrt(p / n)
    np.testing.assert_allclose(np.delete(count, 3), p / size, atol=5 * np.sqrt(p / size / n))


def test_no_replacement_draws_nothing():
    rng, index = np.random.default_rng(6), np.arange(9)
    assert batches.replace(rng, index, 0.0, 9) is index
    assert batches.replace_coupled(rng, index, index, index, 0.0, 9) == (index, index)
    assert rng.random() == np.random.default_rng(6).random()


def test_coupled_replacement_flips_both_and_neighbours_agree():
    """Items of the data are below 100, drawn ones reach to a million: a drawn one is known by its size."""
    n, p = 40_000, 0.2
    packed = batches.pack(11 * np.arange(n // 10), np.full(n // 10, 10))
    data = np.random.default_rng(0).integers(0, 100, 11 * n // 10)
    item, target = data[packed.at], data[packed.at + 1]
    new, aim = batches.replace_coupled(np.random.default_rng(7), item, target, packed.step, p, 1_000_000)
    hit = new != item
    assert abs(hit.mean() - p) < 5 * np.sqrt(p * (1 - p) / n)
    inner = packed.step < 9
    follows = np.flatnonzero(inner & ~hit)
    np.testing.assert_array_equal(aim[follows], new[follows + 1])
    assert (aim[hit] > 100).mean() > 0.99
    ends = ~inner & ~hit
    np.testing.assert_array_equal(aim[ends], target[ends])


def test_negatives_are_free_and_uniform():
    rng = np.random.default_rng(8)
    taken = [np.array([0, 1, 2, 5]), np.array([7])]
    owner = np.repeat([0, 1], [4, 1])
    row = np.repeat([0, 1], 20_000)
    drawn = batches.negatives(rng, row, (owner, np.concatenate(taken)), 8, 2)
    assert drawn.shape == (40_000, 2)
    for r in (0, 1):
        count = np.bincount(drawn[row == r].ravel(), minlength=8)
        assert count.size == 8
        assert not count[taken[r]].any()
        free = np.delete(count, taken[r]) / count.sum()
        np.testing.assert_allclose(free, 1 / free.size, atol=5 * np.sqrt(1 / free.size / count.sum()))


def test_who_has_everything_still_gets_negatives():
    drawn = batches.negatives(
        np.random.default_rng(9), np.zeros(4, np.int64), (np.zeros(3, np.int64), np.arange(3)), 3, 1
    )
    assert ((drawn >= 0) & (drawn < 3)).all()
