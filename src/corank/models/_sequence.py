"""What sequence models share: training to predict the next item, and scoring histories.

A subclass implements `_network()`. An epoch visits every user with two or more items once (`targets="all"`), or each
prefix of their sequences (`targets="last"`), in random order, `batch_size` of them per step. Batches are packed (see
`nn.batches`), so that almost nothing is computed for padding.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .. import nn
from ..answering.inference import seen_items
from ..data import CSR, Array, Dataset, row_ends
from ..errors import CorankError
from ..nn import batches
from ..nn.batches import Batch, Examples
from ..stored import Lengths, Stored, codes, floats
from ..training import logger
from ._sequence_options import SequenceOptions
from ._torch import require_torch, torch

if TYPE_CHECKING:
    from torch import Tensor

    from ..nn.parameters import Parameter, Weights
    from ..training import Training

PARTS = 2  # of a batch, computed in parallel; a constant, so that results do not depend on the number of threads
WORTH = 1_000_000  # scores that a batch must compute to be worth dividing
TOKENS = 4096  # per batch when scoring
Ints = NDArray[np.int64]


class SequenceNetwork(Protocol):
    """A network over packed sequences. Its weights are given to every call (see `nn.parameters`)."""

    @property
    def width(self) -> int:
        """Size of a hidden state; its first `dim` elements score items by inner products with the table "item"."""

    @property
    def table_std(self) -> float | None:
        """Standard deviation of the initial embeddings; None for Glorot's."""

    def parameters(self) -> dict[str, Parameter]:
        """Shape and role of each parameter; the first is the table "item" (items, dim)."""

    def encode(self, w: Weights, batch: Batch, noise: Any) -> Tensor:
        """Hidden states (slots, width) of all tokens; noise : a `Noise` for dropout, None outside of training."""

    def encode_last(self, w: Weights, batch: Batch, noise: Any = None) -> Tensor:
        """Hidden states (sequences, width) of the last token of each sequence."""


