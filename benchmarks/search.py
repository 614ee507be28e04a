"""What 20 trials of a search find, against 200: `python -m benchmarks.search -o out/search`.

Values are NDCG@10 on the validation rows, which a search looks at. The state of each search is kept: an interrupted run
goes on where it stopped.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import corank as cr
from corank.experiment.tune import tune
from corank.report import md_table

from . import shapes
from .tools import versions

DATASETS = ("filmtrust", "flixster", "ml-100k")
MODELS = ("item_knn", "ease", "wmf", "bpr", "sql_rank")
FEW, MANY = 20, 200


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("-o", "--out", default="out/search", help="folder for the page and the state of the searches")
    args = parser.parse_args()
    out = Path(args.out)
    rows = []
    for name in args.models:
        for shape in DATASETS:
            split = shapes.split(shape, "implicit")
            model = cr.find(name)(**cr.find(name).task_params.get("implicit", {}))
            best = [
                # The first trials of the long search are those of the short one: the same seed, the same storage.
                tune(model, split, trials=trials, storage=out / shape).value
                for trials in (FEW, MANY)
            ]
            rows.append([name, shape, *(f"{value:.4f}" for value in best), f"{best[0] / best[1]:.3f}"])
            print(*rows[-1], file=sys.stderr, flush=True)
    heads = ["", "data", f"{FEW} trials", f"{MANY} trials", "share"]
    text = f"# Searches\n\n`python -m benchmarks.search` wrote this page. {versions()}\n\n{__doc__.splitlines()[0]}\n\n"
    (out / "search.md").write_text(text + md_table(heads, rows) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
