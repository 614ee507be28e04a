"""SASRec: next-item prediction by causal self-attention over the items of a user (Kang and McAuley 2018).

The network comes first, then the model. What all sequence models share (training, scoring) is in `_sequence`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .. import nn
from ..answering.histories import read_histories
from ..answering.inference import require_fitted, user_codes
from ..errors import CorankError
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
class SASRecNetwork:
    """Item and position embeddings, blocks of causal attention and feed-forward layers, a final layer norm.

    Shapes: s slots (tokens) of a packed batch of b sequences, d = `width`.
    """

    items: int
    dim: int
    max_len: int
    blocks: int
    heads: int
    form: str  # of the blocks: pre or published
    dropout: float
    attention_dropout: float

    @property
    def width(self) -> int:
        return self.dim

    @property
    def table_std(self) -> float | None:
        return 0.02 if self.form == "pre" else None

    def parameters(self) -> dict[str, Parameter]:
        """Shape and role of each parameter."""
        d, P = self.width, nn.Parameter
        out = {"item": P((self.items, self.dim), "table"), "position": P((self.max_len, d), "table")}
        out |= {"norm.gain": P((d,), "gain"), "norm.bias": P((d,), "bias")}
        for b in range(self.blocks):
            out |= {f"{b}.qkv": P((3 * d, d), "matrix", stacked=3), f"{b}.qkv.bias": P((3 * d,), "bias")}
            out |= {f"{b}.in": P((d, d), "matrix"), f"{b}.in.bias": P((d,), "bias")}
            out |= {f"{b}.out": P((d, d), "matrix"), f"{b}.out.bias": P((d,), "bias")}
            if self.form == "pre":
                out |= {f"{b}.join": P((d, d), "matrix"), f"{b}.join.bias": P((d,), "bias")}
            for name in ("first", "second"):
                out |= {f"{b}.{name}.gain": P((d,), "gain"), f"{b}.{name}.bias": P((d,), "bias")}
        return out

    def encode(self, w: Weights, batch: Batch, noise: Noise | None) -> Tensor:
        """Hidden states (s, d) of all tokens."""
        return self.transform(w, self.inputs(w, batch), batch, noise)

    def encode_last(self, w: Weights, batch: Batch, noise: Noise | None = None) -> Tensor:
        """Hidden states (b, d) of the last token of each sequence."""
        return self.transform_last(w, self.inputs(w, batch), batch, noise)

    def inputs(self, w: Weights, batch: Batch) -> Tensor:
        """Embeddings (s, d) of the tokens, without their positions."""
        return nn.rows(w["item"], batch.item) * math.sqrt(self.dim)  # (s, d)

    def transform(self, w: Weights, x: Tensor, batch: Batch, noise: Noise | None) -> Tensor:
        """Hidden states (s, d) from embeddings x (s, d)."""
        x = self.placed(w, x, batch, noise)  # (s, d)
        for b in range(self.blocks):
            x = self.block(w, b, x, batch.packed, noise)  # (s, d)
        return self.norm(w, "norm", x)  # (s, d)

    def transform_last(self, w: Weights, x: Tensor, batch: Batch, noise: Noise | None) -> Tensor:
        """The same for the last token of each sequence (b, d): the last block computes nothing else."""
        x = self.placed(w, x, batch, noise)  # (s, d)
        for b in range(self.blocks - 1):
            x = self.block(w, b, x, batch.packed, noise)  # (s, d)
        last = nn.beside(x, batch.packed.last)  # (b,)
        x = self.last_block(w, x, batch.packed, noise) if self.blocks else x[last]  # (b, d)
        return self.norm(w, "norm", x)  # (b, d)

    def placed(self, w: Weights, x: Tensor, batch: Batch, noise: Noise | None) -> Tensor:
        """Embeddings x (s, d) with those of their positions."""
        return nn.dropout(x + nn.rows(w["position"], batch.position), self.dropout, noise)  # (s, d)

    def block(self, w: Weights, b: int, x: Tensor, packed: Packed, noise: Noise | None) -> Tensor:
        """One block, (s, d) to (s, d)."""
        normed, q, k, v = self.queries(w, b, x)  # (s, d) each
        attended = nn.attend(q, k, v, self.heads, packed, self.attention_dropout, noise)  # (s, d)
        return self.after_attention(w, b, x, normed, attended, noise)  # (s, d)

    def queries(self, w: Weights, b: int, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """(normed x, queries, keys, values), (s, d) each; in the published form, keys and values come from x itself."""
        d, matrix, bias = self.width, w[f"{b}.qkv"], w[f"{b}.qkv.bias"]  # (3 d, d), (3 d,)
        normed = self.norm(w, f"{b}.first", x)  # (s, d)
        if self.form == "pre":
            q, k, v = torch.split(F.linear(normed, matrix, bias), d, 1)  # (s, d) each
            return normed, q, k, v
        k, v = torch.split(F.linear(x, matrix[d:], bias[d:]), d, 1)  # (s, d) each
        return normed, F.linear(normed, matrix[:d], bias[:d]), k, v

    def after_attention(
        self, w: Weights, b: int, x: Tensor, normed: Tensor, attended: Tensor, noise: Noise | None
    ) -> Tensor:
        """Residual connections and the feed-forward layers, (s, d) to (s, d)."""
        if self.form == "pre":  # x + W attention(LN x), then x + FF(LN x)
            x = x + nn.dropout(F.linear(attended, w[f"{b}.join"], w[f"{b}.join.bias"]), self.dropout, noise)
        else:  # q + attention(q, x) with q = LN x, then z + FF(z) with z = LN of that
            x = normed + attended
        z = self.norm(w, f"{b}.second", x)  # (s, d)
        y = nn.dropout(F.relu(F.linear(z, w[f"{b}.in"], w[f"{b}.in.bias"])), self.dropout, noise)  # (s, d)
        y = nn.dropout(F.linear(y, w[f"{b}.out"], w[f"{b}.out.bias"]), self.dropout, noise)  # (s, d)
        return x + y if self.form == "pre" else z + y

    def last_block(self, w: Weights, x: Tensor, packed: Packed, noise: Noise | None) -> Tensor:
        """The last block for the last token of each sequence, (s, d) to (b, d); no keys and values are computed."""
        b, d = self.blocks - 1, self.width
        matrix, bias = w[f"{b}.qkv"], w[f"{b}.qkv.bias"]  # (3 d, d), (3 d,)
        last = x[nn.beside(x, packed.last)]  # (b, d)
        normed = self.norm(w, f"{b}.first", last)  # (b, d)
        q = F.linear(normed, matrix[:d], bias[:d])  # (b, d)
        tokens = self.norm(w, f"{b}.first", x) if self.form == "pre" else x  # (s, d)
        key, value = matrix[d : 2 * d], matrix[2 * d :]  # (d, d) each
        chance = self.attention_dropout
        attended = nn.attend_last(q, tokens, key, value, bias[2 * d :], self.heads, packed, chance, noise)  # (b, d)
        return self.after_attention(w, b, last, normed, attended, noise)  # (b, d)

    def attention_weights(self, w: Weights, batch: Batch) -> Tensor:
        """(blocks, heads, L, L) for a batch of one sequence of L tokens."""
        x = self.placed(w, self.inputs(w, batch), batch, None)  # (L, d)
        found = []
        for b in range(self.blocks):
            _, q, k, _ = self.queries(w, b, x)  # (L, d)
            found.append(nn.attention_weights(q, k, self.heads))  # (heads, L, L)
            x = self.block(w, b, x, batch.packed, None)  # (L, d)
        return torch.stack(found) if found else x.new_zeros((0, self.heads, x.shape[0], x.shape[0]))

    def norm(self, w: Weights, name: str, x: Tensor) -> Tensor:
        eps = 1e-8 if self.form == "published" else 1e-5
        return F.layer_norm(x, (x.shape[-1],), w[f"{name}.gain"], w[f"{name}.bias"], eps)


@dataclass(kw_only=True, eq=False)
class SASRec(LayeredModel):
    """SASRec: next-item prediction by causal self-attention over the items of a user (Kang and McAuley 2018).

    A transformer reads the last `max_len` items of a user. The inner product of its state h_t at position t with the
    embedding v_i is the score of item i as the next one. With the default loss it minimises, over all positions t of
    all users, the cross-entropy of the next item among all items:

        - log( exp(h_t . v_next) / sum_i exp(h_t . v_i) )

    The defaults are this modern form: pre-norm blocks and softmax, sampled for more than 5,000 items, which with enough
    epochs is still among the best sequential models (Klenitskiy and Vasilev 2023). The published form is available too:
    `SASRec(dim=50, norm="published", loss="bce", negatives=1, max_len=50, dropout=0.5)` (ML-1M: max_len=200,
    dropout=0.2); an epoch visits each user once, whereas the published code draws as many users with replacement.
    `sse_item` and `sse_target` replace inputs and targets by random items in training (SSE-SASRec).

    Use it where the order of items matters: films, games, songs, clicks. Ratings are not used. Unseen users are scored
    from their history, without any training. `attention` shows the attention weights.

    Cost per epoch: about 3 * tokens * dim * (blocks * (6 * dim + length) + items) multiply-adds for softmax over all
    items, or over the negatives, and almost nothing for padding. Dropout, batch size and epochs follow from the data.

    References
    ----------
    Kang and McAuley, Self-Attentive Sequential Recommendation, ICDM 2018.
    Klenitskiy and Vasilev, Turning Dross Into Gold Loss: is BERT4Rec really better than SASRec?, RecSys 2023.
    """

    blocks: int = param(2, "blocks of attention and feed-forward layers", low=0, high=64, search=(1, 3))
    heads: int = param(1, "attention heads; must divide the hidden size", low=1, high=64)
    attention_dropout: float | None = param(
        None, "dropout of the attention weights (when absent: dropout if norm is published, else 0)", low=0.0, high=0.95
    )
    norm: str = param("pre", "form of the blocks: pre-norm or as published", choices=("pre", "published"))

    def _attention_kept(self, longest: float) -> float:
        # Without dropout of the weights, attention is computed in blocks and the weights are never held.
        dropped = self.norm == "published" if self.attention_dropout is None else self.attention_dropout > 0
        return 4.0 * self.heads * longest if dropped else 0.0

    def _feasible(self, searched: Collection[str]) -> Self:
        size = next((name for name in ("dim", "dim_user") if name in searched), None)
        if size is None:
            return self
        return self._copy(**{size: rounded_to_heads(self._width(), self.heads, getattr(self, size))})

    def _network(self) -> SASRecNetwork:
        return SASRecNetwork(**self._sizes())

    def _sizes(self) -> dict[str, Any]:
        check_heads(self, self.heads, self._width())
        inner = self.dropout_ if self.norm == "published" else 0.0
        return {
            "items": len(self.items_),
            "dim": self.dim,
            "max_len": self.max_len,
            "blocks": self.blocks,
            "heads": self.heads,
            "form": self.norm,
            "dropout": self.dropout_,
            "attention_dropout": inner if self.attention_dropout is None else self.attention_dropout,
        }

    def attention(self, user: Hashable | None = None, *, history: Iterable[Hashable] | None = None) -> dict[str, Any]:
        """The attention weights: {"items": L ids, oldest first, "weights": float32 (blocks, heads, L, L)}.

        Row t holds the weights of the items up to t in the prediction of the item after t. Give a training user or any
        history.
        """
        require_fitted(self)
        if (user is None) == (history is None):
            raise CorankError("attention takes one user or one history: give a user id, or history=[...]")
        codes = None if user is None else user_codes(self, [user])
        rows = read_histories(self, [list(history or ())])[1] if codes is None else self._recent(codes)
        item = rows.index[-self.max_len :].astype(np.int64)
        if item.size == 0:
            return {"items": [], "weights": np.zeros((self.blocks, self.heads, 0, 0), np.float32)}
        net, w = self._views()
        zero, length = np.zeros(1, np.int64), np.array([item.size])
        with torch.inference_mode():
            batch = self._batch(item, zero, length, None if codes is None else codes.astype(np.int64))
            found = net.attention_weights(w, batch)
        return {"items": self.items_.ids[item].tolist(), "weights": found.cpu().numpy()}
