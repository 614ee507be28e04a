"""What SSE adds to a training step of language models: the shortest of many steps with and without it, in turns.

python -m benchmarks.sse_step [--repeats N]          prints a table
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from corank.nlp import apply_sse

from .tools import Table, best_of, versions
from .translation_model import SmoothedLoss, Transformer

SIZES = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
BERT = (32, 32)  # sentences, tokens


def bert() -> tuple[nn.Module, Callable[[], None]]:
    """Fine-tuning a BERT of 6 layers and width 384, random weights: a step costs what it costs with real ones."""
    from transformers import BertConfig, BertForSequenceClassification

    model = BertForSequenceClassification(BertConfig(**SIZES))
    ids, label = torch.randint(1_000, 30_000, BERT), torch.randint(2, BERT[:1])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        model(input_ids=ids, labels=label).loss.backward()
        optimizer.step()

    return model, step


def translation() -> tuple[nn.Module, Callable[[], None]]:
    """The Transformer of `benchmarks.translation`: a batch of 4,096 tokens on either side."""
    model = Transformer(10_000)
    source, target = torch.randint(4, 10_000, (2, 256, 16))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16):
            scores = model(source, target).flatten(0, 1)
        SmoothedLoss.apply(scores, target.flatten(), 0.1).backward()
        optimizer.step()

    return model, step


def bag() -> tuple[nn.Module, Callable[[], None]]:
    """A bag of words: hardly any work beside the lookup, so the hardest case."""
    model = nn.Sequential(nn.EmbeddingBag(30_000, 128, mode="mean"), nn.Linear(128, 8))
    ids, label = torch.randint(30_000, (256, 100)), torch.randint(8, (256,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        cross_entropy(model(ids), label).backward()
        optimizer.step()

    return model, step


MODELS = {
    "translation, 4 layers, 256 x 16 tokens on either side": translation,
    "BERT, 6 layers, 32 x 32 tokens": bert,
    "bag of 100 words, batch of 256": bag,
}


def run(repeats: int = 30) -> Table:
    rows = []
    for name, make in MODELS.items():
        model, step = make()
        model.train()
        step()
        best = _paired(model, step, repeats)
        rows.append([name, *(f"{1e3 * best[key]:.2f}" for key in best), f"**{best['with'] / best['without']:.3f}**"])
    note = f"Shortest of {repeats} steps each, in turns; {torch.get_num_threads()} threads. {versions()}"
    return Table("Cost of SSE in a training step", ["model", "ms without", "ms with", "ratio"], rows, note)


def _paired(model: nn.Module, step: Callable[[], None], repeats: int) -> dict[str, float]:
    """Steps with and without, in turns. Switching on is not part of the step."""
    best = {"without": float("inf"), "with": float("inf")}
    for _ in range(repeats):
        best["without"] = min(best["without"], best_of({"": step}, 1)[""])
        with apply_sse(model, p=0.01, reserved=range(5)):
            best["with"] = min(best["with"], best_of({"": step}, 1)[""])
    return best


if __name__ == "__main__":
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--repeats", type=int, default=30)
    print(run(words.parse_args().repeats))
