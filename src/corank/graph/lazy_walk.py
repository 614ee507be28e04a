"""Which nodes a short random walk reaches: the matrix by which nodes share vectors (`form="shared"` of `grmf`).

Around each node lie shells: the node itself, its neighbours, the nodes at distance two, and so on. A lazy random walk
of d steps, each of which moves to a neighbour with probability `walk` and stays otherwise, ends in shell s with a
probability of about C(d, s) walk^s (1 - walk)^(d - s), and is taken to be uniform within the shell. Shells are exact,
or approximated by bits: those that round s of Graph DNA adds to the filter of a node.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..data import CSR, from_scipy
from ..data.edges import symmetric
from .dna import DNA, encode
from .powers import power_sum, without_edges


def shells(
    graph: CSR,
    kind: str,
    *,
    walk: float = 0.5,
    capacity: int = 500,
    error: float = 0.1,
    theta: float | None = None,
    seed: int = 0,
) -> CSR:
    """The matrix of nodes x nodes (or bits) that a lazy random walk reaches; a directed graph becomes max(A, A').

    The mean squared norm of the rows is 1. A node without neighbours reaches nothing: its row is empty.

    Parameters
    ----------
    kind : 'g', 'g2' to 'g6' for exact shells up to that distance (n columns), 'dna-1' to 'dna-4' for those of Bloom
        filters of so many rounds (one column per bit that is set in some filter). Weights of edges are ignored.
    walk : probability that a step moves to a neighbour.
    capacity, error, theta, seed : size, stopping rule and hashes of the Bloom filters, see `graph.encode`.
    """
    graph = symmetric(graph)
    isolated = np.diff(graph.indptr) == 0
    depth = int(kind.lstrip("dnag-") or 1)
    if kind.startswith("dna"):
        found = list(_by_bits(graph, depth, capacity=capacity, error=error, theta=theta, seed=seed))
    else:
        found = list(_exact(graph, depth))
    counts = [np.diff(shell.indptr) for shell in found]
    mass = [np.full(graph.rows, math.comb(depth, s) * walk**s * (1 - walk) ** (depth - s)) for s in range(depth + 1)]
    for s in range(depth, 0, -1):  # the probability of an empty shell goes to the next nearer one
        mass[s - 1] += np.where(counts[s] == 0, mass[s], 0)
    total = None
    for shell, count, probability in zip(found, counts, mass, strict=True):
        matrix = shell.scipy()
        matrix.data = np.repeat(np.where(isolated, 0, probability / np.maximum(count, 1)), count).astype(np.float32)
        total = matrix if total is None else total + matrix
    assert total is not None
    total.eliminate_zeros()
    norm = math.sqrt(float(np.square(total.data, dtype=np.float64).sum()) / max(1, int(np.sum(~isolated))))
    total.data /= np.float32(norm if norm > 0 else 1)
    rows = from_scipy(total)
    used = np.bincount(rows.index, minlength=rows.columns) > 0
    column = np.cumsum(used, dtype=np.int32) - 1
    return CSR(rows.indptr, column[rows.index], rows.value, int(used.sum()))


def _exact(graph: CSR, depth: int) -> Iterator[CSR]:
    """The nodes at each distance from a node, starting at distance 0."""
    n = graph.rows
    yield CSR(np.arange(n + 1, dtype=np.int64), np.arange(n, dtype=np.int32), np.ones(n, np.float32), n)
    before = graph.scipy() * np.float32(0)
    for s in range(1, depth + 1):
        near = power_sum(graph, s).scipy()  # where a walk of 1 to s steps can end, except at its start
        near.data[:] = 1
        ring = near - before
        ring.eliminate_zeros()
        before = near
        yield from_scipy(ring)


def _by_bits(graph: CSR, depth: int, **options: Any) -> Iterator[CSR]:
    """The bits that each round adds to the filter of a node, starting with those of the node itself."""
    before = np.zeros((), np.uint64)
    for s in range(depth + 1):
        # Without edges a round adds nothing: the filter holds the node itself.
        edges = graph if s else without_edges(graph.rows)
        dna = encode(edges, depth=max(s, 1), **options)
        yield DNA(dna.words & ~before, dna.filter, s, dna.seed).bits()
        before = dna.words
