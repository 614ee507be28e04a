"""What a step of a sequence model reads: which sequences, with which targets and which negatives, as packed batches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import nn
from ..data import CSR, Array
from ..nn import batches
from ..nn.batches import Batch, Examples
from ..nn.negatives import SharedNegatives
from ._sequence_options import SequenceOptions

PARTS = 2  # of a batch, computed in parallel; a constant, so that results do not depend on the number of threads
WORTH = 1_000_000  # scores that a batch must compute to be worth dividing
Ints = NDArray[np.int64]


@dataclass(kw_only=True, eq=False)
class SequenceSteps(SequenceOptions):
    """The batches of sequence models, in training and for scores."""

    def _batch_users(self, rng: np.random.Generator, users: Ints) -> Ints:
        """The user codes that the network sees instead of these, one per sequence."""
        return users

    def _drawn(self, rng: np.random.Generator, users: Ints, indptr: Array) -> tuple[Ints, Ints, Ints]:
        """The sequences of an epoch in random order: (user, begin, length), where in all sequences its inputs are."""
        if self.targets == "last":
            history, begin, length = batches.prefixes(indptr[users], indptr[users + 1], self.max_len)
            order = rng.permutation(history.size)
            return users[history[order]], begin[order], length[order]
        order = rng.permutation(users)
        return order, *batches.windows(rng, indptr[order], indptr[order + 1], self.max_len, self.window)

    def _shared_negatives(self, index: Ints) -> SharedNegatives:
        """How the negatives that all positions of a step share are drawn; index : the items of all sequences."""
        count = np.bincount(index, minlength=len(self.items_))
        return SharedNegatives(self.sampling, count, self.negatives, self.sampling_power)

    def _examples(
        self,
        rng: np.random.Generator,
        users: Ints,
        begin: Ints,
        length: Ints,
        index: Ints,
        rows: CSR,
        negatives: SharedNegatives | None = None,
    ) -> list[Examples]:
        """The sequences of one step, divided into parts, with all random draws but those of dropout.

        users, begin, length : (b,) of `_drawn`. rows : all interactions, never used as negatives per position.
        negatives : of `_shared_negatives`, so that they are not counted anew in each step.
        """
        items, device = len(self.items_), self._device()
        targets = users.size if self.targets == "last" else int(length.sum())
        shared, log_probability = None, None
        if self.loss_ not in ("bce", "softmax"):
            negatives = negatives or self._shared_negatives(index)
            shared = negatives.draw(rng, index[batches.targets(begin, length, self.targets == "all")])
            if self.log_q and negatives.log_probability is not None:
                log_probability = nn.send(negatives.log_probability[shared], device)
        seen_as = self._batch_users(rng, users)
        seed = int(rng.integers(2**62))
        work = targets * items if self.loss_ == "softmax" else 512 * int(length.sum())
        parts = PARTS if work > WORTH and device.type == "cpu" else 1
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
                    nn.send(item, device),
                    nn.send(self.max_len - length[chosen][packed.row] + packed.step, device),
                    nn.send(seen_as[chosen], device),
                    asked,
                    nn.send(target, device),
                    None if negative is None else nn.send(negative, device),
                    target.size / targets,
                    (seed, number),
                    log_probability,
                )
            )
        return out

    def _batch(self, index: Ints, begin: Ints, length: Ints, users: Ints | None) -> Batch:
        """Histories of `length` (b,) items from `begin` (b,) in `index`, as a network reads them."""
        packed = batches.pack(begin, length)
        position = self.max_len - length[packed.row] + packed.step
        device = self._device()
        return Batch(
            packed,
            nn.send(index[packed.at], device),
            nn.send(position, device),
            None if users is None else nn.send(users, device),
        )
