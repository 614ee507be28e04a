"""How many files a reader of a model has to open: `python -m benchmarks.closure`.

The files of the method itself are those in models/, kernels/, nn/ and graph/ that the model's file imports, directly or
not, and that the contract (`model.py`) does not bring along. The full closure is everything that the file imports,
directly or not: the contract, training, the data types and evaluation on validation rows included.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from layers import SOURCE, Module, closure, modules

METHOD = ("models", "kernels", "nn", "graph")  # folders that hold methods
GOAL = (6, 20)  # files of the method itself, files of the full closure


def counts(name: str, known: dict[str, Module]) -> tuple[int, int, int]:
    """Files of the method, files of the full closure, and lines of the latter."""
    reached = closure(f"models.{name}", known)
    rest = reached - closure("model", known)
    own = [one for one in rest if one.split(".")[0] in METHOD and known[one].path.name != "__init__.py"]
    return len(own), len(reached), sum(known[one].lines for one in reached)


def main() -> None:
    known = modules()
    names = sorted(path.stem for path in (SOURCE / "models").glob("[a-z]*.py"))
    rows = {name: counts(name, known) for name in names}
    print(f"{'model':<12} {'method':>7} {'closure':>8} {'lines':>7}")
    for name, (own, full, lines) in rows.items():
        print(f"{name:<12} {own:>7} {full:>8} {lines:>7,}")
    medians = [statistics.median(row[part] for row in rows.values()) for part in range(3)]
    print(f"{'median':<12} {medians[0]:>7g} {medians[1]:>8g} {medians[2]:>7,g}")
    print(f"{'goal':<12} {GOAL[0]:>7} {GOAL[1]:>8}")


if __name__ == "__main__":
    main()
