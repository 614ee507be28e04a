"""What sequence models share: training to predict the next item, and scoring histories.

A subclass implements `_network()`. An epoch visits every user with two or more items once (`targets="all"`), or each
prefix of their sequences (`targets="last"`), in random order, `batch_size` of them per step. Batches are packed (see
`nn.batches`), so that almost nothing is computed for padding.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from .. import nn
from ..answering.explain import Reasons
from ..answering.inference import seen_items
from ..answering.update import Growth, owners
from ..answering.vectors import Embeddings, with_bias
from ..data import CSR, Array, Dataset, row_ends
from ..errors import CorankError
from ..nn.batches import Batch, Examples
from ..stored import Lengths, Stored, codes, floats
from ..training import logger
from ._sequence_steps import SequenceSteps
from ._torch import require_torch, torch

if TYPE_CHECKING:
    from torch import Tensor

    from ..nn.parameters import Parameter, Weights
    from ..training import Training
    from ._exported import Exported

TOKENS = 4096  # per batch when scoring


class SequenceNetwork(Protocol):
    """A network over packed sequences. Its weights are given to every call (see `nn.parameters`)."""

    @property
    def width(self) -> int:
        """Size of a hidden state; its first elements score items by inner products with the table "item"."""

    @property
    def table_std(self) -> float | None:
        """Standard deviation of the initial embeddings; None for Glorot's."""

    def parameters(self) -> dict[str, Parameter]:
        """Shape and role of each parameter; the first is the table "item" (items, `_item_width`).

        A parameter "item.bias" (items,) is added to the scores: see `SequenceModel.biased`.
        """

    def encode(self, w: Weights, batch: Batch, noise: Any) -> Tensor:
        """Hidden states (slots, width) of all tokens; noise : a `Noise` for dropout, None outside of training."""

    def encode_last(self, w: Weights, batch: Batch, noise: Any = None) -> Tensor:
        """Hidden states (sequences, width) of the last token of each sequence."""


