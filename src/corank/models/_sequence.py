"""What models of sequences share: learning to score the next item at every place of every sequence.

An epoch visits every user with two or more items once, in random order, `batch_size` at a time. The last `max_len` + 1
items are used; with probability `window` a longer history gives an earlier stretch instead. Scores of a user come from
the last `max_len` items: those of training for known users, any others for `recommend(histories=...)`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..answering import read_histories, require_fitted, user_codes
from ..data import CSR, Array, Dataset, row_ends
from ..errors import CorankError, MissingExtra
from ..model import Model
from ..training import logger

if TYPE_CHECKING:
    from torch import Tensor

    from ..nn.attention import Network, Weights
    from ..nn.batches import Packed
    from ..training import Training

PARTS = 2  # of a batch, worked on side by side; fixed, so that results do not depend on the number of threads
WORTH = 1_000_000  # scores a batch must ask for to be worth dealing out
SPREAD = 0.02  # of the embeddings at the start, for the modern form
TOKENS = 4096  # encoded at a time when scoring
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Batch:
    """Sequences to learn from: tokens in slots, and what should come after the n real ones."""

    packed: Packed
    item: Ints  # [slots]
    position: Ints  # [slots]
    user: Ints  # [sequences]
    target: Ints  # [n]
    negative: Ints | None  # [n, k], or [k] shared by all, or none
    share: float  # of all tokens of the step
    seed: tuple[int, int]  # of dropout


class Sequential(Model):
    """Base of `sasrec` and `sse_pt`; a subclass declares the hyper-parameters."""

    dim: int
    blocks: int
    heads: int
    max_len: int
    dropout: float
    attention_dropout: float | None
    norm: str
    lr: float
    cooldown: float
    batch_size: int
    epochs: int
    patience: int | None
    weight_decay: float
    l2_emb: float
    loss: str
    negatives: int
    gbce_t: float
    log_q: bool
    sse_item: float
    sse_target: float
    sse_coupled: bool
    window: float
    bf16: bool

    dim_user: int = 0  # no users in the network, unless a subclass has them
    sse_user: float = 0.0
    order_matters: ClassVar[bool] = True
    tasks: ClassVar[tuple[str, ...]] = ("sequential",)

    # ---- learning ------------------------------------------------------------------------------------------------

    def _network(self) -> Network:
        try:
            from ..nn.attention import Network
        except ModuleNotFoundError as why:
            if why.name != "torch":
                raise
            raise MissingExtra(f"{type(self).__name__}", "nn") from None
        inner = self.dropout if self.norm == "published" else 0.0
        return Network(
            items=len(self.items_),
            dim=int(self.dim),
            max_len=int(self.max_len),
            blocks=int(self.blocks),
            heads=int(self.heads),
            norm=self.norm,
            dropout=float(self.dropout),
            attention_dropout=float(inner if self.attention_dropout is None else self.attention_dropout),
            users=self._user_vectors(),
            dim_user=int(self.dim_user),
        )

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        rng = training.rng
        width = int(self.dim) + int(self.dim_user)
        if width % self.heads:
            fits = ", ".join(str(h) for h in range(1, width + 1) if width % h == 0)
            raise CorankError(
                f"{type(self).__name__}(heads={self.heads}): heads must divide the width {width} of the network; "
                f"choose one of {fits}, or another dim"
            )
        if not (np.diff(rows.indptr) > 1).any():
            raise CorankError(
                f"no user has two items, and {self.name()} learns what comes next: give histories of two items or more"
            )
        if data.time is None:
            logger.warning("%s: the rows have no times, so their order is taken as the order in time", self.name())
        net = self._network()
        from ..kernels.threads import threads
        from ..nn.batches import windows
        from ..nn.loop import Trainer
        from ..nn.parameters import Layout

        sequences = data.sequences()
        self._remember(sequences)
        layout = Layout(net.parameters())
        weights = self.weights_ = layout.initial_weights(rng, SPREAD if self.norm == "pre" else None)
        first, second = layout.empty(), layout.empty()
        trainer = Trainer(
            layout,
            weights,
            first,
            second,
            lr=float(self.lr),
            weight_decay=float(self.weight_decay),
            l2=float(self.l2_emb),
            threads=threads(),
        )
        index = sequences.index.astype(np.int64)
        users = np.flatnonzero(np.diff(sequences.indptr) > 1)
        batches = -(-users.size // int(self.batch_size))
        for epoch in training.epochs(first=first, second=second):
            # Short steps at the end let the weights settle; the last epoch still moves.
            rest = (1 + int(self.epochs) - epoch) / max(1.0, float(self.cooldown) * int(self.epochs))
            trainer.set_lr(float(self.lr) * min(1.0, rest))
            order = rng.permutation(users)
            ends = sequences.indptr[order], sequences.indptr[order + 1]
            begin, length = windows(rng, *ends, int(self.max_len), float(self.window))
            total, tokens = 0.0, max(1, int(length.sum()))
            with trainer.workers() as pool:
                for number in range(batches):
                    at = slice(number * int(self.batch_size), (number + 1) * int(self.batch_size))
                    parts = self._batches(rng, order[at], begin[at], length[at], index, rows)
                    work = [self._part(net, part) for part in parts]
                    loss = trainer.step((epoch - 1) * batches + number + 1, work, pool)
                    total += loss * int(length[at].sum())
            training.report(loss=total / tokens)
        training.check_scores(np.flatnonzero(self.user_length_)[:16])

    def _remember(self, sequences: CSR) -> None:
        """Keep the newest items of each user, which is what scores are made of."""
        length = np.diff(sequences.indptr)
        self.user_length_ = np.minimum(length, int(self.max_len))
        fresh = np.arange(sequences.index.size) >= np.repeat(sequences.indptr[1:] - self.user_length_, length)
        self.recent_ = sequences.index[fresh]

    def _batches(
        self, rng: np.random.Generator, users: Array, begin: Ints, length: Ints, index: Ints, rows: CSR
    ) -> list[Batch]:
        """One step's users, dealt into parts, with everything drawn that is drawn before the network runs."""
        from ..nn import batches as nn

        items = len(self.items_)
        tokens = int(length.sum())
        shared = None
        if self.loss not in ("bce", "softmax"):
            shared = rng.integers(0, items, int(self.negatives))
        drawn_users = nn.replace(rng, users, float(self.sse_user), len(self.users_))
        seed = int(rng.integers(2**62))
        out = []
        parts = PARTS if tokens * (items if self.loss == "softmax" else 512) > WORTH else 1
        for number, chosen in enumerate(nn.deal(length, parts)):
            packed = nn.pack(begin[chosen], length[chosen])
            item, target = index[packed.at], index[packed.at + 1]
            if self.sse_coupled:
                item, target = nn.replace_coupled(rng, item, target, packed.step, float(self.sse_item), items)
            else:
                item = nn.replace(rng, item, float(self.sse_item), items)
                target = nn.replace(rng, target, float(self.sse_target), items)
            position = int(self.max_len) - length[chosen][packed.row] + packed.step
            row = packed.row
            if packed.real is not None:
                target, row = target[packed.real], row[packed.real]
            negative = shared
            if self.loss == "bce":
                taken = rows.take(users[chosen])
                owner = np.repeat(np.arange(chosen.size, dtype=np.int64), np.diff(taken.indptr))
                negative = nn.negatives(rng, row, (owner, taken.index.astype(np.int64)), items, int(self.negatives))
            share = target.size / tokens
            out.append(Batch(packed, item, position, drawn_users[chosen], target, negative, share, (seed, number)))
        return out

    def _part(self, net: Network, batch: Batch) -> Callable[[dict[str, Tensor]], Tensor]:
        """The share of a batch in the loss, as a function of the weights."""
        import torch

        from ..nn.noise import Noise

        def run(w: dict[str, Tensor]) -> Tensor:
            item, position, target = (torch.from_numpy(a) for a in (batch.item, batch.position, batch.target))
            user = self._rows_of_users(w, batch.user)
            slots = None if user is None else user[torch.from_numpy(batch.packed.row)]
            with torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
                hidden = net.encode(w, item, position, slots, batch.packed, Noise(batch.seed)).float()
            if batch.packed.real is not None:
                real = torch.from_numpy(batch.packed.real)
                hidden, slots = hidden[real], None if slots is None else slots[real]
            return self._loss(w, hidden, slots, target, batch.negative) * batch.share

        return run

    def _user_vectors(self) -> int:
        """How many vectors of users the network has."""
        return 0

    def _rows_of_users(self, w: Weights, users: Ints | None) -> Tensor | None:
        """Vectors float32[b, dim_user] of user codes, for networks that have them; users=None: somebody unknown."""
        return None

    def _loss(self, w: Weights, hidden: Tensor, user: Tensor | None, target: Tensor, negative: Ints | None) -> Tensor:
        """The mean loss of n hidden states, [n, width]."""
        import torch

        from ..nn import losses
        from ..nn.tables import rows

        table, items = w["item"], len(self.items_)
        state = hidden[:, : self.dim]
        if negative is None:
            return losses.softmax(state, table, target)
        positive = (state * rows(table, target)).sum(1)
        drawn = torch.from_numpy(negative)
        if drawn.dim() == 1:
            scores = state @ rows(table, drawn).t()
            scores = scores.masked_fill(drawn[None, :] == target[:, None], -torch.inf)
        elif drawn.shape[1] == 1:
            scores = (state * rows(table, drawn[:, 0])).sum(1, keepdim=True)
        else:
            scores = torch.einsum("nd,nkd->nk", state, rows(table, drawn.view(-1)).view(*drawn.shape, -1))
        if user is not None and self.loss != "sampled_softmax":  # there it adds the same to all logits
            lift = (hidden[:, self.dim :] * user).sum(1) * float(self.dim_user) ** 0.5
            positive, scores = positive + lift, scores + lift[:, None]
        if self.loss == "gbce":
            return losses.gbce(positive, scores, items=items, t=float(self.gbce_t))
        if self.loss == "sampled_softmax":
            weight = float(np.log(max(1, items - 1) / drawn.numel())) if self.log_q else 0.0
            return losses.sampled_softmax(positive, scores, log_weight=weight)
        plain = {"bce": losses.bce, "bpr": losses.bpr, "bpr_max": losses.bpr_max, "top1": losses.top1}
        return plain[self.loss](positive, scores)

    # ---- answering -----------------------------------------------------------------------------------------------

    @property
    def item_factors_(self) -> NDArray[np.float32]:
        """float32[items, dim], the table that scores are made with; a view of `weights_`."""
        return self.weights_[: len(self.items_) * int(self.dim)].reshape(len(self.items_), int(self.dim))

    def _views(self) -> tuple[Network, dict[str, Tensor]]:
        import torch

        from ..nn.parameters import Layout

        net = self._network()
        return net, Layout(net.parameters()).views(torch.from_numpy(self.weights_))

    def _recent(self, users: Array) -> CSR:
        """What is known of users: their newest items, in order."""
        indptr = row_ends(self.user_length_)
        if indptr[-1] != self.recent_.size:
            raise ValueError("the stored sequences have another length than they say")
        return CSR(indptr, self.recent_, np.ones(self.recent_.size, np.float32), len(self.items_)).take(users)

    def _score(self, users: NDArray[np.int32]) -> NDArray[np.float32]:
        return self._score_known(users, self._recent(users))

    def _score_histories(self, histories: CSR) -> NDArray[np.float32]:
        return self._scores(self._vectors(None, histories))

    def _score_known(self, users: NDArray[np.int32], histories: CSR) -> NDArray[np.float32]:
        return self._scores(self._vectors(users, histories))

    def _scorer(self, users: NDArray[np.int32] | None, histories: CSR | None) -> Callable[[slice], Array]:
        # Ranking goes by so few users at a time that the network would be busy with being called.
        if histories is None:
            histories = self._recent(users)  # type: ignore[arg-type]
        vectors = self._vectors(users, histories)
        return lambda part: self._scores(vectors[part])

    def _scores(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Of all items; all zero where there is no history."""
        return np.asarray(vectors[:, : int(self.dim)] @ self.item_factors_.T)

    def _vectors(self, users: Array | None, histories: CSR) -> NDArray[np.float32]:
        """The last hidden state of each history, float32[b, width]; zero where there is none."""
        import torch

        from ..kernels.threads import each
        from ..nn.batches import pack
        from ..nn.loop import one_thread

        net, w = self._views()
        stop = histories.indptr[1:]
        length = np.minimum(np.diff(histories.indptr), int(self.max_len))
        index = histories.index.astype(np.int64)
        out = np.zeros((histories.rows, net.width), np.float32)
        order = np.argsort(-length, kind="stable")
        order = order[length[order] > 0]
        run = np.cumsum(length[order])
        cuts = np.searchsorted(run, np.arange(TOKENS, int(length.sum()) + TOKENS, TOKENS)) + 1

        def encode(chosen: Array) -> None:
            packed = pack(stop[chosen] - length[chosen], length[chosen])
            position = int(self.max_len) - length[chosen][packed.row] + packed.step
            with one_thread(), torch.inference_mode():
                user = self._rows_of_users(w, None if users is None else np.asarray(users, np.int64)[chosen])
                slots = None if user is None else user.expand(chosen.size, -1)[torch.from_numpy(packed.row)]
                item = torch.from_numpy(index[packed.at])
                last = net.encode_last(w, item, torch.from_numpy(position), slots, packed)
            out[chosen] = last.numpy()

        each(encode, [part for part in np.split(order, cuts) if part.size])
        return out

    def attention(self, user: Hashable | None = None, *, history: Iterable[Hashable] | None = None) -> dict[str, Any]:
        """Where the model looks: {"items": L ids, oldest first, "weights": float32[blocks, heads, L, L]}.

        Row t of the weights says how much each of the items up to t counts for what comes after t. Give a user that fit
        saw, or the history of anybody.
        """
        import torch

        from ..nn.batches import pack

        require_fitted(self)
        if (user is None) == (history is None):
            raise CorankError("attention takes one user or one history: give a user id, or history=[...]")
        codes = None if user is None else user_codes(self, [user])
        rows = read_histories(self, [list(history or ())])[1] if codes is None else self._recent(codes)
        item = rows.index[-int(self.max_len) :].astype(np.int64)
        if item.size == 0:
            shape = (int(self.blocks), int(self.heads), 0, 0)
            return {"items": [], "weights": np.zeros(shape, np.float32)}
        net, w = self._views()
        packed = pack(np.zeros(1, np.int64), np.array([item.size]))
        with torch.inference_mode():
            vector = self._rows_of_users(w, None if codes is None else codes.astype(np.int64))
            slots = None if vector is None else vector.expand(item.size, -1)
            position = torch.arange(int(self.max_len) - item.size, int(self.max_len))
            found = net.weights_of_attention(w, torch.from_numpy(item), position, slots, packed)
        return {"items": self.items_.ids[item].tolist(), "weights": found.numpy()}
