"""The network of GC-MC: a node is what its neighbours are, level by level; a pair of nodes gets odds of the levels.

A rating of level r is an edge between user i and item j. The first layer of a user is the sum, over the ratings, of a
vector for (item j, level r), a row of a table, weighted by 1 / degree (van den Berg, Kipf and Welling 2017, one-hot
inputs). The sums of the levels stand side by side (`stack`) or are added up (`sum`). After ReLU come, where there are
features, a dense layer of these, and one linear layer. Items are made the same way, from tables of their own.

`Rated` is what networks over ratings share: what a rating counts, the layer of the features and the decoder. The odds
of level r are sum over b of a[b, r] u' P_b v + c[r], where nodes may have a say of their own: + (u' A)[r] + (v' B)[r].
Parameters are views into one flat vector (`Layout`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from .noise import Noise, dropout
from .parameters import Parameter
from .sparse import Pattern, product, sampled

Side = Literal["user", "item"]
Ints = NDArray[Any]
Bools = NDArray[np.bool_]
Shapes = dict[str, tuple[int, ...]]
Weights = Mapping[str, Tensor]
Features = tuple[Pattern, Tensor] | Tensor  # nodes x columns: a pattern and its values, or all of them


@dataclass(frozen=True, kw_only=True)
class Rated:
    """Sizes and rules; the weights are elsewhere. A subclass makes the vectors: `shapes` and `encode`."""

    users: int
    items: int
    levels: int
    dim: int  # of the vectors of users and items
    bases: int = 2  # matrices P_b of the decoder
    features: tuple[int, int] = (0, 0)  # columns of the features of users and of items
    feature_dim: int = 64
    symmetric: bool = False  # weights 1 / sqrt(degree degree) instead of 1 / degree
    shrink: float = 0.0  # added to the degrees
    biased: bool = True  # levels have a bias
    node_biased: bool = False  # a user and an item each add to the odds
    dropout: float = 0.0  # of the layers
    node_dropout: float = 0.0  # of the nodes that a layer is made of
    cold: float = 0.0  # share of the nodes that training leaves without any rating

    def shapes(self) -> Shapes:
        """Name and shape of each parameter: matrices, then vectors."""
        raise NotImplementedError

    def parameters(self) -> dict[str, Parameter]:
        """Shape and role of each parameter."""
        return {
            name: Parameter(shape, "matrix" if len(shape) == 2 else "bias") for name, shape in self.shapes().items()
        }

    def encode(
        self, w: Weights, graph: Graph, visible: Bools | None = None, noise: Noise | None = None
    ) -> tuple[Tensor, Tensor]:
        """Vectors [nodes, dim] of users and of items; visible bool[n]: the ratings that count, all when absent."""
        raise NotImplementedError

    def decoder_shapes(self) -> tuple[Shapes, Shapes]:
        """Matrices and vectors of the decoder."""
        matrices: Shapes = {f"{b}.decoder": (self.dim, self.dim) for b in range(self.bases)}
        matrices["levels"] = (self.bases, self.levels)
        if self.node_biased:
            matrices |= {"user.levels": (self.dim, self.levels), "item.levels": (self.dim, self.levels)}
        return matrices, {"levels.bias": (self.levels,)} if self.biased else {}

    def weights(
        self, side: Side, graph: Graph, visible: Bools | None, noise: Noise | None, warm: Tensor | None = None
    ) -> Tensor:
        """float32[n]: what each rating counts in the sum of its user (or item); `warm` as in `warmth`, or drawn."""
        value = graph.weights(side, self.symmetric, self.shrink, visible)
        here, there = (graph.user, graph.item) if side == "user" else (graph.item, graph.user)
        if noise is not None and self.node_dropout > 0:
            value = value * noise.mask((graph.count(side, other=True),), self.node_dropout)[there]
        if warm is None:
            warm = self.warmth(side, graph, noise)
        return value if warm is None else value * warm[here]

    def warmth(self, side: Side, graph: Graph, noise: Noise | None) -> Tensor | None:
        """bool[nodes]: who keeps ratings in this step; None: everybody."""
        if noise is None or self.cold <= 0:
            return None
        return noise.mask((graph.count(side),), self.cold) > 0

    def featured(self, w: Weights, side: Side, features: Features | None) -> Tensor:
        """The dense layer of the features of a side; where features are None, what zeros give: one row."""
        bias = w[f"{side}.features.bias"]
        if features is None:
            return F.relu(bias).view(1, -1)
        table = w[f"{side}.features"]
        return F.relu((features @ table if isinstance(features, Tensor) else product(*features, table)) + bias)

    def odds(self, w: Weights, pairs: Pattern, user: Tensor, item: Tensor) -> Tensor:
        """[n, levels]: logits of each pair, from the vectors of all users and of all items."""
        found = [sampled(pairs, user @ w[f"{b}.decoder"], item) for b in range(self.bases)]
        odds = torch.stack(found, 1) @ w["levels"]
        if self.node_biased:
            row, column = pairs.places()
            odds = odds + (user @ w["user.levels"])[row] + (item @ w["item.levels"])[column]
        return odds + w["levels.bias"] if self.biased else odds


@dataclass(frozen=True, kw_only=True)
class Network(Rated):
    """The encoder of GC-MC."""

    hidden: int  # width of the first layer, all levels together
    stacked: bool = True
    sharing: str = "own"  # of the tables by the levels: own, ordinal (r adds to r - 1), basis (mixtures of `bases`)

    @property
    def width(self) -> int:
        """Of the vector of a (node, level)."""
        return max(1, self.hidden // self.levels) if self.stacked else self.hidden

    @property
    def joined(self) -> bool:
        """Whether users and items share the last layer, as they do without features."""
        return self.features == (0, 0)

    def shapes(self) -> Shapes:
        """Name and shape of each parameter: matrices, then vectors."""
        kinds = self.bases if self.sharing == "basis" else self.levels
        inner = self.width * self.levels if self.stacked else self.width
        matrices: Shapes = {}
        vectors: Shapes = {}
        for side, others, columns in zip(("user", "item"), (self.items, self.users), self.features, strict=True):
            matrices[f"{side}.table"] = (others * kinds, self.width)
            if self.sharing == "basis":
                matrices[f"{side}.mix"] = (self.levels, kinds)
            if columns:
                matrices[f"{side}.features"] = (columns, self.feature_dim)
                vectors[f"{side}.features.bias"] = (self.feature_dim,)
            if not self.joined or side == "user":
                matrices[f"{side}.last"] = (inner + (self.feature_dim if columns else 0), self.dim)
        more, biases = self.decoder_shapes()
        return matrices | more | vectors | biases

    def table(self, w: Weights, side: Side) -> Tensor:
        """[others * levels, width]: what a rating of each level of each node of the other side adds."""
        table = w[f"{side}.table"]
        if self.sharing == "own":
            return table
        if self.sharing == "ordinal":
            return table.view(-1, self.levels, self.width).cumsum(1).view(-1, self.width)
        mixed = torch.einsum("rb,nbw->nrw", w[f"{side}.mix"], table.view(-1, self.bases, self.width))
        return mixed.reshape(-1, self.width)

    def encode(
        self, w: Weights, graph: Graph, visible: Bools | None = None, noise: Noise | None = None
    ) -> tuple[Tensor, Tensor]:
        """Vectors [nodes, dim] of users and of items; visible bool[n]: the ratings that count, all when absent."""
        return self._side(w, "user", graph, visible, noise), self._side(w, "item", graph, visible, noise)

    def _side(self, w: Weights, side: Side, graph: Graph, visible: Bools | None, noise: Noise | None) -> Tensor:
        value = self.weights(side, graph, visible, noise)
        first = F.relu(product(graph.pattern(side, self.stacked), value, self.table(w, side)))
        return self.finish(w, side, first.view(graph.count(side), -1), graph.features.get(side), noise)

    def finish(self, w: Weights, side: Side, first: Tensor, features: Features | None, noise: Noise | None) -> Tensor:
        """The layers after the first; nodes without features (None, where others have some) get what zeros give."""
        if f"{side}.features" in w:
            first = torch.cat([first, self.featured(w, side, features).expand(first.shape[0], -1)], 1)
        return dropout(first, self.dropout, noise) @ w["user.last" if self.joined else f"{side}.last"]


@dataclass(eq=False)
class Graph:
    """The ratings user, item, level int[n], sorted by user and item, as a graph; and the features of its nodes."""

    user: Ints
    item: Ints
    level: Ints
    users: int
    items: int
    levels: int
    features: dict[Side, Features] = field(default_factory=dict)
    _patterns: dict[Side, Pattern] = field(default_factory=dict)

    def count(self, side: Side, other: bool = False) -> int:
        """Nodes of a side, or of the other one."""
        return self.users if (side == "user") != other else self.items

    def pattern(self, side: Side, stacked: bool) -> Pattern:
        """Rows: the nodes of a side, or (node, level); columns: (node of the other side, level)."""
        if side not in self._patterns:
            here, there = (self.user, self.item) if side == "user" else (self.item, self.user)
            row = here.astype(np.int64) * self.levels + self.level if stacked else here
            column = there.astype(np.int64) * self.levels + self.level
            rows, columns = self.count(side), self.count(side, other=True)
            self._patterns[side] = Pattern(row, column, (rows * (self.levels if stacked else 1), columns * self.levels))
        return self._patterns[side]

    def weights(self, side: Side, symmetric: bool, shrink: float, visible: Bools | None = None) -> Tensor:
        """float32[n]: what each rating counts in the sum of its user (or item); 0 where it is not visible."""
        seen = np.ones(self.user.size, np.float32) if visible is None else visible.astype(np.float32)
        here, there = (self.user, self.item) if side == "user" else (self.item, self.user)
        degree = np.bincount(here, seen, self.count(side)) + shrink
        scale = 1 / np.maximum(degree, 1e-9)
        out = scale[here]
        if symmetric:
            mates = np.bincount(there, seen, self.count(side, other=True)) + shrink
            out = np.sqrt(out / np.maximum(mates, 1e-9)[there])
        return torch.from_numpy(np.where(seen > 0, out, 0).astype(np.float32))
