"""Graph AE: a light graph auto-encoder of rating levels, in the manner of IMC-GAE, with features from side graphs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .. import nn
from ..cost import Size
from ..params import param
from ..stored import Stored, floats
from ._rating_graph import RatingEncoder, RatingGraphModel
from ._torch import torch

if TYPE_CHECKING:
    from torch import Tensor

    from ..nn.noise import Noise
    from ..nn.parameters import Parameter, Weights
    from ..nn.rating_graph import Bools, RatingGraph, Side


@dataclass(frozen=True, kw_only=True)
class LightEncoder(RatingEncoder):
    """Several graph convolutions over small embeddings; users and items share their matrices.

    h_i(0) = embedding of node i + embedding of its side (user or item),
    h_i(l) = W_l' dropout(tanh(sum over the ratings (j, r) of node i of weight(i, j) M_lr' h_j(l-1))) + w_l,
    u_i = sum over l of h_i(l) / l, plus, where the nodes have features, W_x' dropout(ReLU(F' features_i + f)).

    This is the encoder of IMC-GAE with one matrix M_lr per level in place of mixtures. Unlike GC-MC, a node has `dim`
    numbers of its own instead of `hidden`, and depends on neighbours of neighbours.
    """

    layers: int = 2

    def parameters(self) -> dict[str, Parameter]:
        """Shape and role of each parameter."""
        d = self.dim
        shapes = {"user.embedding": (self.users, d), "item.embedding": (self.items, d), "side.embedding": (2, d)}
        for layer in range(self.layers):
            shapes |= {f"{layer}.messages": (d, self.levels * d), f"{layer}.output": (d, d)}
        found = {name: nn.Parameter(shape, "matrix") for name, shape in shapes.items()}
        found |= {f"{layer}.output.bias": nn.Parameter((d,), "bias") for layer in range(self.layers)}
        for side, columns in zip(nn.SIDES, self.columns, strict=True):
            if columns:
                found |= nn.feature_parameters(side, columns, self.feature_dim)
                found[f"{side}.features.output"] = nn.Parameter((self.feature_dim, d), "matrix")
        return found

    def start(self, w: Weights) -> None:
        """Scale M: Glorot's bound is for one matrix, not for those of all levels side by side."""
        for layer in range(self.layers):
            w[f"{layer}.messages"].mul_(math.sqrt((1 + self.levels) / 2))

    def encode(
        self, w: Weights, graph: RatingGraph, visible: Bools | None = None, noise: Noise | None = None
    ) -> tuple[Tensor, Tensor]:
        """Vectors (users, dim) and (items, dim); see `RatingEncoder`."""
        layers = self.states(w, graph, visible, noise)[1:]
        return (
            self.combine(w, "user", graph, [state["user"] for state in layers], noise),
            self.combine(w, "item", graph, [state["item"] for state in layers], noise),
        )

    def states(
        self, w: Weights, graph: RatingGraph, visible: Bools | None = None, noise: Noise | None = None
    ) -> list[dict[Side, Tensor]]:
        """h of both sides, (nodes, dim) each: the embeddings, then the output of each layer."""
        warm = {side: graph.draw_warm(side, self.cold, noise) for side in nn.SIDES}  # a cold node is so in every layer
        states = [{side: w[f"{side}.embedding"] + w["side.embedding"][at] for at, side in enumerate(nn.SIDES)}]
        for layer in range(self.layers):
            new: dict[Side, Tensor] = {}
            for side in nn.SIDES:
                weight = graph.weights(side, visible)  # (ratings,)
                weight = graph.drop_neighbors(side, weight, self.node_dropout, noise)
                weight = graph.only_warm(side, weight, warm[side])
                new[side] = self.convolve(w, layer, side, graph, weight, states[-1][nn.OTHER[side]], noise)
            states.append(new)
        return states

    def convolve(
        self,
        w: Weights,
        layer: int,
        side: Side,
        graph: RatingGraph,
        weight: Tensor,
        others: Tensor,
        noise: Noise | None = None,
    ) -> Tensor:
        """One layer: (nodes, dim) from the weights of the ratings (n,) and h of the other side, (others, dim)."""
        messages = (others @ w[f"{layer}.messages"]).view(-1, self.dim)  # (others * levels, dim)
        hidden = graph.aggregate(side, weight, messages).tanh()  # (nodes, dim)
        return nn.dropout(hidden, self.dropout, noise) @ w[f"{layer}.output"] + w[f"{layer}.output.bias"]

    def combine(
        self, w: Weights, side: Side, graph: RatingGraph, layers: list[Tensor], noise: Noise | None = None
    ) -> Tensor:
        """The sum of the outputs of the layers and of the features: (nodes, dim)."""
        total = sum((state / (at + 1) for at, state in enumerate(layers)), layers[0].new_zeros(()))
        if f"{side}.features" in w:
            features = nn.feature_layer(w, side, graph.features.get(side))  # (nodes, feature_dim)
            total = total + nn.dropout(features, self.dropout, noise) @ w[f"{side}.features.output"]
        return total


