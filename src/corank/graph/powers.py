"""Sums of powers of a graph, and the graph that a model with side information learns from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, row_ends
from ..data.edges import symmetric, tidy
from ..errors import CorankError, suggest
from ..params import number, whole
from ..system.memory import make_room
from .dna import DNA, encode

KINDS = ("none", "g", "g2", "g3", "g4", "g5", "g6", "dna-1", "dna-2", "dna-3", "dna-4")
_ENTRIES = 1 << 23  # entries of a power that each thread computes at a time


def power_sum(graph: CSR, depth: int, weights: Sequence[float] = (), threshold: float = 0.0) -> CSR:
    """G + a2 G^2 + ... + ad G^d without its diagonal.

    Rows are computed in blocks, so that only the entries that are kept must fit into memory: G^3 of a social network
    is nearly dense.

    Parameters
    ----------
    weights : a2, ..., ad, none of them negative; all 1 when left out.
    threshold : entries of the highest power, G^d, below it are dropped; G to G^(d-1) are kept whole. The dissertation
        cuts G^3 of its social networks at 4: pairs with fewer walks of three steps between them do not count.
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
        done = len(parts)  # other threads add to it meanwhile: this is only an estimate
        held = 8.0 * sum(part[0].size for part in list(parts.values()))
        ahead = 2 * held * n / min(done * height, n) - held  # the parts and, at the end, their concatenation
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
    theta: float | None = None,
    seed: int = 0,
) -> CSR:
    """The symmetric graph that a model with side information smooths over; a directed one becomes max(A, A').

    Parameters
    ----------
    kind : 'none' (no edges), 'g', 'g2' to 'g6' (`power_sum` with `weights` and `threshold`), or 'dna-1' to 'dna-4':
        n + c nodes, the first n of them the real ones, [[G, B], [B', 0]] with the bits B of `encode`, so that nodes
        with a bit in common are two steps apart. 'dna-1' leaves G out, as the dissertation's tables do.
    weights : a2, a3, ... of `power_sum`; for Graph DNA one number, the weight of an edge to a bit instead of 1.
    capacity, error, theta, seed : size, stopping rule and hashes of the Bloom filters, see `encode`.

    A node without neighbours gets no bits: they could only connect it to unrelated nodes whose bits collide with them.
    """
    if kind not in KINDS:
        raise CorankError(f"there is no kind of graph {kind!r}{suggest(str(kind), KINDS)}")
    graph = symmetric(graph)
    n = graph.rows
    if kind == "none":
        return without_edges(n)
    if kind == "g":
        return graph
    if kind.startswith("g"):
        return power_sum(graph, int(kind[1:]), weights, threshold)
    weight = [number("weights", w, 0) for w in weights] or [1.0]
    if len(weight) != 1 or weight[0] == 0:
        raise CorankError(f"weights={weight} with {kind}: give one number above 0, the weight of an edge to a bit")
    depth = int(kind[4:])
    dna = encode(graph, depth=depth, capacity=capacity, error=error, theta=theta, seed=seed)
    dna.words[np.diff(graph.indptr) == 0] = 0
    if depth == 1:
        graph = without_edges(n)
    return _augmented(graph, dna, weight[0])


def without_edges(nodes: int) -> CSR:
    """The graph of that many nodes and no edge."""
    return CSR(np.zeros(nodes + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), nodes)


def _augmented(graph: CSR, dna: DNA, weight: float) -> CSR:
    """[[G, B], [B', 0]], written in place: beside the words of the filters, only the result is in memory."""
    from ..kernels import bloom
    from ..kernels.threads import run

    n, c, words = graph.rows, dna.filter.bits, dna.words
    having = np.zeros(64 * words.shape[1], np.int64)  # nodes that have each bit
    run(bloom.count_columns, words.shape[1], words, having)
    indptr = row_ends(np.concatenate([np.diff(graph.indptr) + dna.ones(), having[:c]]))
    make_room(8.0 * indptr[-1], f"a graph of {indptr[-1]:,} entries", "take fewer bits or less depth")
    index, value = np.empty(indptr[-1], np.int32), np.full(indptr[-1], weight, np.float32)
    own = np.arange(graph.index.size) + np.repeat(indptr[:n] - graph.indptr[:-1], np.diff(graph.indptr))
    index[own], value[own] = graph.index, graph.value
    run(bloom.list_bits, n, words, n, indptr, graph.indptr, index, cost=indptr[: n + 1])
    free = np.zeros_like(having)
    free[:c] = indptr[n:-1]
    run(bloom.list_columns, words.shape[1], words, free, index)
    return CSR(indptr, index, value, n + c)
