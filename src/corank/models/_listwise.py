"""What models of whole lists share: a loss of each user's list of scores u.v, lowered by alternating Newton steps.

An epoch is a step on all users, then one on all items (see `kernels.row_steps`). No step length is to be chosen: the
curvature of the loss says how far to go. Where the lists are drawn anew in each epoch, epoch t goes only t^-0.6 of the
way, so that the factors settle on the mean over many draws instead of chasing the last one (Robbins and Monro 1951).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data import Array
from ..model import Model
from ._rated import Items

if TYPE_CHECKING:
    from ..training import Training

FOLDS = 20  # steps on the vector of somebody new
NOTHING = np.zeros(0, np.float32)


class Rule(NamedTuple):
    """How a half-step is made."""

    steps: int = 2  # of conjugate gradient; none: a gradient step
    share: float = 1.0  # of the step that is taken
    halvings: int = 8  # of a step that would raise the objective before it is given up; 0: never look


@dataclass(eq=False)
class Lists:
    """Lists of items, one a user, and what is known at their scores."""

    indptr: NDArray[np.int64]
    index: NDArray[np.int32]
    columns: int
    loss_of: tuple[Any, ...]  # the kernel of the loss, and its arguments before the scores

    def __post_init__(self) -> None:
        n = self.index.size
        self.score, self.slope, self.curve = np.zeros((3, n), np.float32)
        self.loss = np.zeros(self.indptr.size - 1, np.float64)
        self.owner = np.repeat(np.arange(self.loss.size, dtype=np.int32), np.diff(self.indptr))
        self.by_user = Items(self.indptr, self.index, np.arange(n))

    changing = False  # lists are drawn anew in each epoch

    def redraw(self, seed: int) -> bool:
        """Draw the lists anew; False where there is nothing to draw."""
        return False

    def state(self) -> dict[str, Array]:
        """The arrays that drawing changes."""
        return {}

    def link(self) -> None:
        """Find the entries by item; to be repeated when the items of the lists have changed."""
        from ..kernels.csr import count, stable_order

        indptr = count(self.index, self.columns)
        place = stable_order(self.index, self.by_user.place, indptr)
        self.by_item = Items(indptr, self.owner[place], place)

    def spread(self, items: int) -> float:
        """sqrt(mean length of a list) + sqrt(mean entries of an item, if `items` can be in lists).

        The largest singular value of random slopes at these places grows like this. Regularisation has to stand
        against it: a fixed share of it was best or nearly so on every dataset tried, from 10 to 500 entries a list.
        """
        n, lists = self.index.size, int(np.count_nonzero(np.diff(self.indptr)))
        return float(np.sqrt(n / max(1, lists)) + np.sqrt(n / max(1, items)))

    def rescore(self, users: Array, items: Array) -> None:
        """Scores from the factors, and all that hangs on them."""
        from ..kernels.primal_cr import products
        from ..kernels.threads import run

        run(products, self.loss.size, self.indptr, self.index, users, items, self.score, cost=self.indptr)
        self.look()

    def look(self) -> None:
        """Slope, curve and loss at the scores."""
        from ..kernels.threads import run

        kernel, *arguments = self.loss_of
        state = (self.score, self.slope, self.curve, self.loss)
        run(kernel, self.loss.size, self.indptr, *arguments, *state, cost=self.indptr)

    def objective(self, reg: float, users: Array, items: Array) -> float:
        """The loss of all lists at their scores, and the regularisation."""
        return float(self.loss.sum()) + penalty(reg, users) + penalty(reg, items)

    def move(self, side: Items, fixed: Array, moving: Array, reg: float, rule: Rule, last: bool = False) -> None:
        """Move the rows of `moving`; `last`: nobody needs the scores afterwards."""
        from ..kernels.row_steps import row_steps
        from ..kernels.threads import run

        guarded = rule.halvings > 0
        before = float(self.loss.sum()) + penalty(reg, moving)
        kept = (moving.copy(), self.score.copy()) if guarded else ()
        how = (np.float32(reg), rule.steps, np.float32(rule.share))
        score = NOTHING if last and not guarded else self.score
        run(row_steps, len(moving), *side, self.slope, self.curve, fixed, *how, moving, score, cost=side.indptr)
        if score.size:
            self.look()
        for halving in range(rule.halvings):
            if float(self.loss.sum()) + penalty(reg, moving) <= before + 1e-8 * abs(before):
                return
            for now, then in zip((moving, self.score), kept, strict=True):
                now[:] = then if halving == rule.halvings - 1 else (now + then) / 2
            self.look()


def penalty(reg: float, vectors: Array) -> float:
    """reg / 2 times the squared length."""
    return 0.5 * reg * float(np.vdot(vectors, vectors))


class Listwise(Model):
    """A factor model that learns from lists; a subclass makes the lists."""

    dim: int
    epochs: int
    patience: int | None
    reg_: float  # set before learning

    def _rule(self, epoch: int, drawn: bool) -> Rule:
        """The half-steps of an epoch; a step that goes part of the way to where it should needs no guard."""
        return Rule(share=epoch**-0.6, halvings=0) if drawn else Rule()

    def _learn(self, lists: Lists, training: Training) -> None:
        """Factors of users and items. With patience, those of the best epoch are kept, and training stops after it."""
        rng = training.rng
        U = self.user_factors_ = np.float32(0.1) * rng.standard_normal((lists.loss.size, self.dim), np.float32)
        V = self.item_factors_ = np.float32(0.1) * rng.standard_normal((lists.columns, self.dim), np.float32)
        self.average_ = np.zeros(self.dim, np.float32)
        linked = False
        for epoch in training.epochs(**lists.state()):
            # Each epoch starts from the factors and the lists alone, so that training can go on from them.
            drawn = lists.redraw(int(rng.integers(2**62))) if epoch == 1 or lists.changing else False
            if drawn or not linked:
                lists.link()
                linked = True
            if epoch == 1:
                V[np.diff(lists.by_item.indptr) == 0] = 0  # in no list: nothing is known
            lists.rescore(U, V)
            rule = self._rule(epoch, drawn)
            lists.move(lists.by_user, V, U, self.reg_, rule)
            if drawn:
                # Lists that change have no objective that falls from epoch to epoch: this one is between two steps.
                value = {"loss": lists.objective(self.reg_, U, V)}
                lists.move(lists.by_item, U, V, self.reg_, rule, last=True)
            else:
                lists.move(lists.by_item, U, V, self.reg_, rule)
                value = {"objective": lists.objective(self.reg_, U, V)}
            training.report(**value)
        some = np.diff(lists.indptr) > 0
        self.average_ = self.user_factors_[some].mean(axis=0)
        self.user_factors_[~some] = self.average_

    def _fold(self, lists: Lists) -> NDArray[np.float32]:
        """Vectors of new users: the steps of training, the items staying as they are; each row for itself."""
        rng = np.random.default_rng(self.seed)
        U = np.zeros((lists.loss.size, self.dim), np.float32)
        drawn = True
        for epoch in range(1, FOLDS + 1):
            if drawn:
                drawn = lists.redraw(int(rng.integers(2**62)))
                lists.rescore(U, self.item_factors_)
            share = epoch**-0.6 if drawn else 1.0
            lists.move(lists.by_user, self.item_factors_, U, self.reg_, Rule(share=share, halvings=0))
        U[np.diff(lists.indptr) == 0] = self.average_
        return U

    def _score(self, users: NDArray[np.int32]) -> NDArray[np.float32]:
        return np.asarray(self.user_factors_[users] @ self.item_factors_.T)

    def _predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float64]:
        scores = np.einsum("nf,nf->n", self.user_factors_[users], self.item_factors_[items])
        return np.asarray(scores, np.float64)
