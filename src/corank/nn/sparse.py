"""Two products with a sparse matrix whose pattern stays: it times a table, and a dense product seen at its entries.

Each is the other's derivative. A pattern is kept by rows and by columns, so that forward and backward both read rows
and write each row of the result once: nothing is scattered, and every sum has one order. An entry costs as many
multiply-adds as the table is wide.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

Ints = NDArray[Any]
Ends = tuple[Tensor, Tensor, Tensor | None]  # what a row is made of, where rows end, the order of the entries


class Pattern:
    """Where the n entries of a matrix are: row, column int[n], in any order; a place may hold several."""

    def __init__(self, row: Ints, column: Ints, shape: tuple[int, int]) -> None:
        self.shape = shape
        self.by_row = _compressed(row, column, shape[0])
        self.by_column = _compressed(column, row, shape[1])

    def __len__(self) -> int:
        return int(self.by_row[0].numel())

    def places(self) -> tuple[Tensor, Tensor]:
        """Row and column int64[n] of the entries, in the order in which they were given."""
        column, ends, order = self.by_row
        row = torch.repeat_interleave(ends.diff())
        if order is None:
            return row, column
        return torch.empty_like(row).index_copy_(0, order, row), torch.empty_like(row).index_copy_(0, order, column)


def _compressed(row: Ints, column: Ints, rows: int) -> Ends:
    ends = torch.zeros(rows + 1, dtype=torch.int64)
    torch.cumsum(torch.from_numpy(np.bincount(row, minlength=rows)), 0, out=ends[1:])
    column = np.asarray(column, np.int64)
    if (np.diff(row) >= 0).all():  # sorted: the entries stay where they are
        return torch.from_numpy(column), ends, None
    order = np.argsort(row, kind="stable")
    return torch.from_numpy(column[order]), ends, torch.from_numpy(order)


def product(pattern: Pattern, value: Tensor, table: Tensor) -> Tensor:
    """The matrix with these values float32[n], constants, times a table [columns, d]: [rows, d]."""
    return _Product.apply(pattern, value, table)  # type: ignore[no-any-return, no-untyped-call]


def sampled(pattern: Pattern, left: Tensor, right: Tensor) -> Tensor:
    """left[row] . right[column] for each entry: [n] from [rows, d] and [columns, d]."""
    return _Sampled.apply(pattern, left, right)  # type: ignore[no-any-return, no-untyped-call]


def _bag(ends: Ends, value: Tensor, table: Tensor) -> Tensor:
    index, stops, order = ends
    if order is not None:
        value = value[order]
    return F.embedding_bag(
        index, table.contiguous(), stops, mode="sum", per_sample_weights=value, include_last_offset=True
    )


def _entries(ends: Tensor, index: Tensor, value: Tensor, shape: tuple[int, int]) -> Tensor:
    return torch.sparse_csr_tensor(ends, index, value, shape, check_invariants=False)


with warnings.catch_warnings():  # torch says once that its compressed rows are in beta
    warnings.simplefilter("ignore")
    _entries(torch.zeros(2, dtype=torch.int64), torch.zeros(0, dtype=torch.int64), torch.zeros(0), (1, 1))


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Pattern, value: Tensor, table: Tensor) -> Tensor:
        ctx.pattern, ctx.value = pattern, value
        return _bag(pattern.by_row, value, table)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None, Tensor]:
        return None, None, _bag(ctx.pattern.by_column, ctx.value, grad)


class _Sampled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Pattern, left: Tensor, right: Tensor) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(left, right)
        index, ends, order = pattern.by_row
        if len(pattern) > pattern.shape[0] * pattern.shape[1]:  # repeats of a tiny matrix, which torch refuses
            found = (left @ right.T)[torch.repeat_interleave(ends.diff()), index]
        else:
            entries = _entries(ends, index, left.new_zeros(len(pattern)), pattern.shape)
            found = torch.sparse.sampled_addmm(entries, left.contiguous(), right.T, beta=0.0).values()
        return found if order is None else torch.empty_like(found).index_copy_(0, order, found)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, Tensor]:
        left, right = ctx.saved_tensors
        grad = grad.contiguous()
        return None, _bag(ctx.pattern.by_row, grad, right), _bag(ctx.pattern.by_column, grad, left)
