"""TransRec: users as translations from one item to the next, in a space of items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..answering.vectors import Embeddings, with_bias
from ..data import CSR, Array
from ..params import param
from ..stored import Stored, floats
from ._transitions import Codes, Samples, TransitionModel


@dataclass(kw_only=True, eq=False)
class TransRec(TransitionModel):
    """TransRec: a user is a translation that leads from the last item to the next one, in a space of items.

    Score of item j for user u after item i: b_j - d(g_i + t + t_u, g_j), where d is the squared Euclidean distance (or
    the L1 distance), t the translation of everybody and t_u that of the user; items stay within the unit ball.
    Objective: over all pairs (i, j) of consecutive items of a user, log(1 + exp(-(score of j - score of a negative)))
    with L2 regularisation of t, t_u and b, minimised by stochastic gradient descent (sequential BPR); negatives are
    uniform over the items that the user does not have. Values are ignored.

    Reference: He, Kang and McAuley, "Translation-based recommendation", RecSys 2017.

    Use it where histories are short: an item has one vector, whether it comes first or next, and users share all but a
    small translation. For unseen users t_u is 0, where it starts in training. An epoch costs about 12 * rows *
    negatives * dim multiply-adds, on one thread.

    `sse_user` and `sse_item` replace the user and the last item of a step at random (stochastic shared embeddings, Wu
    et al. 2019); the next item and the negatives are kept.
    """

    reg: float = param(0.1, "regularisation of both translations per sample", low=0.0, search=(0.01, 1.0), log=True)
    reg_bias: float = param(0.01, "regularisation of item biases per sample", low=0.0, search=(0.0001, 0.1), log=True)
    distance: str = param(
        "l2", "l2 = squared Euclidean distance, l1 = sum of absolute differences", choices=("l2", "l1")
    )
    sse_user: float = param(0.0, "SSE: probability that a step uses the embedding of another user", low=0.0, high=1.0)

    by_default: ClassVar[bool] = False  # a baseline, compared when it is named

    def _create(self, rng: np.random.Generator, pairs: Samples, users: int, items: int) -> None:
        self.item_factors_ = rng.standard_normal((items, self.dim), np.float32)
        self.item_factors_ /= np.linalg.norm(self.item_factors_, axis=1, keepdims=True)
        self.translation_ = np.zeros(self.dim, np.float32)
        self.user_translations_ = np.zeros((users, self.dim), np.float32)
        self.item_bias_ = np.zeros(items, np.float32)

    def _leading(self, pairs: Samples, items: int) -> NDArray[np.bool_]:
        # An item has one place in the space, which it has of the items before it, too.
        return super()._leading(pairs, items) | (np.bincount(pairs.following, minlength=items) > 0)

    def _tables(self) -> tuple[bool, Array, Array, Array, Array]:
        return self.distance == "l1", self.item_factors_, self.translation_, self.user_translations_, self.item_bias_

    def _steps(self, samples: Samples, lr: np.float32) -> None:
        from ..kernels.sequential_bpr import translation_steps

        translation_steps(*samples, lr, np.float32(self.reg), np.float32(self.reg_bias), *self._tables())

    def _margins(self, samples: Samples) -> Array:
        from ..kernels.sequential_bpr import translation_margins
        from ..kernels.threads import run

        margin = np.empty(samples.negative.shape, np.float32)
        run(translation_margins, samples.user.size, *samples, *self._tables(), margin)
        return margin

    def _stores(self) -> dict[str, Stored]:
        return super()._stores() | {
            "item_factors_": floats("items", "dim"),
            "translation_": floats("dim"),
            "user_translations_": floats("users", "dim"),
            "item_bias_": floats("items"),
        }

    def _embeddings(self) -> Embeddings | None:
        if self.distance == "l1":
            return None
        # -|a - g|^2 + b = 2 a . g - |g|^2 + b - |a|^2
        last = self.user_last_
        goal = self.item_factors_[last] + self.translation_ + self.user_translations_
        items, square = self.item_factors_, np.einsum("ud,ud->u", goal, goal)
        found = with_bias(2 * goal, items, self.item_bias_ - np.einsum("id,id->i", items, items), -square)
        found.user[last < 0] = 0
        return found

    def _after(self, users: Codes | None, last: Codes, histories: CSR | None) -> NDArray[np.float32]:
        goal = self.item_factors_[last] + self.translation_
        if users is not None:
            goal += self.user_translations_[users]
        return self._popular(self.item_bias_ - self._distances(goal), last < 0)

    def _distances(self, goal: NDArray[np.float32]) -> NDArray[np.float32]:
        """Distances (batch, items) of points (batch, dim) to all items."""
        items = self.item_factors_
        if self.distance == "l1":
            from ..kernels.sequential_bpr import l1_distances
            from ..kernels.threads import run

            out = np.empty((len(goal), len(items)), np.float32)
            run(l1_distances, len(goal), goal, items, out)
            return out
        squares = np.einsum("bd,bd->b", goal, goal)[:, None] + np.einsum("id,id->i", items, items)
        return np.asarray(squares - 2 * (goal @ items.T))
