"""Defaults against tuned settings on datasets of many shapes: `python -m benchmarks.defaults`.

For each model the same few rules, the default first, are fitted on every dataset and scored on the validation and on
the test rows. "Tuned" is the rule that is best on the validation rows of the dataset itself; "leave one out" is the
rule that is best on the validation rows of all other datasets. Both are judged on the test rows. What is done is
recorded (see `records`): an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import corank as cr
from corank.experiment.entries import make_model
from corank.report import md_table

from . import peer_defaults, records, shapes
from .default_rules import RULES
from .tools import versions

METRIC = "ndcg@10"
Setting = Mapping[str, Any]
Scores = dict[str, dict[str, Any]]  # rule, as JSON -> {"valid": ..., "test": ..., "seconds": ...}


def run(task: str, name: str, shape: str, out: Path, *, done_only: bool) -> Scores | None:
    """The scores of all rules of a model on one dataset; those that are not in its file yet are fitted now.

    done_only : None instead, if some are not in the file.
    """
    file = records.path(out, task, name, shape)
    done = {json.dumps(line.pop("setting"), sort_keys=True): line for line in records.read(file)}
    split = None
    for setting in RULES[task][name]:
        key = json.dumps(setting, sort_keys=True)
        if key in done:
            continue
        if done_only:
            return None
        split = split or shapes.split(shape, task)
        done[key] = records.append(file, {"setting": setting, **_scored(task, name, setting, split)})
        print(f"{task} {name} on {shape}: {key} {json.dumps(done[key])}", file=sys.stderr, flush=True)
    return {json.dumps(s, sort_keys=True): done[json.dumps(s, sort_keys=True)] for s in RULES[task][name]}


def _scored(task: str, name: str, setting: Setting, split: cr.Split) -> dict[str, Any]:
    start = time.perf_counter()
    try:
        if name in peer_defaults.MODELS:
            model = peer_defaults.fitted(name, split.train)
        else:
            needed = cr.find(name).task_params.get(task, {})
            model = make_model(name, {**needed, **setting}).fit(split.train)
        took = time.perf_counter() - start
        protocol = "rated" if task == "explicit" else "full"
        valid, test = (
            float(cr.evaluate(model, split, [METRIC], protocol=protocol, part=part, bootstrap=0)[METRIC])
            for part in ("valid", "test")
        )
    except cr.CorankError as why:
        return {"valid": 0.0, "test": 0.0, "seconds": 0.0, "why": str(why)}
    return {"valid": round(valid, 5), "test": round(test, 5), "seconds": round(took, 2)}


def default_share(scores: Scores) -> float:
    """Default over tuned, on the test rows."""
    return scores["{}"]["test"] / max(_tuned(scores), 1e-12)


def without(shape: str, table: Mapping[str, Scores]) -> str:
    """The rule with the best mean share of the best validation score over all datasets but one."""
    others = [scores for name, scores in table.items() if name != shape]
    shares = {
        rule: sum(s[rule]["valid"] / max(max(v["valid"] for v in s.values()), 1e-12) for s in others)
        for rule in table[shape]
    }
    return max(shares, key=lambda rule: shares[rule])


def _tuned(scores: Scores) -> float:
    return float(max(scores.values(), key=lambda v: v["valid"])["test"])


def page(found: Mapping[str, Mapping[str, Mapping[str, Scores]]]) -> str:
    """Markdown: per task a matrix of models and datasets. found : task -> model -> dataset -> scores."""
    parts = [
        "# Defaults on data of many shapes",
        f"`python -m benchmarks.defaults` wrote this page. {versions()} {_commits(found)}",
        "Each number is NDCG@10 on the test rows, divided by that of the best of a few rules, chosen on the validation "
        "rows of the same dataset. **default**: the model as it is. **leave one out**: the rule that is best on the "
        "validation rows of all other datasets, so that no dataset has a say in its own number. A fifth of "
        "each user's rows is test, a tenth validation (sequences: the last row and the one before); at most "
        f"{shapes.MOST_USERS:,} users of each part are evaluated. Numbers above 1: the "
        "default is better on the test rows than the rule that validation chose.",
    ]
    for task, models in found.items():
        parts += [f"## Task {task}", _matrix(models), *_peers(models), *_rules(models)]
    return "\n\n".join(parts) + "\n"


def _commits(found: Mapping[str, Mapping[str, Mapping[str, Scores]]]) -> str:
    each = (scores for models in found.values() for sets in models.values() for scores in sets.values())
    return records.commits(line for scores in each for line in scores.values())


def _own(models: Mapping[str, Mapping[str, Scores]]) -> list[str]:
    return [name for name in models if name not in peer_defaults.MODELS]


def _matrix(models: Mapping[str, Mapping[str, Scores]]) -> str:
    names = _own(models)
    sets = list(dict.fromkeys(shape for name in names for shape in models[name]))
    rows: list[Sequence[str]] = []
    for shape in sets:
        cells = [f"{default_share(models[n][shape]):.2f}" if shape in models[n] else "" for n in names]
        rows.append([shape, *cells])
    shares = {n: [default_share(s) for s in models[n].values()] for n in names}
    left = {n: [s[without(d, models[n])]["test"] / max(_tuned(s), 1e-12) for d, s in models[n].items()] for n in names}
    for label, numbers in (("default", shares), ("leave one out", left)):
        rows.append([f"{label}, median", *(f"{median(numbers[n]):.2f}" for n in names)])
        rows.append([f"{label}, smallest", *(f"{min(numbers[n]):.2f}" for n in names)])
    return md_table(["", *names], rows)


def _peers(models: Mapping[str, Mapping[str, Scores]]) -> list[str]:
    """The default of a peer beside ours, where it was run."""
    out = []
    for peer, ours in peer_defaults.MODELS.items():
        if peer not in models:
            continue
        rows = [
            [shape, f"{models[ours][shape]['{}']['test']:.4f}", f"{scores['{}']['test']:.4f}"]
            for shape, scores in models[peer].items()
            if shape in models[ours]
        ]
        ahead = sum(float(row[1]) >= float(row[2]) for row in rows)
        out += [
            f"{ours} and {peer}, each with its defaults, NDCG@10 on the test rows: ours is at least as good on {ahead} "
            f"of {len(rows)} datasets.",
            md_table(["", f"corank {ours}", peer], rows),
        ]
    return out


def _rules(models: Mapping[str, Mapping[str, Scores]]) -> list[str]:
    rows = []
    for name in _own(models):
        table = models[name]
        for rule in next(iter(table.values())):
            shares = [s[rule]["valid"] / max(max(v["valid"] for v in s.values()), 1e-12) for s in table.values()]
            setting = ", ".join(f"{k}={v}" for k, v in json.loads(rule).items()) or "default"
            rows.append([name, setting, f"{sum(shares) / len(shares):.3f}", f"{min(shares):.2f}"])
    return [
        "The rules that were tried; share of the best validation score, mean and smallest over the datasets:",
        md_table(["", "rule", "mean", "smallest"], rows),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.defaults", description=__doc__)
    parser.add_argument("models", nargs="*", help="which models (default: all)")
    parser.add_argument("--tasks", default=",".join(RULES), help="which tasks, with commas between them")
    parser.add_argument("--datasets", default="", help="only datasets whose names contain this")
    parser.add_argument("--done", action="store_true", help="write the page of what is done, without fitting anything")
    parser.add_argument("--records", default=records.ROOT / "defaults", help="folder for what is done")
    parser.add_argument("-o", "--out", default="docs/results/defaults.md", help="the page")
    args = parser.parse_args()
    found: dict[str, dict[str, dict[str, Scores]]] = {}
    for task in args.tasks.split(","):
        for shape in shapes.names(task):
            if args.datasets not in shape:
                continue
            for name in RULES[task]:
                if (args.models and name not in args.models) or not shapes.suits(shape, name):
                    continue
                scores = run(task, name, shape, Path(args.records), done_only=args.done)
                if scores is not None:
                    found.setdefault(task, {}).setdefault(name, {})[shape] = scores
    Path(args.out).write_text(page(found), "utf-8")
    print(f"written to {args.out}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
