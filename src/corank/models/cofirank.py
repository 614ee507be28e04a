"""CofiRank: maximum-margin matrix factorisation for NDCG (Weimer, Karatzoglou, Le and Smola, NIPS 2007).

Objective: for every user the largest, over all orders of the rated items, of 1 - NDCG@top_k of that order plus a margin
that the scores must win against it (see `kernels.cofirank`), plus reg / 2 (|U|^2 + |V|^2). The loss is convex in the
scores and never below 1 - NDCG@top_k of the order by score. `loss="regression"` is the paper's other loss, half the
squared error of every rating, by alternating least squares. Use it as the list-wise, large-margin ancestor of
`primal_cr` and `sql_rank` in a comparison. An epoch costs up to passes * top_k * n^2 for a list of n ratings, and lists
are cut to `list_length` random ones. Users are solved on all threads; the items are one chain of updates and use one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Array, Dataset, row_ends
from ..errors import CorankError
from ..model import Model
from ..params import param
from ._rated import Items, by_item, levels_of

if TYPE_CHECKING:
    from ..kernels.cofirank import Lists
    from ..training import Training

HALVINGS = 6  # of the way to item factors that are no better than the present ones
PRECISE = 1e-4  # relative duality gap at which a folded-in user stands
PATIENCE = 100  # dual steps at most to get there
ROUNDS = 3  # times that this is done
NO_BIAS = np.inf  # penalty on the biases of the least-squares kernel: CofiRank has none


@dataclass(kw_only=True, eq=False)
class CofiRank(Model):
    """Matrix factorisation for a large-margin bound of NDCG."""

    dim: int = param(32, "size of the embeddings", low=1, high=65_536, search=(5, 100), log=True)
    reg: float | None = param(
        None,
        "regularisation (sqrt(ratings) * 0.007, or 0.035 for regression, when absent)",
        low=1e-6,
    )
    reg_scale: float = param(
        1.0, "multiple of that usual regularisation, where reg is absent", low=1e-3, search=(0.25, 4.0), log=True
    )
    epochs: int = param(15, "outer iterations: items, then users", low=1, search=(5, 30))
    loss: str = param("ndcg", "what is minimised", choices=("ndcg", "regression"), search=("ndcg", "regression"))
    top_k: int = param(10, "places that NDCG looks at", low=1)
    passes: int = param(5, "dual steps on each list in each half of an epoch", low=1, search=(1, 10))
    list_length: int = param(200, "longer lists are cut to that many random ratings", low=2)

    needs_ratings: ClassVar[bool] = True
    tasks: ClassVar[tuple[str, ...]] = ("explicit",)

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        rng = training.rng
        some = levels_of(rows)[1] > 1
        if not some.any():
            raise CorankError(
                "no user has two items of different rating, and CofiRank learns from such lists: give ratings with "
                "more than one level, or use wmf for data without ratings"
            )
        usual = 0.035 if self.loss == "regression" else 0.007  # of the best on MovieLens-100K
        self.reg_ = float(self.reg_scale * usual * np.sqrt(rows.index.size) if self.reg is None else self.reg)
        # What an item without a rating in a history is worth to the regression: what the happiest tenth gave.
        self.liked_ = float(np.quantile(rows.value, 0.9)) if self.loss == "regression" else 1.0
        self.best_ = 0.0
        self.average_ = np.zeros(self.dim, np.float32)
        self.user_factors_ = np.float32(0.1) * rng.standard_normal((rows.rows, self.dim), np.float32)
        # Scores of 0 are a saddle, slow to leave: a first coordinate that all users share finds what everybody likes.
        self.user_factors_[:, 0] = 1
        self.item_factors_ = np.float32(0.1) * rng.standard_normal((rows.columns, self.dim), np.float32)
        if self.loss == "regression":
            self._fit_ratings(rows, data.csr("item"), training)
            return
        rows = self._cut(rows)
        self._fit_lists(rows, self._lists(rows), training)
        alike = np.flatnonzero(~some)
        self.user_factors_[alike] = self._fold(rows.take(alike))

    # ---- NDCG ----------------------------------------------------------------------------------------------------

    def _fit_lists(self, rows: CSR, lists: Lists, training: Training) -> None:
        from ..kernels.primal_cr import products
        from ..kernels.threads import run

        items, U = by_item(rows), self.user_factors_
        U[~lists.some] = 0
        score, loss = np.empty(rows.index.size, np.float32), np.empty(rows.rows)
        run(products, rows.rows, *rows[:2], U, self.item_factors_, score, cost=rows.indptr)
        self._losses(lists, score, loss)
        # One plane a list for each side, at first that of the ideal order.
        mixed, height = np.stack([lists.anchor] * 2), np.zeros((2, rows.rows))
        planes = list(zip(mixed, height, strict=True))
        for _ in training.epochs(score=score, loss=loss, anchor=lists.anchor, mixed=mixed, height=height):
            self._item_step(rows, lists, items, planes[0], score, loss, training.rng)
            ceiling = loss + 0.5 * self.reg_ * np.einsum("if,if->i", U, U, dtype=np.float64)
            self._user_steps(lists, self.passes, 1e-6, ceiling, planes[1], U, score)
            self._losses(lists, score, loss)
            objective = float(loss.sum()) + self._penalty(U) + self._penalty(self.item_factors_)
            training.report(objective=objective)
        self.average_ = U[lists.some].mean(axis=0)
        self.best_ = self._liked_score(rows, score)

    def _liked_score(self, rows: CSR, score: NDArray[np.float32]) -> float:
        """The mean score of what users rated highest, of those who rated differently."""
        level, width = levels_of(rows)
        lengths = np.diff(rows.indptr)
        return float(score[(level == np.repeat(width - 1, lengths)) & np.repeat(width > 1, lengths)].mean())

    def _lists(self, rows: CSR) -> Lists:
        """The lists as the kernels want them."""
        from ..kernels.cofirank import Lists, prepare
        from ..kernels.threads import run

        lowest = float(rows.value.min(initial=0.0))
        if lowest < 0:
            raise CorankError(
                f"there is a rating of {lowest:g}, and the gain of a rating in NDCG, 2^rating - 1, must not be "
                "negative: add a constant to all ratings, or use loss='regression'"
            )
        n, place = rows.index.size, np.arange(max(1, int(np.diff(rows.indptr).max(initial=0))))
        discount = np.where(place < self.top_k, 1 / np.log2(place + 2), 0.0)
        some = levels_of(rows)[1] > 1
        decay = (place + 2.0) ** -0.25
        lists = Lists(rows.indptr, rows.index, rows.value, np.zeros(n), np.zeros(n), some, discount, decay)
        run(prepare, rows.rows, lists, cost=rows.indptr)
        return lists

    def _cut(self, rows: CSR) -> CSR:
        """Rows of at most list_length entries; which ones stay hangs on the seed and the row's length only."""
        lengths = np.diff(rows.indptr)
        keep = np.ones(rows.index.size, np.bool_)
        for r in np.flatnonzero(lengths > self.list_length):
            order = np.random.default_rng(self.seed).permutation(lengths[r])
            keep[rows.indptr[r] + order[self.list_length :]] = False
        indptr = row_ends(np.minimum(lengths, self.list_length))
        return CSR(indptr, rows.index[keep], rows.value[keep], rows.columns)

    def _item_step(
        self,
        rows: CSR,
        lists: Lists,
        items: Items,
        plane: tuple[NDArray[np.float64], NDArray[np.float64]],
        score: NDArray[np.float32],
        loss: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> None:
        """Dual steps for all items jointly; the way there is halved until the objective falls."""
        from ..kernels.cofirank import item_sweep
        from ..kernels.primal_cr import collect, products
        from ..kernels.threads import run

        U, V = self.user_factors_, np.zeros_like(self.item_factors_)
        run(collect, len(V), *items, (lists.anchor - plane[0]) / self.reg_, U, np.float32(0), V, V, cost=items.indptr)
        item_sweep(rng.permutation(rows.rows), lists, U, self.reg_, self.passes, *plane, V)
        before = float(loss.sum()) + self._penalty(self.item_factors_)
        trial, found = np.empty_like(score), np.empty_like(loss)
        for _ in range(1 + HALVINGS):
            run(products, rows.rows, *rows[:2], U, V, trial, cost=rows.indptr)
            self._losses(lists, trial, found)
            if float(found.sum()) + self._penalty(V) < before:
                self.item_factors_, score[:], loss[:] = V, trial, found
                return
            V = np.float32(0.5) * (V + self.item_factors_)
        self._losses(lists, score, loss)

    def _user_steps(
        self,
        lists: Lists,
        passes: int,
        tolerance: float,
        ceiling: NDArray[np.float64],
        plane: tuple[NDArray[np.float64], NDArray[np.float64]],
        users: Array,
        score: NDArray[np.float32],
    ) -> None:
        """Each user's own problem (see `kernels.cofirank.user_steps`)."""
        from ..kernels.cofirank import user_steps
        from ..kernels.threads import run

        options = (self.item_factors_, self.reg_, passes, tolerance, ceiling)
        run(user_steps, len(users), lists, *options, *plane, users, score, cost=lists.indptr)

    def _losses(self, lists: Lists, score: NDArray[np.float32], out: NDArray[np.float64]) -> None:
        from ..kernels.cofirank import losses
        from ..kernels.threads import run

        run(losses, out.size, lists, score, np.empty(score.size), out, cost=lists.indptr)

    def _penalty(self, vectors: Array) -> float:
        return 0.5 * self.reg_ * float(np.einsum("if,if->", vectors, vectors, dtype=np.float64))

    # ---- regression ----------------------------------------------------------------------------------------------

    def _fit_ratings(self, users: CSR, items: CSR, training: Training) -> None:
        from ..kernels.als import losses
        from ..kernels.threads import run

        squares = np.empty(users.rows)
        for _ in training.epochs():
            item_bias = self._half_step(items, self.user_factors_, self.item_factors_)
            user_bias = self._half_step(users, self.item_factors_, self.user_factors_)
            sides = (self.item_factors_, 0 * item_bias, self.user_factors_, 0 * user_bias)
            run(losses, users.rows, *users[:3], 0.0, *sides, squares, cost=users.indptr)
            penalty = self._penalty(self.user_factors_) + self._penalty(self.item_factors_)
            training.report(objective=0.5 * float(squares.sum()) + penalty)
        self.average_ = self.user_factors_.mean(axis=0)

    def _half_step(self, rows: CSR, fixed: Array, out: Array) -> Array:
        """The least-squares solution of each row of `out`; returns its biases, which are as good as 0."""
        from ..kernels.als import half_step
        from ..kernels.threads import run

        reg, bias = np.full(rows.rows, self.reg_, np.float32), np.zeros(rows.rows, np.float32)
        none = np.zeros(len(fixed), np.float32)
        run(half_step, rows.rows, *rows[:3], 0.0, reg, NO_BIAS, fixed, none, out, bias, cost=rows.indptr)
        return bias

    # ---- answering -----------------------------------------------------------------------------------------------

    def _score(self, users: NDArray[np.int32]) -> NDArray[np.float32]:
        return np.asarray(self.user_factors_[users] @ self.item_factors_.T)

    def _score_histories(self, histories: CSR) -> NDArray[np.float32]:
        """Fold-in: each new user's own problem solved, the items staying as they are."""
        from ..kernels.csr import merged

        rows = CSR(*merged(*histories[:3]), histories.columns)
        if self.loss == "regression":
            users = np.zeros((rows.rows, self.dim), np.float32)
            self._half_step(rows, self.item_factors_, users)
        else:
            users = self._fold(self._cut(rows))
        return np.asarray(users @ self.item_factors_.T)

    def _fold(self, rows: CSR) -> Array:
        """Vectors of new users: dual steps until the duality gap closes, from where least squares order the items.

        Who rated all items alike gives no order to learn: the vector that scores these items, in least squares, as
        users score what they like best. Without any item, or where nothing is learned from them: the average taste.
        """
        from ..kernels.primal_cr import products
        from ..kernels.threads import run

        lengths, alike = np.diff(rows.indptr), levels_of(rows)[1] == 1
        owner = np.repeat(np.arange(rows.rows), lengths)
        mean = np.bincount(owner, rows.value, rows.rows) / np.maximum(lengths, 1)
        values = np.where(alike[owner], self.best_, rows.value - mean[owner]).astype(np.float32)
        users, score = np.zeros((rows.rows, self.dim), np.float32), np.empty(rows.index.size, np.float32)
        self._half_step(rows._replace(value=values), self.item_factors_, users)
        run(products, rows.rows, *rows[:2], users, self.item_factors_, score, cost=rows.indptr)
        lists, loss = self._lists(rows), np.empty(rows.rows)
        for _ in range(ROUNDS):  # the order among equal ratings follows the scores
            self._losses(lists, score, loss)
            plane, ceiling = (lists.anchor.copy(), np.zeros(rows.rows)), np.full(rows.rows, np.inf)
            self._user_steps(lists, PATIENCE, PRECISE, ceiling, plane, users, score)
        users[~users.any(axis=1)] = self.average_
        return users

    def _predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float64]:
        scores = np.einsum("nf,nf->n", self.user_factors_[users], self.item_factors_[items])
        return np.asarray(scores, np.float64)
