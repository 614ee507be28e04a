"""`corank data ...`: describe, list, download or generate data."""

from __future__ import annotations

from pathlib import Path

from ..errors import CorankError
from .options import Args, given, open_table, writable
from .show import say


def help_(args: Args) -> None:
    raise CorankError("say what to do with data: corank data describe|fetch|list|synth (see corank data --help)")


def describe(args: Args) -> None:
    print(open_table(args).describe())


def list_(args: Args) -> None:
    from .. import datasets

    for name in datasets.names():
        print(f"{name:<18} {datasets.info(name).title}")


def fetch(args: Args) -> None:
    """Download a public dataset."""
    from ..datasets.download import fetch

    shown = -1

    def progress(done: int, total: int | None) -> None:
        nonlocal shown
        step = int(20 * done / total) if total else done >> 24
        if step != shown:
            shown = step
            say(f"  {done / 1e6:,.1f} MB" + (f" of {total / 1e6:,.1f} MB" if total else ""))

    say(f"saved to {fetch(args.name, root=args.root, on_progress=progress)}")


def synth(args: Args) -> None:
    """Write synthetic data as CSV, without its ground truth."""
    import polars as pl

    from ..datasets import synthetic
    from ..system.atomic import replacing

    out = Path(args.out)
    if out.suffix.lower() in (".parquet", ".pq", ".gz", ".zst", ".zip"):
        raise CorankError(f"{out}: synthetic data is written as CSV, so a name that ends in .csv: choose one with -o")
    writable(out.parent, out)
    if args.labels is not None:
        if args.kind != "realistic":
            raise CorankError("--labels is an option of `realistic` only: the items of the others have no labels")
        writable(Path(args.labels).parent, Path(args.labels))
    if args.rows is not None and args.kind != "realistic":
        raise CorankError(
            "--rows is an option of `realistic` only: the other generators derive it from users, items and their sizes"
        )
    data = getattr(synthetic, args.kind)(**given(args, "users", "items", "rows", "seed")).data
    columns = {"user": data.users.ids[data.user], "item": data.items.ids[data.item], "rating": data.value}
    if data.time is not None:
        columns["timestamp"] = data.time
    with replacing(out) as part:
        pl.DataFrame(columns).write_csv(part)
    say(f"{len(data):,} rows written to {out}")
    if args.labels is not None:
        table = {"item": data.items.ids, **(data.item_labels or {})}
        with replacing(Path(args.labels)) as part:
            pl.DataFrame({name: list(column) for name, column in table.items()}).write_csv(part)
        say(f"{len(data.items):,} items written to {args.labels}")
