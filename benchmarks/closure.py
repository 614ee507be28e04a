"""How many files a reader of a model has to open: `python -m benchmarks.closure`.

method : files in models/, kernels/, nn/ and graph/ that the model's file imports, directly or not, and that the
    contract (`model.py`) does not import itself.
read : the method, the contract and the data types: everything imported, directly or not, except what the contract and
    the data types hand over to other parts inside a function (see `layers.closure`).
all : everything that is imported, directly or not.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from layers import METHODS, SOURCE, Module, closure, modules

GOAL = ("goal", 6, 20, "", "")


def counts(name: str, known: dict[str, Module]) -> tuple[int, int, int, int]:
    """Files of the method, files to read and their lines, and files of the full closure."""
    every, read = (closure(f"models.{name}", known, facades=facades) for facades in (True, False))
    rest = every - closure("model", known)
    own = [one for one in rest if one.split(".")[0] in METHODS and known[one].path.name != "__init__.py"]
    return len(own), len(read), sum(known[one].lines for one in read), len(every)


def main() -> None:
    known = modules()
    names = sorted(path.stem for path in (SOURCE / "models").glob("[a-z]*.py"))
    rows = [(name, *counts(name, known)) for name in names]
    medians = [statistics.median(row[part] for row in rows) for part in range(1, 5)]
    for row in [("model", "method", "read", "lines", "all"), *rows, ("median", *medians), GOAL]:
        print(f"{row[0]:<12} {row[1]:>7} {row[2]:>7} {row[3]:>7} {row[4]:>7}")


if __name__ == "__main__":
    main()
