"""`python -m benchmarks.scale [FAMILY | FAMILY:CASE ...]` measures these, and writes the page from what is recorded."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from .. import records, scale
from ..tools import in_process, versions

PAGE = "docs/results/scale.md"
CODE = "import json; from benchmarks.scale.{} import measure; print(json.dumps(measure({!r})))"


def families() -> dict[str, ModuleType]:
    """The families of figures by name, in the order of the page."""
    names = [f"{scale.__name__}.{found.name}" for found in pkgutil.iter_modules(scale.__path__) if found.name[0] != "_"]
    modules = [module for module in map(importlib.import_module, names) if hasattr(module, "ORDER")]
    return {module.__name__.split(".")[-1]: module for module in sorted(modules, key=lambda module: module.ORDER)}


def recorded(name: str) -> dict[str, dict[str, Any]]:
    """The last line of each case."""
    return {line["case"]: line for line in records.read(records.path(records.ROOT / "scale", name))}


def main() -> int:
    known = families()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("wanted", nargs="*", help=f"what to measure (again): {', '.join(known)}, or FAMILY:CASE")
    parser.add_argument("--list", action="store_true", help="only name the cases")
    parser.add_argument("-o", "--out", default=PAGE, help="the page")
    args = parser.parse_args()
    if args.list:
        print("\n".join(f"{name}:{case}" for name, module in known.items() for case in module.CASES))
        return 0
    for wanted in args.wanted:
        name, _, case = wanted.partition(":")
        if name not in known or (case and case not in known[name].CASES):
            parser.error(f"{wanted!r} is not known: see --list")
        for one in [case] if case else known[name].CASES:
            print(f"== {name}:{one}", file=sys.stderr, flush=True)
            line = records.append(
                records.path(records.ROOT / "scale", name), {"case": one, **in_process(CODE.format(name, one))}
            )
            print(line, file=sys.stderr, flush=True)
    found = {name: lines for name in known if (lines := recorded(name))}
    lines = [line for family in found.values() for line in family.values()]
    head = [
        "# Large data and large catalogues",
        f"`python -m benchmarks.scale` wrote this page. {versions()} {records.commits(lines)}",
        "Where s is many times processor s, other work ran on the machine meanwhile: compare processor s there.",
    ]
    parts = [known[name].section(lines) for name, lines in found.items()]
    Path(args.out).write_text("\n\n".join(head + parts) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
