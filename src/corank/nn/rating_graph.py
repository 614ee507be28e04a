"""Ratings as a bipartite graph: the input of graph encoders, and the bilinear decoder that predicts ratings.

A rating of level r (of 5 stars, say) is an edge of type r between a user and an item. An encoder computes vectors of
users and items by sums over edges; the decoder computes logits of the levels from two vectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .devices import CPU, send
from .noise import Noise
from .parameters import Parameter, Weights
from .sparse import Pattern, sampled_matmul, sparse_matmul

Side = Literal["user", "item"]
SIDES: tuple[Side, Side] = ("user", "item")
OTHER: dict[Side, Side] = {"user": "item", "item": "user"}
Ints = NDArray[Any]
Floats = NDArray[np.float32]
Arrays = Mapping[str, Floats]
Bools = NDArray[np.bool_]
Features = tuple[Pattern, Tensor] | Tensor  # (nodes, columns): sparse (pattern and values), or dense
CELLS = 1 << 19  # logits computed at a time when scoring


@dataclass(eq=False)
class RatingGraph:
    """One edge per rating; a node receives messages along its edges from the nodes of the other side.

    Parameters
    ----------
    user, item, level : int (n,), the edges.
    users, items, levels : how many of each there are.
    symmetric : edges weigh 1 / sqrt(degree of the user * degree of the item) instead of 1 / degree of the receiver.
    shrink : added to the degrees.
    features : of the nodes of a side, (nodes, columns).
    degrees : of the nodes of a side, where they are not those of these edges: an unseen user's history is only one of
        the ratings that an item has.
    device : where messages are summed; the features must be there too.
    """

    user: Ints
    item: Ints
    level: Ints
    users: int
    items: int
    levels: int
    symmetric: bool = False
    shrink: float = 0.0
    features: dict[Side, Features] = field(default_factory=dict)
    degrees: dict[Side, Floats] = field(default_factory=dict)
    device: torch.device = CPU
    _patterns: dict[tuple[Side, bool], Pattern] = field(default_factory=dict)
    _sent: dict[Side, Tensor] = field(default_factory=dict)

    def nodes(self, side: Side) -> int:
        """Number of users or of items."""
        return self.users if side == "user" else self.items

    def ends(self, side: Side) -> Ints:
        """The node of each edge on this side, int (n,)."""
        return self.user if side == "user" else self.item

    def weights(self, side: Side, visible: Bools | None = None) -> Tensor:
        """Weight of each edge in the sum of its node on this side, float32 (n,); 0 for edges that are not visible."""
        seen = np.ones(self.user.size, np.float32) if visible is None else visible.astype(np.float32)
        receiver, sender = self.ends(side), self.ends(OTHER[side])
        weight = (1 / self._degrees(side, seen))[receiver]
        if self.symmetric:
            weight = np.sqrt(weight / self._degrees(OTHER[side], seen)[sender])
        return send(np.where(seen > 0, weight, 0).astype(np.float32), self.device)

    def _degrees(self, side: Side, seen: Floats) -> NDArray[Any]:
        given: NDArray[Any] | None = self.degrees.get(side)
        degree = np.bincount(self.ends(side), seen, self.nodes(side)) if given is None else given
        return np.asarray(np.maximum(degree + self.shrink, 1e-9))

    def drop_neighbors(self, side: Side, weight: Tensor, rate: float, noise: Noise | None) -> Tensor:
        """Node dropout: edges (n,) to a random share of the nodes of the other side get weight 0, the others more."""
        if noise is None or rate <= 0:
            return weight
        other = OTHER[side]
        return weight * noise.mask((self.nodes(other),), rate, self.device)[self._places(other)]

    def draw_warm(self, side: Side, cold: float, noise: Noise | None) -> Tensor | None:
        """Nodes of this side that keep their ratings in this step, bool (nodes,); None: all of them."""
        if noise is None or cold <= 0:
            return None
        return noise.mask((self.nodes(side),), cold, self.device) > 0

    def only_warm(self, side: Side, weight: Tensor, warm: Tensor | None) -> Tensor:
        """The weights (n,), 0 for all edges of the nodes of this side that `draw_warm` left out."""
        return weight if warm is None else weight * warm[self._places(side)]

    def _places(self, side: Side) -> Tensor:
        """`ends` on the device."""
        if side not in self._sent:
            self._sent[side] = send(self.ends(side).astype(np.int64), self.device)
        return self._sent[side]

    def aggregate(self, side: Side, weight: Tensor, messages: Tensor, *, per_level: bool = False) -> Tensor:
        """Weighted sums of the messages that nodes of this side receive along their edges.

        Parameters
        ----------
        weight : (n,), of the edges.
        messages : (nodes of the other side * levels, d), what each of them sends along its edges of each level.
        per_level : separate sums per level, (nodes * levels, d), instead of (nodes, d).
        """
        return sparse_matmul(self._pattern(side, per_level), weight, messages)

    def _pattern(self, side: Side, per_level: bool) -> Pattern:
        if (side, per_level) not in self._patterns:
            other, levels = OTHER[side], self.levels
            row = self.ends(side).astype(np.int64) * levels + self.level if per_level else self.ends(side)
            column = self.ends(other).astype(np.int64) * levels + self.level
            shape = self.nodes(side) * (levels if per_level else 1), self.nodes(other) * levels
            self._patterns[side, per_level] = Pattern(row, column, shape, self.device)
        return self._patterns[side, per_level]


def feature_parameters(side: Side, columns: int, feature_dim: int) -> dict[str, Parameter]:
    """Parameters of `feature_layer`."""
    return {
        f"{side}.features": Parameter((columns, feature_dim), "matrix"),
        f"{side}.features.bias": Parameter((feature_dim,), "bias"),
    }


def feature_layer(w: Weights, side: Side, features: Features | None) -> Tensor:
    """ReLU(X F + f), (nodes, feature_dim), of the features X (nodes, columns).

    Unseen users have no features (None): they get what zeros give, (1, feature_dim).
    """
    table, bias = w[f"{side}.features"], w[f"{side}.features.bias"]
    if features is None:
        return bias.relu().view(1, -1)
    return ((features @ table if isinstance(features, Tensor) else sparse_matmul(*features, table)) + bias).relu()


@dataclass(frozen=True, kw_only=True)
class BilinearDecoder:
    """Logits of the levels of a rating, from the vectors u, v (dim,) of user and item.

    logit[r] = sum over b of a[b, r] u' P_b v + (u' A)[r] + (v' B)[r] + c[r]: a mixture of `bases` bilinear forms P_b
    (dim, dim) per level. A and B (dim, levels) are there with `node_bias`, c (levels,) with `level_bias`.
    """

    dim: int
    levels: int
    bases: int = 2
    level_bias: bool = True
    node_bias: bool = False

    def parameters(self) -> dict[str, Parameter]:
        """Shape and role of each parameter."""
        found = {f"decoder.{b}": Parameter((self.dim, self.dim), "matrix") for b in range(self.bases)}
        found["decoder.mix"] = Parameter((self.bases, self.levels), "matrix")
        if self.node_bias:
            found |= {f"decoder.{side}": Parameter((self.dim, self.levels), "matrix") for side in SIDES}
        if self.level_bias:
            found["decoder.bias"] = Parameter((self.levels,), "bias")
        return found

    def logits(self, w: Weights, pairs: Pattern, user: Tensor, item: Tensor) -> Tensor:
        """(n, levels) for n pairs of user and item, from all vectors (users, dim) and (items, dim)."""
        forms = [sampled_matmul(pairs, user @ w[f"decoder.{b}"], item) for b in range(self.bases)]  # bases of (n,)
        logits = torch.stack(forms, 1) @ w["decoder.mix"]  # (n, levels)
        if self.node_bias:
            row, column = pairs.places()
            logits = logits + (user @ w["decoder.user"])[row] + (item @ w["decoder.item"])[column]
        return logits + w["decoder.bias"] if self.level_bias else logits

    # ---- the same without gradients, for scoring -----------------------------------------------------------------

    def rate_all(self, w: Arrays, values: Floats, user: Floats, item: Floats) -> Floats:
        """Expected ratings (b, items) of all items.

        Parameters
        ----------
        values : (levels,), the rating of each level.
        user, item : vectors (b, dim) and (items, dim).
        """
        out = np.empty((len(user), len(item)), np.float32)
        height = max(1, CELLS // (len(item) * self.levels))
        for start in range(0, len(user), height):
            part = user[start : start + height]
            forms = np.stack([part @ w[f"decoder.{b}"] @ item.T for b in range(self.bases)], 2)  # (b, items, bases)
            logits = forms @ w["decoder.mix"]  # (b, items, levels)
            if self.node_bias:
                logits += (part @ w["decoder.user"])[:, None] + item @ w["decoder.item"]
            out[start : start + height] = self._expected(w, values, logits)
        return out

    def rate_pairs(
        self, w: Arrays, values: Floats, user: Floats, item: Floats, rows: Ints, columns: Ints
    ) -> NDArray[np.float64]:
        """Expected ratings (n,) of pairs: rows and columns (n,) of the vectors of all users and items."""
        out = np.empty(rows.size, np.float64)
        height = max(1, CELLS // max(self.dim, self.levels))
        for start in range(0, rows.size, height):
            at = slice(start, start + height)
            u, v = user[rows[at]], item[columns[at]]  # (n, dim)
            forms = [np.einsum("nd,nd->n", u @ w[f"decoder.{b}"], v) for b in range(self.bases)]
            logits = np.stack(forms, 1) @ w["decoder.mix"]  # (n, levels)
            if self.node_bias:
                logits += u @ w["decoder.user"] + v @ w["decoder.item"]
            out[at] = self._expected(w, values, logits)
        return out

    def _expected(self, w: Arrays, values: Floats, logits: NDArray[Any]) -> NDArray[Any]:
        """Expected ratings (...) under the softmax of logits (..., levels), which are overwritten."""
        if self.level_bias:
            logits += w["decoder.bias"]
        logits -= logits.max(axis=-1, keepdims=True)
        np.exp(logits, out=logits)
        return np.asarray(logits @ values / logits.sum(axis=-1))
