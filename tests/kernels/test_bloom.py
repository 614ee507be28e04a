"""The bit kernels beside plain Python numbers and sets."""

from __future__ import annotations

import numpy as np
import pytest

from corank.kernels import bloom
from corank.kernels.threads import run

MASK = (1 << 64) - 1


def mix(z):
    """splitmix64's finaliser, in Python numbers."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def place(seed, element, t, width):
    golden = 0x9E3779B97F4A7C15
    z = mix((mix((seed + golden) & MASK) + golden * element) & MASK)
    z = mix((z + golden * (t + 1)) & MASK)
    return t * width + ((z >> 32) * width >> 32)


def places(elements, slices, width, seed=0):
    out = np.empty((len(elements), slices), np.int64)
    run(bloom.places, len(elements), np.asarray(elements, np.int64), seed, width, out)
    return out


def random_words(n, columns, seed=0):
    return np.random.default_rng(seed).integers(0, 1 << 63, (n, columns)).astype(np.uint64) << np.uint64(1)


@pytest.mark.parametrize("seed", [0, 7, (1 << 62) - 1])
@pytest.mark.parametrize(("slices", "width"), [(1, 1), (3, 45), (4, 1199), (2, 1 << 30)])
def test_places_are_the_stated_hash(seed, slices, width):
    elements = [0, 1, 2, 100, (1 << 31) - 1]
    want = [[place(seed, e, t, width) for t in range(slices)] for e in elements]
    assert places(elements, slices, width, seed).tolist() == want


def test_places_are_uniform_and_independent():
    """Chi-square of 100,000 elements in 50 places a slice, and of the pairs of two slices: within 5 deviations."""
    n, width = 100_000, 50
    got = places(np.arange(n), 2, width) - [0, width]
    for counts in (
        np.bincount(got[:, 0], minlength=width),
        np.bincount(got[:, 1], minlength=width),
        np.bincount(got[:, 0] * width + got[:, 1], minlength=width**2),
    ):
        expected = n / counts.size
        chi = ((counts - expected) ** 2 / expected).sum()
        freedom = counts.size - 1
        assert abs(chi - freedom) < 5 * np.sqrt(2 * freedom)


def test_another_seed_is_another_hash():
    a, b = places(np.arange(1000), 4, 1199, 1), places(np.arange(1000), 4, 1199, 2)
    assert (a == b).mean() < 0.01


@pytest.mark.parametrize(("slices", "width"), [(4, 10), (3, 45), (4, 1199)])
def test_own_holds_only_the_node_in_any_block(slices, width):
    words = -(-slices * width // 64)
    whole = np.full((20, words), 99, np.uint64)
    bloom.own(0, 20, 5, slices, width, 0, whole)
    for i in range(20):
        bits = {64 * w + b for w in range(words) for b in range(64) if int(whole[i, w]) >> b & 1}
        assert bits == {place(5, i, t, width) for t in range(slices)}
    for first in range(0, words, 8):
        block = np.full((20, 8), 99, np.uint64)
        bloom.own(0, 20, 5, slices, width, first, block)
        inside = whole[:, first : first + 8]
        assert (block[:, : inside.shape[1]] == inside).all()
        assert (block[:, inside.shape[1] :] == 0).all()


def test_spread_is_the_or_of_old_rows():
    rng = np.random.default_rng(3)
    adjacent = rng.random((30, 30)) < 0.1
    indptr = np.concatenate([[0], np.cumsum(adjacent.sum(1))]).astype(np.int64)
    index = np.nonzero(adjacent)[1].astype(np.int32)
    old, new = random_words(30, bloom.LINE), np.zeros((30, bloom.LINE), np.uint64)
    before = old.copy()
    run(bloom.spread, 30, indptr, index, old, new, cost=indptr)
    for i in range(30):
        want = np.bitwise_or.reduce([before[i], *before[adjacent[i]]])
        assert (new[i] == want).all()
    assert (old == before).all()
    # Without a limit that is ever reached, the other kernel does the same.
    other = np.zeros_like(new)
    run(bloom.spread_within, 30, indptr, index, old, other, 1 << 40, 0, 1, cost=indptr)
    assert (other == new).all()


def test_spread_within_stops_after_the_limit():
    """Node 0 has 40 neighbours with a bit each: it takes them until there are more than 5, in an order of its own."""
    indptr = np.concatenate([[0], np.full(41, 40)]).astype(np.int64)
    index = np.arange(1, 41, dtype=np.int32)
    old = np.zeros((41, 1), np.uint64)
    old[1:, 0] = np.uint64(1) << np.arange(40, dtype=np.uint64)
    taken = set()
    for seed in range(50):
        new = np.zeros_like(old)
        run(bloom.spread_within, 41, indptr, index, old, new, 5, seed, 1, cost=indptr)
        assert int(new[0, 0]).bit_count() == 6
        taken |= {b for b in range(40) if int(new[0, 0]) >> b & 1}
    assert len(taken) == 40  # every neighbour has its turn: chance of missing one is 40 * .85^50 = 1 %, seed fixed


@pytest.mark.parametrize("columns", [1, 3, 9])
def test_bits_are_counted_and_listed(columns):
    words = random_words(12, columns, columns)
    words[0] = 0
    words[1] = MASK
    words[2] = 1
    words[3] = np.uint64(1) << np.uint64(63)
    want = [[64 * w + b for w in range(columns) for b in range(64) if int(row[w]) >> b & 1] for row in words]
    counts = np.empty(12, np.int64)
    run(bloom.count_bits, 12, words, counts)
    assert counts.tolist() == [len(row) for row in want]
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    index = np.empty(indptr[-1], np.int32)
    run(bloom.list_bits, 12, words, 7, indptr, np.zeros(13, np.int64), index, cost=indptr)
    assert index.tolist() == [bit + 7 for row in want for bit in row]
    # And by column: which rows have each bit.
    having = [[i for i, row in enumerate(want) if bit in row] for bit in range(64 * columns)]
    counts = np.zeros(64 * columns, np.int64)
    run(bloom.count_columns, columns, words, counts)
    assert counts.tolist() == [len(rows) for rows in having]
    free = np.cumsum(counts) - counts
    run(bloom.list_columns, columns, words, free, index)
    assert index.tolist() == [i for rows in having for i in rows]
