"""What a graph of users or items is here, and how one is made from a list of edges.

A graph is a CSR with one row and one column a node; row i has the neighbours of i, what i sees. The rules:

- a weight above 0 is an edge, a weight of 0 is none, negative or infinite ones are refused;
- a self loop is dropped, and edges that are listed twice have their weights added up;
- a node without neighbours stays; a graph without nodes, or an edge to a node that does not exist, is refused.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from os import PathLike
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import CorankError
from ..reading.csv_format import kind
from .columns import numbers
from .csr import CSR, from_scipy, row_ends
from .dataset import Dataset, Vocab

log = logging.getLogger("corank.reading")
NAMED = 3  # strangers that a message names
Edges: TypeAlias = str | PathLike[str] | tuple[CSR, Vocab]  # a file, or what `from_edges` and `read_edges` give


def from_edges(
    source: Any, target: Any, weight: Any = None, *, nodes: Vocab | None = None, directed: bool = False
) -> tuple[CSR, Vocab]:
    """A graph from columns of ids, ints or strings, and the vocabulary of its nodes.

    nodes : the nodes there are; an edge that names another one is refused. None: all that the edges name.
    weight : of each edge, added up where an edge is listed twice; without weights an edge weighs 1 however often it
        is listed. A self loop names a node and is no edge.
    directed : row `source` has `target` as a column. Otherwise both directions are there, max(A, A'): weights of an
        edge that is listed in both directions are not added up, the larger one counts.
    """
    from scipy.sparse import coo_array

    if len(source) != len(target):
        raise CorankError(f"{len(source):,} sources and {len(target):,} targets: give columns of one length")
    (sources, i), (targets, j) = Vocab.build(source, "source"), Vocab.build(target, "target")
    # Where one column has words, digits in the other one are words too.
    words = sources.strings or targets.strings if nodes is None else nodes.strings
    ids = [v.ids.astype(str).astype(object) if words and not v.strings else v.ids for v in (sources, targets)]
    if nodes is None:
        nodes = Vocab.build(np.concatenate(ids), "node")[0]
    i, j = nodes.require(ids[0], "node")[i], nodes.require(ids[1], "node")[j]
    value = np.ones(i.size, np.float32) if weight is None else numbers(weight, "weight")
    if value.size != i.size:
        raise CorankError(f"{value.size:,} weights and {i.size:,} edges: give columns of one length")
    check_weights(nodes.ids[i], nodes.ids[j], value)
    graph = from_scipy(coo_array((value, (i, j)), shape=(len(nodes), len(nodes))))
    if weight is None:
        graph.value[:] = 1
    return (tidy(graph) if directed else symmetric(graph)), nodes


def check_weights(source: Any, target: Any, weight: NDArray[Any], where: Callable[[int], str] | None = None) -> None:
    """A sentence about the first edge whose weight cannot be one; where(position) tells where it stands."""
    bad = ~(np.isfinite(weight) & (weight >= 0))
    if bad.any():
        at = int(np.argmax(bad))
        raise CorankError(
            f"{where(at) + ': ' if where else ''}the edge '{source[at]}' to '{target[at]}' has the weight "
            f"{weight[at]:g}: weights must be finite and not negative; drop or repair such edges"
        )


def symmetric(graph: CSR) -> CSR:
    """max(A, A'), by the rules above: what a directed graph is taken for where edges have no direction."""
    matrix = tidy(graph).scipy()
    return from_scipy(matrix.maximum(matrix.T.tocsr()))


def tidy(graph: CSR) -> CSR:
    """The graph by the rules above: rows sorted, no loops, no zeros, no edge twice."""
    graph = checked(graph)
    owner = np.repeat(np.arange(graph.rows, dtype=np.int32), np.diff(graph.indptr))
    rising = (graph.index[1:] > graph.index[:-1]) | (owner[1:] != owner[:-1])
    loops = graph.index == owner
    if loops.any():
        graph = _only(graph, ~loops)
    if rising.all():
        return graph
    return from_scipy(graph.scipy().copy())


def checked(graph: CSR) -> CSR:
    """The graph without zeros, when it is one: square, with nodes, columns that exist and weights that can be."""
    if not isinstance(graph, CSR):
        raise CorankError(f"a graph is a corank CSR, not a {type(graph).__name__}: make one with corank.from_scipy")
    n, index, value, indptr = graph.rows, graph.index, graph.value, graph.indptr
    if n < 1:
        raise CorankError("the graph has no nodes: give at least one")
    if graph.columns != n:
        raise CorankError(f"the graph is {n:,} x {graph.columns:,}: give one row and one column a node")
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
    total = row_ends(kept)
    return CSR(total[graph.indptr].astype(np.int64), graph.index[kept], graph.value[kept], graph.columns)


# ---- a graph for a dataset -------------------------------------------------------------------------------------------


def with_graph(
    data: Dataset, users: Edges | None = None, items: Edges | None = None, *, new_items: bool = False
) -> Dataset:
    """The dataset with these edges as its graphs; see `Dataset.with_graph`."""
    for side, edges, grow in (("user", users, True), ("item", items, new_items)):
        if edges is not None:
            data = _joined(data, side, edges, grow)
    return data


def _joined(data: Dataset, side: str, edges: Edges, grow: bool) -> Dataset:
    """Nodes that the data does not know become users or items (`grow`), or go with their edges."""
    from ..reading.edge_tables import read_known

    old: Vocab = getattr(data, f"{side}s")
    where = str(edges) if isinstance(edges, str | PathLike) else "the graph"
    made = read_known(edges, old) if isinstance(edges, str | PathLike) else edges
    if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[1], Vocab)):
        raise CorankError(
            f"{side}s={type(edges).__name__}: give a file of edges, or what corank.graph.from_edges or read_edges makes"
        )
    graph, nodes = tidy(made[0]), made[1]
    if graph.rows != len(nodes):
        raise CorankError(f"the graph has {graph.rows:,} nodes and {len(nodes):,} ids: give one a node")
    ids = _alike(nodes, old, side, where)
    known = old.codes(ids) >= 0
    if not known.any():
        shown = " and ".join(str(vocab.ids[0]) for vocab in (nodes, old) if len(vocab))
        raise CorankError(
            f"{where}: none of its {len(nodes):,} nodes is among the {len(old):,} {side}s of the data (such as "
            f"{shown}): both must write ids alike"
        )
    vocab, codes = Vocab.build(np.concatenate([old.ids, ids[~known]])) if grow else (old, np.arange(len(old)))
    graph = _moved(graph, vocab.codes(ids), len(vocab))
    log.info("%s: %s", where, _told(graph, side, ids[~known], grow))
    _doubt(ids, known, old, side, where)
    changes: dict[str, Any] = {f"{side}s": vocab, f"{side}_graph": graph, side: codes[: len(old)][getattr(data, side)]}
    labels = getattr(data, f"{side}_labels").items()
    changes[f"{side}_labels"] = {name: _spread(label, codes[: len(old)], len(vocab)) for name, label in labels}
    if data.comparisons is not None:
        compared = data.comparisons.copy()
        at = slice(0, 1) if side == "user" else slice(1, 3)
        compared[:, at] = codes[compared[:, at]]
        changes["comparisons"] = compared
    return dataclasses.replace(data, **changes)


