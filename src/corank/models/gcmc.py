"""GC-MC: graph convolution over rating levels, with features from side graphs (van den Berg, Kipf and Welling 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .. import nn
from ..cost import Size
from ..params import param
from ._rating_graph import RatingEncoder, RatingGraphModel
from ._torch import torch

if TYPE_CHECKING:
    from torch import Tensor

    from ..nn.noise import Noise
    from ..nn.parameters import Parameter, Weights
    from ..nn.rating_graph import Bools, RatingGraph, Side


@dataclass(frozen=True, kw_only=True)
class GCMCEncoder(RatingEncoder):
    """One graph convolution per side, then one dense layer.

    h_i = ReLU(sum over the ratings (j, r) of user i of T[j, r] / degree(i)), where T has a row per item and level,
    x_i = ReLU(F' features_i + f), where the nodes have features,
    u_i = W' dropout([h_i, x_i]); items likewise, with a table, F and f of their own.

    Parameters
    ----------
    hidden : size of h.
    stacked : the sums of the levels are concatenated, hidden / levels numbers each, instead of added up.
    sharing : how the levels share T: own (nothing), ordinal (level r adds to level r - 1) or basis (linear
        combinations of `bases` tables).
    """

    hidden: int
    stacked: bool = True
    sharing: str = "own"
    bases: int = 2

    @property
    def width(self) -> int:
        """Number of columns of T."""
        return max(1, self.hidden // self.levels) if self.stacked else self.hidden

    def parameters(self) -> dict[str, Parameter]:
        """Shape and role of each parameter."""
        tables = self.bases if self.sharing == "basis" else self.levels
        hidden = self.width * self.levels if self.stacked else self.width
        found: dict[str, Parameter] = {}
        for side, others, columns in zip(nn.SIDES, (self.items, self.users), self.columns, strict=True):
            found[f"{side}.table"] = nn.Parameter((others * tables, self.width), "matrix")
            if self.sharing == "basis":
                found[f"{side}.mix"] = nn.Parameter((self.levels, tables), "matrix")
            if columns:
                found |= nn.feature_parameters(side, columns, self.feature_dim)
            if self._output(side) not in found:
                inputs = hidden + (self.feature_dim if columns else 0)
                found[self._output(side)] = nn.Parameter((inputs, self.dim), "matrix")
        return found

    def _output(self, side: Side) -> str:
        """The name of W: users and items share it where neither side has features."""
        return "output" if self.columns == (0, 0) else f"{side}.output"

    def encode(
        self, w: Weights, graph: RatingGraph, visible: Bools | None = None, noise: Noise | None = None
    ) -> tuple[Tensor, Tensor]:
        """Vectors (users, dim) and (items, dim); see `RatingEncoder`."""
        return self.encode_side(w, "user", graph, visible, noise), self.encode_side(w, "item", graph, visible, noise)

    def encode_side(
        self, w: Weights, side: Side, graph: RatingGraph, visible: Bools | None = None, noise: Noise | None = None
    ) -> Tensor:
        """Vectors (nodes, dim) of users or of items."""
        weight = graph.weights(side, visible)  # (ratings,)
        weight = graph.drop_neighbors(side, weight, self.node_dropout, noise)
        weight = graph.only_warm(side, weight, graph.draw_warm(side, self.cold, noise))
        table = self.table(w, side)  # (others * levels, width)
        hidden = graph.aggregate(side, weight, table, per_level=self.stacked).relu()  # (nodes or nodes * levels, width)
        return self.dense(w, side, graph, hidden.view(graph.nodes(side), -1), noise)  # (nodes, dim)

    def table(self, w: Weights, side: Side) -> Tensor:
        """T, the messages of each node of the other side per level: (others * levels, width)."""
        table = w[f"{side}.table"]
        if self.sharing == "own":
            return table
        if self.sharing == "ordinal":
            return table.view(-1, self.levels, self.width).cumsum(1).view(-1, self.width)
        tables = table.view(-1, self.bases, self.width)  # (others, bases, width)
        mixed = torch.einsum("rb,nbw->nrw", w[f"{side}.mix"], tables)  # (others, levels, width)
        return mixed.reshape(-1, self.width)

    def dense(self, w: Weights, side: Side, graph: RatingGraph, hidden: Tensor, noise: Noise | None = None) -> Tensor:
        """The features beside the hidden layer (nodes, hidden), dropout and the last layer: (nodes, dim)."""
        if f"{side}.features" in w:
            features = nn.feature_layer(w, side, graph.features.get(side))  # (nodes, feature_dim)
            hidden = torch.cat([hidden, features.expand(hidden.shape[0], -1)], 1)  # (nodes, hidden + feature_dim)
        return nn.dropout(hidden, self.dropout, noise) @ w[self._output(side)]


@dataclass(kw_only=True, eq=False)
class GCMC(RatingGraphModel):
    """Graph convolutional matrix completion: a graph auto-encoder of rating levels (needs torch).

    The encoder computes the vector of a user as a sum over the ratings of a vector per (item, level), followed by ReLU
    and a dense layer; items likewise. A bilinear decoder gives logits of the levels, and the prediction is the expected
    rating under their softmax. User and item graphs enter as features of the nodes: rows of the graph, Graph DNA (Wu
    2020, chapter 2) or random walk embeddings.

    Objective: mean of (1 - squared) * cross-entropy of the level + squared * squared error / variance of the ratings.

    Reference: van den Berg, Kipf and Welling, "Graph Convolutional Matrix Completion", 2017. Not in the paper: biases
    of levels and nodes, the squared error, cold nodes in training (`cold`), and hidden targets: the ratings that a step
    predicts are not part of its input graph (`hide`). `GCMC(level_bias=False, squared=0, cold=0, hidden=500,
    epochs=200)` is the published model.

    When to use: few ratings and a side graph; the graph gives cold-start users personalised predictions. With many
    ratings and no graph, `als` and `mf` are as accurate and much faster.

    Cost: about 12 * batches * (ratings * width + nodes * hidden * dim) multiply-adds per epoch, where width is hidden /
    levels. Memory: 24 bytes per weight; the tables have (users + items) * hidden of them (`sum`: times levels).
    """

    hidden: int = param(100, "size of the hidden layer, all levels together", low=1, high=65_536, search=(32, 512))
    accumulate: str = param(
        "stack", "the sums of the levels are concatenated (stack) or added up (sum)", choices=("stack", "sum")
    )
    sharing: str = param(
        "own",
        "tables of the levels: separate (own), cumulative sums (ordinal), or combinations of `bases` tables (basis)",
        choices=("own", "ordinal", "basis"),
    )

    def _encoder(self) -> GCMCEncoder:
        stacked = self.accumulate == "stack"
        return GCMCEncoder(**self._sizes(), hidden=self.hidden, stacked=stacked, sharing=self.sharing, bases=self.bases)

    def _fold_in(self, w: Weights, graph: RatingGraph) -> Tensor:
        return self._encoder().encode_side(w, "user", graph)

    def _tables(self, size: Size) -> float:
        levels = 1 if self.accumulate == "stack" else min(size.levels, self.levels)
        return 1.0 * self.hidden * (size.nodes * levels + 2 * self.dim) + self._feature_weights(size)

    def _kept(self, levels: int) -> float:
        return self.hidden * (4.0 + (0 if self.sharing == "own" else levels))

    def _numbers(self, levels: int) -> float:
        return 4.0 * self.hidden * (1 if self.accumulate == "stack" else levels)
