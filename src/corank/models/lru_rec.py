"""LRURec: next-item prediction by linear recurrent units over the items of a user (Yue et al. 2024).

The network comes first, then the model. What all sequence models share (training, scoring) is in `_sequence`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import nn
from ..cost import Cost, Size
from ..nn.batches import by_step
from ..params import param
from ._layered import LayeredModel
from ._torch import F, torch

if TYPE_CHECKING:
    from torch import Tensor

    from ..nn.batches import Batch
    from ..nn.noise import Noise
    from ..nn.parameters import Parameter, Weights

SLOWEST, FASTEST = 0.99, 0.8  # |lambda| at the start: what is left of a state after one more item


@dataclass(frozen=True, kw_only=True)
class LRURecNetwork:
    """Item embeddings, blocks of a linear recurrent unit and feed-forward layers, all post-norm, and a bias per item.

    Shapes: s slots of a packed batch of b sequences with n real tokens, d = `dim`, m = 2 d complex states. The n tokens
    are in the order of their steps, so that nothing is computed for padding. A complex number is two real ones side by
    side: the matrices B (2 m, d) and C (d, 2 m) are real.
    """

    items: int
    dim: int
    blocks: int
    dropout: float

    table_std: ClassVar[float | None] = 0.02

    @property
    def width(self) -> int:
        return self.dim

    def parameters(self) -> dict[str, Parameter]:
        """Shape and role of each parameter."""
        d, P = self.dim, nn.Parameter
        out = {"item": P((self.items, d), "table"), "item.bias": P((self.items,), "bias")}
        out |= {"norm.gain": P((d,), "gain"), "norm.bias": P((d,), "bias")}
        for b in range(self.blocks):
            out[f"{b}.lambda"] = P((3, 2 * d), "bias", start=lambda rng: initial_lambda(rng, 2 * d))
            out |= {f"{b}.B": P((4 * d, d), "matrix"), f"{b}.B.bias": P((4 * d,), "bias")}
            out |= {f"{b}.C": P((d, 4 * d), "matrix"), f"{b}.C.bias": P((d,), "bias")}
            out |= {f"{b}.in": P((4 * d, d), "matrix"), f"{b}.in.bias": P((4 * d,), "bias")}
            out |= {f"{b}.out": P((d, 4 * d), "matrix"), f"{b}.out.bias": P((d,), "bias")}
            for name in ("recurrent", "forward"):
                out |= {f"{b}.{name}.gain": P((d,), "gain"), f"{b}.{name}.bias": P((d,), "bias")}
        return out

    def encode(self, w: Weights, batch: Batch, noise: Noise | None) -> Tensor:
        """Hidden states (s, d) of all tokens."""
        x, place = self.states(w, batch, noise)  # (n, d), (s,)
        return x.index_select(0, place)  # (s, d)

    def encode_last(self, w: Weights, batch: Batch, noise: Noise | None = None) -> Tensor:
        """Hidden states (b, d) of the last token of each sequence."""
        x, place = self.states(w, batch, noise)  # (n, d), (s,)
        return x.index_select(0, place[nn.beside(x, batch.packed.last)])  # (b, d)

    def states(self, w: Weights, batch: Batch, noise: Noise | None) -> tuple[Tensor, Tensor]:
        """Hidden states (n, d) step by step, and the row of each slot in them (s,)."""
        slots, alive, place = by_step(batch.packed)  # (n,), (steps,), (s,)
        x = nn.rows(w["item"], batch.item[nn.beside(batch.item, slots)])  # (n, d)
        x = self.norm(w, "norm", nn.dropout(x, self.dropout, noise))  # (n, d)
        for b in range(self.blocks):
            y = nn.dropout(self.recur(w, b, x, alive.tolist()), self.dropout, noise)  # (n, d)
            x = self.norm(w, f"{b}.recurrent", x + y)  # (n, d)
            y = nn.dropout(F.gelu(F.linear(x, w[f"{b}.in"], w[f"{b}.in.bias"])), self.dropout, noise)  # (n, 4 d)
            y = nn.dropout(F.linear(y, w[f"{b}.out"], w[f"{b}.out.bias"]), self.dropout, noise)  # (n, d)
            x = self.norm(w, f"{b}.forward", x + y)  # (n, d)
        return x, nn.beside(x, place)

    def encode_padded(self, w: Weights, batch: Batch) -> Tensor:
        """`encode_last` of a `padded_batch` without complex numbers and steps, for exporters."""
        b, L = batch.packed.groups[0]
        x = self.norm(w, "norm", nn.rows(w["item"], batch.item)).view(b, L, self.dim)  # (b, L, d)
        for block in range(self.blocks):
            log_nu, theta, gamma = w[f"{block}.lambda"].unbind()  # (m,) each
            pairs = gamma.exp().repeat_interleave(2)  # (2 m,)
            u = F.linear(x, w[f"{block}.B"] * pairs[:, None], w[f"{block}.B.bias"] * pairs)  # (b, L, 2 m)
            u = u.view(b, L, -1, 2)  # (b, L, m, 2)
            h = nn.linear_recurrence_of_rectangle(u, -log_nu.exp(), theta.exp())  # (b, L, m, 2)
            y = F.linear(h.flatten(2), w[f"{block}.C"], w[f"{block}.C.bias"])  # (b, L, d)
            x = self.norm(w, f"{block}.recurrent", x + y)
            y = F.gelu(F.linear(x, w[f"{block}.in"], w[f"{block}.in.bias"]))  # (b, L, 4 d)
            x = self.norm(w, f"{block}.forward", x + F.linear(y, w[f"{block}.out"], w[f"{block}.out.bias"]))
        return x.reshape(-1, self.dim)[nn.beside(x, batch.packed.last)]  # (b, d)

    def recur(self, w: Weights, b: int, x: Tensor, alive: list[int]) -> Tensor:
        """Re(C h_t + c) with h_t = lambda * h_(t-1) + gamma * (B x_t + b): (n, d) from x (n, d)."""
        nu, theta, gamma = w[f"{b}.lambda"].exp()  # (m,) each
        pairs = gamma.repeat_interleave(2)  # (2 m,)
        u = F.linear(x, w[f"{b}.B"] * pairs[:, None], w[f"{b}.B.bias"] * pairs).float()  # (n, 2 m)
        u = torch.view_as_complex(u.view(u.shape[0], -1, 2))  # (n, m)
        h = nn.linear_recurrence(u, alive, torch.polar((-nu).exp(), theta))  # (n, m)
        return F.linear(torch.view_as_real(h).flatten(1), w[f"{b}.C"], w[f"{b}.C.bias"])  # (n, d)

    def norm(self, w: Weights, name: str, x: Tensor) -> Tensor:
        return F.layer_norm(x, (x.shape[-1],), w[f"{name}.gain"], w[f"{name}.bias"], 1e-5)


def initial_lambda(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """log nu, log theta and log gamma (3, size), of lambda = exp(-nu + i theta) uniform in a ring of the unit disk.

    gamma = sqrt(1 - |lambda|^2) makes the states of white noise have the variance of the noise.
    """
    square = rng.uniform(FASTEST**2, SLOWEST**2, size)  # |lambda|^2
    theta = 2 * math.pi * (1 - rng.random(size))  # never 0
    return np.log([-0.5 * np.log(square), theta, np.sqrt(1 - square)])


@dataclass(kw_only=True, eq=False)
class LRURec(LayeredModel):
    """LRURec: next-item prediction by linear recurrent units over the items of a user (Yue et al. 2024).

    Each block has a linear recurrence with a complex state of size 2 dim, whose elements do not interact, and
    feed-forward layers, both with residual connections and layer norm:

        h_t = lambda * h_(t-1) + gamma * (B x_t + b),   x_t = LN(x_t + Re(C h_t + c)),   x_t = LN(x_t + FF(x_t))

    lambda = exp(-exp(nu) + i exp(theta)) and gamma are learned; |lambda| starts between 0.8 and 0.99, so that some
    elements forget within five items and others remember a hundred. There are no position embeddings: the order is in
    the recurrence. The score of item i as the next one is x_t . v_i + b_i, and the loss is the cross-entropy of the
    next item at all positions, with weight decay.

    Differences from the released code: matrices start from Glorot's distribution, lambda and gamma have no weight
    decay, gradients are not clipped, and of a history longer than `max_len` the most recent part is read (there all
    parts are samples; see `window`).

    Use it beside `SASRec`: a state is updated at the same small cost for every new item, however long the history is.
    Ratings are not used. Unseen users are scored from their history, without any training.

    Cost per epoch: about 3 * tokens * dim * (16 * blocks * dim + items) multiply-adds for softmax over all items. Only
    the recurrence itself, 2 dim numbers per token, is computed step by step. Nothing is computed for padding.

    References
    ----------
    Yue, Wang, He, Zeng, McAuley and Wang, Linear Recurrent Units for Sequential Recommendation, WSDM 2024.
    """

    blocks: int = param(2, "blocks of a linear recurrent unit and feed-forward layers", low=1, high=64, search=(1, 3))
    weight_decay: float = param(0.01, "AdamW: decay of embeddings and matrices per step, times lr", low=0.0)

    by_default: ClassVar[bool] = False  # compared when it is named
    biased: ClassVar[bool] = True
    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")  # MPS has few operations on complex numbers

    def _network(self) -> LRURecNetwork:
        return LRURecNetwork(items=len(self.items_), dim=self.dim, blocks=self.blocks, dropout=self.dropout_)

    def _weight_count(self, size: Size) -> float:
        return size.items * (self.dim + 1.0) + 16.0 * self.blocks * self.dim**2

    def _attention_kept(self, longest: float) -> float:
        return 24.0 * self.dim  # complex states and their gradients instead

    def _cost(self, size: Size) -> Cost:
        setup, epoch, _ = super()._cost(size)
        # The tokens of a sequence are computed one after the other.
        longest = float(np.minimum(size.lengths, self.max_len).max(initial=0))
        return Cost(setup, epoch + 2e-5 * self.blocks * longest * size.users / (self.batch_size or 1))
