"""Differentiable products with sparse matrices of fixed pattern: sparse times dense, and dense products sampled there.

Each is the gradient of the other. A pattern is stored by row and by column, so that forward and backward pass both
read rows and write each row of the result once: nothing is scattered, and every sum has a fixed order. An entry costs
as many multiply-adds as the dense matrix has columns.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from .devices import CPU

Ints = NDArray[Any]


class Compressed(NamedTuple):
    """Entries grouped by row (CSR), or by column."""

    columns: Tensor  # int64 (n,), of the entries
    ends: Tensor  # int64 (rows + 1,): row r holds entries ends[r] to ends[r + 1]
    order: Tensor | None  # int64 (n,): the entries as they were given, sorted by row; None if they already were

    def to(self, device: torch.device) -> Compressed:
        """The same on a device."""
        return Compressed(*(None if tensor is None else tensor.to(device) for tensor in self))  # type: ignore[arg-type]


class Pattern:
    """Places of the n entries of a matrix: row, column int (n,), in any order; a place may occur more than once.

    device : where the entries will be.
    """

    def __init__(self, row: Ints, column: Ints, shape: tuple[int, int], device: torch.device = CPU) -> None:
        self.shape = shape
        self.by_row = _compress(row, column, shape[0]).to(device)
        self.by_column = _compress(column, row, shape[1]).to(device)

    def __len__(self) -> int:
        return int(self.by_row.columns.numel())

    def places(self) -> tuple[Tensor, Tensor]:
        """Row and column int64 (n,) of the entries, in the order in which they were given."""
        column, ends, order = self.by_row
        row = torch.repeat_interleave(ends.diff())
        if order is None:
            return row, column
        return torch.empty_like(row).index_copy_(0, order, row), torch.empty_like(row).index_copy_(0, order, column)


def _compress(row: Ints, column: Ints, rows: int) -> Compressed:
    ends = torch.zeros(rows + 1, dtype=torch.int64)
    torch.cumsum(torch.from_numpy(np.bincount(row, minlength=rows)), 0, out=ends[1:])
    column = np.asarray(column, np.int64)
    if (np.diff(row) >= 0).all():
        return Compressed(torch.from_numpy(column), ends, None)
    order = np.argsort(row, kind="stable")
    return Compressed(torch.from_numpy(column[order]), ends, torch.from_numpy(order))


def sparse_matmul(pattern: Pattern, value: Tensor, dense: Tensor) -> Tensor:
    """S @ dense, (rows, d), where S has the entries `value` (n,), which are constants, and dense is (columns, d)."""
    return _SparseMatmul.apply(pattern, value, dense)  # type: ignore[no-any-return, no-untyped-call]


def sampled_matmul(pattern: Pattern, left: Tensor, right: Tensor) -> Tensor:
    """left @ right.T at the entries only: left[row] . right[column], (n,), from (rows, d) and (columns, d)."""
    return _SampledMatmul.apply(pattern, left, right)  # type: ignore[no-any-return, no-untyped-call]


def _matmul(entries: Compressed, value: Tensor, dense: Tensor) -> Tensor:
    index, ends, order = entries
    if order is not None:
        value = value[order]
    return F.embedding_bag(
        index, dense.contiguous(), ends, mode="sum", per_sample_weights=value, include_last_offset=True
    )


def _csr_tensor(ends: Tensor, index: Tensor, value: Tensor, shape: tuple[int, int]) -> Tensor:
    return torch.sparse_csr_tensor(ends, index, value, shape, check_invariants=False)


with warnings.catch_warnings():  # torch warns once per process that sparse CSR tensors are in beta
    warnings.simplefilter("ignore")
    _csr_tensor(torch.zeros(2, dtype=torch.int64), torch.zeros(0, dtype=torch.int64), torch.zeros(0), (1, 1))


class _SparseMatmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Pattern, value: Tensor, dense: Tensor) -> Tensor:
        ctx.pattern, ctx.value = pattern, value
        return _matmul(pattern.by_row, value, dense)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None, Tensor]:
        return None, None, _matmul(ctx.pattern.by_column, ctx.value, grad)


class _SampledMatmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Pattern, left: Tensor, right: Tensor) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(left, right)
        index, ends, order = pattern.by_row
        if len(pattern) > pattern.shape[0] * pattern.shape[1]:  # torch refuses more entries than the matrix has places
            found = (left @ right.T)[torch.repeat_interleave(ends.diff()), index]
        else:
            entries = _csr_tensor(ends, index, left.new_zeros(len(pattern)), pattern.shape)
            found = torch.sparse.sampled_addmm(entries, left.contiguous(), right.T, beta=0.0).values()
        return found if order is None else torch.empty_like(found).index_copy_(0, order, found)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, Tensor]:
        left, right = ctx.saved_tensors
        grad = grad.contiguous()
        return None, _matmul(ctx.pattern.by_row, grad, right), _matmul(ctx.pattern.by_column, grad, left)
