"""GRU4Rec: next-item prediction by a recurrent network over the items of a user (Hidasi et al. 2016).

The network comes first, then the model. What all sequence models share (training, scoring) is in `_sequence`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .. import nn
from ..cost import Cost, Size
from ..nn.batches import by_step
from ..params import param
from ._layered import LayeredModel
from ._torch import torch

if TYPE_CHECKING:
    from torch import Tensor

    from ..nn.batches import Batch
    from ..nn.noise import Noise
    from ..nn.parameters import Parameter, Weights


GATES = ("in", "state", "in.bias", "state.bias")  # the parameters of a layer, in the order of torch


@dataclass(frozen=True, kw_only=True)
class GRUNetwork:
    """Item embeddings and layers of gated recurrent units.

    Shapes: s slots of a packed batch of b sequences with n real tokens, d = `dim`. The layers see the n tokens step by
    step: at step t only the sequences with more than t items are still computed, so that padding costs nothing.
    """

    items: int
    dim: int
    blocks: int
    tied: bool
    dropout: float

    table_std: ClassVar[float | None] = None

    @property
    def width(self) -> int:
        return self.dim

    def parameters(self) -> dict[str, Parameter]:
        """Shape and role of each parameter."""
        d, P = self.dim, nn.Parameter
        out = {"item": P((self.items, d), "table")}
        if not self.tied:
            out["input"] = P((self.items, d), "table")
        for b in range(self.blocks):
            for name in ("in", "state"):  # the gates: reset, update and new state
                out |= {f"{b}.{name}": P((3 * d, d), "matrix", stacked=3), f"{b}.{name}.bias": P((3 * d,), "bias")}
        return out

    def encode(self, w: Weights, batch: Batch, noise: Noise | None) -> Tensor:
        """Hidden states (s, d) of all tokens."""
        x, place = self.states(w, batch, noise)  # (n, d), (s,)
        return x.index_select(0, place)  # (s, d)

    def encode_last(self, w: Weights, batch: Batch, noise: Noise | None = None) -> Tensor:
        """Hidden states (b, d) of the last token of each sequence."""
        x, place = self.states(w, batch, noise)  # (n, d), (s,)
        return x.index_select(0, place[nn.beside(x, batch.packed.last)])  # (b, d)

    def encode_padded(self, w: Weights, batch: Batch) -> Tensor:
        """`encode_last` of a `padded_batch`, with the GRU of torch, which exporters know."""
        b, L = batch.packed.groups[0]
        x = nn.rows(w["item" if self.tied else "input"], batch.item).view(b, L, -1) * math.sqrt(self.dim)  # (b, L, d)
        gates = [w[f"{block}.{name}"] for block in range(self.blocks) for name in GATES]
        start = x.new_zeros(self.blocks, x.shape[0], self.dim)
        x = torch.gru(x, start, gates, True, self.blocks, 0.0, False, False, True)[0]  # (b, L, d)
        return x.reshape(-1, self.dim)[nn.beside(x, batch.packed.last)]  # (b, d)

    def states(self, w: Weights, batch: Batch, noise: Noise | None) -> tuple[Tensor, Tensor]:
        """Hidden states (n, d) step by step, and the row of each slot in them (s,)."""
        slots, alive, place = by_step(batch.packed)  # (n,), (steps,), (s,)
        table = w["item" if self.tied else "input"]  # (items, d)
        x = nn.rows(table, batch.item[nn.beside(batch.item, slots)]) * math.sqrt(self.dim)  # (n, d)
        for b in range(self.blocks):
            x = nn.dropout(x, self.dropout, noise)  # (n, d)
            gates = w[f"{b}.in"], w[f"{b}.state"], w[f"{b}.in.bias"], w[f"{b}.state.bias"]  # (3 d, d) and (3 d,), twice
            x = nn.gru(x, alive.tolist(), *gates)  # (n, d)
        return nn.dropout(x, self.dropout, noise), nn.beside(x, place)


@dataclass(kw_only=True, eq=False)
class GRU4Rec(LayeredModel):
    """GRU4Rec: next-item prediction by a recurrent network over the items of a user (Hidasi et al. 2016).

    Gated recurrent units (GRU) read the last `max_len` items of a user one after the other. The inner product of the
    state h_t after item t with the embedding v_i is the score of item i as the next one. With the default loss it
    minimises, over all positions t of all users, the cross-entropy of the next item among all items:

        - log( exp(h_t . v_next) / sum_i exp(h_t . v_i) )

    The losses of the papers are available: `loss="top1"` with `sampling="batch"` (2016) and `loss="bpr_max"` with
    `sampling="popular"` (2018, GRU4Rec+), where `negatives` items are shared by all users of a step. Instead of
    session-parallel mini-batches, which truncate gradients at batch boundaries, each step backpropagates through whole
    sequences. Dropout is applied to the inputs of each layer and to the last states. `tied=False` uses a separate
    embedding table for the inputs. `sse_item` and `sse_target` replace inputs and targets by random items in training
    (stochastic shared embeddings).

    Use it as the recurrent baseline beside `SASRec`, and where recent items matter much more than older ones. Ratings
    are not used. Unseen users are scored by running the network over their history, without any training.

    Cost per epoch: about 3 * tokens * dim * (6 * blocks * dim + items) multiply-adds for softmax over all items. Unlike
    attention, the steps of a sequence cannot be computed in parallel. Nothing is computed for padding.

    References
    ----------
    Hidasi, Karatzoglou, Baltrunas and Tikk, Session-based Recommendations with Recurrent Neural Networks, ICLR 2016.
    Hidasi and Karatzoglou, Recurrent Neural Networks with Top-k Gains for Session-based Recommendations, CIKM 2018.
    """

    blocks: int = param(1, "layers of gated recurrent units", low=1, high=16, search=(1, 2))
    tied: bool = param(True, "inputs and scores use the same item embeddings")

    by_default: ClassVar[bool] = False  # a baseline, compared when it is named

    def _network(self) -> GRUNetwork:
        return GRUNetwork(
            items=len(self.items_), dim=self.dim, blocks=self.blocks, tied=self.tied, dropout=self.dropout_
        )

    def _weight_count(self, size: Size) -> float:
        return (1 + (not self.tied)) * size.items * self.dim + 6.0 * self.blocks * self.dim**2

    def _cost(self, size: Size) -> Cost:
        setup, epoch, _ = super()._cost(size)
        # The tokens of a sequence are computed one after the other.
        longest = float(np.minimum(size.lengths, self.max_len).max(initial=0))
        return Cost(setup, epoch + 1e-4 * self.blocks * longest * size.users / (self.batch_size or 1))
