"""Causal multi-head attention over packed sequences: layers work on slots (s, d), attention alone sees rectangles."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from .batches import Packed
from .devices import beside
from .noise import Noise, dropout


def attend(
    q: Tensor, k: Tensor, v: Tensor, heads: int, packed: Packed, p: float = 0.0, noise: Noise | None = None
) -> Tensor:
    """Causal attention within each sequence, (s, d) from q, k, v (s, d); p : dropout of the attention weights."""
    found = []
    sizes = [count * slots for count, slots in packed.groups]
    for (count, slots), *parts in zip(packed.groups, *(torch.split(part, sizes) for part in (q, k, v)), strict=True):
        one, two, three = (part.view(count, slots, heads, -1).transpose(1, 2) for part in parts)  # (count, h, L, d / h)
        attended = _attend(one, two, three, p, noise)
        found.append(attended.transpose(1, 2).reshape(count * slots, -1))
    return torch.cat(found) if len(found) > 1 else found[0]


def _attend(q: Tensor, k: Tensor, v: Tensor, p: float, noise: Noise | None) -> Tensor:
    """Causal attention (count, heads, L, d / heads)."""
    if p <= 0 or noise is None:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    weights = torch.softmax(_scores(q, k), -1)
    return dropout(weights, p, noise) @ v


def _scores(q: Tensor, k: Tensor) -> Tensor:
    """q . k / sqrt(d / heads), -inf where the key is newer than the query: (..., L, L)."""
    L = q.shape[-2]
    future = torch.full((L, L), -math.inf, device=q.device).triu_(1)
    return q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + future


def attend_last(
    q: Tensor,
    x: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor,
    heads: int,
    packed: Packed,
    p: float = 0.0,
    noise: Noise | None = None,
) -> Tensor:
    """Attention of the last token of each sequence alone: (b, d) from queries q (b, d) and tokens x (s, d).

    key, value (d, d) and bias (d,) of the values are the layers that would compute keys and values from x. They are
    applied to the queries and to the attended means instead, (b, d) each: q . (K x) = (K' q) . x, where a bias of the
    keys would add the same to all scores of a query, and the mean of the values is the value of the mean. p : dropout
    of the attention weights (the weight of the bias then stays 1).
    """
    d = q.shape[1]
    query = q.view(-1, heads, d // heads).transpose(0, 1)  # (h, b, d / h)
    probe = query @ key.view(heads, d // heads, d) / math.sqrt(d // heads)  # (h, b, d)
    probe = probe.transpose(0, 1)  # (b, h, d)
    last = beside(x, packed.last)
    mean, order, start = [], [], 0  # of the tokens, weighted by attention
    for count, slots in packed.groups:
        stop = start + count * slots
        owner = beside(x, packed.row[start:stop:slots])
        ends = last[owner] - torch.arange(start, stop, slots, device=x.device)  # step of the last token
        tokens = x[start:stop].view(count, slots, d)
        beyond = torch.arange(slots, device=x.device)[None, :] > ends[:, None]  # padding
        scores = (probe[owner] @ tokens.transpose(1, 2)).masked_fill(beyond[:, None, :], -math.inf)
        mean.append(dropout(torch.softmax(scores, -1), p, noise) @ tokens)
        order.append(owner)
        start = stop
    back = torch.argsort(torch.cat(order))  # from the order of the groups to that of the queries
    values = torch.cat(mean)[back].transpose(0, 1) @ value.view(heads, d // heads, d).transpose(1, 2)  # (h, b, d / h)
    return values.transpose(0, 1).reshape(-1, d) + bias


def attention_weights(q: Tensor, k: Tensor, heads: int) -> Tensor:
    """Weights (heads, L, L) of one sequence from q, k (L, d); row t holds the weights of the tokens for token t."""
    q, k = (part.view(part.shape[0], heads, -1).transpose(0, 1) for part in (q, k))
    return torch.softmax(_scores(q, k), -1)
