"""Texts with a polarity: SST-2 sentences and movie reviews, split and tokenised."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .tools import ROOT

PARTS = ("train", "dev", "test")
LENGTH = {"sst2": 64, "movie_reviews": 256}  # tokens; longer documents are cut
TEST_FOLDS, DEV_FOLDS = (
    "89",
    "7",
)  # of the reviews: their names begin with the number of a fold, 100 files of each label


@dataclass(frozen=True)
class Texts:
    """Tokenised texts: ids[i] is a list with the special tokens in it; label int64[n]."""

    ids: list[list[int]]
    label: np.ndarray

    def batches(self, size: int, rng: np.random.Generator | None) -> Iterator[np.ndarray]:
        """Rows of each batch: of similar length, to pad little; in random order with a generator."""
        order = np.arange(len(self.ids)) if rng is None else rng.permutation(len(self.ids))
        length = np.array([len(one) for one in self.ids])
        pool = size * (50 if rng is not None else len(order))
        found = []
        for start in range(0, len(order), pool):
            rows = order[start : start + pool]
            rows = rows[np.argsort(length[rows], kind="stable")]
            found += [rows[at : at + size] for at in range(0, len(rows), size)]
        for at in range(len(found)) if rng is None else rng.permutation(len(found)):
            yield found[at]


def root() -> Path:
    return Path(os.environ.get("CORANK_DATA") or ROOT.parent / "shared" / "data")


def raw(name: str) -> dict[str, list[tuple[str, int]]]:
    """(text, label) of each part; label 1 is positive."""
    folder = root() / name
    if name == "sst2":
        out = {}
        for part in PARTS:
            lines = (folder / f"{part}.tsv").read_text("utf-8").splitlines()
            out[part] = [(text, int(label)) for text, label in (line.rsplit("\t", 1) for line in lines if line)]
        return out
    found: dict[str, list[tuple[str, int]]] = {part: [] for part in PARTS}
    with zipfile.ZipFile(folder / "movie_reviews.zip") as archive:
        for entry in sorted(n for n in archive.namelist() if n.endswith(".txt") and Path(n).name.startswith("cv")):
            fold = Path(entry).name[2]
            part = "test" if fold in TEST_FOLDS else "dev" if fold in DEV_FOLDS else "train"
            found[part].append((archive.read(entry).decode("utf-8", "replace"), int("/pos/" in entry)))
    return found


def tokenised(name: str, tokenizer: Any) -> dict[str, Texts]:
    out = {}
    for part, rows in raw(name).items():
        ids = tokenizer([text for text, _ in rows], truncation=True, max_length=LENGTH[name])["input_ids"]
        out[part] = Texts(ids, np.array([label for _, label in rows]))
    return out


def chunks(tokenizer: Any, length: int = 128) -> Texts:
    """The training texts of both sets, without labels, in pieces of up to `length` tokens: for pre-training."""
    ids = []
    for name in LENGTH:
        for text, _ in raw(name)["train"]:
            plain = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
            for start in range(0, len(plain), length - 2):
                piece = plain[start : start + length - 2]
                ids.append([tokenizer.cls_token_id, *piece, tokenizer.sep_token_id])
    return Texts(ids, np.zeros(len(ids), np.int64))
