"""The network of SASRec and SSE-PT over packed sequences: embeddings, blocks of causal attention, a last layer norm.

Parameters are views into one flat float32 vector (`Layout`), so that an optimiser, a checkpoint and a file need to know
of one array only. Everything works on slots [s, d] (see `batches`); attention alone sees rectangles.

norm = "published": q = LN(x), keys and values of x itself, x = q + attention(q, x), z = LN(x), x = z + FF(z), and no
projection after attention (Kang and McAuley 2018, as released). norm = "pre": x = x + W attention(LN(x)), x = x +
FF(LN(x)), the usual block.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from .batches import Packed
from .noise import Noise, dropout
from .tables import rows

LINE = 16  # floats in a line of the cache: every parameter starts at one
Weights = Mapping[str, Tensor]


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

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of each parameter: tables, then matrices, then vectors."""
        d, inner = self.width, self.hidden * self.width
        tables: dict[str, tuple[int, ...]] = {"item": (self.items, self.dim), "position": (self.max_len, d)}
        if self.dim_user:
            tables["user"] = (self.users, self.dim_user)
        matrices: dict[str, tuple[int, ...]] = {}
        vectors: dict[str, tuple[int, ...]] = {"norm.gain": (d,), "norm.bias": (d,)}
        for b in range(self.blocks):
            matrices |= {f"{b}.qkv": (3 * d, d), f"{b}.in": (inner, d), f"{b}.out": (d, inner)}
            vectors |= {f"{b}.qkv.bias": (3 * d,), f"{b}.in.bias": (inner,), f"{b}.out.bias": (d,)}
            if self.norm == "pre":
                matrices[f"{b}.join"] = (d, d)
                vectors[f"{b}.join.bias"] = (d,)
            for name in ("first", "second"):
                vectors |= {f"{b}.{name}.gain": (d,), f"{b}.{name}.bias": (d,)}
        return tables | matrices | vectors

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


class Layout:
    """Named parameters inside one flat vector."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.shapes = dict(shapes)
        self.start: dict[str, int] = {}
        self.size = 0
        for name in self.shapes:
            self.start[name] = self.size
            self.size = self.end(name)

    def end(self, name: str) -> int:
        """Where the parameter after this one begins."""
        return self.start[name] + -(-math.prod(self.shapes[name]) // LINE) * LINE

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """The parameters as views into a flat float32 tensor of `size`."""
        if flat.shape != (self.size,):
            raise ValueError(f"these parameters need {self.size} numbers, not {tuple(flat.shape)}")
        return {
            name: flat[self.start[name] : self.start[name] + math.prod(shape)].view(shape)
            for name, shape in self.shapes.items()
        }

    def empty(self) -> NDArray[np.float32]:
        """Zeros, from the start of a line: products of matrices may round differently elsewhere."""
        whole = np.zeros(self.size + LINE, np.float32)
        skip = (-whole.ctypes.data // 4) % LINE
        return whole[skip : skip + self.size]

    def start_weights(self, rng: np.random.Generator, tables: float | None = None) -> NDArray[np.float32]:
        """Glorot uniform tables and matrices, zero biases, unit gains.

        tables : standard deviation of the tables instead: Glorot's grows as they get shorter, and what is random in the
        vectors of a small catalogue then outweighs what is learned.
        """
        flat = self.empty()
        for name, shape in self.shapes.items():
            part = flat[self.start[name] : self.start[name] + math.prod(shape)]
            if name.endswith(".gain"):
                part[:] = 1
            elif len(shape) == 2:
                high = shape[0] // 3 if name.endswith(".qkv") else shape[0]  # three matrices, one below the other
                bound = math.sqrt(6 / (high + shape[1]))
                if tables is not None and "." not in name:
                    bound = math.sqrt(3) * tables
                part[:] = rng.uniform(-bound, bound, part.size)
        return flat