@dataclass(kw_only=True, eq=False)
class SequenceModel(SequenceOptions):
    """Base class of models that predict the next item of a sequence."""

    # ---- what a subclass writes ----------------------------------------------------------------------------------

    def _network(self) -> SequenceNetwork:
        """The network of these hyper-parameters; called before training and again to score."""
        raise NotImplementedError

    # ---- what a subclass may write -------------------------------------------------------------------------------

    def _batch_users(self, rng: np.random.Generator, users: Ints) -> Ints:
        """The user codes that the network sees instead of these, one per sequence."""
        return users

    def _loss(self, net: Any, w: Weights, batch: Examples) -> Tensor:
        """The mean loss of a batch, a scalar."""
        with self._precision():
            encode = net.encode_last if self.targets == "last" else net.encode
            hidden = encode(w, batch, nn.Noise(batch.seed)).float()
        return self._next_item_loss(w, self._of_targets(hidden, batch), batch)

    def _of_targets(self, hidden: Tensor, batch: Examples) -> Tensor:
        """The hidden states (n, width) that predict a target; with targets="last" no others were computed."""
        return hidden if self.targets == "last" else batch.of_targets(hidden)

    # ---- training ------------------------------------------------------------------------------------------------

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        require_torch(self)
        if not (np.diff(rows.indptr) > 1).any():
            raise CorankError(
                f"no user has two items, and {self.name()} learns what comes next: give histories of two items or more"
            )
        if self.targets == "last" and self.window > 0:
            raise CorankError(
                f"{type(self).__name__}(targets='last', window={self.window}): a window is chosen where each user is "
                "one sequence; prefixes include all earlier ones: leave out window, or use targets='all'"
            )
        if data.time is None:
            logger.warning("%s: the rows have no times, so their order is taken as the order in time", self.name())
        from ..kernels.threads import threads

        rng = training.rng
        sequences = data.sequences()
        self._remember(sequences)
        net = self._network()
        layout = nn.Layout(net.parameters())
        self.weights_ = layout.initial_weights(rng, net.table_std)
        first, second = layout.empty(), layout.empty()  # Adam's moments
        trainer = nn.Trainer(
            layout,
            self.weights_,
            first,
            second,
            lr=self.lr,
            weight_decay=self.weight_decay,
            l2=self.l2_emb,
            threads=threads(),
        )
        index = sequences.index.astype(np.int64)
        users = np.flatnonzero(np.diff(sequences.indptr) > 1)
        for epoch in training.epochs(first=first, second=second):
            # A falling learning rate lets the weights settle; it is not yet 0 in the last epoch.
            rest = (1 + self.epochs_ - epoch) / max(1.0, self.cooldown * self.epochs_)
            trainer.set_lr(self.lr * min(1.0, rest))
            order, begin, length = self._drawn(rng, users, sequences.indptr)
            steps, total, asked = -(-order.size // self.batch_size_), 0.0, 0
            with trainer.workers() as pool:
                for step in range(steps):
                    at = slice(step * self.batch_size_, (step + 1) * self.batch_size_)
                    parts = self._examples(rng, order[at], begin[at], length[at], index, rows)
                    work = [self._weighted_loss(net, part) for part in parts]
                    loss = trainer.step((epoch - 1) * steps + step + 1, work, pool)
                    count = sum(part.target.shape[0] for part in parts)
                    total, asked = total + loss * count, asked + count
                    training.progress(step + 1, steps)
            training.report(loss=total / max(1, asked))
        training.check_scores(np.flatnonzero(self.user_length_)[:16])

    def _drawn(self, rng: np.random.Generator, users: Ints, indptr: Array) -> tuple[Ints, Ints, Ints]:
        """The sequences of an epoch in random order: (user, begin, length), where in all sequences its inputs are."""
        if self.targets == "last":
            history, begin, length = batches.prefixes(indptr[users], indptr[users + 1], self.max_len)
            order = rng.permutation(history.size)
            return users[history[order]], begin[order], length[order]
        order = rng.permutation(users)
        return order, *batches.windows(rng, indptr[order], indptr[order + 1], self.max_len, self.window)

    def _remember(self, sequences: CSR) -> None:
        """Keep the most recent items of each user, from which scores are computed."""
        length = np.diff(sequences.indptr)
        self.user_length_ = np.minimum(length, self.max_len)
        recent = np.arange(sequences.index.size) >= np.repeat(sequences.indptr[1:] - self.user_length_, length)
        self.recent_ = sequences.index[recent]

    def _examples(
        self, rng: np.random.Generator, users: Ints, begin: Ints, length: Ints, index: Ints, rows: CSR
    ) -> list[Examples]:
        """The sequences of one step, divided into parts, with all random draws but those of dropout.

        users, begin, length : (b,) of `_drawn`. rows : all interactions, never used as negatives.
        """
        items = len(self.items_)
        targets = users.size if self.targets == "last" else int(length.sum())
        shared = None
        if self.loss_ not in ("bce", "softmax"):
            shared = rng.integers(0, items, self.negatives)
        seen_as = self._batch_users(rng, users)
        seed = int(rng.integers(2**62))
        work = targets * items if self.loss_ == "softmax" else 512 * int(length.sum())
        parts = PARTS if work > WORTH else 1
        out = []
        for number, chosen in enumerate(batches.deal(length, parts)):
            packed = batches.pack(begin[chosen], length[chosen])
            item, target = index[packed.at], index[packed.at + 1]  # (s,)
            if self.sse_coupled:
                item, target = batches.replace_coupled(rng, item, target, packed.step, self.sse_item, items)
            else:
                item = batches.replace(rng, item, self.sse_item, items)
                target = batches.replace(rng, target, self.sse_target, items)
            row, asked = packed.row, packed.last if self.targets == "last" else packed.real
            if asked is not None:
                target, row = target[asked], row[asked]  # (n,)
            negative = shared
            if self.loss_ == "bce":
                own = rows.take(users[chosen])
                owner = np.repeat(np.arange(chosen.size, dtype=np.int64), np.diff(own.indptr))
                negative = batches.negatives(rng, row, (owner, own.index.astype(np.int64)), items, self.negatives)
            out.append(
                Examples(
                    packed,
                    torch.from_numpy(item),
                    torch.from_numpy(self.max_len - length[chosen][packed.row] + packed.step),
                    torch.from_numpy(seen_as[chosen]),
                    asked,
                    torch.from_numpy(target),
                    None if negative is None else torch.from_numpy(negative),
                    target.size / targets,
                    (seed, number),
                )
            )
        return out

    def _weighted_loss(self, net: SequenceNetwork, batch: Examples) -> Callable[[dict[str, Tensor]], Tensor]:
        """The contribution of one part to the loss of a step, as a function of the weights."""
        return lambda w: self._loss(net, w, batch) * batch.weight

    def _next_item_loss(self, w: Weights, hidden: Tensor, batch: Examples, offset: Tensor | None = None) -> Tensor:
        """`loss` of hidden states (n, width) and, unless it cancels, of an offset (n,) of all scores of a token."""
        return nn.next_item_loss(
            self.loss_,
            hidden[:, : self.dim],
            w["item"],
            batch.target,
            batch.negative,
            offset=offset,
            gbce_t=self.gbce_t,
            log_q=self.log_q,
        )

    def _precision(self) -> contextlib.AbstractContextManager[Any]:
        return torch.autocast("cpu", torch.bfloat16, enabled=self.bf16)

    def _stores(self) -> dict[str, Stored]:
        return super()._stores() | {
            "user_length_": Lengths(of="users", into="recent items", most="max_len"),
            "recent_": codes("recent items"),
            "weights_": floats("parameters"),
        }

    def _size(self, word: str) -> int | None:
        if word != "parameters":
            return super()._size(word)
        require_torch(self)
        return nn.Layout(self._network().parameters()).size

    # ---- scoring -------------------------------------------------------------------------------------------------

    @property
    def item_factors_(self) -> NDArray[np.float32]:
        """float32 (items, dim), the embeddings that score items; a view of `weights_`."""
        return self.weights_[: len(self.items_) * self.dim].reshape(len(self.items_), self.dim)

    def _views(self) -> tuple[Any, dict[str, Tensor]]:
        """The network and its weights, which share memory with `weights_`."""
        require_torch(self)
        net = self._network()
        return net, nn.Layout(net.parameters()).views(torch.from_numpy(self.weights_))

    def _recent(self, users: Array) -> CSR:
        """The most recent items of training users, in time order."""
        indptr = row_ends(self.user_length_)
        if indptr[-1] != self.recent_.size:
            raise ValueError("the stored sequences have another length than they say")
        return CSR(indptr, self.recent_, np.ones(self.recent_.size, np.float32), len(self.items_)).take(users)

    def _training_rows(self) -> CSR:
        # Items before the most recent ones are kept without their order, which no score depends on.
        seen, recent = seen_items(self), self._recent(np.arange(len(self.users_)))
        every = [np.repeat(np.arange(rows.rows), np.diff(rows.indptr)) for rows in (seen, recent)]
        older = ~recent.merged().holds(every[0], seen.index)
        owner = np.concatenate([every[0][older], every[1]])
        order = np.argsort(owner, kind="stable")
        index = np.concatenate([seen.index[older], recent.index])[order]
        return CSR(
            row_ends(np.bincount(owner, minlength=seen.rows)), index, np.ones(index.size, np.float32), seen.columns
        )

    def _score(self, users: NDArray[np.int32]) -> NDArray[np.float32]:
        return self._scores(self._vectors(users, self._recent(users)))

    def _score_histories(self, histories: CSR) -> NDArray[np.float32]:
        return self._scores(self._vectors(None, histories))

    def _score_known(self, users: NDArray[np.int32], histories: CSR) -> NDArray[np.float32]:
        return self._scores(self._vectors(users, histories))

    def _scorer(self, users: NDArray[np.int32] | None, histories: CSR | None) -> Callable[[slice], Array]:
        # All histories are encoded at once: the slices of a request are too small to keep the network busy.
        if histories is None:
            histories = self._recent(users)  # type: ignore[arg-type]
        vectors = self._vectors(users, histories)
        return lambda part: self._scores(vectors[part])

    def _scores(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Scores of all items from states (b, width); all zero where the history is empty."""
        return np.asarray(vectors[:, : self.dim] @ self.item_factors_.T)

    def _vectors(self, users: Array | None, histories: CSR) -> NDArray[np.float32]:
        """The last hidden state of each history, float32 (b, width); zero where it is empty. users: None if unseen."""
        from ..kernels.threads import each

        net, w = self._views()
        stop = histories.indptr[1:]
        length = np.minimum(np.diff(histories.indptr), self.max_len)
        index = histories.index.astype(np.int64)
        codes = None if users is None else np.asarray(users, np.int64)
        out = np.zeros((histories.rows, net.width), np.float32)
        order = np.argsort(-length, kind="stable")
        order = order[length[order] > 0]
        run = np.cumsum(length[order])
        cuts = np.searchsorted(run, np.arange(TOKENS, int(length.sum()) + TOKENS, TOKENS)) + 1

        def encode(chosen: Array) -> None:
            user = None if codes is None else codes[chosen]
            batch = self._batch(index, stop[chosen] - length[chosen], length[chosen], user)
            with nn.one_thread(), torch.inference_mode():
                out[chosen] = net.encode_last(w, batch).numpy()

        each(encode, [part for part in np.split(order, cuts) if part.size])
        return out

    def _batch(self, index: Ints, begin: Ints, length: Ints, users: Ints | None) -> Batch:
        """Histories of `length` (b,) items from `begin` (b,) in `index`, as a network reads them."""
        packed = batches.pack(begin, length)
        position = self.max_len - length[packed.row] + packed.step
        return Batch(
            packed,
            torch.from_numpy(index[packed.at]),
            torch.from_numpy(position),
            None if users is None else torch.from_numpy(users),
        )
