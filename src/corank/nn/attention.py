"""The network of SASRec and SSE-PT over packed sequences: embeddings, blocks of causal attention, a last layer norm.

Parameters are views into one flat float32 vector (`Layout`), so that an optimiser, a checkpoint and a file need to know
of one array only. Everything works on slots [s, d] (see `batches`); attention alone sees rectangles.

norm = "published": q = LN(x), keys and values of x itself, x = q + attention(q, x), z = LN(x), x = z + FF(z), and no
projection after attention (Kang and McAuley 2018, as released). norm = "pre": x = x + W attention(LN(x)), x = x +
FF(LN(x)), the usual block.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from .batches import Packed
from .noise import Noise, dropout
from .parameters import Parameter, Weights
from .tables import rows


@dataclass(frozen=True)
class Network:
    """Sizes and rules; the weights are elsewhere."""

    items: int
    dim: int  # of an item
    max_len: int
    blocks: int
    heads: int
    norm: str
    dropout: float = 0.0
    attention_dropout: float = 0.0
    hidden: int = 1  # width of the feed-forward layer as a multiple of the width of the network
    users: int = 0
    dim_user: int = 0

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ValueError(f"heads={self.heads} do not divide the width {self.width} of the network")
        if self.max_len < 1:
            raise ValueError(f"max_len={self.max_len}: at least one item must be read")

    @property
    def width(self) -> int:
        return self.dim + self.dim_user

    def parameters(self) -> dict[str, Parameter]:
        """Shape and role of each parameter."""
        d, inner = self.width, self.hidden * self.width
        out = {"item": Parameter((self.items, self.dim), "table"), "position": Parameter((self.max_len, d), "table")}
        if self.dim_user:
            out["user"] = Parameter((self.users, self.dim_user), "table")
        out |= {"norm.gain": Parameter((d,), "gain"), "norm.bias": Parameter((d,), "bias")}
        for b in range(self.blocks):
            out |= {
                f"{b}.qkv": Parameter((3 * d, d), "matrix", stacked=3),
                f"{b}.in": Parameter((inner, d), "matrix"),
                f"{b}.out": Parameter((d, inner), "matrix"),
                f"{b}.qkv.bias": Parameter((3 * d,), "bias"),
                f"{b}.in.bias": Parameter((inner,), "bias"),
                f"{b}.out.bias": Parameter((d,), "bias"),
            }
            if self.norm == "pre":
                out |= {f"{b}.join": Parameter((d, d), "matrix"), f"{b}.join.bias": Parameter((d,), "bias")}
            for name in ("first", "second"):
                out |= {f"{b}.{name}.gain": Parameter((d,), "gain"), f"{b}.{name}.bias": Parameter((d,), "bias")}
        return out

    # ---- the way through ------------------------------------------------------------------------------------------

    def encode(
        self, w: Weights, item: Tensor, position: Tensor, user: Tensor | None, packed: Packed, noise: Noise | None
    ) -> Tensor:
        """Hidden states float32[s, width] of all slots.

        item, position int64[s]; user float32[s, dim_user] vectors, for networks that have users.
        """
        x = self._embed(w, item, position, user, noise)
        for b in range(self.blocks):
            x = self._block(w, b, x, packed, noise)
        return _norm(x, w, "norm", self.norm)

    def encode_last(self, w: Weights, item: Tensor, position: Tensor, user: Tensor | None, packed: Packed) -> Tensor:
        """Hidden states float32[b, width] of the last token of each sequence: the last block works on nothing else."""
        x = self._embed(w, item, position, user, None)
        for b in range(self.blocks - 1):
            x = self._block(w, b, x, packed, None)
        last = torch.from_numpy(packed.last)
        x = self._last_block(w, self.blocks - 1, x, packed, last) if self.blocks else x[last]
        return _norm(x, w, "norm", self.norm)

    def weights_of_attention(
        self, w: Weights, item: Tensor, position: Tensor, user: Tensor | None, packed: Packed
    ) -> Tensor:
        """float32[blocks, heads, L, L] for a batch of one sequence: row t says where token t looks."""
        x = self._embed(w, item, position, user, None)
        found = []
        for b in range(self.blocks):
            _, q, k, _ = self._queries(w, b, x)
            L = x.shape[0]
            q, k = (part.view(L, self.heads, -1).transpose(0, 1) for part in (q, k))
            found.append(torch.softmax(_scores(q, k), -1))
            x = self._block(w, b, x, packed, None)
        return torch.stack(found) if found else x.new_zeros((0, self.heads, x.shape[0], x.shape[0]))

    def _embed(self, w: Weights, item: Tensor, position: Tensor, user: Tensor | None, noise: Noise | None) -> Tensor:
        x = rows(w["item"], item) * math.sqrt(self.dim)
        if user is not None:
            x = torch.cat([x, user * math.sqrt(self.dim_user)], 1)
        return dropout(x + rows(w["position"], position), self.dropout, noise)

    def _queries(self, w: Weights, b: int, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """(normed x, q, k, v), all [s, width]."""
        d = self.width
        normed = _norm(x, w, f"{b}.first", self.norm)
        matrix, bias = w[f"{b}.qkv"], w[f"{b}.qkv.bias"]
        if self.norm == "pre":
            q, k, v = torch.split(F.linear(normed, matrix, bias), d, 1)
            return normed, q, k, v
        k, v = torch.split(F.linear(x, matrix[d:], bias[d:]), d, 1)
        return normed, F.linear(normed, matrix[:d], bias[:d]), k, v

    def _block(self, w: Weights, b: int, x: Tensor, packed: Packed, noise: Noise | None) -> Tensor:
        normed, q, k, v = self._queries(w, b, x)
        found = []
        sizes = [count * slots for count, slots in packed.groups]
        cut = zip(packed.groups, *(torch.split(part, sizes) for part in (q, k, v)), strict=True)
        for (count, slots), *parts in cut:
            one, two, three = (part.view(count, slots, self.heads, -1).transpose(1, 2) for part in parts)
            attended = _attend(one, two, three, self.attention_dropout, noise)
            found.append(attended.transpose(1, 2).reshape(count * slots, -1))
        return self._rest(w, b, x, normed, torch.cat(found) if len(found) > 1 else found[0], noise)

    def _rest(self, w: Weights, b: int, x: Tensor, normed: Tensor, found: Tensor, noise: Noise | None) -> Tensor:
        """What comes after attention: residuals and the feed-forward layer."""
        if self.norm == "pre":
            x = x + dropout(F.linear(found, w[f"{b}.join"], w[f"{b}.join.bias"]), self.dropout, noise)
        else:
            x = normed + found
        z = _norm(x, w, f"{b}.second", self.norm)
        y = dropout(F.relu(F.linear(z, w[f"{b}.in"], w[f"{b}.in.bias"])), self.dropout, noise)
        y = dropout(F.linear(y, w[f"{b}.out"], w[f"{b}.out.bias"]), self.dropout, noise)
        return x + y if self.norm == "pre" else z + y

    def _last_block(self, w: Weights, b: int, x: Tensor, packed: Packed, last: Tensor) -> Tensor:
        """The block for the last token of each sequence: its query against the keys of its own sequence.

        Keys and values of the other tokens are never made. q . (K x) = (K' q) . x, where the bias of the keys adds the
        same to all scores of a query, and the mean of the values is the value of the mean.
        """
        d, heads = self.width, self.heads
        tip = x[last]
        normed = _norm(tip, w, f"{b}.first", self.norm)
        matrix, bias = w[f"{b}.qkv"], w[f"{b}.qkv.bias"]
        query = F.linear(normed, matrix[:d], bias[:d]).view(-1, heads, d // heads).transpose(0, 1)
        probe = query @ matrix[d : 2 * d].view(heads, d // heads, d) / math.sqrt(d // heads)  # [heads, b, d]
        probe = probe.transpose(0, 1)
        source = _norm(x, w, f"{b}.first", self.norm) if self.norm == "pre" else x
        mean = torch.empty_like(probe)  # of what is attended to, for each head
        start = 0
        for count, slots in packed.groups:
            stop = start + count * slots
            owner = torch.from_numpy(packed.row[start:stop:slots])
            ends = last[owner] - torch.arange(start, stop, slots)  # step of the last token
            tokens = source[start:stop].view(count, slots, d)
            beyond = torch.arange(slots)[None, :] > ends[:, None]
            scores = (probe[owner] @ tokens.transpose(1, 2)).masked_fill(beyond[:, None, :], -math.inf)
            mean[owner] = torch.softmax(scores, -1) @ tokens
            start = stop
        values = mean.transpose(0, 1) @ matrix[2 * d :].view(heads, d // heads, d).transpose(1, 2)
        found = values.transpose(0, 1).reshape(-1, d) + bias[2 * d :]
        return self._rest(w, b, tip, normed, found, None)


def _norm(x: Tensor, w: Weights, name: str, rule: str) -> Tensor:
    eps = 1e-8 if rule == "published" else 1e-5
    return F.layer_norm(x, (x.shape[-1],), w[f"{name}.gain"], w[f"{name}.bias"], eps)


def _attend(q: Tensor, k: Tensor, v: Tensor, p: float, noise: Noise | None) -> Tensor:
    """Causal attention [c, heads, L, width / heads]; with p > 0 the weights are dropped out."""
    if p <= 0 or noise is None:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    share = torch.softmax(_scores(q, k), -1)
    return dropout(share, p, noise) @ v


def _scores(q: Tensor, k: Tensor) -> Tensor:
    """q . k / sqrt(width), -inf where the key is newer than the query: [..., L, L]."""
    L = q.shape[-2]
    future = torch.full((L, L), -math.inf).triu_(1)
    return q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + future