@dataclass(kw_only=True, eq=False)
class SequenceModel(SequenceSteps):
    """Base class of models that predict the next item of a sequence."""

    biased: ClassVar[bool] = False  # the network has a parameter "item.bias"

    # ---- what a subclass writes ----------------------------------------------------------------------------------

    def _network(self) -> SequenceNetwork:
        """The network of these hyper-parameters; called before training and again to score."""
        raise NotImplementedError

    # ---- what a subclass may write -------------------------------------------------------------------------------

    def _loss(self, net: Any, w: Weights, batch: Examples) -> Tensor:
        """The mean loss of a batch, a scalar."""
        with self._precision(batch):
            encode = net.encode_last if self.targets == "last" else net.encode
            hidden = encode(w, batch, nn.Noise(batch.seed)).float()
        return self._next_item_loss(w, self._of_targets(hidden, batch), batch)

    def _of_targets(self, hidden: Tensor, batch: Examples) -> Tensor:
        """The hidden states (n, width) that predict a target; with targets="last" no others were computed."""
        return hidden if self.targets == "last" else batch.of_targets(hidden)

    # ---- training ------------------------------------------------------------------------------------------------

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        device = self._device()
        if self.bf16 and device.type == "cuda" and not torch.cuda.is_bf16_supported():
            raise CorankError(f"{type(self).__name__}(bf16=True): the device {device} has no bfloat16; leave out bf16")
        if not (np.diff(rows.indptr) > 1).any():
            raise CorankError(
                f"no user has two items, and {self.name()} learns what comes next: give histories of two items or more"
            )
        if self.targets == "last" and self.window > 0:
            raise CorankError(
                f"{type(self).__name__}(targets='last', window={self.window}): a window is chosen where each user is "
                "one sequence; prefixes include all earlier ones: leave out window, or use targets='all'"
            )
        if self.sampling != "uniform" and self.loss_ in ("bce", "softmax"):
            raise CorankError(
                f"{type(self).__name__}(sampling={self.sampling!r}) with loss {self.loss_}: no negatives are shared "
                "there; choose loss='sampled_softmax', 'gbce', 'bpr', 'bpr_max' or 'top1', or leave out sampling"
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
            device=device,
        )
        index = sequences.index.astype(np.int64)
        users = np.flatnonzero(np.diff(sequences.indptr) > 1)
        negatives = self._shared_negatives(index)
        for epoch in training.epochs(first=first, second=second):
            # A falling learning rate lets the weights settle; it is not yet 0 in the last epoch.
            rest = (1 + self.epochs_ - epoch) / max(1.0, self.cooldown * self.epochs_)
            trainer.set_lr(self.lr * min(1.0, rest))
            order, begin, length = self._drawn(rng, users, sequences.indptr)
            steps, total, asked = -(-order.size // self.batch_size_), 0.0, 0
            with trainer.workers() as pool:
                for step in range(steps):
                    at = slice(step * self.batch_size_, (step + 1) * self.batch_size_)
                    parts = self._examples(rng, order[at], begin[at], length[at], index, rows, negatives)
                    work = [self._weighted_loss(net, part) for part in parts]
                    loss = trainer.step((epoch - 1) * steps + step + 1, work, pool)
                    count = sum(part.target.shape[0] for part in parts)
                    total, asked = total + loss * count, asked + count
                    training.progress(step + 1, steps)
            training.report(loss=total / max(1, asked))
        training.check_scores(np.flatnonzero(self.user_length_)[:16])

    def _remember(self, sequences: CSR) -> None:
        """Keep the most recent items of each user, from which scores are computed."""
        length = np.diff(sequences.indptr)
        self.user_length_ = np.minimum(length, self.max_len)
        recent = np.arange(sequences.index.size) >= np.repeat(sequences.indptr[1:] - self.user_length_, length)
        self.recent_ = sequences.index[recent]

    def _weighted_loss(self, net: SequenceNetwork, batch: Examples) -> Callable[[dict[str, Tensor]], Tensor]:
        """The contribution of one part to the loss of a step, as a function of the weights."""
        return lambda w: self._loss(net, w, batch) * batch.weight

    def _next_item_loss(self, w: Weights, hidden: Tensor, batch: Examples, offset: Tensor | None = None) -> Tensor:
        """`loss` of hidden states (n, width) and, unless it cancels, of an offset (n,) of all scores of a token."""
        return nn.next_item_loss(
            self.loss_,
            hidden[:, : self._item_width()],
            w["item"],
            batch.target,
            batch.negative,
            offset=offset,
            bias=w.get("item.bias"),
            gbce_t=self.gbce_t,
            log_q=self.log_q,
            log_probability=batch.log_probability,
            bpreg=self.bpreg,
        )

    def _precision(self, batch: Batch) -> contextlib.AbstractContextManager[Any]:
        if not self.bf16:
            return contextlib.nullcontext()
        return torch.autocast(batch.item.device.type, torch.bfloat16)

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
        """float32 (items, `_item_width`), the embeddings that score items; a view of `weights_`."""
        items, width = len(self.items_), self._item_width()
        return self.weights_[: items * width].reshape(items, width)

    def _views(self) -> tuple[Any, dict[str, Tensor]]:
        """The network and its weights on the device; on a CPU they share memory with `weights_`."""
        device, net = self._device(), self._network()
        return net, nn.Layout(net.parameters()).views(torch.from_numpy(self.weights_).to(device))

    def _recent(self, users: Array) -> CSR:
        """The most recent items of training users, in time order."""
        indptr = row_ends(self.user_length_)
        if indptr[-1] != self.recent_.size:
            raise ValueError("the stored sequences have another length than they say")
        return CSR(indptr, self.recent_, np.ones(self.recent_.size, np.float32), len(self.items_)).take(users)

    def _history(self, user: int) -> CSR:
        return self._recent(np.array([user]))

    def _contributions(
        self, user: int | None, history: CSR, items: NDArray[np.int32], scores: NDArray[np.float64]
    ) -> Reasons:
        read = slice(max(0, history.index.size - self.max_len), history.index.size)  # what the network sees
        window = CSR(row_ends([read.stop - read.start]), history.index[read], history.value[read], history.columns)
        return super()._contributions(user, window, items, scores)

    def _absorb(self, growth: Growth) -> None:
        """New rows extend what is read of their users; a fresh item gets the mean vector of the items beside it.

        These are the items right before and after it in the sequences of its users; the mean of all items where there
        are none. The other weights stay as they are.
        """
        recent, new = self._recent(np.arange(len(self.users_))), growth.added.sequences()
        owner = np.concatenate([owners(recent), owners(new)])
        order = np.argsort(owner, kind="stable")
        index = np.concatenate([recent.index, new.index])[order]
        lengths = np.bincount(owner, minlength=len(self.users_))
        joined = CSR(row_ends(lengths), index, np.ones(index.size, np.float32), len(self.items_))
        self._remember(joined)
        self.weights_ = self._grown_weights(growth, joined)

    def _grown_weights(self, growth: Growth, sequences: CSR) -> NDArray[np.float32]:
        """The weights with a row for each new item in the tables of items, and whatever else has grown."""
        before: Any = growth.before
        _, old = before._views()
        layout = nn.Layout(self._network().parameters())
        weights = layout.empty()
        for name, view in layout.views(torch.from_numpy(weights)).items():
            table = old[name].cpu().numpy()
            if name in ("item", "input"):
                table = growth.grown(table, 0, "items")
                beside(table, growth, sequences)
            elif table.shape != tuple(view.shape):
                table = self._grown_table(growth, name, table, len(view))
            view.numpy()[:] = table
        return weights

    def _grown_table(self, growth: Growth, name: str, table: Array, rows: int) -> Array:
        """A parameter of another kind that has more rows now: the new ones are the mean of the others."""
        if name == "item.bias":
            return growth.grown_with_means(table, "items")
        return np.concatenate([table, np.tile(table.mean(axis=0), (rows - len(table), 1))])

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

    def _embeddings(self) -> Embeddings:
        every = np.arange(len(self.users_), dtype=np.int32)
        states = self._vectors(every, self._recent(every))[:, : self._item_width()]
        if not self.biased:
            return Embeddings(states, self.item_factors_)
        return with_bias(states, self.item_factors_, self._views()[1]["item.bias"].cpu().numpy())

    def _exported(self) -> Exported:
        from ._exported import history_scores

        return history_scores(self)

    def _scores(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Scores of all items from states (b, width), which are zero where the history is empty."""
        scores = np.asarray(vectors[:, : self._item_width()] @ self.item_factors_.T)
        return scores + self._views()[1]["item.bias"].cpu().numpy() if self.biased else scores

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
                out[chosen] = net.encode_last(w, batch).cpu().numpy()

        parts = [part for part in np.split(order, cuts) if part.size]
        if self._device().type == "cpu":
            each(encode, parts)
        else:
            for part in parts:  # a GPU has threads of its own
                encode(part)
        return out


def beside(table: Array, growth: Growth, sequences: CSR) -> None:
    """Set the rows of the fresh items to the mean of the items that stand next to them in the sequences, in place."""
    fresh = growth.fresh
    known = np.setdiff1d(np.unique(growth.old.index), fresh)
    total = np.zeros((len(table), table.shape[1]), np.float64)
    count = np.zeros(len(table))
    same_user = np.diff(owners(sequences)) == 0
    first, second = sequences.index[:-1][same_user], sequences.index[1:][same_user]
    for one, other in ((first, second), (second, first)):
        pairs = np.isin(one, fresh) & ~np.isin(other, fresh)
        np.add.at(total, one[pairs], table[other[pairs]])
        count += np.bincount(one[pairs], minlength=len(table))
    table[fresh] = table[known].mean(axis=0)
    found = fresh[count[fresh] > 0]
    table[found] = total[found] / count[found, None]
