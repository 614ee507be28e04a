"""Run benchmarks and write one page: `python -m benchmarks [names] -o out/bench`."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from .tools import Table, machine

NAMES = (
    "wmf",
    "bpr",
    "recommend",
    "evaluate",
    "update",
    "memory",
    "loading",
    "startup",
    "primal_cr",
    "speed_up",
    "sql_rank",
    "growth",
    "sasrec",
    "recbole",
    "sse",
    "graph",
    "grmf",
    "graph_bits",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which ones (default: all): {', '.join(NAMES)}")
    parser.add_argument("-o", "--out", default="out/bench", help="folder for the page")
    args = parser.parse_args()
    names = args.names or NAMES
    unknown = [n for n in names if n not in NAMES]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; known: {', '.join(NAMES)}")
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    for name in names:
        print(f"== {name}", file=sys.stderr, flush=True)
        table: Table = importlib.import_module(f"benchmarks.{name}").run()
        print(table, flush=True)
        (out / f"{name}.part.md").write_text(str(table))
        for picture, svg in table.pictures.items():
            (out / f"speed-{picture}.svg").write_text(svg)
    parts = [(out / f"{n}.part.md").read_text() for n in NAMES if (out / f"{n}.part.md").exists()]
    head = f"# Speed and memory\n\n`make bench` wrote this page. {machine()}\n\n"
    (out / "speed.md").write_text(head + "\n".join(parts))
    print(f"written to {out / 'speed.md'}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
