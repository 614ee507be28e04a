"""Additive attention over packed sequences: weights v . sigmoid(q_t + k_i), which are not normalised.

The sigmoids of all pairs, d numbers each, would take d times the memory of the weights: they are computed for some
queries at a time, and again in the backward pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from .batches import Packed
from .devices import full_precision

PAIRS = 1 << 18  # numbers that are held at a time: they should stay in the cache


def additive_attention(q: Tensor, k: Tensor, v: Tensor, x: Tensor, packed: Packed) -> Tensor:
    """sum over i <= t of (v . sigmoid(q_t + k_i)) x_i within each sequence: (s, d) from q, k, x (s, d) and v (d,)."""
    found = []
    sizes = [count * slots for count, slots in packed.groups]
    for (count, slots), *parts in zip(packed.groups, *(torch.split(part, sizes) for part in (q, k, x)), strict=True):
        one, two, three = (part.view(count, slots, -1) for part in parts)  # (count, L, d)
        with full_precision(x):
            weights: Tensor = _Weights.apply(one.to(v.dtype), two.to(v.dtype), v)  # type: ignore[no-untyped-call]
        found.append((weights.to(three.dtype) @ three).view(count * slots, -1))
    return torch.cat(found) if len(found) > 1 else found[0]


def _sigmoids(q: Tensor, k: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """(queries, sigmoid(q_t + k_i) of them and all keys up to the last of them), in one buffer that is used again."""
    count, length, d = q.shape
    step = min(length, max(1, PAIRS // (count * length * d)))
    buffer = q.new_empty(count * step * length * d)
    for start in range(0, length, step):
        at = slice(start, min(length, start + step))
        shape = count, at.stop - start, at.stop, d
        s = buffer[: math.prod(shape)].view(shape)
        yield at, torch.add(q[:, at, None], k[:, None, : at.stop], out=s).sigmoid_()


class _Weights(torch.autograd.Function):
    """Weights (count, L, L), 0 where the key is newer than the query, from q, k (count, L, d) and v (d,)."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out = q.new_zeros((q.shape[0], q.shape[1], q.shape[1]))
        for at, s in _sigmoids(q, k):  # (count, queries, keys, d)
            out[:, at, : at.stop] = s @ v
        ctx.save_for_backward(q, k, v)
        return out.tril_()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = ctx.saved_tensors
        grad = grads[0].tril()
        d_q, d_k, d_v = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v)
        for at, s in _sigmoids(q, k):  # (count, queries, keys, d)
            g = grad[:, at, : at.stop, None]  # (count, queries, keys, 1)
            d_v += g.reshape(1, -1).mm(s.view(-1, v.shape[0]))[0]
            s.addcmul_(s, s, value=-1).mul_(g)  # g s (1 - s): by v it is the gradient of q_t + k_i
            d_q[:, at] = s.sum(2)
            d_k[:, : at.stop] += s.sum(1)
        return d_q.mul_(v), d_k.mul_(v), d_v
