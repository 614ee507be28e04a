"""Features of users and items from their side graphs: rows of the graph, Graph DNA, or embeddings of random walks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import nn
from ..data import CSR, Dataset
from ..errors import CorankError
from ..graph import encode, side_graph, symmetric
from ._torch import torch

if TYPE_CHECKING:
    from ..nn.rating_graph import Features, Side

# DeepWalk takes as many and as long walks as node2vec does by default, as in the dissertation's comparison.
WALKS: dict[str, dict[str, int]] = {"node2vec": {}, "deepwalk": {"walks": 10, "length": 80}}
KINDS = ("auto", "none", "g", "g2", "dna-1", "dna-2", "dna-3", "dna-4", *WALKS)
DENSE = 0.03  # share of non-zero features above which they are multiplied as a dense matrix ...
LARGE = 1 << 29  # ... unless that has more elements than this


def node_features(
    data: Dataset, kind: str, name: str, *, ids: bool, device: torch.device, **options: Any
) -> dict[Side, Features]:
    """Features of the sides that have a graph, as tensors.

    Parameters
    ----------
    kind : one of `KINDS`; options: see `feature_rows`.
    name : of the model, for the message where there is no graph.
    ids : if only one side has a graph, the nodes of the other have their ids as features (one-hot).
    device : where the tensors will be.
    """
    graphs: dict[Side, CSR | None] = {"user": data.user_graph, "item": data.item_graph}
    nodes: dict[Side, int] = {"user": len(data.users), "item": len(data.items)}
    if kind == "none" or all(graph is None for graph in graphs.values()):
        if kind not in ("none", "auto"):
            raise CorankError(
                f"{name}(features={kind!r}): the data has neither a user graph nor an item graph; give the dataset "
                "one, or leave features at 'auto'"
            )
        return {}
    found: dict[Side, Features] = {}
    for side, graph in graphs.items():
        if graph is not None or ids:
            rows = _one_hot(nodes[side]) if graph is None else feature_rows(graph, kind, **options)
            found[side] = _tensors(rows, nodes[side], device)
    return found


def feature_rows(
    graph: CSR,
    kind: str,
    *,
    alpha: float,
    capacity: int,
    error: float,
    theta: float | None,
    walk_dim: int,
    seed: int,
) -> CSR:
    """Features of the nodes of a graph, (nodes, columns).

    Parameters
    ----------
    kind : one of `KINDS` except none; auto is dna-2.
    alpha : weight of G^2 beside G (g2).
    capacity, error, theta : of the Bloom filters (dna), see `graph.encode`.
    walk_dim : number of columns of node2vec and deepwalk.
    """
    if kind == "auto":
        kind = "dna-2"
    if kind.startswith("dna-"):
        dna = encode(symmetric(graph), depth=int(kind[4:]), capacity=capacity, error=error, theta=theta, seed=seed)
        return dna.bits()
    if kind in WALKS:
        from ..graph import node2vec

        vectors = getattr(node2vec, kind)(symmetric(graph), walk_dim, seed=seed, **WALKS[kind])
        nodes, dim = vectors.shape
        index = np.tile(np.arange(dim, dtype=np.int32), nodes)
        return CSR(np.arange(nodes + 1, dtype=np.int64) * dim, index, vectors.ravel(), dim)
    return side_graph(graph, kind, weights=(alpha,) if kind == "g2" else ())


def _one_hot(nodes: int) -> CSR:
    """The identity matrix: each node is its own feature."""
    indptr, index = np.arange(nodes + 1, dtype=np.int64), np.arange(nodes, dtype=np.int32)
    return CSR(indptr, index, np.ones(nodes, np.float32), nodes)


def _tensors(rows: CSR, nodes: int, device: torch.device) -> Features:
    """The rows, scaled so that their absolute values sum to 1, as tensors: dense where they are dense, else sparse."""
    row = np.repeat(np.arange(nodes), np.diff(rows.indptr))
    total = np.bincount(row, np.abs(rows.value), nodes)[row]
    value = (rows.value / np.maximum(total, 1e-12)).astype(np.float32)
    if rows.index.size > DENSE * nodes * rows.columns and nodes * rows.columns < LARGE:
        whole = np.zeros((nodes, rows.columns), np.float32)
        whole[row, rows.index] = value
        return nn.send(whole, device)
    return nn.Pattern(row, rows.index, (nodes, rows.columns), device), nn.send(value, device)
