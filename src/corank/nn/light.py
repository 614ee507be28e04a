"""A light graph auto-encoder: small vectors of ids, layers that only turn, level by level, what neighbours are.

The input of a node is a vector of its side (user or item) plus a small one of its own. A layer gives to user i
tanh(sum over ratings of w[i, j] W_r h_j), h_j being what the layer below made of item j and W_r a matrix of the level,
then a linear map; all matrices are shared by users and items. The vector of a node is the sum of its layers, layer l
divided by l, and of a layer of its features, where there are any. This is the encoder of IMC-GAE (Shen et al. 2021),
with matrices of the levels in place of mixtures. Against GC-MC, a node has `dim` numbers of its own instead of
`hidden`, and sees neighbours of neighbours. Decoder: `Rated`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .convolution import Bools, Features, Graph, Rated, Shapes, Side, Weights
from .noise import Noise, dropout
from .sparse import Pattern, product

SIDES: tuple[Side, Side] = ("user", "item")
OTHER: dict[Side, Side] = {"user": "item", "item": "user"}


@dataclass(frozen=True, kw_only=True)
class Light(Rated):
    """The encoder: inputs, layers, and the sum of these."""

    layers: int = 2

    def shapes(self) -> Shapes:
        """Name and shape of each parameter: matrices, then vectors."""
        d = self.dim
        matrices: Shapes = {"user.id": (self.users, d), "item.id": (self.items, d), "sides": (2, d)}
        vectors: Shapes = {}
        for layer in range(self.layers):
            matrices |= {f"{layer}.turn": (d, self.levels * d), f"{layer}.out": (d, d)}
            vectors[f"{layer}.out.bias"] = (d,)
        for side, columns in zip(SIDES, self.features, strict=True):
            if columns:
                matrices |= {f"{side}.features": (columns, self.feature_dim), f"{side}.join": (self.feature_dim, d)}
                vectors[f"{side}.features.bias"] = (self.feature_dim,)
        more, biases = self.decoder_shapes()
        return matrices | more | vectors | biases

    def start(self, w: Weights) -> None:
        """Glorot's bound is for one matrix, not for those of all levels side by side: they start as long as others."""
        for layer in range(self.layers):
            w[f"{layer}.turn"].mul_(math.sqrt((1 + self.levels) / 2))

    def states(
        self, w: Weights, graph: Graph, visible: Bools | None = None, noise: Noise | None = None
    ) -> list[dict[Side, Tensor]]:
        """[nodes, dim] of both sides: the input, then what each layer makes of the one before."""
        warm = {side: self.warmth(side, graph, noise) for side in SIDES}  # once: who is cold is so in every layer
        states = [{side: w[f"{side}.id"] + w["sides"][at] for at, side in enumerate(SIDES)}]
        for layer in range(self.layers):
            new = {}
            for side in SIDES:
                value = self.weights(side, graph, visible, noise, warm[side])
                new[side] = self.turn(w, layer, graph.pattern(side, False), value, states[-1][OTHER[side]], noise)
            states.append(new)
        return states

    def turn(
        self, w: Weights, layer: int, pattern: Pattern, value: Tensor, others: Tensor, noise: Noise | None = None
    ) -> Tensor:
        """One layer: [nodes, dim] from ratings (pattern: node x (other, level)) and the vectors of the others."""
        table = (others @ w[f"{layer}.turn"]).view(-1, self.dim)
        first = torch.tanh(product(pattern, value, table))
        return dropout(first, self.dropout, noise) @ w[f"{layer}.out"] + w[f"{layer}.out.bias"]

    def finish(
        self, w: Weights, side: Side, layers: list[Tensor], features: Features | None, noise: Noise | None
    ) -> Tensor:
        """The sum of the layers and of the features (None, where others have some: what zeros give)."""
        total = sum((state / (at + 1) for at, state in enumerate(layers)), torch.zeros(()))
        if f"{side}.features" in w:
            total = total + dropout(self.featured(w, side, features), self.dropout, noise) @ w[f"{side}.join"]
        return total

    def encode(
        self, w: Weights, graph: Graph, visible: Bools | None = None, noise: Noise | None = None
    ) -> tuple[Tensor, Tensor]:
        """Vectors [nodes, dim] of users and of items; visible bool[n]: the ratings that count, all when absent."""
        states = self.states(w, graph, visible, noise)[1:]
        user, item = (
            self.finish(w, side, [state[side] for state in states], graph.features.get(side), noise) for side in SIDES
        )
        return user, item
