"""Caser: next-item prediction by convolutions over the last items of a user (Tang and Wang 2018).

The network comes first, then the model. Windows of recent items, user vectors and item biases are in `_recent_items`;
what all sequence models share (training, scoring) is in `_sequence`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import nn
from ..errors import CorankError
from ..params import param
from ._recent_items import RecentItemsModel, RecentItemsNetwork
from ._torch import F, torch

if TYPE_CHECKING:
    from torch import Tensor

    from ..nn.noise import Noise
    from ..nn.parameters import Parameter, Weights


@dataclass(frozen=True, kw_only=True)
class CaserNetwork(RecentItemsNetwork):
    """Filters over the image of the last items, one layer, the user vector beside its output.

    Shapes: n states, L = `order`, d = `dim`.
    """

    horizontal: int  # filters of each height 1 .. L
    vertical: int  # filters

    @property
    def width(self) -> int:
        return 2 * self.dim

    def parameters(self) -> dict[str, Parameter]:
        """Shape and role of each parameter."""
        L, d, P = self.order, self.dim, nn.Parameter
        out = super().parameters()
        if self.horizontal:
            for h in range(1, L + 1):
                out |= {
                    f"rows.{h}": P((self.horizontal, h * d), "matrix"),
                    f"rows.{h}.bias": P((self.horizontal,), "bias"),
                }
        if self.vertical:
            out |= {"columns": P((self.vertical, L), "matrix"), "columns.bias": P((self.vertical,), "bias")}
        found = self.horizontal * L + self.vertical * d
        return out | {"join": P((d, found), "matrix"), "join.bias": P((d,), "bias")}

    def states(self, w: Weights, x: Tensor, there: Tensor, user: Tensor, noise: Noise | None) -> Tensor:
        """[z; user] (n, 2 d), z = relu(W [vertical; horizontal] + b)."""
        found = []
        if self.vertical:  # weighted sums of the L rows
            y = torch.einsum("vl,nld->nvd", w["columns"], x) + w["columns.bias"][:, None]  # (n, vertical, d)
            found.append(y.flatten(1))
        if self.horizontal:  # patterns of 1 .. L consecutive items; of all places in the image, the best match counts
            y = F.relu(F.linear(x.flatten(1), *self.at_all_places(w)))  # (n, L (L + 1) / 2 * horizontal)
            parts = torch.split(y, [(self.order - h) * self.horizontal for h in range(self.order)], 1)
            found += [part.view(x.shape[0], -1, self.horizontal).amax(1) for part in parts]  # (n, horizontal) each
        z = F.relu(F.linear(nn.dropout(torch.cat(found, 1), self.dropout, noise), w["join"], w["join.bias"]))  # (n, d)
        return torch.cat([z, user], 1)

    def at_all_places(self, w: Weights) -> tuple[Tensor, Tensor]:
        """The horizontal filters at all their places as rows of one matrix (.., L d), by height, then place; biases.

        Outside of a filter's place its row is 0. One product with whole images is faster than one for each height,
        which would copy their parts.
        """
        L, d, matrix, bias = self.order, self.dim, [], []
        for h in range(1, L + 1):
            matrix += [F.pad(w[f"rows.{h}"], (place * d, (L - h - place) * d)) for place in range(L - h + 1)]
            bias += [w[f"rows.{h}.bias"]] * (L - h + 1)
        return torch.cat(matrix), torch.cat(bias)


@dataclass(kw_only=True, eq=False)
class Caser(RecentItemsModel):
    """Caser: next-item prediction by convolutions over the last items of a user (Tang and Wang 2018).

    The embeddings of the last L = `order` items are the rows of an L x d image; where a history is shorter, the rows
    before its first item are 0. Horizontal filters of every height 1 .. L look for patterns of consecutive items (the
    maximum over their places is kept), vertical filters weigh the items, and a layer joins both to z. With the
    user vector p_u, the score of item j is W'_j . [z; p_u] + b'_j.

    Each item of a sequence is predicted from the L items before it, with any of the losses; in the paper the same
    window also predicts the two items after the next (T = 3). `Caser(dim=50, dropout=0.5, loss="bce", negatives=3,
    weight_decay=1e-6)` is the published setting, except for T and for the batches (here of whole sequences, there of
    512 windows). Unseen users get the mean of all user vectors. `sse_user`, `sse_item` and `sse_target` replace users,
    inputs and targets by random ones in training (stochastic shared embeddings).

    Use it as the convolutional baseline beside `SASRec`, where the very last items decide. Ratings are not used. Unseen
    users are scored from their history, without any training.

    Cost per epoch: about 3 * tokens * dim * (horizontal * order^3 / 2 + vertical * dim + 2 * items) multiply-adds for
    softmax over all items, or over the negatives.

    References
    ----------
    Tang and Wang, Personalized Top-N Sequential Recommendation via Convolutional Sequence Embedding, WSDM 2018.
    """

    horizontal: int = param(16, "filters of each height from 1 to order", low=0, high=4096)
    vertical: int = param(4, "filters over the order of the items", low=0, high=4096)

    by_default: ClassVar[bool] = False  # a baseline, compared when it is named

    def _network(self) -> CaserNetwork:
        if self.horizontal + self.vertical == 0:
            raise CorankError("Caser(horizontal=0, vertical=0): without filters no item is read; choose one or more")
        return CaserNetwork(**self._sizes(), horizontal=self.horizontal, vertical=self.vertical)

    def _item_width(self) -> int:
        return 2 * self.dim

    def _places(self) -> float:
        """Horizontal filters at all places of the image."""
        return self.horizontal * self.order * (self.order + 1) / 2

    def _layer_size(self) -> float:
        found = self.horizontal * self.order + self.vertical * self.dim
        return self.dim * (self._places() + found) + self.vertical * self.order

    def _forward_work(self, lengths: NDArray[np.int64]) -> tuple[float, float]:
        pixels = self.order * self.dim
        each = self._places() * pixels + self.vertical * pixels + self._layer_size()
        return each * self._states(lengths), (40.0 * pixels + 10.0 * self._places()) * self._states(lengths)

    def _kept(self, lengths: NDArray[np.int64]) -> float:
        found = self._places() + self.horizontal * self.order + self.vertical * self.dim
        matrix = 3.0 * self._places() * self.order * self.dim  # the filters at all places, and their gradient
        return super()._kept(lengths) + 4.0 * found * self._states(lengths) + matrix
