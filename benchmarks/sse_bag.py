"""SSE in a small classifier of real texts: a bag of words, SST-2 and movie reviews.

    python -m benchmarks.sse_bag          runs what is not recorded, and writes docs/results/sse-bag.md

Embeddings are learned from scratch. Epochs are chosen on development rows, for each run by itself; the test rows are
read once per run, for the epoch that was best there. No p was chosen: all of them are shown.
"""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from corank.nlp import apply_sse
from corank.system.atomic import write_text

from . import records
from .bert_page import interval
from .reviews import raw
from .tools import ROOT

FILE = records.ROOT / "sse-bag.jsonl"
PAGE = ROOT / "docs" / "results" / "sse-bag.md"
SETS = {"sst2": "SST-2", "movie_reviews": "Movie reviews"}
PROBABILITIES, SEEDS = (0.0, 0.01, 0.03, 0.1, 0.3), range(5)
WIDTH, BATCH, LR, EPOCHS, LONGEST = 64, 50, 0.002, 8, 400
PAD, UNKNOWN = 0, 1


def texts(name: str) -> tuple[dict[str, tuple[Tensor, Tensor]], int]:
    """part -> (words int64[n, LONGEST], labels int64[n]), and the size of the vocabulary: all words of the training."""
    found = {
        part: [(text.lower().split()[:LONGEST], label) for text, label in rows] for part, rows in raw(name).items()
    }
    count = Counter(word for words, _ in found["train"] for word in words)
    code = {word: at + 2 for at, word in enumerate(sorted(count))}
    out = {}
    for part, rows in found.items():
        ids = torch.zeros(len(rows), max(len(words) for words, _ in rows), dtype=torch.int64)
        for at, (words, _) in enumerate(rows):
            ids[at, : len(words)] = torch.tensor([code.get(word, UNKNOWN) for word in words])
        out[part] = ids, torch.tensor([label for _, label in rows])
    return out, len(code) + 2


def run(data: dict[str, tuple[Tensor, Tensor]], size: int, p: float, seed: int) -> dict[str, float]:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.EmbeddingBag(size, WIDTH, mode="mean", padding_idx=PAD, sparse=True), nn.Linear(WIDTH, 2))
    nn.init.normal_(model[0].weight, std=0.1)
    table, head = torch.optim.SparseAdam([model[0].weight], lr=LR), torch.optim.Adam(model[1].parameters(), lr=LR)
    order, best = np.random.default_rng(seed), {"dev": -1.0}
    ids, label = data["train"]
    with apply_sse(model, p=p, reserved=[UNKNOWN]):
        for epoch in range(1, EPOCHS + 1):
            model.train()
            for rows in torch.from_numpy(order.permutation(len(ids))).split(BATCH):
                for optimizer in (table, head):
                    optimizer.zero_grad()
                longest = int((ids[rows] != PAD).sum(1).max())
                cross_entropy(model(ids[rows, :longest]), label[rows]).backward()
                for optimizer in (table, head):
                    optimizer.step()
            right = accuracy(model.eval(), data["dev"])
            if right > best["dev"]:
                best = {"dev": right, "epoch": epoch}
                state = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(state)
    return {**best, "test": accuracy(model, data["test"])}


@torch.no_grad()
def accuracy(model: nn.Module, part: tuple[Tensor, Tensor]) -> float:
    return float((model(part[0]).argmax(1) == part[1]).float().mean())


HEAD = """# SSE in a bag of words

Does a plain classifier of texts gain from `apply_sse`? It averages embeddings of width {width} that are learned from
scratch ({sizes}), with a linear layer on top. The default is p = 0.01. The epoch ({epochs} at most) is chosen on
development rows for each run; p is not chosen. Rows with the same seed share start and batches. The difference in test
accuracy is to p = 0, over {seeds} paired seeds, with its 95 % interval (Student's t)."""


def page() -> str:
    lines = records.read(FILE)
    sizes = {line["data"]: line["words"] for line in lines}
    told = ", ".join(f"{SETS[name]}: {size:,} words" for name, size in sizes.items())
    parts = [HEAD.format(width=WIDTH, sizes=told, epochs=EPOCHS, seeds=len(SEEDS))]
    for name in sizes:
        by: dict[tuple[float, int], Any] = {(x["p"], x["seed"]): x for x in lines if x["data"] == name}
        rows = [["p", "development accuracy", "test accuracy", "difference, points"], ["---"] * 4]
        for p in PROBABILITIES:
            dev, test = (100 * np.mean([by[p, seed][part] for seed in SEEDS]) for part in ("dev", "test"))
            gain = interval([by[p, seed]["test"] - by[0.0, seed]["test"] for seed in SEEDS]) if p else ""
            rows.append([f"{p:g}", f"{dev:.2f}", f"{test:.2f}", gain])
        parts += [f"## {SETS[name]}", "\n".join("| " + " | ".join(row) + " |" for row in rows)]
    parts += [records.commits(lines), "Written by\n\n```bash\npython -m benchmarks.sse_bag\n```"]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--only", choices=SETS, help="one of the two sets of texts")
    given = words.parse_args()
    for name in [given.only] if given.only else SETS:
        data, size = texts(name)
        for seed in SEEDS:
            for p in PROBABILITIES:
                key = {"data": name, "p": p, "seed": seed}
                if not any(all(line[k] == v for k, v in key.items()) for line in records.read(FILE)):
                    print(records.append(FILE, {**key, **run(data, size, p, seed), "words": size}), flush=True)
    write_text(PAGE, page())


if __name__ == "__main__":
    main()
