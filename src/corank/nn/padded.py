"""Batches of histories that are all padded to the same length, in tensors alone: what exported networks read."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from .batches import Batch, Packed


class Padded:
    """A `Packed` of one rectangle: b sequences in L slots each, padded at the right. Its arrays are tensors.

    row, step : int64 (b * L,). last : int64 (b,). groups : [(b, L)]. See `Packed`.
    """

    def __init__(self, length: Tensor, slots: int) -> None:
        b = length.shape[0]
        row = torch.arange(b, device=length.device)
        step = torch.arange(slots, device=length.device)
        newest = (length - 1).clamp(min=0)  # (b,), 0 where there is no token
        self.groups = [(b, slots)]
        self.row = row[:, None].expand(b, slots).reshape(-1)
        self.step = torch.minimum(step[None, :], newest[:, None]).reshape(-1)
        self.real = self._there = (step[None, :] < length[:, None]).to(torch.float32).reshape(-1)
        self.last = row * slots + newest

    def tokens(self) -> Tensor:
        """float32 (b * L,): 1 where a slot holds a token."""
        return self._there

    def recent(self, size: int, slots: Tensor) -> tuple[Tensor, Tensor]:
        """See `Packed.recent`."""
        back = torch.arange(size - 1, -1, -1, device=slots.device)
        there = self.step[slots][:, None] >= back
        return torch.where(there, slots[:, None] - back, slots[:, None]), there.to(torch.float32)


def padded_batch(item: Tensor, length: Tensor, user: Tensor | None, max_len: int) -> Batch:
    """A batch of int64 histories (b, L), oldest first and padded at the right, of `length` (b,) tokens each."""
    packed = Padded(length, item.shape[1])
    position = (max_len - length.clamp(min=1))[packed.row] + packed.step  # the last token has the last position
    return Batch(cast(Packed, cast(Any, packed)), item.reshape(-1), position, user)
