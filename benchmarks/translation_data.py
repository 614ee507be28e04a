"""Multi30k: pairs of sentences, a joint byte-pair encoding, batches by tokens, and BLEU."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .reviews import root
from .translation_model import BOS, EOS, PAD

MERGES = 10_000  # size of the joint vocabulary
FILES = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
Pairs = list[tuple[list[int], list[int]]]


class Multi30k:
    """Lower-cased, as the published figures are. `pairs[part]`: ids of source and target, without BOS and EOS."""

    def __init__(self, source: str, target: str) -> None:
        self.source, self.target = source, target
        self.text = {part: [_lines(part, language) for language in (source, target)] for part in FILES}

    @cached_property
    def tokenizer(self) -> Any:
        """Byte-pair encoding learned from both sides of the training pairs, the same for both directions."""
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

        found = Tokenizer(models.BPE(unk_token="<unk>"))
        found.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation()])
        found.decoder = decoders.Metaspace()
        special = ["<pad>", "<bos>", "<eos>", "<unk>"]
        trainer = trainers.BpeTrainer(vocab_size=MERGES, special_tokens=special, show_progress=False)
        found.train_from_iterator(_lines("train", "de") + _lines("train", "en"), trainer)
        return found

    @cached_property
    def pairs(self) -> dict[str, Pairs]:
        def ids(lines: list[str]) -> list[list[int]]:
            return [one.ids for one in self.tokenizer.encode_batch(lines)]

        return {part: list(zip(*map(ids, sides), strict=True)) for part, sides in self.text.items()}

    def words(self, ids: Sequence[Sequence[int]]) -> list[str]:
        return [self.tokenizer.decode(list(one)).strip() for one in ids]


def _lines(part: str, language: str) -> list[str]:
    with gzip.open(root() / "multi30k" / f"{FILES[part]}.{language}.gz", "rt", encoding="utf-8") as stream:
        return [line.strip().lower() for line in stream]


def batches(pairs: Pairs, tokens: int, rng: np.random.Generator | None) -> list[np.ndarray]:
    """Rows of similar length, of at most `tokens` tokens on the longer side with padding; shuffled with a generator."""
    noise = np.zeros(len(pairs)) if rng is None else rng.random(len(pairs))
    size = np.array([max(len(a), len(b)) + 1 for a, b in pairs])
    order = np.lexsort((noise, size))
    found, start = [], 0
    for end in range(1, len(order) + 1):
        if end == len(order) or (end + 1 - start) * size[order[end]] > tokens:
            found.append(order[start:end])
            start = end
    return found if rng is None else [found[i] for i in rng.permutation(len(found))]


def tensors(pairs: Pairs, rows: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
    """source (b, s), target with BOS in front (b, t), what is to be predicted, with EOS behind (b, t)."""
    return (
        _padded([pairs[row][0] + [EOS] for row in rows]),
        _padded([[BOS] + pairs[row][1] for row in rows]),
        _padded([pairs[row][1] + [EOS] for row in rows]),
    )


def _padded(ids: Sequence[Sequence[int]]) -> Tensor:
    longest = max(map(len, ids))
    return torch.tensor([[*one, *[PAD] * (longest - len(one))] for one in ids])


def training(pairs: Pairs, tokens: int, seed: int, begin: int) -> Iterator[np.ndarray]:
    """The batches of update `begin`, `begin` + 1, ...: the same for the same seed, wherever a run is resumed."""
    epoch, at = 0, 0
    while True:
        found = batches(pairs, tokens, np.random.default_rng([seed, epoch]))
        yield from found[max(0, begin - at) :]
        at, epoch = at + len(found), epoch + 1


def bleu(hypotheses: list[str], references: list[str], language: str) -> dict[str, float]:
    """sacreBLEU (13a, lower case), and tokenised BLEU: both sides split by the Moses tokenizer, as papers report it."""
    from sacrebleu.metrics import BLEU
    from sacremoses import MosesTokenizer

    moses = MosesTokenizer(lang=language)
    split = [
        [moses.tokenize(line, return_str=True, escape=False) for line in side] for side in (hypotheses, references)
    ]
    plain = BLEU(tokenize="none", force=True).corpus_score(split[0], [split[1]]).score
    return {"tokenised": plain, "sacreBLEU": BLEU(lowercase=True).corpus_score(hypotheses, [references]).score}


def statistics(hypotheses: list[str], references: list[str]) -> list[list[int]]:
    """Of each sentence what BLEU adds up, for the paired bootstrap: 4 matches, 4 totals, both lengths."""
    from sacrebleu.metrics import BLEU

    one = BLEU(lowercase=True, effective_order=True)
    found = [one.sentence_score(h, [r]) for h, r in zip(hypotheses, references, strict=True)]
    return [[*s.counts, *s.totals, s.sys_len, s.ref_len] for s in found]
