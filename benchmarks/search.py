"""What 20 trials of a search find, against 200: `python -m benchmarks.search`.

A search looks at NDCG@10 on the validation rows; the best of many trials is also the luckiest there, so both settings
are compared on the test rows too. The first trial of a search is the default. What is done is recorded (see `records`),
and the state of a search is kept: an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import corank as cr
from corank.experiment.tune import tune
from corank.report import md_table

from . import records, shapes
from .tools import versions

DATASETS = ("filmtrust", "flixster", "ml-100k")
MODELS = ("item_knn", "ease", "wmf", "bpr", "sql_rank")
FEW, MANY = 20, 200
METRIC = "ndcg@10"
NAMES = ("default", "few", "many")


def run(name: str, shape: str, state: Path) -> dict[str, Any]:
    """Values of the first trial, of the best of the first `FEW` and of `MANY`; from the record where it has them."""
    file = records.path(records.ROOT / "search", name, shape)
    if done := records.read(file):
        return done[-1]
    model = cr.find(name)(**cr.find(name).task_params.get("implicit", {}))
    split = shapes.split(shape, "implicit")
    whole = tune(model, split, trials=MANY, storage=state / shape)
    line: dict[str, Any] = {}
    for which, trials in zip(NAMES, (1, FEW, MANY), strict=True):
        found = whole.after(trials)
        test = cr.evaluate(found.model().fit(split.train), split, [METRIC], bootstrap=0)[METRIC]
        line[which] = {"valid": round(found.value, 5), "test": round(float(test), 5)}
    return records.append(file, line)


def _cells(line: dict[str, Any], part: str) -> list[str]:
    """The three values on validation or test rows, and the first two over the third."""
    values = [line[name][part] for name in NAMES]
    return [*(f"{value:.4f}" for value in values), *(f"{value / values[2]:.3f}" for value in values[:2])]


def _table(part: str, found: dict[tuple[str, str], dict[str, Any]]) -> list[str]:
    heads = ["default", f"{FEW} trials", f"{MANY} trials", f"default / {MANY}", f"{FEW} / {MANY}"]
    about = {
        "valid": "On the validation rows, which a search looks at; the best of many trials is also the luckiest there:",
        "test": "The same settings on the test rows:",
    }
    return [about[part], md_table(["", "data", *heads], [[*key, *_cells(line, part)] for key, line in found.items()])]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--state", default="out/search", help="folder for the state of the searches")
    parser.add_argument("-o", "--out", default="docs/results/search.md", help="the page")
    args = parser.parse_args()
    found = {}
    for name in args.models:
        for shape in DATASETS:
            found[name, shape] = line = run(name, shape, Path(args.state))
            print(name, shape, line, file=sys.stderr, flush=True)
    text = [
        f"# {FEW} trials of a search against {MANY}",
        f"`python -m benchmarks.search` wrote this page. {versions()} {records.commits(found.values())}",
        "NDCG@10 of the default (the first trial of every search), of the best of the first "
        f"{FEW} trials and of the best of all {MANY}, and their ratios. One seed per search. "
        "Some of the settings that the searches of item_knn and bpr begin with were found on Flixster and ML-100K.",
        *(part for name in ("valid", "test") for part in _table(name, found)),
    ]
    Path(args.out).write_text("\n\n".join(text) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
