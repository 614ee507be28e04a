"""Random numbers inside kernels: every row has its own stream, so that threads cannot change the result.

A stream is a splitmix64 generator (Steele, Lea and Flood 2014) in `state` uint64[1] that starts at a hash of (seed,
row): any thread that processes the row draws the same numbers.
"""

from __future__ import annotations

import math

import numpy as np

from .threads import inline

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11, S32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11), np.uint64(32)
_GOLDEN32, _HASH1, _HASH2 = np.uint32(0x9E3779B9), np.uint32(0x7FEB352D), np.uint32(0x846CA68B)
_H16, _H15 = np.uint32(16), np.uint32(15)
FULL, LOW, SHIFT = np.uint32(65_536), np.uint32(65_535), np.uint32(16)  # a word is two coins of 16 bits


def kept(dropout: float) -> np.uint32 | None:
    """How many of FULL equally likely coins let a coordinate move; None where all of them do."""
    return np.uint32(round((1.0 - dropout) * int(FULL))) if dropout > 0 else None


@inline
def mix(z: np.uint64) -> np.uint64:
    z = (z ^ (z >> _S30)) * _MIX1
    z = (z ^ (z >> _S27)) * _MIX2
    return z ^ (z >> _S31)


@inline
def seek(state: np.ndarray, seed: int, row: int) -> None:
    """Put `state` uint64[1] at the head of the stream of `row`."""
    state[0] = mix(np.uint64(seed) + GOLDEN * mix(np.uint64(row) + GOLDEN))


@inline
def uniform(state: np.ndarray) -> float:
    """The next number of the stream, in [0, 1)."""
    state[0] += GOLDEN
    return np.float64(mix(state[0]) >> _S11) * (1.0 / 9007199254740992.0)


@inline
def next_word(state: np.ndarray) -> np.uint32:
    """The next 32 random bits of the stream."""
    state[0] += GOLDEN
    return np.uint32(mix(state[0]) >> S32)


@inline
def scatter(word: np.uint32, f: int) -> np.uint32:
    """The f-th of many 32-bit words that one random word stands for; a loop over f is a vector loop (Wellons 2018)."""
    # Products of 32-bit numbers are made with 64 bits here, so each is cut back.
    z = np.uint32(word + np.uint32(f) * _GOLDEN32)
    z = np.uint32((z ^ (z >> _H16)) * _HASH1)
    z = np.uint32((z ^ (z >> _H15)) * _HASH2)
    return z ^ (z >> _H16)


@inline
def normal(state: np.ndarray) -> float:
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(state)))
    return radius * math.cos(2.0 * math.pi * uniform(state))


@inline
def bisect(ladder: np.ndarray, low: int, high: int, x: float) -> int:
    """Smallest position in low..high whose running total is above x (the last one when none is)."""
    high -= 1
    while low < high:
        middle = (low + high) >> 1
        if ladder[middle] > x:
            high = middle
        else:
            low = middle + 1
    return low
