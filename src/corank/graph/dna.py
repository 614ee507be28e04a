"""Graph DNA: a Bloom filter per node that holds all nodes within a few steps (Wu 2020, chapter 2).

The filters are c bits per node, computed without training in depth * edges * c / 64 word operations. `data.edges` says
what a graph is and how self loops, repeated edges and weights are treated; the bits ignore weights, and the filter of a
node always holds the node itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data import CSR, Vocab, row_ends
from ..data.edges import checked, tidy
from ..errors import CorankError
from ..params import number, whole
from ..system.atomic import replacing
from ..system.memory import make_room


@dataclass(frozen=True)
class Filter:
    """The shape of a Bloom filter: `slices` runs of `width` bits, in each of which an element sets one bit."""

    slices: int
    width: int

    def __post_init__(self) -> None:
        for name in ("slices", "width"):
            whole(name, getattr(self, name), 1)
        if self.bits >= 1 << 31:
            raise CorankError(f"a filter of {self.bits:,} bits is too large: at most 2,147,483,647, lower the capacity")

    @classmethod
    def of(cls, capacity: int, error: float, tight: bool = False) -> Filter:
        """The filter for `capacity` elements with a false-positive rate of `error`.

        It has ceil(log2(1 / error)) slices. Their width is that of pybloom 1.1, which the dissertation used: it counts
        the capacity twice, so that at capacity the true rate is far below `error`. `tight` counts it once.
        """
        capacity = whole("capacity", capacity, 1)
        if isinstance(error, bool) or not isinstance(error, int | float | np.number) or not 0 < error < 1:
            raise CorankError(
                f"error={error!r} is not a false-positive rate: give a number between 0 and 1, such as 0.1"
            )
        slices = max(1, math.ceil(-math.log2(error)))
        wanted = capacity * (1 if tight else 2) * abs(math.log(error)) / (slices * math.log(2) ** 2)
        return cls(slices, math.ceil(wanted))

    @property
    def bits(self) -> int:
        """c, the number of bits."""
        return self.slices * self.width

    @property
    def words(self) -> int:
        """Number of 64-bit words of a filter."""
        return -(-self.bits // 64)

    def places(self, elements: ArrayLike, seed: int = 0) -> NDArray[np.int64]:
        """The bits that each element (a whole number from 0) sets: (elements, slices), one in each slice."""
        from ..kernels import bloom
        from ..kernels.threads import run

        given = np.ascontiguousarray(elements, np.int64).reshape(-1)
        out = np.empty((given.size, self.slices), np.int64)
        run(bloom.places, given.size, given, whole("seed", seed, 0), self.width, out)
        return out

    def add(self, words: NDArray[np.uint64], elements: ArrayLike, seed: int = 0) -> None:
        """Add elements to one filter, uint64 (words,), in place; the union of two filters is `a | b`."""
        bit = self.places(elements, seed).ravel()
        np.bitwise_or.at(words, bit >> 6, np.uint64(1) << (bit & 63).astype(np.uint64))

    def holds(self, words: NDArray[np.uint64], elements: ArrayLike, seed: int = 0) -> NDArray[np.bool_]:
        """Whether each element is in the filter of its own row, uint64 (elements, words), or in one filter for all.

        Never False for an element that was added; True for any other with probability (share of set bits) ** slices.
        """
        bit = self.places(elements, seed)
        rows = np.broadcast_to(words, (bit.shape[0], self.words))
        word = np.take_along_axis(rows, bit >> 6, axis=1)
        return np.asarray((word >> (bit & 63).astype(np.uint64) & np.uint64(1)).all(axis=1))

    def estimate(self, ones: ArrayLike) -> NDArray[np.float64]:
        """Estimated number of elements of a filter with `ones` set bits: -width * log(1 - ones / c).

        The standard error at m elements is about sqrt(width * (exp(m / width) - 1 - m / width) / slices). A full
        filter is counted as one with half a bit free.
        """
        free = np.maximum(self.bits - np.asarray(ones, np.float64), 0.5)
        return np.asarray(-self.width * np.log(free / self.bits))


@dataclass(frozen=True, eq=False)
class DNA:
    """The Bloom filters of the nodes of a graph, made by `encode`."""

    words: NDArray[np.uint64]  # (n, filter.words); bit b of a filter is bit b % 64 of word b // 64
    filter: Filter
    depth: int
    seed: int = 0

    def __repr__(self) -> str:
        return f"DNA({self.words.shape[0]:,} nodes, depth {self.depth}, {self.filter.bits:,} bits, {self.fill:.1%} set)"

    def ones(self) -> NDArray[np.int64]:
        """The number of set bits per node (n,)."""
        from ..kernels import bloom
        from ..kernels.threads import run

        out = np.empty(self.words.shape[0], np.int64)
        run(bloom.count_bits, out.size, self.words, out)
        return out

    @property
    def fill(self) -> float:
        """Share of all bits that are set."""
        return float(self.ones().sum() / (self.words.shape[0] * self.filter.bits))

    def sizes(self) -> NDArray[np.float64]:
        """Estimated number of nodes within `depth` steps of each node, itself included; see `Filter.estimate`."""
        return self.filter.estimate(self.ones())

    def contains(self, node: ArrayLike, other: ArrayLike) -> NDArray[np.bool_]:
        """Whether the filter of `node` holds `other`.

        Always True for nodes within `depth` steps; True for a node beyond them is a false positive.
        """
        i, j = (np.asarray(x, np.int64) for x in np.broadcast_arrays(node, other))
        for given in (i, j):
            if given.size and not 0 <= given.min() <= given.max() < self.words.shape[0]:
                bad = given.min() if given.min() < 0 else given.max()
                raise CorankError(f"there is no node {bad}: the nodes are 0 to {self.words.shape[0] - 1}")
        return self.filter.holds(self.words[i.ravel()], j, self.seed).reshape(i.shape)

    def bits(self) -> CSR:
        """The n x c matrix of bits as compressed rows of ones; it is never dense."""
        from ..kernels import bloom
        from ..kernels.threads import run

        indptr = row_ends(self.ones())
        make_room(
            8.0 * indptr[-1], f"a sparse matrix of {indptr[-1]:,} bits", "use fewer bits or less depth, or set theta"
        )
        index = np.empty(indptr[-1], np.int32)
        run(bloom.list_bits, self.words.shape[0], self.words, 0, indptr, np.zeros_like(indptr), index, cost=indptr)
        return CSR(indptr, index, np.ones(index.size, np.float32), self.filter.bits)

    def save(self, path: str | PathLike[str], nodes: Vocab, *, sparse: bool = False) -> None:
        """Write plain arrays as .npz: nodes (n,) with the ids, slices, width, depth, seed, and words (n, words).

        Parameters
        ----------
        sparse : write the n x c matrix of bits instead of the words, in the format that `scipy.sparse.load_npz` reads.
        """
        if len(nodes) != self.words.shape[0]:
            raise CorankError(f"{len(nodes):,} ids for {self.words.shape[0]:,} nodes: give one id per node")
        arrays: dict[str, Any] = {"words": self.words}
        if sparse:
            bits = self.bits()
            ones = np.ones(bits.index.size, np.uint8)
            arrays = {"format": np.array(b"csr"), "shape": np.array([bits.rows, bits.columns]), "data": ones}
            arrays |= {"indices": bits.index, "indptr": bits.indptr}
        arrays["nodes"] = nodes.ids.astype(str) if nodes.strings else nodes.ids
        arrays |= {"slices": self.filter.slices, "width": self.filter.width, "depth": self.depth, "seed": self.seed}
        with replacing(Path(path)) as part, part.open("wb") as file:
            np.savez(file, **arrays)


def load(path: str | PathLike[str]) -> tuple[DNA, Vocab]:
    """Read what `DNA.save` wrote (without `sparse`): the filters and the ids of their nodes."""
    try:
        with np.load(path, allow_pickle=False) as file:
            found = {name: file[name] for name in ("words", "nodes", "slices", "width", "depth", "seed")}
        words, ids, *rest = found.values()
        slices, width, depth, seed = (int(number) for number in rest)
        shape = Filter(slices, width)
        if (
            words.dtype != np.uint64
            or words.shape != (ids.size, shape.words)
            or ids.ndim != 1
            or ids.dtype.kind not in "iU"
        ):
            raise KeyError("words")
    except FileNotFoundError:
        raise CorankError(f"file '{path}' does not exist: check the path") from None
    except (OSError, KeyError, ValueError, TypeError, AttributeError, EOFError, BadZipFile):
        raise CorankError(
            f"file '{path}' is not Graph DNA with packed words: write it with `corank graph encode`"
        ) from None
    return DNA(words, shape, depth, seed), Vocab(ids.astype(object) if ids.dtype.kind == "U" else ids)


def encode(
    graph: CSR,
    *,
    depth: int = 2,
    capacity: int = 500,
    error: float = 0.1,
    tight: bool = False,
    theta: float | None = None,
    seed: int = 0,
    on_step: Callable[[int, int], Any] | None = None,
) -> DNA:
    """Graph DNA: after `depth` rounds the filter of a node holds every node within `depth` steps along the rows.

    Memory: the result, n * c / 8 bytes, and 128 bytes per node beside it; with theta, three times the result.

    Parameters
    ----------
    capacity, error, tight : the size of a filter, see `Filter.of`.
    theta : a node merges no further neighbour in a round once its filter holds more than `theta` elements by estimate,
        so that the filters of hubs do not fill up; the order of the neighbours is then drawn from `seed`. None: no
        limit.
    on_step : called with (steps done, all steps).
    """
    from ..kernels import bloom
    from ..kernels.threads import run

    shape, limit = check_options(depth, capacity, error, tight, theta, seed)
    depth, seed = int(depth), int(seed)
    graph = checked(graph) if theta is None else tidy(graph)
    n, indptr = graph.rows, graph.indptr
    step = bloom.LINE if limit is None else shape.words
    make_room(
        8.0 * n * (shape.words + 2 * step),
        f"encoding {n:,} nodes in {shape.bits:,} bits",
        "lower the capacity or raise the error rate",
    )
    words = np.empty((n, shape.words), np.uint64)
    old, new = np.empty((n, step), np.uint64), np.empty((n, step), np.uint64)
    blocks = range(0, shape.words, step)
    for done, first in enumerate(blocks):
        run(bloom.own, n, seed, shape.slices, shape.width, first, old)
        for hop in range(1, depth + 1):
            if limit is None:
                run(bloom.spread, n, indptr, graph.index, old, new, cost=indptr)
            else:
                run(bloom.spread_within, n, indptr, graph.index, old, new, limit, seed, hop, cost=indptr)
            old, new = new, old
            if on_step is not None:
                on_step(done * depth + hop, len(blocks) * depth)
        run(bloom.put, n, old, first, words)
    return DNA(words, shape, depth, seed)


def check_options(
    depth: int = 2,
    capacity: int = 500,
    error: float = 0.1,
    tight: bool = False,
    theta: float | None = None,
    seed: int = 0,
) -> tuple[Filter, int | None]:
    """The filter that the options of `encode` describe and the most bits within theta; CorankError for a bad option."""
    whole("depth", depth, 1)
    whole("seed", seed, 0)
    shape = Filter.of(capacity, error, tight)
    return shape, None if theta is None else _limit(theta, shape)


def _limit(theta: float, shape: Filter) -> int:
    """The most set bits of a filter of at most `theta` elements by estimate; the node itself always fits."""
    return math.ceil(-shape.bits * math.expm1(-number("theta", theta, 1) / shape.width))
