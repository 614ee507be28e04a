"""HGN: next-item prediction by gates over the features and the instances of the last items (Ma et al. 2019).

The network comes first, then the model. Windows of recent items, user vectors and item biases are in `_recent_items`;
what all sequence models share (training, scoring) is in `_sequence`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import nn
from ..params import param
from ._recent_items import RecentItemsModel, RecentItemsNetwork
from ._torch import F, torch

if TYPE_CHECKING:
    from torch import Tensor

    from ..nn.noise import Noise
    from ..nn.parameters import Parameter, Weights


@dataclass(frozen=True, kw_only=True)
class HGNNetwork(RecentItemsNetwork):
    """A gate per element of each item, a gate per item, and their mean. Shapes: n states, L = `order`, d = `dim`."""

    pool: str  # mean or max

    def parameters(self) -> dict[str, Parameter]:
        """Shape and role of each parameter."""
        L, d, P = self.order, self.dim, nn.Parameter
        out = super().parameters()
        out |= {
            "feature.item": P((d, d), "matrix"),
            "feature.user": P((d, d), "matrix"),
            "feature.bias": P((d,), "bias"),
        }
        return out | {"instance.item": P((1, d), "matrix"), "instance.user": P((L, d), "matrix")}

    def states(self, w: Weights, x: Tensor, there: Tensor, user: Tensor, noise: Noise | None) -> Tensor:
        """user + union + sum of the items (n, d): the three parts of the score share the vectors of items."""
        x = nn.dropout(x, self.dropout, noise)
        of_user = F.linear(user, w["feature.user"], w["feature.bias"])  # (n, d)
        gated = x * torch.sigmoid(F.linear(x, w["feature.item"]) + of_user[:, None, :])  # (n, L, d)
        gate = torch.sigmoid(
            F.linear(gated, w["instance.item"])[:, :, 0] + F.linear(user, w["instance.user"])
        )  # (n, L)
        gate = gate * there  # missing items take no part
        weighted = gated * gate[:, :, None]  # (n, L, d)
        if self.pool == "mean":
            union = weighted.sum(1) / gate.sum(1, keepdim=True)  # (n, d)
        else:
            union = weighted.masked_fill(there[:, :, None] == 0, -math.inf).amax(1)  # (n, d)
        return user + union + x.sum(1)


@dataclass(kw_only=True, eq=False)
class HGN(RecentItemsModel):
    """HGN: next-item prediction by gates over the features and the instances of the last items (Ma et al. 2019).

    The last L = `order` items of a user have embeddings x_l, the user p_u. A feature gate scales each element of an
    item, an instance gate each item, and the gated items are averaged to one vector (`pool="max"`: their maximum):

        x'_l = sigmoid(W x_l + W' p_u + b) * x_l
        a_l = sigmoid(w . x'_l + (W'' p_u)_l)
        union = sum_l a_l x'_l / sum_l a_l

    The score of item j is p_u . q_j + union . q_j + sum_l x_l . q_j + b_j, with embeddings q separate from x. Where a
    history has fewer than L items, the missing ones take no part.

    Each item of a sequence is predicted from the L items before it, with any of the losses; in the paper the same
    window also predicts the two items after the next (T = 3). `HGN(dim=50, dropout=0, loss="bpr", negatives=3,
    weight_decay=1e-3)` is the published setting, except for T, for the negatives (here shared by a batch) and for the
    batches (here of whole sequences, there of 4,096 windows). The released code never trains w and W'', because its
    optimiser does not know them; here all gates are trained. `dropout` of the items' embeddings is not in the paper.
    Unseen users get the mean of all user vectors. `sse_user`, `sse_item` and `sse_target` replace users, inputs and
    targets by random ones in training (stochastic shared embeddings).

    Use it as a light baseline beside `SASRec`, where the very last items and lasting tastes decide. Ratings are not
    used. Unseen users are scored from their history, without any training.

    Cost per epoch: about 3 * tokens * dim * (order * dim + items) multiply-adds for softmax over all items, or over the
    negatives.

    References
    ----------
    Ma, Kang and Liu, Hierarchical Gating Networks for Sequential Recommendation, KDD 2019.
    """

    pool: str = param(
        "mean",
        "how the gated items become one vector: their mean, weighted by the instance gate, or their maximum",
        choices=("mean", "max"),
    )

    by_default: ClassVar[bool] = False  # a baseline, compared when it is named

    def _network(self) -> HGNNetwork:
        return HGNNetwork(**self._sizes(), pool=self.pool)

    def _layer_size(self) -> float:
        return 2.0 * self.dim**2 + (self.order + 1) * self.dim

    def _forward_work(self, lengths: NDArray[np.int64]) -> tuple[float, float]:
        pixels = self.order * self.dim
        return (pixels + self.dim) * self.dim * self._states(lengths), 60.0 * pixels * self._states(lengths)
