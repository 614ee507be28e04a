"""Losses of next-item prediction: how a hidden state should score the item that came next against other items.

Functions of scores take `positive` (n,), the score of the true next item, and `negative` (n, k), scores of sampled
negatives; a negative of -inf does not count (the positive was drawn by accident). They return the mean over n.
`softmax` takes hidden states and the table of all items instead, and never holds n x items.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from .tables import rows

ROWS = 256  # hidden states whose scores of all items are in memory at a time: they should stay in the cache
MANY_ROWS = 4096  # on a GPU, which needs more at a time to be busy
SAFE = 60.0  # exp of this, times the size of any catalogue, does not overflow float32


def next_item_loss(
    name: str,
    hidden: Tensor,
    table: Tensor,
    target: Tensor,
    negative: Tensor | None = None,
    *,
    offset: Tensor | None = None,
    bias: Tensor | None = None,
    gbce_t: float = 0.75,
    log_q: bool = False,
    log_probability: Tensor | None = None,
    bpreg: float = 1.0,
) -> Tensor:
    """The loss of this name (one of the functions below), where a state scores items by inner products: a scalar.

    hidden : (n, d) states. table : (items, d) item embeddings. target : int64 (n,) the items that came next.
    negative : int64 (n, k) sampled items of each state, or (k,) shared by all; softmax needs none.
    offset : (n,) added to all scores of a state; it would cancel in softmax and sampled_softmax, and is not used there.
    bias : (items,) added to the scores of each item.
    gbce_t : see `gbce`. bpreg : see `bpr_max`. log_q : whether sampled_softmax corrects for the sampling of negatives.
    log_probability : (k,) of each shared negative in one draw; uniform when absent.

    A shared negative that is the target of a state is not a negative of that state.
    """
    if name == "softmax":
        step = ROWS if hidden.device.type == "cpu" else MANY_ROWS
        return softmax(hidden, table, target, step, bias=bias)
    if negative is None:
        raise ValueError(f"the loss {name} needs negatives")
    positive = (hidden * rows(table, target)).sum(1)  # (n,)
    if negative.dim() == 1:
        scores = hidden @ rows(table, negative).t()  # (n, k)
        scores = scores.masked_fill(negative[None, :] == target[:, None], -torch.inf)
    elif negative.shape[1] == 1:
        scores = (hidden * rows(table, negative[:, 0])).sum(1, keepdim=True)  # (n, 1)
    else:
        scores = torch.einsum("nd,nkd->nk", hidden, rows(table, negative.view(-1)).view(*negative.shape, -1))
    if bias is not None:
        positive, scores = positive + bias[target], scores + bias[negative]
    items = table.shape[0]
    if name == "sampled_softmax":
        weight: float | Tensor = 0.0
        if log_q and log_probability is not None:
            weight = -log_probability - math.log(log_probability.numel())  # (k,)
        elif log_q:
            weight = float(np.log(max(1, items - 1) / negative.numel()))
        return sampled_softmax(positive, scores, log_weight=weight)
    if offset is not None:
        positive, scores = positive + offset, scores + offset[:, None]
    if name == "gbce":
        return gbce(positive, scores, items=items, t=gbce_t)
    if name == "bpr_max":
        return bpr_max(positive, scores, reg=bpreg)
    return {"bce": bce, "bpr": bpr, "top1": top1}[name](positive, scores)


def bce(positive: Tensor, negative: Tensor) -> Tensor:
    """-log s(positive) - sum_k log(1 - s(negative)): binary cross-entropy (Kang and McAuley 2018, with k = 1)."""
    return (F.softplus(-positive) + F.softplus(negative).sum(1)).mean()


def gbce(positive: Tensor, negative: Tensor, *, items: int, t: float) -> Tensor:
    """Generalised binary cross-entropy (Petrov and Macdonald 2023): s(positive) is raised to the power beta.

    With k of `items` - 1 negatives drawn, a = k / (items - 1), beta = a (t (1 - 1/a) + 1/a): t = 0 is `bce`, t = 1
    corrects all of the overconfidence that comes from sampling few negatives.
    """
    beta = gbce_beta(negative.shape[1], items, t)
    total = beta * F.softplus(-positive) + F.softplus(negative).sum(1)
    return total.mean() / (negative.shape[1] + 1)


def gbce_beta(drawn: int, items: int, t: float) -> float:
    """The exponent beta of gBCE; at least 0, also where more negatives are drawn than there are items."""
    rate = min(1.0, drawn / max(1, items - 1))
    return rate * (t * (1 - 1 / rate) + 1 / rate)


def sampled_softmax(positive: Tensor, negative: Tensor, *, log_weight: float | Tensor = 0.0) -> Tensor:
    """Cross-entropy of the positive among itself and the sampled negatives.

    log_weight : added to the score of each negative, one number or (k,). It makes k negatives represent all other items
        (log-q correction): log((items - 1) / k) for uniform ones, -log(k q) for one that has the probability q in each
        draw. 0 leaves them as they are.
    """
    logits = torch.cat([positive[:, None], negative + log_weight], 1)
    return (torch.logsumexp(logits, 1) - positive).mean()


def bpr(positive: Tensor, negative: Tensor) -> Tensor:
    """Mean over k of -log s(positive - negative) (Rendle et al. 2009; as a session loss: Hidasi et al. 2016)."""
    return _mean(F.softplus(negative - positive[:, None]), negative > -math.inf)


def bpr_max(positive: Tensor, negative: Tensor, *, reg: float = 1.0) -> Tensor:
    """-log sum_k w_k s(positive - negative_k) + reg sum_k w_k negative_k^2, w = softmax of the negatives.

    Hidasi and Karatzoglou 2018. Negatives that score high get most of the weight, so that the gradient does not vanish
    when there are many negatives.
    """
    there = negative > -math.inf
    negative = torch.where(there, negative, torch.full_like(negative, -1e4))
    log_w = F.log_softmax(negative, 1)
    gap = torch.logsumexp(log_w + F.logsigmoid(positive[:, None] - negative), 1)
    size = (log_w.exp() * torch.where(there, negative, torch.zeros_like(negative)).square()).sum(1)
    return (reg * size - gap).mean()


def top1(positive: Tensor, negative: Tensor) -> Tensor:
    """Mean over k of s(negative - positive) + s(negative^2) (Hidasi et al. 2016)."""
    there = negative > -math.inf
    negative = torch.where(there, negative, torch.zeros_like(negative))
    return _mean(torch.sigmoid(negative - positive[:, None]) + torch.sigmoid(negative.square()), there)


def _mean(value: Tensor, there: Tensor) -> Tensor:
    """Mean over the negatives that count, then over the rows."""
    return ((value * there).sum(1) / there.sum(1).clamp(min=1)).mean()


def softmax(hidden: Tensor, table: Tensor, target: Tensor, step: int = ROWS, *, bias: Tensor | None = None) -> Tensor:
    """Cross-entropy of the target among all items, mean over n.

    hidden : float32 (n, d). table : float32 (items, d). target : int64 (n,). bias : float32 (items,), or none. The
    gradient is computed in the forward pass, `step` hidden states at a time, so that memory is step x items for any n:
    three matrix products, one exp.
    """
    if hidden.shape[0] != target.shape[0] or hidden.shape[1] != table.shape[1]:
        raise ValueError(
            f"softmax takes hidden [n, d], table [items, d] and target [n], not {tuple(hidden.shape)}, "
            f"{tuple(table.shape)} and {tuple(target.shape)}"
        )
    loss: Tensor = _Softmax.apply(hidden, table, target, bias, step)  # type: ignore[no-untyped-call]
    return loss


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, table: Tensor, target: Tensor, bias: Tensor | None, step: int) -> Tensor:
        n, d = hidden.shape
        items = table.shape[0]
        own = table.index_select(0, target)
        double = torch.float32 if hidden.device.type == "mps" else torch.float64  # MPS has no float64
        loss = -(hidden * own).sum(1, dtype=double).sum()
        d_hidden = torch.empty_like(hidden)
        d_table = table.new_zeros((d, items))  # transposed: both products then run along rows
        d_bias = None if bias is None else table.new_zeros((1, items))
        buffer = table.new_empty((min(step, n), items))
        if bias is not None:
            loss -= bias[target].sum(dtype=double)
        # |h . v| <= |h| |v|: mostly so small that exp needs no shift, which saves a pass over the scores. To ask a GPU
        # would take longer than that pass.
        on_cpu = hidden.device.type == "cpu"
        if on_cpu:
            norms = torch.linalg.vector_norm(hidden, dim=1)
            wide = float(torch.linalg.vector_norm(table, dim=1).max())
            most = 0.0 if bias is None else float(bias.abs().max())
        for start in range(0, n, step):
            part = hidden[start : start + step]
            scores = torch.mm(part, table.t(), out=buffer[: part.shape[0]])
            if bias is not None:
                scores.add_(bias)
            shift = None
            if not (on_cpu and float(norms[start : start + step].max()) * wide + most < SAFE):
                shift = scores.amax(1, keepdim=True)
                scores.sub_(shift)
                loss += shift.sum(dtype=double)
            total = scores.exp_().sum(1, keepdim=True)
            loss += total.log().sum(dtype=double)
            d_hidden[start : start + step] = torch.mm(scores, table).div_(total)
            d_table.addmm_((part / total).t(), scores)
            if d_bias is not None:
                d_bias.addmm_((1 / total).t(), scores)
        d_hidden.sub_(own).div_(n)
        d_table = d_table.t().contiguous().index_add_(0, target, -hidden).div_(n)
        if d_bias is not None:
            d_bias = d_bias[0].index_add_(0, target, d_bias.new_full((n,), -1.0)).div_(n)
        ctx.save_for_backward(d_hidden, d_table, d_bias)
        return (loss / n).to(hidden.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, Tensor | None, None]:
        d_hidden, d_table, d_bias = ctx.saved_tensors
        if grads[0].device.type != "cpu" or float(grads[0]) != 1.0:
            d_hidden, d_table = d_hidden * grads[0], d_table * grads[0]
            d_bias = None if d_bias is None else d_bias * grads[0]
        return d_hidden, d_table, None, d_bias, None
