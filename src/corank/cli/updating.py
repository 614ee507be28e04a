"""`corank update`: new rows, users and items for a saved model, without a refit."""

from __future__ import annotations

import time
from pathlib import Path

from ..data.edges import counted
from .keeping import keep
from .options import Args, open_table, writable
from .show import say


def update(args: Args) -> None:
    """Read new rows, update the model and save it under another name."""
    from ..models import load

    out = Path(args.out)
    writable(out.parent, out, sources=[args.file])
    model = load(args.model)
    data = open_table(args)
    start = time.perf_counter()
    new = model.update(data)
    if args.items is not None:
        new = new.with_items(args.items)
    took = time.perf_counter() - start
    keep("model", out, new.save)
    more = [
        counted(len(getattr(new, f"{side}s_")) - len(getattr(model, f"{side}s_")), f"new {side}")
        for side in ("user", "item")
    ]
    say(f"{model.name()}: {counted(len(data), 'row')}, {', '.join(more)} in {took:.1f} s; saved to {out}")
