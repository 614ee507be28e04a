"""STAMP: next-item prediction from the last item and an attended summary of a history (Liu et al. 2018).

The network comes first, then the model. What all sequence models share (training, scoring) is in `_sequence`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import nn
from ..cost import Size
from ..params import param
from ._sequence import SequenceModel
from ._torch import F, torch

if TYPE_CHECKING:
    from torch import Tensor

    from ..nn.batches import Batch, Packed
    from ..nn.noise import Noise
    from ..nn.parameters import Parameter, Weights


@dataclass(frozen=True, kw_only=True)
class STAMPNetwork:
    """Attention over the items so far, and two layers whose outputs are multiplied.

    Shapes: s slots (tokens) of a packed batch of b sequences, d = `dim`.
    """

    items: int
    dim: int
    add_mean: bool
    dropout: float

    table_std: ClassVar[float | None] = 0.02

    @property
    def width(self) -> int:
        return self.dim

    def parameters(self) -> dict[str, Parameter]:
        """Shape and role of each parameter."""
        d, P = self.dim, nn.Parameter
        out = {"item": P((self.items, d), "table")}
        out |= {f"attention.{name}": P((d, d), "matrix") for name in ("item", "last", "mean")}
        out |= {"attention.bias": P((d,), "bias"), "attention.weights": P((1, d), "matrix")}
        for name in ("session", "last"):
            out |= {name: P((d, d), "matrix"), f"{name}.bias": P((d,), "bias")}
        return out

    def encode(self, w: Weights, batch: Batch, noise: Noise | None) -> Tensor:
        """Hidden states (s, d) of all tokens."""
        x = self.inputs(w, batch, noise)  # (s, d)
        mean = means_so_far(x, batch.packed)  # (s, d)
        key, query = F.linear(x, w["attention.item"]), self.queries(w, x, mean)  # (s, d) each
        memory = nn.additive_attention(query, key, w["attention.weights"][0], x, batch.packed)  # (s, d)
        return self.joined(w, x, memory, mean, noise)  # (s, d)

    def encode_last(self, w: Weights, batch: Batch, noise: Noise | None = None) -> Tensor:
        """Hidden states (b, d) of the last token of each sequence."""
        packed = batch.packed
        x = self.inputs(w, batch, noise)  # (s, d)
        row, last = nn.beside(x, packed.row), nn.beside(x, packed.last)  # (s,), (b,)
        mean = means_so_far(x, packed)[last]  # (b, d)
        query = self.queries(w, x[last], mean)  # (b, d)
        weight = torch.sigmoid(F.linear(x, w["attention.item"]) + query[row]) @ w["attention.weights"][0]  # (s,)
        if packed.real is not None:
            weight = weight * nn.beside(x, packed.tokens()).to(weight.dtype)
        memory = torch.zeros_like(mean).index_add(0, row, (weight[:, None] * x).to(mean.dtype))  # (b, d)
        return self.joined(w, x[last], memory, mean, noise)  # (b, d)

    def inputs(self, w: Weights, batch: Batch, noise: Noise | None) -> Tensor:
        """Embeddings (s, d) of the tokens."""
        return nn.dropout(nn.rows(w["item"], batch.item), self.dropout, noise)

    def queries(self, w: Weights, last: Tensor, mean: Tensor) -> Tensor:
        """What is added to every item in the attention, (n, d) from the last items and the means (n, d)."""
        return F.linear(last, w["attention.last"], w["attention.bias"]) + F.linear(mean, w["attention.mean"])

    def joined(self, w: Weights, last: Tensor, memory: Tensor, mean: Tensor, noise: Noise | None) -> Tensor:
        """tanh(W_s memory + b_s) * tanh(W_t last + b_t), (n, d)."""
        if self.add_mean:
            memory = memory + mean
        session = torch.tanh(F.linear(memory, w["session"], w["session.bias"]))  # (n, d)
        return nn.dropout(session * torch.tanh(F.linear(last, w["last"], w["last.bias"])), self.dropout, noise)


def means_so_far(x: Tensor, packed: Packed) -> Tensor:
    """The mean of each token and those before it in its sequence, (s, d) from x (s, d)."""
    found, start = [], 0
    for count, slots in packed.groups:
        group = x[start : start + count * slots].view(count, slots, -1)
        count_so_far = torch.arange(1, slots + 1, dtype=x.dtype, device=x.device)[:, None]
        total = group.cumsum(1) / count_so_far  # padding is at the right
        found.append(total.view(count * slots, -1))
        start += count * slots
    return torch.cat(found)


@dataclass(kw_only=True, eq=False)
class STAMP(SequenceModel):
    """STAMP: next-item prediction from the last item and an attended summary of a history (Liu et al. 2018).

    Of the embeddings x_1 .. x_t of the items so far, m_t = x_t is the current interest and m_s their mean. Attention
    with weights that are not normalised gathers the items, and the state is the product of two layers:

        a_i = w_0 . sigmoid(W_1 x_i + W_2 m_t + W_3 m_s + b_a)
        m_a = sum_i a_i x_i, plus m_s with `add_mean`
        h = tanh(W_s m_a + b_s) * tanh(W_t m_t + b_t)

    The score of item j is x_j . h, with the same embeddings. The loss is the cross-entropy of the next item among all
    items, sampled for more than 5,000 of them.

    `STAMP(dim=100, lr=0.003, dropout=0, batch_size=512, loss="softmax")` is the published setting; the paper reads each
    prefix of a session as a sample (`targets="last"`), which has the same objective as `targets="all"` for histories of
    up to `max_len` items. `add_mean=False` leaves out m_s, which is in the released code and not in the formulas of the
    paper. Dropout (of embeddings and states) is not in the paper. `sse_item` and `sse_target` replace inputs and
    targets by random items in training (stochastic shared embeddings).

    Use it as a baseline for short sessions, where the last item decides most. Ratings are not used. Unseen users are
    scored from their history, without any training.

    Cost per epoch: about 3 * tokens * dim * (5 * dim + items) multiply-adds for softmax over all items, or over the
    negatives, and length^2 / 2 * dim sigmoids per sequence, twice.

    References
    ----------
    Liu, Zeng, Mokhosi and Zhang, STAMP: Short-Term Attention/Memory Priority Model for Session-based Recommendation,
    KDD 2018.
    """

    max_len: int = param(50, "number of most recent items of a user that are read", low=1, high=100_000)
    add_mean: bool = param(True, "add the mean of the items to what attention gathers, as in the released code")

    by_default: ClassVar[bool] = False  # a baseline, compared when it is named

    def _network(self) -> STAMPNetwork:
        return STAMPNetwork(items=len(self.items_), dim=self.dim, add_mean=self.add_mean, dropout=self.dropout_)

    def _weight_count(self, size: Size) -> float:
        return size.items * self.dim + 5.0 * self.dim**2

    def _forward_work(self, lengths: NDArray[np.int64]) -> tuple[float, float]:
        tokens, pairs = float(lengths.sum()), float(np.square(lengths, dtype=np.float64).sum()) / 2
        if self.targets == "last":
            pairs = tokens
        return tokens * 5 * self.dim**2 + 2 * pairs * self.dim, 40 * tokens * self.dim + 12 * pairs * self.dim

    def _kept(self, lengths: NDArray[np.int64]) -> float:
        weights = 0.0 if self.targets == "last" else 3.0 * float(np.square(lengths, dtype=np.float64).sum())
        return 1.5 * super()._kept(lengths) + weights
