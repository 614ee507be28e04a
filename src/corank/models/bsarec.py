"""BSARec: next-item prediction by self-attention beside a low-pass filter over the sequence (Shin et al. 2024).

The network comes first, then the model. What all sequence models share (training, scoring) is in `_sequence`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from .. import nn
from ..cost import Size
from ..params import param
from ._layered import LayeredModel
from ._sequence_options import check_heads, rounded_to_heads
from ._torch import F, torch

if TYPE_CHECKING:
    from torch import Tensor

    from ..nn.batches import Batch, Packed
    from ..nn.noise import Noise
    from ..nn.parameters import Parameter, Weights


@dataclass(frozen=True, kw_only=True)
class BSARecNetwork:
    """Item and position embeddings; blocks of attention beside a filter, then feed-forward layers; all post-norm.

    Shapes: s slots (tokens) of a packed batch of b sequences, d = `dim`.
    """

    items: int
    dim: int
    max_len: int
    blocks: int
    heads: int
    alpha: float  # weight of the filter beside attention
    waves: int  # frequencies that pass the filter
    dropout: float
    attention_dropout: float

    table_std: ClassVar[float | None] = 0.02

    @property
    def width(self) -> int:
        return self.dim

    def parameters(self) -> dict[str, Parameter]:
        """Shape and role of each parameter."""
        d, P = self.dim, nn.Parameter
        out = {"item": P((self.items, d), "table"), "position": P((self.max_len, d), "table")}
        out |= {"norm.gain": P((d,), "gain"), "norm.bias": P((d,), "bias")}
        for b in range(self.blocks):
            out |= {f"{b}.qkv": P((3 * d, d), "matrix", stacked=3), f"{b}.qkv.bias": P((3 * d,), "bias")}
            out |= {f"{b}.join": P((d, d), "matrix"), f"{b}.join.bias": P((d,), "bias")}
            out |= {f"{b}.in": P((4 * d, d), "matrix"), f"{b}.in.bias": P((4 * d,), "bias")}
            out |= {f"{b}.out": P((d, 4 * d), "matrix"), f"{b}.out.bias": P((d,), "bias")}
            out[f"{b}.beta"] = P((d,), "gain")
            for name in ("attention", "filter", "forward"):
                out |= {f"{b}.{name}.gain": P((d,), "gain"), f"{b}.{name}.bias": P((d,), "bias")}
        return out

    def encode(self, w: Weights, batch: Batch, noise: Noise | None) -> Tensor:
        """Hidden states (s, d) of all tokens."""
        x = nn.rows(w["item"], batch.item) + nn.rows(w["position"], batch.position)  # (s, d)
        x = nn.dropout(self.norm(w, "norm", x), self.dropout, noise)  # (s, d)
        longest = batch.packed.groups[0][1]
        kernel = nn.beside(x, low_pass(self.max_len, self.waves, longest))  # (longest, longest)
        for b in range(self.blocks):
            y = self.alpha * self.filtered(w, b, x, batch.packed, kernel, noise)  # (s, d)
            y = y + (1 - self.alpha) * self.attended(w, b, x, batch.packed, noise)  # (s, d)
            z = F.gelu(F.linear(y, w[f"{b}.in"], w[f"{b}.in.bias"]))  # (s, 4 d)
            z = nn.dropout(F.linear(z, w[f"{b}.out"], w[f"{b}.out.bias"]), self.dropout, noise)  # (s, d)
            x = self.norm(w, f"{b}.forward", y + z)  # (s, d)
        return x

    def encode_last(self, w: Weights, batch: Batch, noise: Noise | None = None) -> Tensor:
        """Hidden states (b, d) of the last token of each sequence."""
        x = self.encode(w, batch, noise)  # (s, d)
        return x[nn.beside(x, batch.packed.last)]

    def attended(self, w: Weights, b: int, x: Tensor, packed: Packed, noise: Noise | None) -> Tensor:
        """LN(x + W attention(x)), (s, d)."""
        q, k, v = torch.split(F.linear(x, w[f"{b}.qkv"], w[f"{b}.qkv.bias"]), self.dim, 1)  # (s, d) each
        y = nn.attend(q, k, v, self.heads, packed, self.attention_dropout, noise)  # (s, d)
        y = nn.dropout(F.linear(y, w[f"{b}.join"], w[f"{b}.join.bias"]), self.dropout, noise)  # (s, d)
        return self.norm(w, f"{b}.attention", x + y)

    def filtered(self, w: Weights, b: int, x: Tensor, packed: Packed, kernel: Tensor, noise: Noise | None) -> Tensor:
        """LN(x + low(x) + beta^2 (x - low(x))), (s, d): low frequencies pass, the others are scaled."""
        low = filter_sequences(x, packed, kernel)  # (s, d)
        y = low + w[f"{b}.beta"].square() * (x - low)  # (s, d)
        return self.norm(w, f"{b}.filter", x + nn.dropout(y, self.dropout, noise))

    def norm(self, w: Weights, name: str, x: Tensor) -> Tensor:
        return F.layer_norm(x, (x.shape[-1],), w[f"{name}.gain"], w[f"{name}.bias"], 1e-5)


def low_pass(size: int, waves: int, steps: int) -> NDArray[np.float32]:
    """float32 (steps, steps): keeps the mean and `waves` // 2 frequencies of a signal of `size` steps.

    An entry depends on the difference of two steps only, so that a sequence may stand anywhere in the window.
    """
    wave = np.fft.irfft(np.arange(size // 2 + 1) <= waves // 2, n=size)  # (size,), an even function
    step = np.arange(steps)
    return np.asarray(wave[np.abs(step[:, None] - step[None, :])], np.float32)


def filter_sequences(x: Tensor, packed: Packed, kernel: Tensor) -> Tensor:
    """The filter of each sequence by itself, (s, d) from x (s, d)."""
    if packed.real is not None:  # padding must not leak into the tokens
        x = x * nn.beside(x, packed.tokens()).to(x.dtype)[:, None]
    found, start = [], 0
    for count, slots in packed.groups:
        group = x[start : start + count * slots].view(count, slots, -1)
        found.append((kernel[:slots, :slots] @ group).view(count * slots, -1))
        start += count * slots
    return torch.cat(found)


@dataclass(kw_only=True, eq=False)
class BSARec(LayeredModel):
    """BSARec: next-item prediction by self-attention beside a low-pass filter over the sequence (Shin et al. 2024).

    Self-attention smooths a sequence. Each block adds what attention loses: `alpha` times a filter that passes the
    lowest frequencies of the sequence and scales the others by a learned beta^2, plus 1 - alpha times attention:

        y = alpha LN(x + low(x) + beta^2 (x - low(x))) + (1 - alpha) LN(x + attention(x))

    The inner product of the last state with the embedding of an item is its score. The filter sees the whole sequence,
    so each prefix of a sequence is a sample of its own (`targets="last"`): with every position as a target, states
    would know the items that they predict. The loss is the cross-entropy of the next item.

    Differences from the released code: padding has no embedding (there it has that of its position), and matrices
    start from Glorot's distribution.

    Use it for short sequences over large catalogues, where it was the best of the published models (5-core Amazon
    data). An epoch costs about as many times that of `SASRec` as a sequence has items. Ratings are not used. Unseen
    users are scored from their history, without any training.

    References
    ----------
    Shin, Choi, Wi and Park, An Attentive Inductive Bias for Sequential Recommendation beyond the Self-Attention,
    AAAI 2024.
    """

    blocks: int = param(2, "blocks of attention, filter and feed-forward layers", low=0, high=64, search=(1, 3))
    heads: int = param(1, "attention heads; must divide dim", low=1, high=64)
    alpha: float = param(0.7, "weight of the filter beside attention", low=0.0, high=1.0, search=(0.1, 0.9))
    waves: int = param(5, "frequencies that pass the filter: the mean and waves // 2 pairs", low=1, search=(1, 9))
    attention_dropout: float | None = param(
        None, "dropout of the attention weights (when absent: dropout)", low=0.0, high=0.95
    )
    targets: str = param("last", "each prefix of a sequence is a sample; its next item is predicted", choices=("last",))
    max_len: int = param(50, "number of most recent items of a user that are read", low=1, high=100_000)

    by_default: ClassVar[bool] = False  # an epoch reads every prefix: many times the work of the other models

    def _feasible(self, searched: Collection[str]) -> Self:
        if "dim" not in searched:
            return self
        return self._copy(dim=rounded_to_heads(self.dim, self.heads, self.dim))

    def _network(self) -> BSARecNetwork:
        check_heads(self, self.heads, self.dim)
        return BSARecNetwork(
            items=len(self.items_),
            dim=self.dim,
            max_len=self.max_len,
            blocks=self.blocks,
            heads=self.heads,
            alpha=self.alpha,
            waves=self.waves,
            dropout=self.dropout_,
            attention_dropout=self.dropout_ if self.attention_dropout is None else self.attention_dropout,
        )

    def _attention_kept(self, longest: float) -> float:
        return 4.0 * self.heads * longest  # dropout needs the attention weights

    def _kept(self, lengths: NDArray[np.int64]) -> float:
        beside = 30.0 * self.blocks * self.dim * float(lengths.sum())  # the filter, as much as the layers of attention
        return super()._kept(lengths) + beside

    def _weight_count(self, size: Size) -> float:
        return (size.items + self.max_len) * self.dim + 12.0 * self.blocks * self.dim**2
