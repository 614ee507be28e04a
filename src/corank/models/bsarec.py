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
    causal: bool  # the filter of a token reads the tokens up to it only

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
        x, kernel = self.embedded(w, batch, noise)  # (s, d)
        for b in range(self.blocks):
            x = self.block(w, b, x, batch.packed, kernel, noise)  # (s, d)
        return x

    def encode_last(self, w: Weights, batch: Batch, noise: Noise | None = None) -> Tensor:
        """Hidden states (b, d) of the last token of each sequence: the last block computes nothing else."""
        x, kernel = self.embedded(w, batch, noise)  # (s, d)
        for b in range(self.blocks - 1):
            x = self.block(w, b, x, batch.packed, kernel, noise)  # (s, d)
        if self.blocks == 0:
            return x[nn.beside(x, batch.packed.last)]
        return self.last_block(w, x, batch.packed, kernel, noise)

    def encode_padded(self, w: Weights, batch: Batch) -> Tensor:
        """As `encode_last`, with operations that can be exported."""
        x = self.encode(w, batch, None)  # (s, d)
        return x[nn.beside(x, batch.packed.last)]  # (b, d)

    def embedded(self, w: Weights, batch: Batch, noise: Noise | None) -> tuple[Tensor, Tensor]:
        """Tokens (s, d) and the filter of the longest sequence (longest, longest)."""
        x = nn.rows(w["item"], batch.item) + nn.rows(w["position"], batch.position)  # (s, d)
        x = nn.dropout(self.norm(w, "norm", x), self.dropout, noise)  # (s, d)
        kernel = low_pass(self.max_len, self.waves, batch.packed.groups[0][1])
        return x, nn.beside(x, np.tril(kernel) if self.causal else kernel)

    def block(self, w: Weights, b: int, x: Tensor, packed: Packed, kernel: Tensor, noise: Noise | None) -> Tensor:
        """One block, (s, d) to (s, d)."""
        q, k, v = torch.split(F.linear(x, w[f"{b}.qkv"], w[f"{b}.qkv.bias"]), self.dim, 1)  # (s, d) each
        attended = nn.attend(q, k, v, self.heads, packed, self.attention_dropout, noise)  # (s, d)
        return self.joined(w, b, x, filter_sequences(x, packed, kernel), attended, noise)

    def last_block(self, w: Weights, x: Tensor, packed: Packed, kernel: Tensor, noise: Noise | None) -> Tensor:
        """The last block for the last token of each sequence, (s, d) to (b, d); no keys and values are computed."""
        b, d = self.blocks - 1, self.dim
        matrix, bias = w[f"{b}.qkv"], w[f"{b}.qkv.bias"]  # (3 d, d), (3 d,)
        last = x[nn.beside(x, packed.last)]  # (b, d)
        q = F.linear(last, matrix[:d], bias[:d])  # (b, d)
        key, value, p = matrix[d : 2 * d], matrix[2 * d :], self.attention_dropout
        attended = nn.attend_last(q, x, key, value, bias[2 * d :], self.heads, packed, p, noise)  # (b, d)
        return self.joined(w, b, last, filter_last(x, packed, kernel), attended, noise)

    def joined(self, w: Weights, b: int, x: Tensor, low: Tensor, attended: Tensor, noise: Noise | None) -> Tensor:
        """What a block makes of its tokens x, their low frequencies and attention, (n, d) each: (n, d).

        alpha LN(x + low + beta^2 (x - low)) + (1 - alpha) LN(x + W attended), and then the feed-forward layers.
        """
        y = low + w[f"{b}.beta"].square() * (x - low)  # low frequencies pass, the others are scaled
        y = self.alpha * self.norm(w, f"{b}.filter", x + nn.dropout(y, self.dropout, noise))
        z = nn.dropout(F.linear(attended, w[f"{b}.join"], w[f"{b}.join.bias"]), self.dropout, noise)
        y = y + (1 - self.alpha) * self.norm(w, f"{b}.attention", x + z)
        z = F.gelu(F.linear(y, w[f"{b}.in"], w[f"{b}.in.bias"]))  # (n, 4 d)
        z = nn.dropout(F.linear(z, w[f"{b}.out"], w[f"{b}.out.bias"]), self.dropout, noise)
        return self.norm(w, f"{b}.forward", y + z)

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


def filter_last(x: Tensor, packed: Packed, kernel: Tensor) -> Tensor:
    """The filtered last token of each sequence, (b, d) from x (s, d)."""
    found, order, start = [], [], 0
    for count, slots in packed.groups:
        stop = start + count * slots
        owner = packed.row[start:stop:slots]
        end = packed.last[owner] - np.arange(start, stop, slots)  # step of the last token
        weight = kernel[nn.beside(x, end), :slots]  # (count, slots)
        if packed.real is not None:
            weight = weight * nn.beside(x, (np.arange(slots) <= end[:, None]).astype(np.float32))
        found.append((weight[:, None, :] @ x[start:stop].view(count, slots, -1))[:, 0])
        order.append(owner)
        start = stop
    return torch.cat(found)[nn.beside(x, np.argsort(np.concatenate(order)))]


@dataclass(kw_only=True, eq=False)
class BSARec(LayeredModel):
    """BSARec: next-item prediction by self-attention beside a low-pass filter over the sequence (Shin et al. 2024).

    Self-attention smooths a sequence. Each block adds what attention loses: `alpha` times a filter that passes the
    lowest frequencies of the sequence and scales the others by a learned beta^2, plus 1 - alpha times attention:

        y = alpha LN(x + low(x) + beta^2 (x - low(x))) + (1 - alpha) LN(x + attention(x))

    The inner product of the last state with the embedding of an item is its score. The filter sees the whole sequence,
    so each prefix of a sequence is a sample of its own (`targets="last"`): otherwise states would know the items that
    they predict. With `targets="all"` the filter of a token reads only the items up to it instead, and one pass
    predicts every position, at a fraction of the cost. The loss is the cross-entropy of the next item.

    Differences from the released code: padding has no embedding (there it has that of its position), matrices start
    from Glorot's distribution and beta at 1 (there normal), and the first item of a sequence is no target (there it is
    predicted from padding alone).

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
    targets: str = param(
        "last",
        "what is predicted in training: last, each prefix of a sequence is a sample of its own, of which only the next "
        "item counts; all, the next item at every position, with a filter that reads earlier items only",
        choices=("last", "all"),
    )
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
            causal=self.targets == "all",
        )

    def _attention_kept(self, longest: float) -> float:
        return 4.0 * self.heads * longest  # dropout needs the attention weights

    def _kept(self, lengths: NDArray[np.int64]) -> float:
        beside = 30.0 * self.blocks * self.dim * float(lengths.sum())  # the filter, as much as the layers of attention
        return super()._kept(lengths) + beside

    def _weight_count(self, size: Size) -> float:
        return (size.items + self.max_len) * self.dim + 12.0 * self.blocks * self.dim**2