def _alike(nodes: Vocab, vocab: Vocab, side: str, where: str) -> NDArray[Any]:
    """The ids of the nodes, of the type of the ids of the data."""
    if nodes.strings and not vocab.strings:
        words = [i for i in nodes.ids.tolist() if kind([i]) != "int"]
        shown = f"{words[0]!r} is none" if words else "they are texts"
        raise CorankError(
            f"{where}: the {side}s of the data are integers, and of its nodes {shown}: write ids alike in both"
        )
    return nodes.ids.astype(str).astype(object) if vocab.strings and not nodes.strings else nodes.ids


def _moved(graph: CSR, at: NDArray[np.int32], size: int) -> CSR:
    """The graph with node i in place at[i] of `size`; nodes whose place is -1 are left out, with their edges."""
    from scipy.sparse import coo_array

    owner, other = np.repeat(at, np.diff(graph.indptr)), at[graph.index]
    kept = (owner >= 0) & (other >= 0)
    return from_scipy(coo_array((graph.value[kept], (owner[kept], other[kept])), shape=(size, size)))


def _doubt(ids: NDArray[Any], known: NDArray[np.bool_], vocab: Vocab, side: str, where: str) -> None:
    """Warn where the edges may be about others than the data is, or write their ids in another way."""
    new = ids[~known]
    if new.size > known.sum():
        log.warning(
            "%s: %s of its %s nodes are %ss without rows: is it a table of edges between %ss, with their ids?",
            *(where, f"{new.size:,}", f"{ids.size:,}", side, side),
        )
    if not vocab.strings or not new.size:
        return
    plain = {name.strip().casefold(): name for name in vocab.ids.tolist()}
    near = [name for name in new.tolist() if name.strip().casefold() in plain]
    if near:
        log.warning(
            "%s: %r is not the %s %r of the data, and only case or blanks differ (%s so): write ids alike in both",
            *(where, near[0], side, plain[near[0].strip().casefold()], counted(len(near), "node")),
        )


def _told(graph: CSR, side: str, new: NDArray[Any], grow: bool) -> str:
    """One line about a graph that was joined: how much there is, and what became of unknown nodes."""
    edges = symmetric(graph).index.size // 2
    text = f"{counted(edges, 'edge')} between {side}s"
    if not new.size:
        return text
    shown = ", ".join([*map(str, new[:NAMED]), *["..."] * (new.size > NAMED)])
    one = new.size == 1
    fate = "added" if grow else f"left out, with {'its' if one else 'their'} edges"
    return f"{text}; {counted(new.size, side)} without rows ({shown}) {'was' if one else 'were'} {fate}"


def counted(count: int, what: str) -> str:
    """A number with its noun: 1 edge, 2 edges."""
    return f"{count:,} {what}{'s' * (count != 1)}"


def _spread(label: NDArray[Any], places: NDArray[Any], size: int) -> NDArray[Any]:
    """Labels at their new places; '' or NaN or -1 for those who are new."""
    if size == label.shape[0]:
        return label
    dtype = np.dtype(np.int64) if label.dtype.kind in "ub" else label.dtype
    out = np.full((size, *label.shape[1:]), {"O": "", "U": "", "f": np.nan}.get(dtype.kind, -1), dtype)
    out[places] = label
    return out