@dataclass(kw_only=True, eq=False)
class GraphAE(RatingGraphModel):
    """A light graph auto-encoder of rating levels (needs torch).

    Users and items start from a small embedding of their own; each layer sums the vectors of the neighbours, multiplied
    by a matrix per rating level. A bilinear decoder gives logits of the levels, and the prediction is the expected
    rating under their softmax. User and item graphs enter as features of the nodes, as in `gcmc`.

    Objective: mean of (1 - squared) * cross-entropy of the level + squared * squared error / variance of the ratings.

    Reference: in the manner of IMC-GAE (Shen et al., "Inductive Matrix Completion Using Graph Autoencoder", 2021). Not
    in the paper: biases of levels and nodes, the squared error, and that the ratings that a step predicts are not part
    of its graph (`hide`).

    When to use: in place of `gcmc`, which has many more weights and uses direct neighbours only, unless there are many
    cold-start users, for whom `gcmc` is better.

    Cost: about 6 * batches * layers * dim * (2 * ratings + levels * nodes * dim) multiply-adds per epoch.
    Memory: 24 bytes per weight, of which there are (users + items) * dim + layers * levels * dim^2.
    """

    dim: int = param(32, "size of the embeddings and of all layers", low=1, high=4096, search=(16, 96), log=True)
    layers: int = param(
        2,
        "number of graph convolutions: a node depends on nodes up to this many edges away",
        low=1,
        high=16,
        search=(1, 4),
    )
    feature_dim: int = param(16, "hidden size of the layer over the features", low=1, high=4096)
    node_bias: bool = param(True, "the vectors of the user and of the item each add a linear term to the logits")
    dropout: float = param(0.5, "dropout rate of the hidden layers", low=0.0, high=0.95, search=(0.2, 0.7))
    node_dropout: float = param(
        0.5, "dropout rate of whole neighbours in the sum over neighbours", low=0.0, high=0.95, search=(0.2, 0.7)
    )
    cold: float = param(
        0.0,
        "share of users and items that have no ratings in a training step, so that the features learn to replace them",
        low=0.0,
        high=0.95,
    )
    batches: int = param(5, "gradient steps per epoch, each on its share of the ratings", low=1, high=1_000_000)
    average: float = param(
        0.98, "decay of the running average of the weights (Polyak); 0 = no averaging", low=0.0, high=0.9999
    )
    epochs: int = param(20, "passes over the ratings", low=1, search=(5, 60), log=True)

    ids_as_features: ClassVar[bool] = False  # the encoder has an embedding per id anyway

    def _encoder(self) -> LightEncoder:
        return LightEncoder(**self._sizes(), layers=self.layers)

    def _encode(self, encoder: RatingEncoder, graph: RatingGraph) -> None:
        super()._encode(encoder, graph)
        with nn.one_thread(), torch.no_grad():  # inputs of the items to each layer, for unseen users
            states = self._encoder().states(self._on_device(), graph)[:-1]
            self.item_states_ = np.stack([state["item"].cpu().numpy() for state in states], 1)  # (items, layers, dim)

    def _stores(self) -> dict[str, Stored]:
        return super()._stores() | {"item_states_": floats("items", "layers", "dim")}

    def _fold_in(self, w: Weights, graph: RatingGraph) -> Tensor:
        encoder, weight = self._encoder(), graph.weights("user")
        states = nn.send(self.item_states_, graph.device).unbind(1)  # layers of (items, dim)
        layers = [encoder.convolve(w, at, "user", graph, weight, state) for at, state in enumerate(states)]
        return encoder.combine(w, "user", graph, layers)

    def _tables(self, size: Size) -> float:
        levels = min(size.levels, self.levels)
        return 1.0 * self.dim * (size.nodes + self.layers * (1 + levels) * self.dim) + self._feature_weights(size)

    def _numbers(self, levels: int) -> float:
        return float(self.layers * self.dim * (4 + levels))
