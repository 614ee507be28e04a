"""What listwise factor models share: a loss of each user's list of scores, lowered by alternating Newton steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..cost import KERNEL, SCATTERED, SORTED, Cost, Size, factors_memory, rows_memory
from ..data import CSR, Array
from ..stored import Number, Stored, floats
from ._factors import FactorModel
from ._rated import GroupedEntries, by_item

if TYPE_CHECKING:
    from ..training import Rule, Training

FOLD_IN_STEPS = 20  # Newton steps on the vector of an unseen user
NO_SCORES = np.zeros(0, np.float32)


class HalfStep(NamedTuple):
    """How the rows of one side are updated."""

    cg_steps: int = 2  # conjugate-gradient steps per Newton step; 0: a gradient step
    scale: float = 1.0  # fraction of the Newton step, or learning rate of the gradient step
    halvings: int = 8  # of a step that raises the objective before it is undone; 0: accept any step


@dataclass(eq=False)
class ScoredLists:
    """Lists of items, one per user, with loss, gradient and curvature at their current scores."""

    indptr: NDArray[np.int64]  # [users + 1]
    index: NDArray[np.int32]  # [n] item of each entry
    columns: int  # number of items
    loss_kernel: tuple[Any, ...]  # the kernel that evaluates the loss, and its arguments before the scores

    resampled = False  # whether `resample` draws new lists in each epoch

    def __post_init__(self) -> None:
        n = self.index.size
        self.score, self.gradient, self.curvature = np.zeros((3, n), np.float32)
        self.loss = np.zeros(self.indptr.size - 1, np.float64)
        self.by_user = GroupedEntries(self.indptr, self.index, np.arange(n))

    def resample(self, seed: int) -> bool:
        """Draw new lists; False where the lists are fixed."""
        return False

    def state(self) -> dict[str, Array]:
        """The arrays that `resample` changes."""
        return {}

    def rules(self) -> dict[str, Rule]:
        """What holds for each of these arrays."""
        return {}

    def group_by_item(self) -> None:
        """Set `by_item`; to be repeated after `resample` has changed the items of the lists."""
        self.by_item = by_item(CSR(self.indptr, self.index, NO_SCORES, self.columns))

    def spread(self, items: int) -> float:
        """sqrt(mean length of a list) + sqrt(mean number of entries per item, of `items` that can be in lists).

        The largest singular value of a random gradient matrix with these entries grows like this, and regularisation
        has to match it: a fixed multiple was the best or nearly so on every dataset tried, with 10 to 500 entries per
        list.
        """
        n, lists = self.index.size, int(np.count_nonzero(np.diff(self.indptr)))
        return float(np.sqrt(n / max(1, lists)) + np.sqrt(n / max(1, items)))

    def rescore(self, users: Array, items: Array) -> None:
        """Compute the scores from the factors, and evaluate the loss there."""
        from ..kernels.threads import run
        from ..kernels.vectors import inner_products

        run(inner_products, self.loss.size, self.indptr, self.index, users, items, self.score, cost=self.indptr)
        self.evaluate()

    def evaluate(self) -> None:
        """Loss, gradient and curvature at the scores."""
        from ..kernels.threads import run

        kernel, *arguments = self.loss_kernel
        state = (self.score, self.gradient, self.curvature, self.loss)
        run(kernel, self.loss.size, self.indptr, *arguments, *state, cost=self.indptr)

    def objective(self, reg: float, users: Array, items: Array) -> float:
        """The loss of all lists at their scores, plus the regularisation."""
        return float(self.loss.sum()) + penalty(reg, users) + penalty(reg, items)

    def update(
        self, side: GroupedEntries, fixed: Array, moving: Array, reg: float, how: HalfStep, last: bool = False
    ) -> None:
        """Update the rows of `moving` in place; `last`: the scores are not needed afterwards."""
        from ..kernels.row_steps import row_steps
        from ..kernels.threads import run

        guarded = how.halvings > 0
        before = float(self.loss.sum()) + penalty(reg, moving)
        kept = (moving.copy(), self.score.copy()) if guarded else ()
        options = (np.float32(reg), how.cg_steps, np.float32(how.scale))
        score = NO_SCORES if last and not guarded else self.score
        local = (self.gradient, self.curvature)
        run(row_steps, len(moving), *side, *local, fixed, *options, moving, score, cost=side.indptr)
        if score.size:
            self.evaluate()
        for halving in range(how.halvings):
            if float(self.loss.sum()) + penalty(reg, moving) <= before + 1e-8 * abs(before):
                return
            for now, then in zip((moving, self.score), kept, strict=True):
                now[:] = then if halving == how.halvings - 1 else (now + then) / 2
            self.evaluate()


def penalty(reg: float, vectors: Array) -> float:
    """reg / 2 times the squared norm."""
    return 0.5 * reg * float(np.vdot(vectors, vectors))


class Listwise(FactorModel):
    """A factor model of whole lists; a subclass builds the `ScoredLists`.

    An epoch is one Newton step on all users, then one on all items (see `kernels.row_steps`). There is no learning rate
    to tune: the curvature of the loss gives the step size. Where lists are resampled in each epoch, epoch t takes only
    t^-0.6 of the step, so that the factors converge to the mean over many samples instead of following the last one
    (Robbins and Monro 1951).
    """

    dim: int
    epochs: int
    patience: int | None
    reg_: float  # set before `_learn`
    average_: NDArray[np.float32]

    def _entries(self, size: Size) -> float:
        """Number of entries of all lists."""
        return float(size.rows)

    def _stores(self) -> dict[str, Stored]:
        return super()._stores() | {
            "reg_": Number(low=0),
            "average_": floats("dim"),
        }

    def _cost(self, size: Size) -> Cost:
        each = 11 * KERNEL * self.dim + 10 * SCATTERED
        return Cost(SORTED * size.rows, self._entries(size) * each)

    def _memory(self, size: Size) -> float:
        # An entry has its item, order, score, gradient and curvature, and its place by item and by user.
        return rows_memory(size, 2) + 60.0 * self._entries(size) + factors_memory(self, size, self.dim, 3)

    def _half_step(self, epoch: int, resampled: bool) -> HalfStep:
        """How an epoch updates each side; a fraction of a step on resampled lists need not lower their objective."""
        return HalfStep(scale=epoch**-0.6, halvings=0) if resampled else HalfStep()

    def _learn(self, lists: ScoredLists, training: Training) -> None:
        """Learn the factors; users without a list get the average user's vector."""
        rng = training.rng
        U = self.user_factors_ = np.float32(0.1) * rng.standard_normal((lists.loss.size, self.dim), np.float32)
        V = self.item_factors_ = np.float32(0.1) * rng.standard_normal((lists.columns, self.dim), np.float32)
        self.average_ = np.zeros(self.dim, np.float32)
        grouped = False
        for epoch in training.epochs(lists.rules(), **lists.state()):
            # Each epoch starts from the factors and the lists alone, so that training can resume from them.
            resampled = lists.resample(int(rng.integers(2**62))) if epoch == 1 or lists.resampled else False
            if resampled or not grouped:
                lists.group_by_item()
                grouped = True
            if epoch == 1:
                V[np.diff(lists.by_item.indptr) == 0] = 0  # items that are in no list
            lists.rescore(U, V)
            how = self._half_step(epoch, resampled)
            lists.update(lists.by_user, V, U, self.reg_, how)
            if resampled:
                # With resampled lists the objective need not decrease per epoch: this is the loss between two steps.
                value = {"loss": lists.objective(self.reg_, U, V)}
                lists.update(lists.by_item, U, V, self.reg_, how, last=True)
            else:
                lists.update(lists.by_item, U, V, self.reg_, how)
                value = {"objective": lists.objective(self.reg_, U, V)}
            training.report(**value)
        some = np.diff(lists.indptr) > 0
        self.average_ = self.user_factors_[some].mean(axis=0)
        self.user_factors_[~some] = self.average_

    def _solve_lists(self, lists: ScoredLists) -> NDArray[np.float32]:
        """Vectors of unseen users: the user steps of training with fixed items; rows do not influence each other."""
        rng = np.random.default_rng(self.seed)
        U = np.zeros((lists.loss.size, self.dim), np.float32)
        resampled = True
        for epoch in range(1, FOLD_IN_STEPS + 1):
            if resampled:
                resampled = lists.resample(int(rng.integers(2**62)))
                lists.rescore(U, self.item_factors_)
            scale = epoch**-0.6 if resampled else 1.0
            lists.update(lists.by_user, self.item_factors_, U, self.reg_, HalfStep(scale=scale, halvings=0))
        U[np.diff(lists.indptr) == 0] = self.average_
        return U

    def _list_weights(self, lists: ScoredLists) -> tuple[NDArray[np.int32], NDArray[np.float64] | None]:
        """The items of one list, and the weights with which they add up to its vector; see `_entry_weights`.

        Of resampled lists, the items and mean weights of some samples: the steps converge to the mean gradient.
        """
        if not self.reg_ > 0:
            return lists.index, None
        U = self._solve_lists(lists)
        rng = np.random.default_rng(self.seed)
        items, weights, samples = [], [], 0
        resampled = True
        while resampled and samples < FOLD_IN_STEPS:
            resampled = lists.resample(int(rng.integers(2**62)))
            lists.rescore(U, self.item_factors_)
            items.append(lists.index.copy())
            weights.append(-lists.gradient.astype(np.float64) / self.reg_)
            samples += 1
        index, place = np.unique(np.concatenate(items), return_inverse=True)
        return index, np.bincount(place, np.concatenate(weights)) / samples
