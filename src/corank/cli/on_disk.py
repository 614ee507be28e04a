"""Which rows of `corank fit` are read into files instead of memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..data import Dataset
from ..data.values import words
from ..datasets.partitioned import IN_MEMORY, partitions, read_partitions, rows_in
from ..errors import CorankError
from ..system.memory import free_bytes, in_gigabytes
from .options import EDGES, PARTS, TABLE, Args, given
from .show import say

OTHERS = (*EDGES, *PARTS, "positive", "separator", "layout", "split")  # options that need the rows in memory


@contextmanager
def rows_on_disk(args: Args, model: Any) -> Iterator[Dataset | None]:
    """The rows in files beside the model that will be saved, which are removed at the end; None to read as usual.

    With `--on-disk auto`: Parquet files of which reading all at once would take more than half of the free memory, for
    models that go through their rows in order.
    """
    why = _reason_against(args, model)
    if args.on_disk == "never" or (args.on_disk == "auto" and why):
        yield None
        return
    if why:
        raise CorankError(f"--on-disk always: {why}")
    rows = rows_in(partitions(args.file))
    need, free = IN_MEMORY * rows, free_bytes()
    if args.on_disk == "auto" and (free is None or need <= free / 2):
        yield None
        return
    with TemporaryDirectory(prefix="corank-rows-", dir=Path(args.out).resolve().parent) as folder:
        say(f"{args.file}: {rows:,} rows, {in_gigabytes(need)} in memory, so they are sorted in files in {folder}")
        options = {name: value for name, value in given(args, *TABLE).items() if name not in OTHERS}
        data = read_partitions(args.file, folder, **options)
        say(f"{args.file}: {len(data):,} rows, {len(data.users):,} users, {len(data.items):,} items, {words(data)}")
        yield data


def _reason_against(args: Args, model: Any) -> str:
    """Why rows cannot be read into files; empty if they can."""
    if not model.fits_on_disk:
        return f"{args.model} needs its rows in memory: fit wmf, bpr or primal_cr, or leave it out"
    if others := given(args, *OTHERS):
        return f"--{next(iter(others)).replace('_', '-')} needs the rows in memory: leave one of them out"
    if model.params().get("patience") is not None:
        return "patience holds out validation rows, which needs the rows in memory: leave one of them out"
    if not partitions(args.file):
        return f"{args.file} is no Parquet file, and no folder of Parquet files with the same columns"
    return ""
