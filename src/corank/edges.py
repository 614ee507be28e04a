"""What a graph of users or items is here, and how one is made from a list of edges.

A graph is a CSR with one row and one column a node; row i has the neighbours of i, what i sees. The rules:

- a weight above 0 is an edge, a weight of 0 is none, negative or infinite ones are refused;
- a self loop is dropped, and edges that are listed twice have their weights added up;
- a node without neighbours stays; a graph without nodes, or an edge to a node that does not exist, is refused.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .columns import numbers
from .data import CSR, Vocab, from_scipy
from .errors import CorankError, shorten

_WORDS = {
    "source": ("source", "src", "from", "user", "follower"),
    "target": ("target", "dst", "to", "friend", "followee"),
    "weight": ("weight",),
}


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
    value = np.ones(i.size, np.float32) if weight is None else numbers(weight, "value")
    if value.size != i.size:
        raise CorankError(f"{value.size:,} weights and {i.size:,} edges: give columns of one length")
    bad = ~(np.isfinite(value) & (value >= 0))
    if bad.any():
        at = int(np.argmax(bad))
        raise CorankError(
            f"the edge '{nodes.ids[i[at]]}' to '{nodes.ids[j[at]]}' has the weight {value[at]:g}: "
            "weights must be finite and not negative; drop or repair such edges"
        )
    graph = from_scipy(coo_array((value, (i, j)), shape=(len(nodes), len(nodes))))
    if weight is None:
        graph.value[:] = 1
    return (tidy(graph) if directed else symmetric(graph)), nodes


def read_edges(
    path: str | PathLike[str],
    *,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    separator: str | None = None,
    nodes: Vocab | None = None,
    directed: bool = False,
) -> tuple[CSR, Vocab]:
    """A graph from a table of edges, text or Parquet, a row an edge; `nodes` and `directed` as in `from_edges`.

    source, target, weight : column names, or positions ("0", "1", ...) where the file has no header. What is left out
        is found by name (source or src, from, user, follower; target or dst, to, friend, followee; weight), or is the
        first, second and third column where there is no header; `weight=""` says that there is none.
    """
    from . import layout as layouts
    from .tables import is_parquet, read_csv, read_parquet

    wanted = {"source": source, "target": target, "weight": weight}
    options: dict[str, Any] = {"time": "", "duplicates": "keep"}
    header = True
    if is_parquet(layouts.existing_file(path)):
        import polars as pl

        read = read_parquet
        try:
            names = tuple(pl.read_parquet_schema(Path(path)))
        except (pl.exceptions.PolarsError, OSError):
            names = ()  # `read` has the sentence for it
    else:
        read = read_csv
        known = [word for words in _WORDS.values() for word in (*words, *map(str.title, words))]
        found = layouts.sniff(path, separator=separator, given=[*known, *filter(None, wanted.values())])
        names, header = found.names, found.header
        options |= {"separator": separator, "header": header}
    chosen = layouts.choose(
        names, {role: name for role, name in wanted.items() if name}, f"file '{path}'", header=header
    )
    free = [name for name in names if name not in chosen.values()]
    for role, words in _WORDS.items():
        if role in chosen or wanted[role] == "":
            continue
        near = free if not header else [n for word in words for n in free if n.strip().lower() == word]
        if near:
            chosen[role] = near[0]
            free.remove(near[0])
        elif role != "weight" and names:
            raise CorankError(
                f"cannot tell which column of file '{path}' is the {role} of an edge: it has "
                f"{shorten(', '.join(names), 400)}; say {role}=... (on the command line --{role} ...)"
            )
    try:
        rows = read(
            path, user=chosen.get("source"), item=chosen.get("target"), value=chosen.get("weight", ""), **options
        )
    except CorankError as why:  # the parts of a table have other names there
        raise CorankError(str(why).replace("value=", "weight=")) from None
    return from_edges(
        rows.users.ids[rows.user],
        rows.items.ids[rows.item],
        rows.value if "weight" in chosen else None,
        nodes=nodes,
        directed=directed,
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
    total = np.concatenate([[0], np.cumsum(kept)])
    return CSR(total[graph.indptr].astype(np.int64), graph.index[kept], graph.value[kept], graph.columns)
