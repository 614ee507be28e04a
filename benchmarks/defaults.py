"""Defaults against tuned settings on datasets of many shapes: `python -m benchmarks.defaults MODEL ... -o out/defaults`.

The same settings, the default among them, are fitted on every dataset; each is scored on the validation and on the test
rows. "Tuned" is the setting that is best on the validation rows. A rule is judged on a dataset that did not take part
in choosing it. Results are kept in one file per model and dataset: an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import qmc

import corank as cr
from corank.experiment.entries import make_model
from corank.params import params_of

from . import shapes


def settings(name: str, count: int) -> list[dict[str, Any]]:
    """The default ({}) and `count` settings spread over the search ranges of a model."""
    ranges = {n: (kind, rule) for n, (kind, _, _, rule) in params_of(cr.find(name)).items() if rule.search is not None}
    points = qmc.Sobol(len(ranges), seed=7).random(1 << max(count - 1, 1).bit_length())[:count] if ranges and count else []
    return [{}, *({n: _at(p, *ranges[n]) for p, n in zip(point, ranges, strict=True)} for point in points)]


def _at(share: float, kind: type, rule: Any) -> Any:
    if kind not in (int, float):
        return rule.search[min(int(share * len(rule.search)), len(rule.search) - 1)]
    low, high = map(float, rule.search)
    value = low * (high / low) ** share if rule.log else low + share * (high - low)
    return round(value) if kind is int else float(f"{value:.3g}")


def run(name: str, task: str, shape: str, out: Path, count: int, extra: list[dict[str, Any]]) -> None:
    file = out / f"{name}-{task}-{shape.replace(' ', '-').replace(',', '')}.jsonl"
    done = [json.loads(line)["setting"] for line in file.read_text().splitlines()] if file.exists() else []
    split = None
    for setting in [*settings(name, count)[:count+1], *extra]:
        if setting in done:
            continue
        split = split or shapes.split(shape, task)
        model = make_model(name, {**cr.find(name).task_params.get(task, {}), **setting})
        protocol = "rated" if task == "explicit" else "full"
        start = time.perf_counter()
        try:
            model.fit(split.train)
            seconds = time.perf_counter() - start
            valid, test = (
                float(cr.evaluate(model, split, ["ndcg@10"], protocol=protocol, part=part, bootstrap=0)["ndcg@10"])
                for part in ("valid", "test")
            )
        except cr.CorankError as why:
            print(name, shape, setting, why, file=sys.stderr)
            valid = test = 0.0
            seconds = 0.0
        line = {"setting": setting, "valid": valid, "test": test, "seconds": round(seconds, 2)}
        with file.open("a") as f:
            f.write(json.dumps(line) + "\n")
        print(name, shape, json.dumps(line), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.defaults", description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--task", default="implicit")
    parser.add_argument("--count", type=int, default=16)
    parser.add_argument("--shapes", default="")
    parser.add_argument("--extra", default="[]")
    parser.add_argument("-o", "--out", default="out/defaults")
    args = parser.parse_args()
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    for name in args.models:
        for shape in shapes.names(args.task):
            if not args.shapes or any(w in shape for w in args.shapes.split(";")):
                run(name, args.task, shape, out, args.count, json.loads(args.extra))
    return 0


if __name__ == "__main__":
    sys.exit(main())
