"""A Transformer for translation, in plain torch, and beam search.

b sentences, s source tokens, t target tokens, d width, h heads, V tokens of the joint vocabulary. Pre-norm blocks; one
table for source, target and output (Press and Wolf 2017), so that SSE on it is SSE on both inputs.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, log_softmax, relu, scaled_dot_product_attention, softmax

PAD, BOS, EOS, UNK = range(4)


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.kv, self.out = nn.Linear(dim, dim), nn.Linear(dim, 2 * dim), nn.Linear(dim, dim)

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor | None, causal: bool = False) -> Tensor:
        """x (b, t, d) attends to memory (b, s, d) where mask (b, 1, 1, s) is true."""
        b, t, d = x.shape
        q = self.q(x).view(b, t, self.heads, -1).transpose(1, 2)  # (b, h, t, d/h)
        k, v = self.kv(memory).view(b, -1, 2, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)  # (b, h, s, d/h)
        # No dropout of attention weights, and float32: the fused kernel for processors has none, and is fast in that.
        with torch.autocast("cpu", enabled=False):
            mixed = scaled_dot_product_attention(
                q.float(), k.float(), v.float(), mask, is_causal=causal
            )  # (b, h, t, d/h)
        return self.out(mixed.transpose(1, 2).reshape(b, t, d))  # type: ignore[no-any-return]


class Block(nn.Module):
    """Attention to itself, for a decoder also to the source, and two linear layers; each with norm and residual."""

    def __init__(self, dim: int, inner: int, heads: int, rate: float, decoder: bool) -> None:
        super().__init__()
        self.rate = rate
        self.own = Attention(dim, heads)
        self.other = Attention(dim, heads) if decoder else None
        self.wide, self.narrow = nn.Linear(dim, inner), nn.Linear(inner, dim)
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(3 if decoder else 2))

    def forward(self, x: Tensor, mask: Tensor | None, memory: Tensor | None = None) -> Tensor:
        """x (b, t, d); a decoder's own attention is causal, and padding is at the end, where nothing is read."""
        normed = self.norms[0](x)
        x = x + self._drop(self.own(normed, normed, None if self.other else mask, causal=self.other is not None))
        if self.other is not None:
            x = x + self._drop(self.other(self.norms[2](x), memory, mask))
        return x + self._drop(self.narrow(self._drop(relu(self.wide(self.norms[1](x))))))

    def _drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.rate if self.training else 0.0)


