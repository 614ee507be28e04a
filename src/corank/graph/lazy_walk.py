"""Whom a node meets on a walk of a few steps: the rows by which nodes share vectors (`form="shared"` of `grmf`).

Around each node lie shells: itself, its neighbours, those at two steps, and so on. A lazy walk of d steps, each of
which goes to a neighbour with probability `walk` and stays otherwise, is in shell s with about the probability C(d, s)
walk^s (1 - walk)^(d - s), and is as likely to be at one place there as at another. Shells are exact, or known by their
bits: those that round s of Graph DNA adds to the filter of a node.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ..data import CSR, from_scipy
from ..data.edges import symmetric
from .dna import DNA, encode, power_sum


def shells(graph: CSR, kind: str, *, walk: float = 0.5, capacity: int = 500, error: float = 0.1, seed: int = 0) -> CSR:
    """The matrix of all nodes and whom, or which bits, they meet on a lazy walk; a directed graph becomes max(A, A').

    kind : 'g', 'g2' to 'g6' for exact shells up to that distance (n columns), 'dna-1' to 'dna-4' for those of Bloom
        filters of so many rounds (a column for each of the bits that are set somewhere). Edges count as they are,
        whatever they weigh.
    capacity, error, seed : the size of a filter and its hashes, see `graph.Filter.of`.

    The mean of the squared lengths of the rows is 1. A node without neighbours meets nobody: its row is empty.
    """
    graph = symmetric(graph)
    alone = np.diff(graph.indptr) == 0
    depth = int(kind.lstrip("dnag-") or 1)
    found = list(_by_bits(graph, depth, capacity, error, seed) if kind.startswith("dna") else _exact(graph, depth))
    counts = [np.diff(shell.indptr) for shell in found]
    mass = [np.full(graph.rows, math.comb(depth, s) * walk**s * (1 - walk) ** (depth - s)) for s in range(depth + 1)]
    for s in range(depth, 0, -1):  # where nobody is so far away, the walk is nearer
        mass[s - 1] += np.where(counts[s] == 0, mass[s], 0)
    total = None
    for shell, count, chance in zip(found, counts, mass, strict=True):
        matrix = shell.scipy()
        matrix.data = np.repeat(np.where(alone, 0, chance / np.maximum(count, 1)), count).astype(np.float32)
        total = matrix if total is None else total + matrix
    assert total is not None
    total.eliminate_zeros()
    length = math.sqrt(float(np.square(total.data, dtype=np.float64).sum()) / max(1, int(np.sum(~alone))))
    total.data /= np.float32(length if length > 0 else 1)
    rows = from_scipy(total)
    used = np.bincount(rows.index, minlength=rows.columns) > 0
    place = np.cumsum(used, dtype=np.int32) - 1
    return CSR(rows.indptr, place[rows.index], rows.value, int(used.sum()))


def _exact(graph: CSR, depth: int) -> Iterator[CSR]:
    """Who is at each distance, from 0 on."""
    n = graph.rows
    yield CSR(np.arange(n + 1, dtype=np.int64), np.arange(n, dtype=np.int32), np.ones(n, np.float32), n)
    before = graph.scipy() * np.float32(0)
    for s in range(1, depth + 1):
        near = power_sum(graph, s).scipy()  # whom a walk of 1 to s steps can end at, but for its start
        near.data[:] = 1
        ring = near - before
        ring.eliminate_zeros()
        before = near
        yield from_scipy(ring)


def _by_bits(graph: CSR, depth: int, capacity: int, error: float, seed: int) -> Iterator[CSR]:
    """The bits that each round adds to the filter of a node, from its own on."""
    n = graph.rows
    before = np.zeros((), np.uint64)
    for s in range(depth + 1):
        # Where there are no edges, a round brings nothing: what is left is the node's own bits.
        around = graph if s else CSR(np.zeros(n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), n)
        dna = encode(around, depth=max(s, 1), capacity=capacity, error=error, seed=seed)
        yield DNA(dna.words & ~before, dna.filter, s, seed).bits()
        before = dna.words
