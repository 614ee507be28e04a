"""`corank explain`: which items of a history speak for the recommendations, as text and as a chart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..answering.explain import Explanation
from ..answering.ranking_file import FORMATS
from ..errors import CorankError
from ..system.atomic import replacing
from .items import ItemFinder
from .options import Args, writable
from .show import cell, say

HOW = {
    "exact": "each score is a sum over the history",
    "decomposition": "contributions of the history and the rest add up to the score",
    "leave-one-out": "how much a score falls without an item of the history",
    "attention": "attention of the last position, the same for all recommendations",
}
CHARTS = (".svg",)


def explain(args: Args) -> None:
    """Explain the recommendations for one user or one history."""
    from ..models import load

    if (args.user is None) == (args.history is None):
        raise CorankError("say for whom: --user ID or --history ITEM,ITEM,... (one of them)")
    if args.reasons < 1:
        raise CorankError(f"--reasons {args.reasons}: it must be at least 1")
    if args.out:
        _check_ending(args.out)
        writable(Path(args.out).parent, Path(args.out), sources=[args.model])
    model = load(args.model)
    finder = ItemFinder(model, args.titles)
    options: dict[str, Any] = {"k": args.k, "kind": args.kind}
    if args.items is not None:
        options["items"] = finder.all_of(args.items, "--items")
    if args.history is not None:
        found = model.explain(history=finder.history(args.history), **options)
    else:
        found = model.explain(model.users_.parse(args.user), **options)
    found.titles.update({i: finder.titles[i] for i in (*found.items, *found.history) if i in finder.titles})
    if args.out:
        _write(found, Path(args.out))
        say(f"{len(found)} explanations written to {args.out}")
        return
    print(text(found, args.reasons))


def text(found: Explanation, most: int) -> str:
    """An explanation as plain text: each item with its score, and below it the largest shares of the history."""
    who = "this history" if found.user is None else f"user {cell(found.user)}"
    lines = [f"{who} ({found.kind}: {HOW[found.kind]})"]
    width = max((len(cell(i)) for i in (*found.items, *found.history)), default=0)
    for at, (item, score, shares) in enumerate(zip(found.items, found.scores, found.shares(), strict=True)):
        lines.append(f"  {at + 1:>3}  {cell(item):<{width}}  {score:>9.4f}  {_title(found, item)}".rstrip())
        largest = sorted(shares, key=lambda pair: -abs(pair[1]))
        for because, share in largest[:most]:
            lines.append(f"       {share:>7.1%}  {cell(because):<{width}}  {_title(found, because)}".rstrip())
        if len(largest) > most:
            lines.append(f"                ... and {len(largest) - most:,} more")
        if found.rest:
            rest = ", ".join(f"{name} {values[at]:.4f}" for name, values in found.rest.items())
            lines.append(f"         rest of the score: {rest}")
    return "\n".join(lines)


def _title(found: Explanation, item: Any) -> str:
    return cell(found.titles.get(item, ""))


def _check_ending(out: str) -> None:
    ending = Path(out).suffix.lower()
    if ending not in (*CHARTS, *FORMATS):
        raise CorankError(
            f"cannot write an explanation to '{out}': end the name in .svg for a chart, or in .csv, .tsv, .parquet or "
            ".jsonl for a table"
        )


def _write(found: Explanation, path: Path) -> None:
    """A chart or a table, by the ending of the name."""
    ending = path.suffix.lower()
    with replacing(path) as target:
        if ending in CHARTS:
            from ..report.reason_charts import attention, reasons

            target.write_text(attention(found) if found.attention is not None else reasons(found), "utf-8")
            return
        frame, kind = found.to_frame(), FORMATS[ending]
        if kind == "parquet":
            frame.write_parquet(target)
        elif kind == "jsonl":
            frame.write_ndjson(target)
        else:
            frame.write_csv(target, separator="," if kind == "csv" else "\t")
