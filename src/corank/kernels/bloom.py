"""Bloom filters of the nodes of a graph, many at once, as rows of packed 64-bit words.

A filter is `slices` runs of `width` bits; an element sets one bit in each slice, at a position that is a hash of (seed,
element, slice). So an element sets exactly `slices` bits, the union of two filters is the OR of their words, and an
element that was added is always found again.

Encoding a graph is d rounds of  new[i] = old[i] OR (old[j] for each neighbour j of i), where `old` is the result of the
previous round. Bits do not mix across words, so the words can be computed in blocks of columns: a block of eight is one
cache line per node, and only two blocks are in memory beside the result. A round costs edges * words operations. With a
limit on the bits of a row, the neighbours come in an order drawn for (seed, round, row), and the row stops once it
exceeds the limit; this needs whole rows instead of blocks.

Shapes: n nodes, c = slices * width bits, w = ceil(c / 64) words. indptr int64[n + 1]; index int32[edges];
words, old, new uint64[n, any number of columns]. `first` is the word of the filter that column 0 stands for.
"""

from __future__ import annotations

import numpy as np

from .random import GOLDEN, S32, mix, seek, uniform
from .threads import inline, kernel

LINE = 8  # words of a block: one cache line per node
_NONE, _ONE, _TWO, _FOUR = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(4)
_EVENS, _PAIRS, _NIBBLES = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
_BYTES, _S56 = np.uint64(0x0101010101010101), np.uint64(56)


@inline
def _place(seed: int, element: int, t: int, width: int) -> int:
    """The bit that an element sets in slice t, counted from the first bit of the filter."""
    z = mix(mix(np.uint64(seed) + GOLDEN) + GOLDEN * np.uint64(element))
    z = mix(z + GOLDEN * np.uint64(t + 1))
    return t * width + int(((z >> S32) * np.uint64(width)) >> S32)  # a product, not a remainder: no bias


@inline
def _ones(word: np.uint64) -> int:
    """The number of set bits (a sum over pairs, nibbles, bytes)."""
    word = word - ((word >> _ONE) & _EVENS)
    word = (word & _PAIRS) + ((word >> _TWO) & _PAIRS)
    word = (word + (word >> _FOUR)) & _NIBBLES
    return int((word * _BYTES) >> _S56)


@kernel
def places(start: int, stop: int, elements: np.ndarray, seed: int, width: int, out: np.ndarray) -> None:
    """out int64[m, slices]: the bits that each element sets."""
    for p in range(start, stop):
        for t in range(out.shape[1]):
            out[p, t] = _place(seed, elements[p], t, width)


@kernel
def own(start: int, stop: int, seed: int, slices: int, width: int, first: int, words: np.ndarray) -> None:
    """Row i becomes the filter that holds only i."""
    for i in range(start, stop):
        words[i] = 0
        for t in range(slices):
            bit = _place(seed, i, t, width)
            column = (bit >> 6) - first
            if 0 <= column < words.shape[1]:
                words[i, column] |= _ONE << np.uint64(bit & 63)


@kernel
def spread(start: int, stop: int, indptr: np.ndarray, index: np.ndarray, old: np.ndarray, new: np.ndarray) -> None:
    """One round of a block of LINE words, uint64[n, LINE]: new[i] = old[i] OR the old rows of the neighbours of i."""
    for i in range(start, stop):
        # Unrolled, the row stays in registers: twice as fast as a loop that stores after each neighbour.
        a, b, c, d = old[i, 0], old[i, 1], old[i, 2], old[i, 3]
        e, f, g, h = old[i, 4], old[i, 5], old[i, 6], old[i, 7]
        for at in range(indptr[i], indptr[i + 1]):
            j = index[at]
            a |= old[j, 0]
            b |= old[j, 1]
            c |= old[j, 2]
            d |= old[j, 3]
            e |= old[j, 4]
            f |= old[j, 5]
            g |= old[j, 6]
            h |= old[j, 7]
        new[i, 0], new[i, 1], new[i, 2], new[i, 3] = a, b, c, d
        new[i, 4], new[i, 5], new[i, 6], new[i, 7] = e, f, g, h


@kernel
def spread_within(
    start: int,
    stop: int,
    indptr: np.ndarray,
    index: np.ndarray,
    old: np.ndarray,
    new: np.ndarray,
    limit: int,
    seed: int,
    hop: int,
) -> None:
    """Round `hop`, in which a row merges no further neighbour once it has more than `limit` bits."""
    columns = old.shape[1]
    state = np.empty(1, np.uint64)
    for i in range(start, stop):
        bits = 0
        for w in range(columns):
            new[i, w] = old[i, w]
            bits += _ones(old[i, w])
        order = index[indptr[i] : indptr[i + 1]].copy()
        seek(state, seed, hop * old.shape[0] + i)
        for remaining in range(order.size, 0, -1):
            if bits > limit:
                break
            pick = np.int64(uniform(state) * remaining)
            j = order[pick]
            order[pick] = order[remaining - 1]
            bits = 0
            for w in range(columns):
                new[i, w] |= old[j, w]
                bits += _ones(new[i, w])


@kernel
def put(start: int, stop: int, block: np.ndarray, first: int, words: np.ndarray) -> None:
    """Write a block to its columns of the result, uint64[n, w]; columns beyond the last word are padding."""
    columns = min(block.shape[1], words.shape[1] - first)
    for i in range(start, stop):
        for w in range(columns):
            words[i, first + w] = block[i, w]


@kernel
def count_bits(start: int, stop: int, words: np.ndarray, out: np.ndarray) -> None:
    """out int64[n]: the number of set bits per row."""
    for i in range(start, stop):
        total = 0
        for w in range(words.shape[1]):
            total += _ones(words[i, w])
        out[i] = total


@inline
def _list(word: np.uint64, base: int, index: np.ndarray, at: int) -> int:
    """Write base + the positions of the set bits of a word to index[at], ...; returns the position after the last."""
    while word != _NONE:
        lowest = word & (~word + _ONE)
        index[at] = base + _ones(lowest - _ONE)
        at += 1
        word ^= lowest
    return at


@kernel
def list_bits(
    start: int, stop: int, words: np.ndarray, base: int, indptr: np.ndarray, skip: np.ndarray, index: np.ndarray
) -> None:
    """index int32[indptr[-1]]: base + the positions of the set bits of each row, ascending.

    Row i is written from indptr[i] + skip[i + 1] - skip[i] on: `skip`, also an indptr, counts the entries before.
    """
    for i in range(start, stop):
        at = indptr[i] + skip[i + 1] - skip[i]
        for w in range(words.shape[1]):
            at = _list(words[i, w], base + 64 * w, index, at)


@kernel
def count_columns(start: int, stop: int, words: np.ndarray, out: np.ndarray) -> None:
    """out int64[64 * words]: how many rows have each bit. start..stop are words, so that threads share no output."""
    for i in range(words.shape[0]):
        for w in range(start, stop):
            word = words[i, w]
            while word != _NONE:
                lowest = word & (~word + _ONE)
                out[64 * w + _ones(lowest - _ONE)] += 1
                word ^= lowest


@kernel
def list_columns(start: int, stop: int, words: np.ndarray, free: np.ndarray, index: np.ndarray) -> None:
    """The rows that have each bit, ascending: bit b from index[free[b]] on; `free` int64[64 * words] is advanced."""
    for i in range(words.shape[0]):
        for w in range(start, stop):
            word = words[i, w]
            while word != _NONE:
                lowest = word & (~word + _ONE)
                b = 64 * w + _ones(lowest - _ONE)
                index[free[b]] = i
                free[b] += 1
                word ^= lowest
