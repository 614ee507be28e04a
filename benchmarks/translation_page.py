"""The page docs/results/sse-translation.md, from the runs that are recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.system.atomic import write_text

from . import records, translation
from .bert_page import interval
from .tools import ROOT

PAGE = ROOT / "docs" / "results" / "sse-translation.md"
RESAMPLES = 1_000
NAMES = {"en-de": "English to German", "de-en": "German to English"}

HEAD = """# SSE in translation

Does SSE help a Transformer on Multi30k (29,000 pairs of image captions; validation 1,014, test2016 1,000), beside
label smoothing, dropout and NEFTune? The model is that of the published Transformer-tiny (4 layers, width 128,
inner width 256, 4 heads, one shared table, dropout .3, learning rate .005, 2,000 updates of warm-up, 4,096 tokens
per batch, 8,000 updates), with norms before the blocks, no dropout of attention weights, a running average of the
weights, a joint byte-pair encoding of 10,000, in bfloat16; beam 5. Published for it, English to German, lower case:
tokenised BLEU 41.02 (LividWo/Revisit-MMT). No setting was tuned: SSE is .01 on inputs (encoder and decoder share a
table), or .1 on targets in place of label smoothing .1. Rows with the same seed share the start and the order of
the batches. The test pairs are translated once per run.

Tokenised BLEU is computed after the Moses tokenizer; sacreBLEU has the signature 13a, lower case. Differences are
to the baseline in points of BLEU on the test pairs: over the seeds that both have, in tokenised BLEU, with a 95 %
interval (Student's t); and over resampled sentences, in sacreBLEU averaged over these seeds, with the interval of a
paired bootstrap."""


def corpus_bleu(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """BLEU from sums over sentences, float[..., 10]: 4 matches, 4 totals, both lengths; 0 without any match of 4."""
    match, total, ours, reference = sums[..., :4], sums[..., 4:8], sums[..., 8], sums[..., 9]
    some = (match > 0).all(-1)
    mean = np.log(np.maximum(match, 1e-9) / np.maximum(total, 1)).mean(-1)
    short = np.minimum(0.0, 1 - reference / np.maximum(ours, 1))
    return np.where(some, 100 * np.exp(mean + short), 0.0)


def bootstrap(ours: list[Any], theirs: list[Any]) -> str:
    """The mean difference over paired runs with the 95 % interval over resampled sentences."""
    a, b = (np.array(x, np.float64) for x in (ours, theirs))  # [runs, sentences, 10]
    n = a.shape[1]
    draws = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), RESAMPLES).astype(np.float64)
    found = [(corpus_bleu(draws @ x) - corpus_bleu(draws @ y)) for x, y in zip(a, b, strict=True)]
    mean = np.mean([corpus_bleu(x.sum(0)) - corpus_bleu(y.sum(0)) for x, y in zip(a, b, strict=True)])
    low, high = np.quantile(np.mean(found, axis=0), (0.025, 0.975))
    return f"{mean:+.2f} [{low:+.2f}, {high:+.2f}]"


def table(lines: list[dict[str, Any]]) -> str:
    by = {(line["arm"], line["seed"]): line for line in lines}
    head = [
        "",
        "seeds",
        "validation",
        "test",
        "test, sacreBLEU",
        "minutes",
        "difference, seeds",
        "difference, sentences",
    ]
    rows = [head, ["---"] * len(head)]
    for arm in translation.ARMS:
        mine = [line for line in lines if line["arm"] == arm]
        if not mine:
            continue
        means = [
            np.mean([line[part][kind] for line in mine])
            for part, kind in (("valid", "tokenised"), ("test", "tokenised"), ("test", "sacreBLEU"))
        ]
        pairs = [(x, by["baseline", x["seed"]]) for x in mine if ("baseline", x["seed"]) in by and arm != "baseline"]
        told = [interval([(x["test"]["tokenised"] - y["test"]["tokenised"]) / 100 for x, y in pairs])]
        told += [bootstrap(*zip(*((x["statistics"], y["statistics"]) for x, y in pairs), strict=True)) if pairs else ""]
        minutes = f"{np.mean([line['minutes'] for line in mine]):.0f}"
        rows.append([arm, str(len(mine)), *(f"{mean:.2f}" for mean in means), minutes, *told])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def page() -> str:
    parts, missing, all_lines = [HEAD], [], []
    for pair in translation.PAIRS:
        lines = records.read(records.path(translation.FOLDER, pair))
        want = len(translation.ARMS) * len(translation.SEEDS)
        if len(lines) < want:
            missing.append(f"- {NAMES[pair]}: {len(lines)} of {want} runs")
        if lines:
            parts += [f"## {NAMES[pair]}", table(lines)]
            all_lines += lines
    if missing:
        parts += ["## Not run yet", "\n".join(missing)]
    if all_lines:
        parts.append(records.commits(all_lines))
    parts.append(
        "Each run is a line in `benchmarks/recorded/translation`. What is missing is run, a run that was stopped is "
        "continued,\nand the page is written by\n\n"
        "```bash\npython -m benchmarks.translation && python -m benchmarks.translation --page\n```"
    )
    return "\n\n".join(parts) + "\n"


def write() -> None:
    write_text(PAGE, page())
