"""Graphs of users or items as CSR matrices, built from lists of edges and checked.

A graph has one row and one column per node; row i lists the neighbours of i. The rules:

- a positive weight is an edge and a weight of 0 is none; negative and infinite weights are refused;
- self-loops are dropped, and the weights of an edge that is listed more than once are summed;
- nodes without neighbours are kept; a graph without nodes, or with an edge to a node that does not exist, is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import CorankError
from .columns import numbers
from .csr import CSR, from_scipy, row_ends
from .vocab import Vocab


def from_edges(
    source: Any, target: Any, weight: Any = None, *, nodes: Vocab | None = None, directed: bool = False
) -> tuple[CSR, Vocab]:
    """A graph from columns of ids, integers or strings, and the vocabulary of its nodes.

    weight : one per edge, summed where an edge is listed more than once; without weights every edge weighs 1, however
        often it is listed. A self-loop adds its node and no edge.
    nodes : all nodes; an edge with any other id is refused. None: the nodes are the ids that occur in the edges.
    directed : the edge leads from `source` (row) to `target` (column). Otherwise the graph is symmetric, max(A, A'):
        where an edge is listed in both directions, the larger weight counts.
    """
    from scipy.sparse import coo_array

    if len(source) != len(target):
        raise CorankError(f"{len(source):,} sources and {len(target):,} targets: give columns of equal length")
    (sources, i), (targets, j) = Vocab.build(source, "source"), Vocab.build(target, "target")
    # Where one column holds strings, integers in the other one are strings too.
    words = sources.strings or targets.strings if nodes is None else nodes.strings
    ids = [v.ids.astype(str).astype(object) if words and not v.strings else v.ids for v in (sources, targets)]
    if nodes is None:
        nodes = Vocab.build(np.concatenate(ids), "node")[0]
    i, j = nodes.require(ids[0], "node")[i], nodes.require(ids[1], "node")[j]
    value = np.ones(i.size, np.float32) if weight is None else numbers(weight, "weight")
    if value.size != i.size:
        raise CorankError(f"{value.size:,} weights and {i.size:,} edges: give columns of equal length")
    check_weights(nodes.ids[i], nodes.ids[j], value)
    graph = from_scipy(coo_array((value, (i, j)), shape=(len(nodes), len(nodes))))
    if weight is None:
        graph.value[:] = 1
    return (tidy(graph) if directed else symmetric(graph)), nodes


def check_weights(source: Any, target: Any, weight: NDArray[Any], where: Callable[[int], str] | None = None) -> None:
    """Refuse the first negative or infinite weight; where(position) says where it is in the file."""
    bad = ~(np.isfinite(weight) & (weight >= 0))
    if bad.any():
        at = int(np.argmax(bad))
        raise CorankError(
            f"{where(at) + ': ' if where else ''}the edge '{source[at]}' to '{target[at]}' has the weight "
            f"{weight[at]:g}: weights must be finite and not negative; drop or repair such edges"
        )


def symmetric(graph: CSR) -> CSR:
    """max(A, A'), tidied: the undirected form of a directed graph."""
    matrix = tidy(graph).scipy()
    return from_scipy(matrix.maximum(matrix.T.tocsr()))


def tidy(graph: CSR) -> CSR:
    """The graph by the rules above: rows sorted by column, no self-loops, no zeros, no repeated edges."""
    graph = checked(graph)
    row = np.repeat(np.arange(graph.rows, dtype=np.int32), np.diff(graph.indptr))
    rising = (graph.index[1:] > graph.index[:-1]) | (row[1:] != row[:-1])
    loops = graph.index == row
    if loops.any():
        graph = _only(graph, ~loops)
    if rising.all():
        return graph
    return from_scipy(graph.scipy().copy())


def checked(graph: CSR) -> CSR:
    """The graph without zeros; raises unless it is square, has nodes, and its columns and weights are valid."""
    if not isinstance(graph, CSR):
        raise CorankError(f"a graph is a corank CSR, not a {type(graph).__name__}: make one with corank.from_scipy")
    n, index, value, indptr = graph.rows, graph.index, graph.value, graph.indptr
    if n < 1:
        raise CorankError("the graph has no nodes: give at least one")
    if graph.columns != n:
        raise CorankError(f"the graph is {n:,} x {graph.columns:,}: give one row and one column per node")
    if indptr[0] != 0 or indptr[-1] != index.size or index.size != value.size or (np.diff(indptr) < 0).any():
        raise CorankError(
            f"indptr of the graph does not fit its {index.size:,} entries: make it with corank.from_scipy"
        )
    if index.size == 0:
        return graph
    low, high = index.min(), index.max()
    if low < 0 or high >= n:
        raise CorankError(
            f"an edge names node {low if low < 0 else high}, and the nodes are 0 to {n - 1}: drop it or add the node"
        )
    least = value.min()
    if not (least >= 0 and np.isfinite(value).all()):
        bad = value[~(np.isfinite(value) & (value >= 0))][0]
        raise CorankError(
            f"an edge has the weight {bad:g}: weights must be finite and not negative; drop or repair such edges"
        )
    return graph if least > 0 else _only(graph, value > 0)


def _only(graph: CSR, kept: NDArray[np.bool_]) -> CSR:
    """The graph with only these of its entries."""
    total = row_ends(kept)
    return CSR(total[graph.indptr], graph.index[kept], graph.value[kept], graph.columns)


def counted(count: int, what: str) -> str:
    """A number with its noun: 1 edge, 2 edges."""
    return f"{count:,} {what}{'s' * (count != 1)}"
