"""The hyper-parameters of sequence models: what follows from the data where they are not given, and their cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..cost import DENSE, KERNEL, SORTED, Cost, Size, rows_memory
from ..data import CSR, Dataset
from ..errors import CorankError
from ..nn.batches import prefixes
from ..nn.negatives import SAMPLING
from ..params import param
from ..stored import Number, Stored, word
from ._torch import TorchModel

# Steps of prefixes have arrays of other sizes each, between which the heap cannot reuse all that was freed: what a
# process holds grows over an epoch to about this many times the arrays of one step (BSARec: 1,208 MB after 300 steps).
SCATTERED_HEAP = 3.0
LOSSES = ("softmax", "sampled_softmax", "gbce", "bce", "bpr", "bpr_max", "top1")


@dataclass(kw_only=True, eq=False)
class SequenceOptions(TorchModel):
    """The hyper-parameters of models that predict the next item of a sequence."""

    dim: int = param(
        64, "size of the item embeddings and of the hidden states", low=1, high=4096, search=(32, 128), log=True
    )
    max_len: int = param(200, "number of most recent items of a user that are read", low=1, high=100_000)
    dropout: float | None = param(
        None,
        "probability that an activation is set to zero in training (default: 0.2 for long histories to 0.5 for short)",
        low=0.0,
        high=0.95,
        search=(0.1, 0.6),
    )
    targets: str = param(
        "all",
        "what is predicted in training: all, the next item at every position of a sequence; last, each prefix of a "
        "sequence is a sample of its own, of which only the next item counts",
        choices=("all", "last"),
    )
    loss: str | None = param(
        None,
        "loss of the next item at each position (default: softmax, and sampled_softmax for more than 5,000 items)",
        choices=LOSSES,
    )
    negatives: int = param(
        1024, "number of negatives: per position for bce, shared by the batch for others; softmax uses all items", low=1
    )
    sampling: str = param(
        "uniform",
        "how shared negatives are drawn: uniform; popular, by the number of interactions to the power sampling_power; "
        "batch, the targets of the step",
        choices=SAMPLING,
    )
    sampling_power: float = param(0.75, "exponent of the number of interactions (sampling popular)", low=0.0, high=4.0)
    gbce_t: float = param(0.75, "calibration of loss gbce: 0 is bce, 1 is unbiased", low=0.0, high=1.0)
    log_q: bool = param(False, "correct loss sampled_softmax for the number of negatives and how they are drawn")
    bpreg: float = param(1.0, "loss bpr_max: regularisation of the scores of negatives", low=0.0)
    lr: float = param(1e-3, "learning rate of Adam", low=1e-9, search=(3e-4, 3e-3), log=True)
    cooldown: float = param(
        0.0, "final fraction of the epochs in which the learning rate falls linearly to 0", low=0.0, high=1.0
    )
    batch_size: int | None = param(
        None,
        "sequences per step (default: 128, and fewer, down to 32, where histories are long; 256 prefixes)",
        low=1,
    )
    epochs: int | None = param(
        None,
        "passes over the sequences (default: about 6,000 steps, in 10 to 60 epochs; with validation rows up to three "
        "times as many, see patience)",
        low=1,
    )
    patience: int | None = param(
        None,
        "epochs without better NDCG@10 on `valid` before training stops; the best epoch is kept (default: 5 to 10 "
        "where the number of epochs is not given, else all epochs are run)",
        low=1,
    )
    weight_decay: float = param(0.0, "AdamW: decay of embeddings and matrices per step, times lr", low=0.0)
    l2_emb: float = param(0.0, "L2 regularisation of the embeddings: l2_emb / 2 times their squared norm", low=0.0)
    sse_item: float = param(0.0, "SSE: probability that an input item is replaced by a random one", low=0.0, high=1.0)
    sse_target: float = param(0.0, "SSE: probability that a target is replaced by a random item", low=0.0, high=1.0)
    sse_coupled: bool = param(
        False,
        "SSE: one draw with sse_item replaces input and target, as in the released code of SSE-PT (sse_target is not "
        "used)",
    )
    window: float = param(
        0.0,
        "probability that a history longer than max_len is trained on an earlier window (SSE-PT++)",
        low=0.0,
        high=1.0,
    )
    bf16: bool = param(
        False,
        "train the layers in bfloat16 (weights and loss stay in float32): fast only where the processor supports it",
    )

    order_matters: ClassVar[bool] = True
    from_data: ClassVar[tuple[str, ...]] = ("dropout", "loss", "batch_size", "epochs")
    tasks: ClassVar[tuple[str, ...]] = ("sequential",)

    def _choose(self, data: Dataset, rows: CSR) -> None:
        length = np.diff(data.sequences().indptr)
        length = length[length > 1]
        # Short histories are learned by heart: half of the activations for 10 items, a fifth from 100 on.
        mean = float(length.mean()) if length.size else 1.0
        fraction = 0.5 - 0.3 * np.log10(mean / 10)
        self.dropout_ = round(float(np.clip(fraction, 0.2, 0.5)), 2) if self.dropout is None else self.dropout
        usual = "softmax" if rows.columns <= 5_000 else "sampled_softmax"
        self.loss_ = usual if self.loss is None else self.loss
        usual_size = 256 if self.targets == "last" else int(np.clip(4096 / mean, 32, 128))
        self.batch_size_ = usual_size if self.batch_size is None else self.batch_size
        sequences = int((length - 1).sum()) if self.targets == "last" else length.size
        steps = max(1, -(-sequences // self.batch_size_))
        self.epochs_ = int(np.clip(round(6_000 / steps), 10, 60)) if self.epochs is None else self.epochs

    def _stores(self) -> dict[str, Stored]:
        return super()._stores() | {
            "dropout_": Number(low=0, high=1),
            "loss_": word(*LOSSES),
            "batch_size_": Number(low=1, whole=True),
            "epochs_": Number(low=1, whole=True),
        }

    def _item_width(self) -> int:
        """Size of the vectors that score items; the first elements of a hidden state are multiplied with them."""
        return self.dim

    # ---- what depends on the network, in rough numbers ---------------------------------------------------------------

    def _weight_count(self, size: Size) -> float:
        """Number of weights."""
        raise NotImplementedError

    def _forward_work(self, lengths: NDArray[np.int64]) -> tuple[float, float]:
        """Of a forward pass over sequences of these lengths: multiply-adds of matrix products, single operations."""
        raise NotImplementedError

    def _kept(self, lengths: NDArray[np.int64]) -> float:
        """Numbers that a step with sequences of these lengths keeps for the backward pass."""
        return 20.0 * self.dim * float(lengths.sum())

    def _scored(self, size: Size) -> int:
        """Items that are scored at each position in training."""
        return size.items if self.loss == "softmax" else min(self.negatives, size.items) + 1

    def _sequence_lengths(self, size: Size) -> NDArray[np.int64]:
        """Inputs of all sequences of an epoch."""
        lengths = size.lengths[size.lengths > 1]
        if self.targets == "last":
            return prefixes(np.zeros_like(lengths), lengths, self.max_len)[2]
        return np.minimum(lengths, self.max_len)

    def _cost(self, size: Size) -> Cost:
        lengths = self._sequence_lengths(size)
        targets = lengths.size if self.targets == "last" else float(lengths.sum())
        scores, steps = targets * self._scored(size), lengths.size / (self.batch_size or 1)
        products, single = self._forward_work(lengths)
        work = 3 * DENSE * (products + scores * self._item_width())
        # Element by element: layers and losses of each token, and in each step Adam on all weights.
        work += KERNEL * (single + 6 * scores)
        return Cost(SORTED * size.rows, work + steps * (5e-3 + 8 * KERNEL * self._weight_count(size)))

    def _memory(self, size: Size) -> float:
        lengths = np.sort(self._sequence_lengths(size))[-(self.batch_size or 1) :]  # of the largest step
        targets = lengths.size if self.targets == "last" else float(lengths.sum())
        copies = 4 + self.stops_early  # weights, two moments and a gradient
        kept = self._kept(lengths) * (SCATTERED_HEAP if self.targets == "last" else 1)
        numbers = copies * self._weight_count(size) + kept + self._loss_numbers(size, targets)
        return rows_memory(size, 3) + 4.0 * numbers

    def _loss_numbers(self, size: Size, targets: float) -> float:
        """Numbers that the loss of a step takes: scores, and the gradient of the items."""
        if self.loss == "softmax":  # some states at a time; the gradient is made in two orders, in each of two parts
            return 2.0 * size.items * (256 + 2 * self._item_width())
        scored = targets * self.negatives
        # bce draws negatives for each position, and gathers their vectors.
        return scored * (6 + 3.0 * self._item_width()) if self.loss == "bce" else 4.0 * scored

    def _smaller(self, size: Size, free: int | None) -> str:
        return "choose a smaller dim, batch_size or max_len, or loss='sampled_softmax' with fewer negatives"


def rounded_to_heads(width: int, heads: int, size: int) -> int:
    """`size`, a part of the hidden size `width`, changed so that `heads` divide the whole; at least 1."""
    less = width % heads
    return size - less if size > less else size + (heads - less) % heads


def check_heads(model: SequenceOptions, heads: int, width: int) -> None:
    """Refuse attention heads that do not divide the hidden size, in a fit and in a file that is loaded."""
    if width % heads:
        fits = ", ".join(str(h) for h in range(1, min(width, 64) + 1) if width % h == 0)
        raise CorankError(
            f"{type(model).__name__}(heads={heads}): heads must divide the hidden size {width}; choose one of {fits}, "
            "or another dim"
        )
