"""SASRec: what comes next, from attention over what came before.

A causal transformer reads the last `max_len` items of a user and scores all items by the inner product of its last
state with their embeddings (Kang and McAuley 2018). Use it where order tells something: it is the standard sequential
model, and with a softmax over all items and enough epochs still among the best (Klenitskiy and Vasilev 2023). The
defaults are that modern form; `SASRec(dim=50, norm="published", loss="bce", negatives=1, max_len=50, dropout=0.5)` is
the published one (max_len=200, dropout=0.2 on ML-1M), but for its epochs: here each visits every user once, there as
many are drawn with replacement. An epoch costs about 3 * tokens * dim * (blocks * (6 * dim + length) + items)
multiply-adds, and nothing for padding. Values are not looked at.

Stochastic shared embeddings (`sse_item`, `sse_target`: SSE-SASRec) replace inputs and targets by random items.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..params import param
from ._sequence import Sequential

LOSSES = ("softmax", "sampled_softmax", "gbce", "bce", "bpr", "bpr_max", "top1")


@dataclass(kw_only=True, eq=False)
class SASRec(Sequential):
    """Self-attention over the sequence of a user's items."""

    dim: int = param(64, "size of the embeddings and of the network", low=1, high=4096, search=(32, 128), log=True)
    blocks: int = param(2, "blocks of attention and feed-forward layers", low=0, high=64, search=(1, 3))
    heads: int = param(1, "heads of attention; they must divide the width of the network", low=1, high=64)
    max_len: int = param(200, "newest items of a user that are read", low=1, high=100_000)
    dropout: float = param(0.2, "share of activations set to zero in training", low=0.0, high=0.95, search=(0.1, 0.5))
    attention_dropout: float | None = param(
        None, "the same for attention weights (when absent: dropout if norm is published, else 0)", low=0.0, high=0.95
    )
    norm: str = param("pre", "form of the blocks: pre (usual) or published", choices=("pre", "published"))
    loss: str = param("softmax", "what is minimised at each place of a sequence", choices=LOSSES)
    negatives: int = param(
        256, "drawn items: of each place for bce, shared by the batch for others; softmax takes all", low=1
    )
    gbce_t: float = param(0.75, "calibration of loss gbce: 0 is bce, 1 is unbiased", low=0.0, high=1.0)
    log_q: bool = param(False, "let the drawn items of sampled_softmax stand for all others")
    lr: float = param(1e-3, "length of Adam's steps", low=1e-9, search=(3e-4, 3e-3), log=True)
    cooldown: float = param(0.0, "last share of the epochs, in which lr falls evenly to 0", low=0.0, high=1.0)
    batch_size: int = param(128, "users a step", low=1)
    epochs: int = param(100, "passes over the users", low=1)
    patience: int | None = param(
        None, "epochs without better NDCG@10 on `valid` before training stops; the best is kept", low=1
    )
    weight_decay: float = param(0.0, "AdamW: share of lr by which tables and matrices shrink", low=0.0)
    l2_emb: float = param(0.0, "regularisation of the embeddings, in the loss as half their squared length", low=0.0)
    sse_item: float = param(0.0, "probability that an input item is replaced by a random one", low=0.0, high=1.0)
    sse_target: float = param(0.0, "probability that a target is replaced by a random item", low=0.0, high=1.0)
    sse_coupled: bool = param(
        False, "one coin of sse_item for input and target, as in the released code of SSE-PT (sse_target is not used)"
    )
    window: float = param(
        0.0,
        "probability that a history beyond max_len is learned from an earlier stretch (SSE-PT++)",
        low=0.0,
        high=1.0,
    )
    bf16: bool = param(
        False, "train the layers in bfloat16 (weights and loss stay as they are): quick only where the processor has it"
    )
