"""Attach a graph to a dataset: its nodes are matched by id with the users or items, and renumbered to their codes."""

from __future__ import annotations

import dataclasses
import logging
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import CorankError
from .columns import text_kind
from .csr import CSR, from_scipy
from .edges import counted, symmetric, tidy
from .vocab import Vocab

if TYPE_CHECKING:
    from .dataset import Dataset

log = logging.getLogger("corank.reading")
NAMED = 3  # how many unknown nodes a message names
Edges: TypeAlias = str | PathLike[str] | tuple[CSR, Vocab]  # a file, or what `from_edges` and `read_edges` return


def with_graph(
    data: Dataset, users: Edges | None = None, items: Edges | None = None, *, new_items: bool = False
) -> Dataset:
    """The dataset with these edges as its graphs; see `Dataset.with_graph`."""
    for side, edges, grow in (("user", users, True), ("item", items, new_items)):
        if edges is not None:
            data = _attach(data, side, edges, grow)
    return data


def _attach(data: Dataset, side: str, edges: Edges, grow: bool) -> Dataset:
    """Nodes that the data does not have become users or items (`grow`), or are dropped with their edges."""
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
        raise CorankError(f"the graph has {graph.rows:,} nodes and {len(nodes):,} ids: give one id per node")
    ids = _same_type(nodes, old, side, where)
    known = old.codes(ids) >= 0
    if not known.any():
        shown = " and ".join(str(vocab.ids[0]) for vocab in (nodes, old) if len(vocab))
        raise CorankError(
            f"{where}: none of its {len(nodes):,} nodes is among the {len(old):,} {side}s of the data (such as "
            f"{shown}): both must use the same ids"
        )
    vocab, codes = Vocab.build(np.concatenate([old.ids, ids[~known]])) if grow else (old, np.arange(len(old)))
    graph = _renumber(graph, vocab.codes(ids), len(vocab))
    log.info("%s: %s", where, _summary(graph, side, ids[~known], grow))
    _warn_of_mismatch(ids, known, old, side, where)
    changes = renumbered(data, side, vocab, codes[: len(old)])
    return dataclasses.replace(data, **{**changes, f"{side}_graph": graph})


def renumbered(data: Dataset, side: str, vocab: Vocab, places: NDArray[Any]) -> dict[str, Any]:
    """The fields of the dataset that change when its users (or items) get another vocabulary: code c becomes places[c].

    Labels of new users or items are '', NaN or -1, and these have no neighbours in the graph.
    """
    labels, graph = getattr(data, f"{side}_labels").items(), getattr(data, f"{side}_graph")
    changes: dict[str, Any] = {f"{side}s": vocab, side: places[getattr(data, side)]}
    changes[f"{side}_labels"] = {name: _extend(label, places, len(vocab)) for name, label in labels}
    if graph is not None:
        changes[f"{side}_graph"] = _renumber(graph, places, len(vocab))
    if data.comparisons is not None:
        compared = data.comparisons.copy()
        at = slice(0, 1) if side == "user" else slice(1, 3)
        compared[:, at] = places[compared[:, at]]
        changes["comparisons"] = compared
    return changes


def _same_type(nodes: Vocab, vocab: Vocab, side: str, where: str) -> NDArray[Any]:
    """The ids of the nodes, in the type of the ids of the data."""
    if nodes.strings and not vocab.strings:
        words = [i for i in nodes.ids.tolist() if text_kind([i]) != "int"]
        shown = f"node {words[0]!r} is not" if words else "its nodes are strings"
        raise CorankError(f"{where}: the {side}s of the data are integers and {shown}: use the same ids in both")
    return nodes.ids.astype(str).astype(object) if vocab.strings and not nodes.strings else nodes.ids


def _renumber(graph: CSR, code: NDArray[np.int32], size: int) -> CSR:
    """The graph over `size` nodes where node i has become code[i]; nodes of code -1 are dropped with their edges."""
    from scipy.sparse import coo_array

    source, target = np.repeat(code, np.diff(graph.indptr)), code[graph.index]
    kept = (source >= 0) & (target >= 0)
    return from_scipy(coo_array((graph.value[kept], (source[kept], target[kept])), shape=(size, size)))


def _warn_of_mismatch(ids: NDArray[Any], known: NDArray[np.bool_], vocab: Vocab, side: str, where: str) -> None:
    """Warn where the edges seem to be about other users or items, or write their ids in another way."""
    new = ids[~known]
    if new.size > known.sum():
        log.warning(
            "%s: %s of its %s nodes are %ss without rows: is it a table of edges between %ss, with their ids?",
            *(where, f"{new.size:,}", f"{ids.size:,}", side, side),
        )
    if not vocab.strings or not new.size:
        return
    folded = {name.strip().casefold(): name for name in vocab.ids.tolist()}
    near = [name for name in new.tolist() if name.strip().casefold() in folded]
    if near:
        log.warning(
            "%s: %r is not the %s %r of the data, but only case or blanks differ (%s so): use the same ids in both",
            *(where, near[0], side, folded[near[0].strip().casefold()], counted(len(near), "node")),
        )


def _summary(graph: CSR, side: str, new: NDArray[Any], grow: bool) -> str:
    """One line about the attached graph: its size, and what happened to unknown nodes."""
    edges = symmetric(graph).index.size // 2
    text = f"{counted(edges, 'edge')} between {side}s"
    if not new.size:
        return text
    shown = ", ".join([*map(str, new[:NAMED]), *["..."] * (new.size > NAMED)])
    one = new.size == 1
    fate = "added" if grow else f"left out, with {'its' if one else 'their'} edges"
    return f"{text}; {counted(new.size, side)} without rows ({shown}) {'was' if one else 'were'} {fate}"


def _extend(label: NDArray[Any], places: NDArray[Any], size: int) -> NDArray[Any]:
    """Labels at their new codes; '', NaN or -1 for new users or items."""
    if np.array_equal(places, np.arange(size)):
        return label
    dtype = np.dtype(np.int64) if label.dtype.kind in "ub" else label.dtype
    out = np.full((size, *label.shape[1:]), {"O": "", "U": "", "f": np.nan}.get(dtype.kind, -1), dtype)
    out[places] = label
    return out
