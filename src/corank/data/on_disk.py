"""Rows in files instead of memory: arrays that are mapped, and a dataset of such arrays.

A mapped array is an ordinary numpy array whose pages the operating system reads when they are used, and gives up again
when memory is needed for something else. Models that go through their rows in order need no more of them at a time.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal

import numpy as np
from numpy.typing import DTypeLike

from ..errors import CorankError
from .csr import CSR, Array
from .dataset import Dataset
from .values import Values
from .vocab import Vocab

BLOCK = 1 << 22  # entries of a pass over an array, of which temporary arrays are made


def mapped(path: Path, dtype: DTypeLike) -> Array:
    """The array in a file, mapped."""
    if not path.stat().st_size:
        return np.empty(0, dtype)
    # Kernels are compiled for arrays that may be written, and these files are our own.
    return np.asarray(np.memmap(path, dtype, "r+"))


def folder_of(array: Array) -> Path | None:
    """The folder of the file that an array is mapped from; None if it is in memory."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap):
            return None if base.filename is None else Path(base.filename).parent
        base = base.base
    return None


def empty(size: int, dtype: DTypeLike, beside: Array) -> Array:
    """An array of any content: in memory, or, where `beside` is mapped, in a file next to it that has no name."""
    folder = folder_of(beside)
    if folder is None or size == 0:
        return np.empty(size, dtype)
    # Its name is gone at once, its pages stay while they are mapped.
    with writing(folder), tempfile.NamedTemporaryFile(dir=folder) as file:
        if hasattr(os, "posix_fallocate"):  # a page for which the disk has no room would end the process
            os.posix_fallocate(file.fileno(), 0, size * np.dtype(dtype).itemsize)
        return np.asarray(
            np.memmap(Path(file.name), dtype, "r+" if hasattr(os, "posix_fallocate") else "w+", shape=(size,))
        )


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Where rows cannot be written to files within this block, an error that says so."""
    try:
        yield
    except OSError as why:
        raise CorankError(
            f"rows cannot be written to '{folder}': {why.strerror or why}; choose a folder on a disk with more room"
        ) from None


def append(file: BinaryIO, array: Array) -> None:
    """Write an array at the end of a file."""
    file.write(np.ascontiguousarray(array).view(np.uint8).data)


def full(size: int, value: float, dtype: DTypeLike, beside: Array) -> Array:
    """The same, filled."""
    out = empty(size, dtype, beside)
    out.fill(value)
    return out


def blocks(size: int) -> list[slice]:
    """Slices of an array of this size, in order."""
    return [slice(at, min(size, at + BLOCK)) for at in range(0, size, BLOCK)]


def row_blocks(indptr: Array) -> list[slice]:
    """Slices of rows with about as many entries each."""
    cuts = np.searchsorted(indptr, np.arange(0, indptr[-1], BLOCK))
    cuts = np.unique(np.append(cuts, [0, indptr.size - 1]))
    return [slice(int(a), int(b)) for a, b in itertools.pairwise(cuts)]


def owners(rows: CSR) -> Array:
    """The row of each entry: int32[n], mapped where the rows are."""
    out = empty(rows.index.size, np.int32, rows.index)
    for part in row_blocks(rows.indptr):
        ends = rows.indptr[part.start : part.stop + 1]
        out[ends[0] : ends[-1]] = np.repeat(np.arange(part.start, part.stop, dtype=np.int32), np.diff(ends))
    return out


class DatasetOnDisk(Dataset):
    """Interactions whose rows are in files, sorted by user and by item; `read_partitions` makes one.

    It is used as any other dataset. The rows have no times, and stand in the order of users, then items. What is
    derived from it (a part of the rows, other labels) is an ordinary dataset, in memory.
    """

    on_disk: ClassVar[bool] = True
    _sorted: Mapping[str, CSR]

    def __new__(cls, *args: Any, **fields: Any) -> Dataset:  # type: ignore[misc]
        # `dataclasses.replace` calls the class: with other rows, what is sorted in files no longer holds.
        return Dataset(*args, **fields)

    @classmethod
    def of(cls, users: Vocab, items: Vocab, by_user: CSR, by_item: CSR, user: Array, values: Values) -> DatasetOnDisk:
        """From the rows in both orders, without repeated pairs; user int32[n] : the user of each row of `by_user`."""
        made = object.__new__(cls)
        Dataset.__init__(made, users, items, user, by_user.index, by_user.value, values=values)
        object.__setattr__(made, "_sorted", {"user": by_user, "item": by_item})
        return made

    def csr(self, by: Literal["user", "item"] = "user") -> CSR:
        return self._sorted[by]

    def _among(self, users: Array) -> Dataset:
        rows = self._sorted["user"]
        first, lengths = rows.indptr[:-1][users], np.diff(rows.indptr)[users]
        ends = np.cumsum(lengths)
        return self.take(np.arange(lengths.sum()) + np.repeat(first - ends + lengths, lengths))
