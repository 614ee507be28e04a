"""What models of whole lists share: a loss of each user's list of scores u.v, lowered by alternating Newton steps.

An epoch is a step on all users, then one on all items (see `kernels.row_steps`): no step length is to be chosen, because
the loss itself says how far to go. Where the lists are drawn anew in each epoch, step t goes only t^-0.7 of the way, so
that the factors settle on the mean over many draws instead of chasing the last one (Robbins and Monro 1951).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Array
from ..model import Model
from .primal_cr import _by_item, _Items

STEPS = 2  # of conjugate gradient in a Newton step: more of them gained nothing on MovieLens
HALVINGS = 20  # of a step that would raise the objective, before it is given up


@dataclass(eq=False)
class Lists:
    """Lists of items, one a user, and what is known at their scores."""

    indptr: NDArray[np.int64]
    index: NDArray[np.int32]
    columns: int
    loss_of: tuple[Any, ...]  # kernel of the loss, and its arguments before the scores

    def __post_init__(self) -> None:
        n = self.index.size
        self.score, self.slope, self.curve, self.moved = np.zeros((4, n), np.float32)
        self.loss = np.zeros(self.indptr.size - 1, np.float64)
        self.by_user = _Items(self.indptr, self.index, np.arange(n))
        self.link()

    def link(self) -> None:
        """The entries by item, after the items of the lists have changed."""
        self.by_item = _by_item(CSR(self.indptr, self.index, np.empty(0, np.float32), self.columns))

    def look(self, score: NDArray[np.float32]) -> float:
        """Slope, curve and loss at `score`; returns the loss of all lists."""
        from ..kernels.threads import run

        kernel, *arguments = self.loss_of
        out = (self.slope, self.curve, self.loss)
        run(kernel, self.loss.size, self.indptr, *arguments, score, *out, cost=self.indptr)
        return float(self.loss.sum())

    def rescore(self, users: Array, items: Array) -> None:
        """Scores from the factors, and all that hangs on them."""
        from ..kernels.primal_cr import products
        from ..kernels.threads import run

        run(products, self.loss.size, self.indptr, self.index, users, items, self.score, cost=self.indptr)
        self.look(self.score)


class Listwise(Model):
    """A factor model that learns from lists; a subclass makes the lists and draws them anew where it does that."""

    dim: int
    reg: float
    epochs: int
    patience: int | None

    def _gain(self, epoch: int) -> float:
        """The share of a Newton step that is taken."""
        return 1.0

    def _redraw(self, lists: Lists, rng: np.random.Generator) -> bool:
        """Draw the lists of the next epoch; False where they stay as they are."""
        return False

    def _learn(self, lists: Lists, rng: np.random.Generator) -> None:
        """The factors of users and items."""
        users = self.loss_rows = lists.loss.size
        U = np.float32(0.1) * rng.standard_normal((users, self.dim), np.float32)
        V = np.float32(0.1) * rng.standard_normal((lists.columns, self.dim), np.float32)
