"""Translation with stochastic shared embeddings: Multi30k, English and German.

    python -m benchmarks.translation [--minutes N] [--only ARM] [--pair en-de]     runs what is not recorded yet
    python -m benchmarks.translation --page                     writes docs/results/sse-translation.md from the records

The setting is that of the published Transformer-tiny, fixed beforehand: 4 layers, width 128, one shared table, dropout
.3, learning rate .005 with 2,000 updates of warm-up, 4,096 tokens per batch, 8,000 updates, label smoothing .1. A run
that is stopped or killed is continued from out/translation. The test pairs are translated once, after the last update.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import time
from pathlib import Path
from typing import Any

import torch

from corank.nlp import apply_neftune, apply_sse
from corank.nn.sse import sse

from . import records
from .tools import ROOT
from .translation_data import Multi30k, Pairs, batches, bleu, statistics, tensors, training
from .translation_model import BOS, EOS, PAD, UNK, SmoothedLoss, Transformer, averaged, beam_search

FOLDER = records.ROOT / "translation"
KEPT = ROOT / "out" / "translation"
PAIRS, SEEDS = ("en-de", "de-en"), range(5)
UPDATES, TOKENS, WARM, LR, DECAY = 8_000, 4_096, 2_000, 5e-3, 0.999
EVERY = 500  # updates between two checkpoints, with a look at the validation pairs
# p of SSE on both inputs, p_target of SSE on targets, label smoothing, dropout, alpha of NEFTune
BASE = {"p": 0.0, "p_target": 0.0, "smoothing": 0.1, "rate": 0.3, "alpha": 0.0}
ARMS: dict[str, dict[str, float]] = {
    "baseline": {},
    "SSE on inputs": {"p": 0.01},
    "SSE on targets": {"p_target": 0.1, "smoothing": 0.0},
    "SSE on both": {"p": 0.01, "p_target": 0.1, "smoothing": 0.0},
    "NEFTune": {"alpha": 5.0},
    "dropout .4": {"rate": 0.4},
    "no label smoothing": {"smoothing": 0.0},
}


def run(pair: str, arm: str, seed: int, end: float, updates: int = UPDATES) -> dict[str, Any] | None:
    """Train, or go on training, until `end`; what was measured once all updates are done, else None."""
    data, options = Multi30k(*pair.split("-")), {**BASE, **ARMS[arm]}
    torch.manual_seed(seed)
    model = Transformer(data.tokenizer.get_vocab_size(), rate=options["rate"])
    optimizer = torch.optim.Adam(model.parameters(), lr=LR, betas=(0.9, 0.98))
    state: dict[str, Any] = {"update": 0, "seconds": 0.0, "curve": []}
    average = {name: value.clone() for name, value in model.state_dict().items()}
    file = KEPT / f"{pair}-{arm}-{seed}.pt".replace(" ", "-")
    if file.exists():
        kept = torch.load(file, weights_only=True)
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        torch.set_rng_state(kept["rng"])
        state, average = kept["state"], kept["average"]
    special = (PAD, BOS, EOS, UNK)
    with contextlib.ExitStack() as on:
        on.enter_context(apply_sse(model, p=options["p"], reserved=special))
        on.enter_context(apply_neftune(model, options["alpha"]))
        began = time.monotonic()
        for rows in training(data.pairs["train"], TOKENS, seed, state["update"]):
            if state["update"] >= updates:
                break
            loss = step(model.train(), optimizer, data.pairs["train"], rows, state["update"], options)
            state["update"] += 1
            averaged(model, average, min(DECAY, state["update"] / (state["update"] + 100)))
            if state["update"] % EVERY == 0 or time.monotonic() > end:
                state["seconds"] += time.monotonic() - began
                if state["update"] % EVERY == 0:
                    live = {name: value.clone() for name, value in model.state_dict().items()}
                    model.load_state_dict(average)
                    found = translated(model, data, "valid", beam=1)[0]["tokenised"]
                    model.load_state_dict(live)
                    state["curve"].append([state["update"], round(loss, 3), round(found, 2)])
                    print(pair, arm, seed, state["curve"][-1], f"{state['seconds'] / 60:.1f} min", flush=True)
                save(file, model, optimizer, state, average)
                began = time.monotonic()
            if time.monotonic() > end:
                break
    if state["update"] < updates:
        return None
    model.load_state_dict(average)
    valid, _ = translated(model, data, "valid")
    test, counts = translated(model, data, "test")
    file.unlink(missing_ok=True)
    minutes = round(state["seconds"] / 60, 1)
    return {"minutes": minutes, "curve": state["curve"], "valid": valid, "test": test, "statistics": counts}


def step(model: Transformer, optimizer: Any, pairs: Pairs, rows: Any, update: int, options: dict[str, float]) -> float:
    """One update; the loss."""
    source, target, truth = tensors(pairs, rows)
    for group in optimizer.param_groups:
        group["lr"] = LR * min((update + 1) / WARM, (WARM / (update + 1)) ** 0.5)
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", torch.bfloat16):
        hidden = model.decode(target, *model.encode(source))
        scores = model.scores(hidden[truth != PAD])  # (tokens, V)
    wanted = sse(truth[truth != PAD], scores.shape[1], options["p_target"])
    loss = SmoothedLoss.apply(scores, wanted, options["smoothing"])
    loss.backward()
    optimizer.step()
    return float(loss.item())


def translated(model: Transformer, data: Multi30k, part: str, beam: int = 5) -> tuple[dict[str, float], Any]:
    """BLEU of a part, and what it adds up of each sentence."""
    model.eval()
    pairs, out = data.pairs[part], [""] * len(data.pairs[part])
    for rows in batches(pairs, 1_024, None):
        source, _, _ = tensors(pairs, rows)
        for row, text in zip(rows, data.words(beam_search(model, source, beam)), strict=True):
            out[row] = text
    references = data.text[part][1]
    return bleu(out, references, data.target), statistics(out, references)


def save(file: Path, model: Transformer, optimizer: Any, state: dict[str, Any], average: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    kept = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state()}
    torch.save({**kept, "state": state, "average": average}, file.with_suffix(".new"))
    file.with_suffix(".new").replace(file)  # a kill leaves the old one


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--only", choices=ARMS, help="one arm")
    words.add_argument("--pair", choices=PAIRS, help="one direction")
    words.add_argument("--minutes", type=float, default=float("inf"), help="stop then; the next call goes on")
    words.add_argument("--page", action="store_true", help="write the page, run nothing")
    given = words.parse_args()
    if given.page:
        from .translation_page import write

        return write()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    end = time.monotonic() + 60 * given.minutes
    for pair, seed, arm in itertools.product(PAIRS, SEEDS, ARMS):
        file = records.path(FOLDER, pair)
        done = any((line["arm"], line["seed"]) == (arm, seed) for line in records.read(file))
        if done or (given.only and arm != given.only) or (given.pair and pair != given.pair):
            continue
        line = run(pair, arm, seed, end)
        if line is None:
            return None
        records.append(file, {"arm": arm, "seed": seed, **line})
        print(pair, arm, seed, line["valid"], line["test"], flush=True)
    return None


if __name__ == "__main__":
    main()