class Transformer(nn.Module):
    def __init__(
        self, vocab: int, dim: int = 128, inner: int = 256, layers: int = 4, heads: int = 4, rate: float = 0.3
    ):
        super().__init__()
        self.dim, self.rate = dim, rate
        self.table = nn.Embedding(vocab, dim, padding_idx=PAD)
        self.encoder = nn.ModuleList(Block(dim, inner, heads, rate, decoder=False) for _ in range(layers))
        self.decoder = nn.ModuleList(Block(dim, inner, heads, rate, decoder=True) for _ in range(layers))
        self.ends = nn.ModuleList(nn.LayerNorm(dim) for _ in range(2))
        for name, weight in self.named_parameters():
            if weight.dim() == 2 and name != "table.weight":
                nn.init.xavier_uniform_(weight)
            elif name.endswith("bias"):
                nn.init.zeros_(weight)
        nn.init.normal_(self.table.weight, std=dim**-0.5)
        with torch.no_grad():
            self.table.weight[PAD] = 0

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """source (b, s) -> memory (b, s, d), mask (b, 1, 1, s)."""
        mask = (source != PAD)[:, None, None]
        x = self._embed(source)
        for block in self.encoder:
            x = block(x, mask)
        return self.ends[0](x), mask

    def decode(self, target: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        """target (b, t), memory (b, s, d) -> hidden states (b, t, d)."""
        x = self._embed(target)
        for block in self.decoder:
            x = block(x, mask, memory)
        return self.ends[1](x)  # type: ignore[no-any-return]

    def scores(self, hidden: Tensor) -> Tensor:
        """(..., d) -> (..., V)."""
        return linear(hidden, self.table.weight)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return self.scores(self.decode(target, *self.encode(source)))  # (b, t, V)

    def _embed(self, ids: Tensor) -> Tensor:
        """(b, t) -> (b, t, d): vectors and sines of the position."""
        half = self.dim // 2
        rate = torch.exp(torch.arange(half) * (-math.log(10_000) / (half - 1)))
        angle = torch.arange(ids.shape[1])[:, None] * rate  # (t, d/2)
        x = self.table(ids) * math.sqrt(self.dim) + torch.cat([angle.sin(), angle.cos()], 1)
        return dropout(x, self.rate if self.training else 0.0)


def dropout(x: Tensor, rate: float) -> Tensor:
    """As torch's, from uniform numbers: on a processor they are drawn three times as fast as coins."""
    return x * (torch.rand(x.shape) >= rate) * (1 / (1 - rate)) if rate else x


@torch.no_grad()
def beam_search(model: Transformer, source: Tensor, beam: int = 5, longest: int = 80) -> list[list[int]]:
    """Translations of source (b, s), without BOS and EOS: the best of `beam` by mean log-probability per token.

    Hypotheses grow together; a finished one keeps its place and its score, so the search of a sentence ends when its
    beam holds finished ones only.
    """
    b = len(source)
    memory, mask = (one.repeat_interleave(beam, 0) for one in model.encode(source))
    ids = torch.full((b * beam, 1), BOS)
    total = torch.full((b, beam), -math.inf)  # log-probabilities
    total[:, 0] = 0.0
    length, done = torch.zeros(b, beam), torch.zeros(b, beam, dtype=torch.bool)
    for _ in range(min(longest, 2 * source.shape[1] + 10)):
        hidden = model.decode(ids, memory, mask)[:, -1]  # (b beam, d)
        step = log_softmax(model.scores(hidden).float(), -1).view(b, beam, -1)  # (b, beam, V)
        step[..., [PAD, BOS, UNK]] = -math.inf
        step = torch.where(done[..., None], torch.full_like(step, -math.inf), step)
        step[..., PAD] = torch.where(done, 0.0, step[..., PAD])  # a finished one goes on as itself
        grown = total[..., None] + step
        after = length[..., None] + (~done)[..., None]
        rank = (grown / after.clamp(min=1)).flatten(1).topk(beam).indices  # (b, beam) of beam x V
        parent, token = rank // step.shape[-1], rank % step.shape[-1]
        total = grown.flatten(1).gather(1, rank)
        length, done = after.squeeze(-1).gather(1, parent), done.gather(1, parent) | (token == EOS)
        rows = (torch.arange(b)[:, None] * beam + parent).flatten()
        ids = torch.cat([ids[rows], token.view(-1, 1)], 1)
        if bool(done.all()):
            break
    best = (total / length.clamp(min=1)).argmax(1) + torch.arange(b) * beam
    return [[i for i in one if i not in (PAD, EOS)] for one in ids[best, 1:].tolist()]


class SmoothedLoss(torch.autograd.Function):
    """`cross_entropy(..., label_smoothing=)`, with the gradient made in the forward pass: half the passes over memory.

    scores (n, V), truth int64 (n). Gradient (softmax - (1 - smoothing) at truth - smoothing / V) / n.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, truth: Tensor, smoothing: float) -> Tensor:
        n, V = scores.shape
        share = softmax(scores, 1)  # in bfloat16, with sums in float32: relative errors of .004 in the gradient
        right = share.gather(1, truth[:, None])
        log = right.float().clamp(min=1e-30).log()
        loss = -log.mean()
        if (
            smoothing
        ):  # log-probabilities of all words are their scores minus what the right one's score exceeds its log
            total = scores.gather(1, truth[:, None]).float() - log
            loss = loss + smoothing * (log.mean() + total.mean() - scores.sum(1, dtype=torch.float32).mean() / V)
        share.sub_(smoothing / V).scatter_add_(1, truth[:, None], torch.full_like(right, smoothing - 1))
        ctx.save_for_backward(share.div_(n))
        return loss

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[override]
        (grad,) = ctx.saved_tensors
        return grad * upstream.to(grad.dtype), None, None


def averaged(model: nn.Module, average: dict[str, Any], decay: float) -> None:
    """Move the running average of the weights towards the present ones."""
    with torch.no_grad():
        for name, value in model.state_dict().items():
            average[name].lerp_(value, 1 - decay)
