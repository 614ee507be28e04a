"""Updates against refits: NDCG@10 on the newest tenth of the rows after the newest 1, 5 and 20 % of the others came in.

By time: a model is fitted to the older rows, the newer ones come in by `update`, and the same model is fitted to all of
them. All are evaluated on the same test rows, with the same items excluded. Seconds are those of the processor, with
one thread, so that they hardly depend on what else the machine does.

    CORANK_THREADS=1 OMP_NUM_THREADS=1 python -m benchmarks.update [-o docs/results] [MODEL ...]
    python -m benchmarks.update --small     synthetic data and short fits, to see that it works

What is measured is recorded model by model, and not measured again; a page is written with what there is.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import corank as cr

from . import records
from .tools import ROOT, Table, movielens, versions

SHARES = (0.01, 0.05, 0.2)
TEST = 0.1
MODELS: Mapping[str, Mapping[str, Any]] = {
    "popularity": {},
    "item_knn": {},
    "ease": {},
    "sparse_ease": {},
    "wmf": {},
    "bpr": {},
    "sql_rank": {"feedback": "implicit"},
    "sasrec": {"epochs": 15},
}
SMALL: Mapping[str, Mapping[str, Any]] = {
    "popularity": {},
    "item_knn": {},
    "ease": {},
    "wmf": {"dim": 16, "epochs": 3},
    "bpr": {"dim": 16, "epochs": 5},
    "sasrec": {"dim": 16, "epochs": 2},
}
METRIC = "ndcg@10"
REPEATS = 5  # of an update, which is short; the shortest counts

Line = Mapping[str, Any]
Data = Callable[[], tuple[str, cr.Dataset]]


def small() -> tuple[str, cr.Dataset]:
    return "synthetic", cr.synthetic.realistic(users=400, items=200, rows=8_000).data


def measure(model: str, params: Mapping[str, Any], data: Data, folder: Path) -> list[Line]:
    """The lines of one model: the refit, then one per share; what is recorded in the folder is only read."""
    file = records.path(folder, model)
    lines = records.read(file)
    done = {line.get("share") for line in lines}
    if done >= {None, *SHARES}:
        return lines
    name, rows = data()
    order = rows.time_order()
    known, test = np.split(order, [int((1 - TEST) * order.size)])
    split = cr.Split(rows.take(known), rows.take(order[:0]), rows.take(test), "newest rows")

    def make() -> cr.Model:
        return cr.find(model)(**params)

    def keep(**line: Any) -> None:
        lines.append(records.append(file, {"data": name, "params": dict(params), **line}))
        print(model, line, file=sys.stderr, flush=True)

    few = rows.take(order[: len(rows) // 50])
    make().fit(few).update(rows.take(order[len(rows) // 50 :][:100]))  # compiles the kernels
    if None not in done:
        again, seconds = timed(lambda: make().fit(split.train))
        keep(share=None, refit=cr.evaluate(again, split, [METRIC])[METRIC], seconds=seconds)
    for share in SHARES:
        if share in done:
            continue
        old, new = (rows.take(part) for part in np.split(known, [int((1 - share) * known.size)]))
        before = make().fit(old)
        turns = [timed(lambda b=before, n=new: b.update(n)) for _ in range(REPEATS)]
        after, seconds = min(turns, key=lambda turn: turn[1])
        none, update = (cr.evaluate(fitted, split, [METRIC])[METRIC] for fitted in (before, after))
        keep(share=share, none=none, update=update, seconds=seconds, rows=len(new))
    return lines


def timed(work: Callable[[], cr.Model]) -> tuple[cr.Model, float]:
    """What work returns, and the seconds of the processor that it took."""
    start = time.process_time()
    made = work()
    return made, time.process_time() - start


def table(found: Mapping[str, Sequence[Line]]) -> Table:
    """One row per model and share."""
    rows = []
    for model, lines in found.items():
        refit = next(line for line in lines if line["share"] is None)
        for line in (one for one in lines if one["share"] is not None):
            none, update, full = line["none"], line["update"], refit["refit"]
            kept = f"{(update - none) / (full - none):.0%}" if full - none > 0.001 else ""
            times = f"{line['seconds']:.2f}", f"{refit['seconds']:.2f}", f"{refit['seconds'] / line['seconds']:,.0f}x"
            values = [f"{value:.4f}" for value in (none, update, full)]
            rows.append([f"`{model}`", f"{line['share']:.0%}", *values, kept, *times])
    header = ["model", "new rows", "no update", "update", "refit", "gain kept", "update, s", "refit, s", "ratio"]
    name = next(line["data"] for lines in found.values() for line in lines)
    note = (
        f"{name}; {METRIC} of the users of the newest {TEST:.0%} of the rows, full ranking. The other rows are ordered "
        "by time: the newest of them (1, 5 or 20 %) come in by an update. Gain kept: (update - no update) / (refit - "
        "no update), where the refit gains at least 0.001. Seconds of one thread; of updates the shortest of "
        f"{REPEATS}. Models of sequences read the new rows of a user as history without an update too: an update gives "
        "them the new items."
    )
    return Table("New rows: an update against a refit", header, rows, note)


def run(models: Sequence[str] = tuple(MODELS)) -> Table:
    """The table of all recorded models; those that are named and not recorded are measured."""
    folder = records.ROOT / "update"
    for model in models:
        measure(model, MODELS[model], movielens, folder)
    return table({model: lines for model in MODELS if (lines := records.read(records.path(folder, model)))})


def page(made: Table) -> str:
    folder = records.ROOT / "update"
    lines = [line for file in sorted(folder.glob("*.jsonl")) for line in records.read(file)]
    head = f"`python -m benchmarks.update` wrote this page. {versions()} {records.commits(lines)}"
    return f"# {made.title}\n\n{head} {MEANING}\n\n" + str(made).split("\n\n", 1)[1]


MEANING = (
    "[Keeping a model current](../updating.md) says for each model what an update computes exactly and what it "
    "approximates."
)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.update", description=__doc__)
    parser.add_argument("models", nargs="*", choices=[*MODELS, []], help="default: all")
    parser.add_argument("-o", "--out", type=Path, default=ROOT / "out" / "bench", help="folder of the page")
    parser.add_argument("--small", action="store_true", help="synthetic data and short fits, printed only")
    given = parser.parse_args(arguments)
    if given.small:
        with tempfile.TemporaryDirectory() as folder:
            print(table({model: measure(model, params, small, Path(folder)) for model, params in SMALL.items()}))
        return
    made = run(given.models or tuple(MODELS))
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "update.md").write_text(page(made))
    print(made)


if __name__ == "__main__":
    main(sys.argv[1:])
