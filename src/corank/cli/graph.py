"""`corank graph ...`: features of the nodes of a graph, for use outside of corank."""

from __future__ import annotations

import time
from pathlib import Path

from ..data.edges import counted
from ..errors import CorankError
from .keeping import keep
from .options import Args, given, writable
from .show import QUIET, say

SATURATED = 0.5  # share of set bits above which filters are hard to distinguish


def help_(args: Args) -> None:
    raise CorankError("say what to do with the graph: corank graph encode EDGES -o FILE (see corank graph --help)")


def encode(args: Args) -> None:
    """Write the Graph DNA of a table of edges as a file of plain arrays."""
    from .. import graph as graphs

    out = Path(args.out)
    options = given(args, "depth", "capacity", "error", "theta", "seed")
    graphs.check_options(**options, tight=args.tight)
    writable(out.parent, out, sources=[args.file])
    names = given(args, "source", "target", "weight", "separator")
    graph, nodes = graphs.read_edges(args.file, **names, directed=args.directed)
    edges = graph.index.size if args.directed else graph.index.size // 2
    kind = "directed edge" if args.directed else "edge"
    say(f"{args.file}: {counted(len(nodes), 'node')}, {counted(edges, kind)}")
    last_line = start = time.monotonic()

    def progress(done: int, total: int) -> None:
        nonlocal last_line
        if time.monotonic() - last_line > QUIET:
            last_line = time.monotonic()
            say(f"  {done:,} of {total:,} steps, {last_line - start:.0f} s")

    dna = graphs.encode(graph, **options, tight=args.tight, on_step=progress)
    keep("Graph DNA", out, lambda place: dna.save(place, nodes, sparse=args.sparse))
    say(f"{dna.filter.bits:,} bits per node, depth {dna.depth}, {dna.fill:.1%} of them set; saved to {out}")
    if dna.fill > SATURATED:
        say("more than half of the bits are set: nodes are hard to distinguish; raise --capacity, or lower --depth")
