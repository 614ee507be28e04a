"""Graphs of the ids of a vocabulary for SSE-Graph: from the vectors of an embedding, or from pairs of related tokens.

They are compressed rows, (indptr, index): the neighbours of id j are index[indptr[j] : indptr[j + 1]].
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from ..errors import CorankError, show

log = logging.getLogger("corank")

BLOCK = 2_048  # rows whose similarities with all others are in memory at once


@torch.no_grad()
def nearest_graph(vectors: Tensor, k: int = 10) -> tuple[Tensor, Tensor]:
    """Each id with the k others of the highest cosine similarity: (indptr int64[ids + 1], index int64[ids k]).

    vectors : float[ids, width], such as `model.get_input_embeddings().weight`.

    Cost: ids^2 x width multiplications, in blocks of rows.
    """
    if not isinstance(vectors, Tensor) or vectors.dim() != 2 or not vectors.is_floating_point():
        raise CorankError("vectors must be a table of floats with one row per id, such as an embedding's weight")
    if not bool(torch.isfinite(vectors).all()):
        raise CorankError("vectors holds NaN or infinity: neighbours need finite vectors")
    size = len(vectors)
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k < size:
        raise CorankError(f"k={k!r}: the number of neighbours must be a whole number of 1 to {max(1, size - 1)}")
    unit = normalize(vectors.detach().float(), dim=1)
    near = []
    for start in range(0, size, BLOCK):
        close = unit[start : start + BLOCK] @ unit.T  # [block, ids]
        close[:, start:].fill_diagonal_(-torch.inf)  # not itself
        near.append(close.topk(k, dim=1).indices)
    return torch.arange(size + 1) * k, torch.cat(near).flatten().cpu()


def token_graph(
    pairs: Iterable[tuple[int | str, int | str]], size: int, tokenizer: Any = None
) -> tuple[Tensor, Tensor]:
    """The graph of pairs of related tokens, from a thesaurus or a knowledge graph; both directions of each.

    pairs : two ids, or two words. A word that the tokenizer splits has no row of its own: its pairs are left out, and
        how many is logged.
    size : rows of the embedding, e.g. `model.get_input_embeddings().num_embeddings`.
    """
    edges: list[tuple[int, int]] = []
    split = 0
    for pair in pairs:
        try:
            a, b = pair
        except (TypeError, ValueError):
            raise CorankError(f"{show(pair)} is not a pair of two tokens or two ids") from None
        one, other = _id(a, tokenizer), _id(b, tokenizer)
        if one is None or other is None:
            split += 1
            continue
        wrong = [i for i in (one, other) if not 0 <= i < size]
        if wrong:
            raise CorankError(f"the pair {show(pair)} has the id {wrong[0]}: the ids of the table are 0 to {size - 1}")
        edges += [(one, other), (other, one)]
    if split:
        log.info("%d pairs left out: one of their words is not a single token", split)
    if not edges:
        raise CorankError("no pair has two words that are single tokens: without edges, use SSE without a graph")
    row, to = torch.tensor(sorted(set(edges))).T
    return torch.cat([torch.zeros(1, dtype=torch.int64), torch.bincount(row, minlength=size).cumsum(0)]), to


def _id(one: int | str, tokenizer: Any) -> int | None:
    """The id of a token; None for a word of several tokens, or one that the tokenizer does not know."""
    if isinstance(one, bool) or not isinstance(one, int | str):
        raise CorankError(f"{show(one)} is neither a word nor an id")
    if not isinstance(one, str):
        return one
    if tokenizer is None:
        raise CorankError(f"{show(one)} is a word and there is no tokenizer: give tokenizer=..., or pairs of ids")
    ids = tokenizer(one, add_special_tokens=False)["input_ids"]
    unknown = getattr(tokenizer, "unk_token_id", None)
    return int(ids[0]) if len(ids) == 1 and ids[0] != unknown else None
