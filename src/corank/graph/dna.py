"""Graphs of users or items: Graph DNA, sums of powers, and the graph that a model with side information learns from.

Graph DNA (Wu 2020, chapter 2) gives each node a Bloom filter of all nodes within `depth` steps: a row of c bits, made
without training in depth * edges * c / 64 word operations. What a graph is, and what becomes of loops, repeated edges
and weights, is told in `edges`; the bits know no weights, and each node keeps itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atomic import replacing
from ..data import CSR, Vocab, row_ends
from ..data.edges import checked, from_edges, symmetric, tidy
from ..data.graph_alignment import with_graph
from ..errors import CorankError, suggest
from ..memory import make_room
from ..params import number, whole
from ..reading.edge_tables import read_edges

__all__ = ["DNA", "KINDS", "Filter", "encode", "from_edges", "load", "power_sum", "read_edges", "side_graph"]
__all__ += ["symmetric", "tidy", "with_graph"]
KINDS = ("none", "g", "g2", "g3", "g4", "g5", "g6", "dna-1", "dna-2", "dna-3", "dna-4")
_ENTRIES = 1 << 23  # entries of a power that are worked on at a time, in each thread


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
        """The filter for `capacity` elements of which a stranger is taken for a member with probability `error`.

        ceil(log2(1 / error)) slices; the width is what pybloom 1.1 took, on which the dissertation's tables rest: it
        counts the capacity twice, so at capacity the true rate is far below `error`. `tight` counts it once.
        """
        capacity = whole("capacity", capacity, 1)
        if isinstance(error, bool) or not isinstance(error, int | float | np.number) or not 0 < error < 1:
            raise CorankError(f"error={error!r} is no rate of false positives: it must be above 0 and below 1, as 0.1")
        slices = max(1, math.ceil(-math.log2(error)))
        wanted = capacity * (1 if tight else 2) * abs(math.log(error)) / (slices * math.log(2) ** 2)
        return cls(slices, math.ceil(wanted))

    @property
    def bits(self) -> int:
        """c, the number of bits."""
        return self.slices * self.width

    @property
    def words(self) -> int:
        """How many 64-bit words hold them."""
        return -(-self.bits // 64)

    def places(self, elements: ArrayLike, seed: int = 0) -> NDArray[np.int64]:
        """The bits that each element (a whole number from 0) sets: [elements, slices], one in each slice."""
        from ..kernels import bloom
        from ..kernels.threads import run

        given = np.ascontiguousarray(elements, np.int64).reshape(-1)
        out = np.empty((given.size, self.slices), np.int64)
        run(bloom.places, given.size, given, whole("seed", seed, 0), self.width, out)
        return out

    def add(self, words: NDArray[np.uint64], elements: ArrayLike, seed: int = 0) -> None:
        """Put elements into one filter, uint64[words], in place; the union of two filters is `a | b`."""
        bit = self.places(elements, seed).ravel()
        np.bitwise_or.at(words, bit >> 6, np.uint64(1) << (bit & 63).astype(np.uint64))

    def holds(self, words: NDArray[np.uint64], elements: ArrayLike, seed: int = 0) -> NDArray[np.bool_]:
        """Whether each element is in the filter uint64[words] of its own row, or in the one filter for all.

        Never False for what was put in; True for a stranger with probability (share of set bits) ** slices.
        """
        bit = self.places(elements, seed)
        rows = np.broadcast_to(words, (bit.shape[0], self.words))
        word = np.take_along_axis(rows, bit >> 6, axis=1)
        return np.asarray((word >> (bit & 63).astype(np.uint64) & np.uint64(1)).all(axis=1))

    def estimate(self, ones: ArrayLike) -> NDArray[np.float64]:
        """How many elements a filter with so many set bits holds: -width * log(1 - ones / c).

        Its standard error with m elements in it is about sqrt(width * (exp(m / width) - 1 - m / width) / slices). A
        full filter says only "many": it counts as one with half a bit free.
        """
        free = np.maximum(self.bits - np.asarray(ones, np.float64), 0.5)
        return np.asarray(-self.width * np.log(free / self.bits))


@dataclass(frozen=True, eq=False)
class DNA:
    """The Bloom filters of the nodes of a graph, made by `encode`."""

    words: NDArray[np.uint64]  # [n, filter.words]: bit b of a filter is bit b % 64 of word b // 64
    filter: Filter
    depth: int
    seed: int = 0

    def __repr__(self) -> str:
        return f"DNA({self.words.shape[0]:,} nodes, depth {self.depth}, {self.filter.bits:,} bits, {self.fill:.1%} set)"

    def ones(self) -> NDArray[np.int64]:
        """The number of set bits of each node: [n]."""
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
        """Estimated number of nodes within `depth` steps of each node, itself among them; see `Filter.estimate`."""
        return self.filter.estimate(self.ones())

    def contains(self, node: ArrayLike, other: ArrayLike) -> NDArray[np.bool_]:
        """Whether `other` is within `depth` steps of `node`, by the filters: no false "no", some false "yes"."""
        i, j = (np.asarray(x, np.int64) for x in np.broadcast_arrays(node, other))
        for given in (i, j):
            if given.size and not 0 <= given.min() <= given.max() < self.words.shape[0]:
                bad = given.min() if given.min() < 0 else given.max()
                raise CorankError(f"there is no node {bad}: the nodes are 0 to {self.words.shape[0] - 1}")
        return self.filter.holds(self.words[i.ravel()], j, self.seed).reshape(i.shape)

    def bits(self) -> CSR:
        """The n x c matrix of bits as compressed rows of ones; a dense one is never made."""
        from ..kernels import bloom
        from ..kernels.threads import run

        indptr = row_ends(self.ones())
        make_room(
            8.0 * indptr[-1], f"a sparse matrix of {indptr[-1]:,} bits", "take fewer bits or less depth, or set theta"
        )
        index = np.empty(indptr[-1], np.int32)
        run(bloom.list_bits, self.words.shape[0], self.words, 0, indptr, np.zeros_like(indptr), index, cost=indptr)
        return CSR(indptr, index, np.ones(index.size, np.float32), self.filter.bits)

    def save(self, path: str | PathLike[str], nodes: Vocab, *, sparse: bool = False) -> None:
        """Write plain arrays as .npz: nodes [n] (the ids), slices, width, depth, seed, and words [n, words].

        sparse : the n x c matrix of bits instead of the words, in the form that `scipy.sparse.load_npz` reads.
        """
        if len(nodes) != self.words.shape[0]:
            raise CorankError(f"{len(nodes):,} ids for {self.words.shape[0]:,} nodes: give one a node")
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
    """What `DNA.save` wrote (without `sparse`), and the nodes of its rows."""
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
            f"file '{path}' is no Graph DNA with packed words: write it with `corank graph encode`"
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

    capacity, error, tight : the size of a filter, see `Filter.of`.
    theta : a node takes no further neighbour in a round once its filter holds more than `theta` elements by estimate,
        so that hubs do not fill up; neighbours then come in an order drawn from `seed`. None: no limit.
    on_step : called with (steps done, all steps).

    Memory: the result, n * c / 8 bytes, and 128 bytes a node beside it; with theta, three times the result.
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
        for turn in range(1, depth + 1):
            if limit is None:
                run(bloom.spread, n, indptr, graph.index, old, new, cost=indptr)
            else:
                run(bloom.spread_within, n, indptr, graph.index, old, new, limit, seed, turn, cost=indptr)
            old, new = new, old
            if on_step is not None:
                on_step(done * depth + turn, len(blocks) * depth)
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
    """The filter that the options of `encode` ask for and the most bits within theta; a sentence where one is wrong."""
    whole("depth", depth, 1)
    whole("seed", seed, 0)
    shape = Filter.of(capacity, error, tight)
    return shape, None if theta is None else _limit(theta, shape)


def power_sum(graph: CSR, depth: int, weights: Sequence[float] = (), threshold: float = 0.0) -> CSR:
    """G + a2 G^2 + ... + ad G^d without its diagonal; entries of the sum below `threshold` are left out.

    weights : a2, ..., ad, none of them negative; all 1 when left out. Rows are worked on in blocks, so that only what
        is kept must fit into memory: G^3 of a social network is nearly dense.
    """
    from ..kernels.powers import sum_of_powers
    from ..kernels.threads import each

    depth = whole("depth", depth, 1)
    scale = [number("weights", a, 0) for a in weights] or [1.0] * (depth - 1)
    if len(scale) != depth - 1:
        raise CorankError(
            f"{len(scale)} weights for depth {depth}: give the {depth - 1} factors of G^2 to G^{depth}, or none at all"
        )
    threshold = number("threshold", threshold, 0)
    graph = tidy(graph)
    factors = np.array([1.0, *scale])
    n = graph.rows
    height = max(1, min(_ENTRIES // n, n))
    counts = np.zeros(n, np.int64)
    parts: dict[int, tuple[NDArray[np.int32], NDArray[np.float32]]] = {}

    def work(start: int) -> None:
        stop = min(start + height, n)
        index, value = np.empty((stop - start) * n, np.int32), np.empty((stop - start) * n, np.float32)
        size = sum_of_powers(start, stop, *graph[:3], factors, threshold, counts[start:stop], index, value)
        parts[start] = index[:size].copy(), value[:size].copy()
        done = len(parts)  # other threads add to it meanwhile: an estimate does
        held = 8.0 * sum(part[0].size for part in list(parts.values()))
        ahead = 2 * held * n / min(done * height, n) - held  # the parts and, at the end, the whole
        make_room(ahead, f"G to the power {depth} of {n:,} nodes", "raise the threshold or take Graph DNA")

    each(work, range(0, n, height))
    indptr = row_ends(counts)
    index, value = (np.concatenate([parts[start][k] for start in sorted(parts)]) for k in (0, 1))
    return CSR(indptr, index, value, n)


def side_graph(
    graph: CSR,
    kind: str,
    *,
    capacity: int = 500,
    error: float = 0.1,
    weights: Sequence[float] = (),
    threshold: float = 0.0,
    seed: int = 0,
) -> CSR:
    """The symmetric graph that a model with side information smooths over; a directed one becomes max(A, A').

    kind : 'none' (no edges), 'g', 'g2' to 'g6' (`power_sum` with `weights` and `threshold`), or 'dna-1' to 'dna-4':
        n + c nodes, the first n of them the real ones, [[G, B], [B', 0]] with the bits B of `encode`, so that nodes
        with a bit in common are two steps apart. 'dna-1' leaves G out, as the dissertation's tables do. With `weights`
        of one number, the edges to the bits weigh that instead of 1. A node without neighbours has no bits here: all
        that its own could do is to tie it to strangers whose bits happen to be the same.
    """
    if kind not in KINDS:
        raise CorankError(f"there is no kind of graph {kind!r}{suggest(str(kind), KINDS)}")
    graph = symmetric(graph)
    n = graph.rows
    if kind == "none":
        return CSR(np.zeros(n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), n)
    if kind == "g":
        return graph
    if kind.startswith("g"):
        return power_sum(graph, int(kind[1:]), weights, threshold)
    weight = [number("weights", w, 0) for w in weights] or [1.0]
    if len(weight) != 1 or weight[0] == 0:
        raise CorankError(f"weights={weight} with {kind}: give one number above 0, what an edge to a bit weighs")
    depth = int(kind[4:])
    dna = encode(graph, depth=depth, capacity=capacity, error=error, seed=seed)
    dna.words[np.diff(graph.indptr) == 0] = 0
    if depth == 1:
        graph = CSR(np.zeros(n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), n)
    return _augmented(graph, dna, weight[0])


def _augmented(graph: CSR, dna: DNA, weight: float) -> CSR:
    """[[G, B], [B', 0]], written in place: beside the words, only the result is held."""
    from ..kernels import bloom
    from ..kernels.threads import run

    n, c, words = graph.rows, dna.filter.bits, dna.words
    having = np.zeros(64 * words.shape[1], np.int64)  # nodes that have each bit
    run(bloom.count_columns, words.shape[1], words, having)
    indptr = np.zeros(n + c + 1, np.int64)
    np.cumsum(np.concatenate([np.diff(graph.indptr) + dna.ones(), having[:c]]), out=indptr[1:])
    make_room(8.0 * indptr[-1], f"a graph of {indptr[-1]:,} entries", "take fewer bits or less depth")
    index, value = np.empty(indptr[-1], np.int32), np.full(indptr[-1], weight, np.float32)
    own = np.arange(graph.index.size) + np.repeat(indptr[:n] - graph.indptr[:-1], np.diff(graph.indptr))
    index[own], value[own] = graph.index, graph.value
    run(bloom.list_bits, n, words, n, indptr, graph.indptr, index, cost=indptr[: n + 1])
    free = np.zeros_like(having)
    free[:c] = indptr[n:-1]
    run(bloom.list_columns, words.shape[1], words, free, index)
    return CSR(indptr, index, value, n + c)


def _limit(theta: float, shape: Filter) -> int:
    """The most bits of a filter that holds at most `theta` elements by estimate; its own node is always within it."""
    return math.ceil(-shape.bits * math.expm1(-number("theta", theta, 1) / shape.width))
