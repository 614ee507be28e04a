"""What models of first-order transitions share: the last item of a user, with or without the user, predicts the next.

They are trained by sequential BPR (see `kernels.sequential_bpr`) on every pair of consecutive items of a sequence. A
subclass creates its tables (`_create`), takes the steps of some samples (`_steps`), gives their margins (`_margins`)
and scores items after a last item (`_after`).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answering.inference import seen_items
from ..cost import KERNEL, SCATTERED, SORTED, Cost, Size, factors_memory, rows_memory
from ..data import CSR, Array, Dataset
from ..errors import CorankError
from ..model import Model
from ..params import param
from ..stored import Number, Numbers, Stored
from ..training import logger

if TYPE_CHECKING:
    from ..kernels.sse import Replacement
    from ..training import Training

CHUNK = 1 << 19  # samples whose negatives are drawn at a time
SAMPLE = 65_536  # samples on which the loss is measured, the same in each epoch
Codes = NDArray[np.int32]


class Samples(NamedTuple):
    """User, last item and next item of each pair of consecutive items, and negatives (n, c), -1 where there is none."""

    user: Codes
    last: Codes
    following: Codes
    negative: Codes


@dataclass(kw_only=True, eq=False)
class TransitionModel(Model):
    """Base class of models in which the last item of a history predicts the next one."""

    dim: int = param(64, "embedding size", low=1, high=65_536, search=(16, 128), log=True)
    lr: float = param(0.1, "initial learning rate", low=1e-6, search=(0.03, 0.3), log=True)
    decay: float = param(0.97, "lr is multiplied by this after each epoch", low=0.01, high=1.0, search=(0.9, 1.0))
    negatives: int = param(4, "number of negatives per pair and epoch, drawn with replacement", low=1, search=(1, 8))
    epochs: int | None = param(
        None,
        "passes over the pairs of consecutive items (default: about 40 million steps, in 20 to 100 epochs; with "
        "validation rows up to three times as many, see patience)",
        low=1,
    )
    patience: int | None = param(
        None,
        "epochs without better NDCG@10 on `valid` before training stops; the best epoch is kept (default: 10 or more "
        "where the number of epochs is not given, else all epochs are run)",
        low=1,
    )
    sse_item: float = param(
        0.0, "SSE: probability that a step uses the embedding of another last item", low=0.0, high=1.0
    )

    order_matters: ClassVar[bool] = True
    tasks: ClassVar[tuple[str, ...]] = ("sequential",)
    from_data: ClassVar[tuple[str, ...]] = ("epochs",)
    least_patience: ClassVar[int] = 10  # single steps at a high learning rate: validation values are noisy

    # ---- what a subclass writes --------------------------------------------------------------------------------------

    @abstractmethod
    def _create(self, rng: np.random.Generator, pairs: Samples, users: int, items: int) -> None:
        """Set the learned arrays to their initial values."""

    @abstractmethod
    def _steps(self, samples: Samples, lr: np.float32) -> None:
        """The gradient steps of these samples, one after the other."""

    @abstractmethod
    def _margins(self, samples: Samples) -> Array:
        """How much higher the next item scores than each negative, (n, c); NaN where there is no negative."""

    @abstractmethod
    def _after(self, users: Codes | None, last: Codes, histories: CSR | None) -> NDArray[np.float32]:
        """Scores (batch, items) after the last item; users : None for unseen ones, of whom `histories` are known."""

    # ---- training ----------------------------------------------------------------------------------------------------

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        if data.time is None:
            logger.warning("%s: the rows have no times, so their order is taken as the order in time", self.name())
        sequences = data.sequences()
        pairs = _pairs(sequences)
        if pairs.user.size == 0:
            raise CorankError(
                f"no user has two items, and {self.name()} learns what comes next: give histories of two items or more"
            )
        self.item_leads_ = self._leading(pairs, rows.columns)
        self.user_last_ = self._last(sequences)
        rng = training.rng
        self._create(rng, pairs, rows.rows, rows.columns)
        replacements = self._replacements(pairs)
        fixed = _some(pairs, max(1, pairs.user.size // SAMPLE))
        fixed = self._with_negatives(fixed, rows, 0)
        for epoch in training.epochs():
            lr = np.float32(self.lr * self.decay ** (epoch - 1))
            order = rng.permutation(pairs.user.size)
            for start in range(0, order.size, CHUNK):
                chosen = order[start : start + CHUNK]
                samples = self._with_negatives(_some(pairs, chosen), rows, int(rng.integers(2**62)))
                self._steps(_replaced(rng, samples, *replacements), lr)
                training.progress(start + chosen.size, order.size)
            training.report(loss=_mean_loss(self._margins(fixed)))

    def _leading(self, pairs: Samples, items: int) -> NDArray[np.bool_]:
        """The items about which training says what follows them."""
        return np.bincount(pairs.last, minlength=items) > 0

    def _with_negatives(self, samples: Samples, rows: CSR, seed: int) -> Samples:
        from ..kernels.sequential_bpr import negatives
        from ..kernels.threads import run

        drawn = np.empty((samples.user.size, self.negatives), np.int32)
        run(negatives, samples.user.size, seed, samples.user, *rows[:2], rows.columns, drawn)
        return samples._replace(negative=drawn)

    def _replacements(self, pairs: Samples) -> tuple[Replacement, Replacement]:
        """How users and last items are replaced (SSE-SE); those without pairs take no part."""
        from ..kernels.sse import replacement

        p_user = getattr(self, "sse_user", 0.0)
        return replacement(p_user, np.unique(pairs.user)), replacement(self.sse_item, np.unique(pairs.last))

    def _choose(self, data: Dataset, rows: CSR) -> None:
        steps = self.negatives * max(1, len(data) - np.unique(data.user).size)
        self.epochs_ = int(np.clip(round(40_000_000 / steps), 20, 100)) if self.epochs is None else self.epochs

    def _stores(self) -> dict[str, Stored]:
        return super()._stores() | {
            "epochs_": Number(low=1, whole=True),
            "user_last_": Numbers(dtype="int32", shape=("users",), low=-1, below="items"),
            "item_leads_": Numbers(dtype="bool", shape=("items",)),
        }

    def _cost(self, size: Size) -> Cost:
        each = 8 * KERNEL * self._width() + 8 * SCATTERED
        return Cost(SORTED * size.rows, size.rows * (self.negatives * each + 10 * SCATTERED))

    def _memory(self, size: Size) -> float:
        # Pairs and their random order; negatives of a part of them at a time.
        pairs = 20.0 * size.rows + (16.0 + 4.0 * self.negatives) * min(size.rows, CHUNK)
        return rows_memory(size, 2) + pairs + factors_memory(self, size, 2 * self._width(), 1)

    def _width(self) -> int:
        """Coordinates that a step changes in the vector of an item."""
        return self.dim

    # ---- scoring -----------------------------------------------------------------------------------------------------

    def _last(self, sequences: CSR) -> Codes:
        """The most recent item of each row that leads anywhere, -1 if there is none.

        Nothing was learned of what follows an item that no training sequence goes on after: the one before it is used.
        """
        first, at = sequences.indptr[:-1], sequences.indptr[1:] - 1
        if sequences.index.size == 0:
            return np.full(sequences.rows, -1, np.int32)
        while (skipped := (at >= first) & ~self.item_leads_[sequences.index[at]]).any():
            at = at - skipped
        return np.where(at >= first, sequences.index[at], -1).astype(np.int32)

    def _score(self, users: NDArray[np.int32]) -> NDArray[np.float32]:
        return self._after(users, self.user_last_[users], None)

    def _score_histories(self, histories: CSR) -> NDArray[np.float32]:
        return self._after(None, self._last(histories), histories)

    def _score_known(self, users: NDArray[np.int32], histories: CSR) -> NDArray[np.float32]:
        return self._after(users, self._last(histories), histories)

    def _popular(self, scores: NDArray[np.float32], unknown: NDArray[np.bool_]) -> NDArray[np.float32]:
        """The scores, and in the unknown rows the number of training rows of each item."""
        if unknown.any():
            scores[unknown] = np.bincount(self.seen_index_, minlength=len(self.items_))
        return scores

    def _training_rows(self) -> CSR:
        # No score depends on the order of the other items.
        seen = seen_items(self)
        owner = np.repeat(np.arange(seen.rows), np.diff(seen.indptr))
        order = np.lexsort((seen.index == self.user_last_[owner], owner))
        return seen._replace(index=seen.index[order], value=np.ones(order.size, np.float32))


def _pairs(sequences: CSR) -> Samples:
    """Every pair of consecutive items of a sequence, user by user."""
    user = np.repeat(np.arange(sequences.rows, dtype=np.int32), np.diff(sequences.indptr))
    same = np.flatnonzero(user[1:] == user[:-1])
    none = np.empty((same.size, 0), np.int32)
    return Samples(user[same], sequences.index[same], sequences.index[same + 1], none)


def _some(samples: Samples, rows: Array | int) -> Samples:
    """Some of the samples, or each `rows`-th of them."""
    at = slice(None, None, rows) if isinstance(rows, int) else rows
    return Samples(*(np.ascontiguousarray(column[at]) for column in samples))


def _replaced(rng: np.random.Generator, samples: Samples, users: Replacement, lasts: Replacement) -> Samples:
    """The samples with users and last items replaced at random; negatives are those of the own user."""
    from ..kernels.sgd import Entries
    from ..kernels.sse import replace

    user, last, following = replace(rng, Entries(*samples[:3]), users, lasts)
    return Samples(user, last, following, samples.negative)


def _mean_loss(margin: Array) -> float:
    """Mean of log(1 + exp(-margin)), without overflow; 0 where no sample has a negative."""
    known = margin[~np.isnan(margin)].astype(np.float64)
    return float(np.logaddexp(0, -known).mean()) if known.size else 0.0
