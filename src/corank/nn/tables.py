"""Look-ups in embedding tables whose gradient has one row per looked-up id, not one per row of the table.

Autograd would create a whole table of zeros for each look-up, which on a large catalogue takes longer than the network.
A table with a `sink` collects (index, gradient of the rows) there instead; `loop` adds them up once per step.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

Sink = list[tuple[Tensor, Tensor]]


def with_sink(table: Tensor) -> Tensor:
    """A leaf that shares the memory of `table` and collects the gradients of its rows."""
    leaf = table.detach().requires_grad_()
    leaf.sink = []  # type: ignore[attr-defined]
    return leaf


def sink_of(table: Tensor) -> Sink | None:
    return getattr(table, "sink", None)


def rows(table: Tensor, index: Tensor) -> Tensor:
    """table[index]: (n, d) for index int64 (n,)."""
    sink = sink_of(table)
    if sink is None:
        return F.embedding(index, table)
    taken: Tensor = _Rows.apply(table, index, sink)  # type: ignore[no-untyped-call]
    return taken


def rows_or_mean(table: Tensor, index: Tensor | None, count: int) -> Tensor:
    """table[index] (count, d); without an index the mean of all rows, `count` times: the vector of unseen users."""
    return table.mean(0, keepdim=True).expand(count, -1) if index is None else rows(table, index)


def add_gradient(out: Tensor, tables: list[Tensor]) -> None:
    """Write the gradient of a table, collected by the leaves `tables` and summed in order, to `out`; clear them."""
    first = True
    for table in tables:
        if table.grad is not None:
            out.copy_(table.grad) if first else out.add_(table.grad)
            table.grad, first = None, False
    if first:
        out.zero_()
    for table in tables:
        sink = sink_of(table) or []
        for index, grad in sink:
            out.index_add_(0, index, grad)
        sink.clear()


class _Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, index: Tensor, sink: Sink) -> Tensor:
        ctx.index, ctx.sink = index, sink
        return table.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, None, None]:
        ctx.sink.append((ctx.index, grads[0]))
        return None, None, None
