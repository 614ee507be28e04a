"""CofiRank: maximum-margin matrix factorisation for NDCG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..cost import (
    KERNEL,
    SORTED,
    Cost,
    Size,
    equations_memory,
    factors_memory,
    half_steps,
    rows_memory,
    scratch_memory,
)
from ..data import CSR, Array, Dataset, row_ends
from ..errors import CorankError
from ..params import param
from ..stored import Number, Stored, floats
from ._factors import FactorModel, VectorParts, ridge_parts, weighted_parts
from ._rated import GroupedEntries, by_item, levels_of

if TYPE_CHECKING:
    from ..kernels.ndcg_bound import NdcgLists
    from ..training import Training

HALVINGS = 6  # of the step to item factors that do not lower the objective
FOLD_IN_GAP = 1e-4  # relative duality gap at which the fold-in of a user has converged
FOLD_IN_STEPS = 100  # dual steps at most, per round
FOLD_IN_ROUNDS = 3  # each with new anchors
NO_BIAS = np.inf  # regularisation of the biases of the least-squares kernel: CofiRank has none


@dataclass(kw_only=True, eq=False)
class CofiRank(FactorModel):
    """Matrix factorisation for a large-margin bound of NDCG.

    Objective: per user, the maximum over all orders of the rated items of 1 - NDCG@top_k of that order plus the margin
    by which the scores prefer it to the ideal order, plus reg / 2 (|U|^2 + |V|^2). The loss is convex in the scores and
    at least 1 - NDCG@top_k of the order by score. `loss="regression"` is the paper's other loss, half the squared error
    of every rating, minimised by alternating least squares.

    Reference: Weimer, Karatzoglou, Le and Smola, "CofiRank: maximum margin matrix factorization for collaborative
    ranking", NIPS 2007.

    Use it in comparisons, as the listwise large-margin predecessor of `PrimalCR` and `SQLRank`. An epoch costs up to
    passes * top_k * n^2 operations per list of n ratings; lists are cut to `list_length` random ratings. Users are
    solved on all threads; the item updates are sequential and use one thread.
    """

    dim: int = param(32, "embedding size", low=1, high=65_536, search=(5, 100), log=True)
    reg: float | None = param(
        None,
        "regularisation (default: 0.007 * sqrt(number of ratings), with 0.035 for regression)",
        low=1e-6,
    )
    reg_scale: float = param(
        1.0, "factor on the default regularisation, used when reg is not given", low=1e-3, search=(0.25, 4.0), log=True
    )
    epochs: int = param(15, "outer iterations: items, then users", low=1, search=(5, 30))
    loss: str = param("ndcg", "loss of a list", choices=("ndcg", "regression"), search=("ndcg", "regression"))
    top_k: int = param(10, "cut-off of NDCG", low=1)
    passes: int = param(5, "dual steps per list and half-step of an epoch", low=1, search=(1, 10))
    list_length: int = param(200, "longer lists are cut to this many random ratings", low=2)

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
        usual = 0.035 if self.loss == "regression" else 0.007  # the best values on MovieLens-100K
        self.reg_ = float(self.reg_scale * usual * np.sqrt(rows.index.size)) if self.reg is None else self.reg
        # The value of an unrated item of a history in the regression: the 90 % quantile of the ratings.
        self.liked_ = float(np.quantile(rows.value, 0.9)) if self.loss == "regression" else 1.0
        self.best_ = 0.0
        self.average_ = np.zeros(self.dim, np.float32)
        self.user_factors_ = np.float32(0.1) * rng.standard_normal((rows.rows, self.dim), np.float32)
        # Scores of 0 are a saddle point, slow to escape: a first coordinate that all users share learns popularity.
        self.user_factors_[:, 0] = 1
        self.item_factors_ = np.float32(0.1) * rng.standard_normal((rows.columns, self.dim), np.float32)
        if self.loss == "regression":
            self._fit_ratings(rows, data.csr("item"), training)
            return
        rows = self._cut(rows)
        self._fit_lists(rows, self._lists(rows), training)
        constant = np.flatnonzero(~some)
        self.user_factors_[constant] = self._fold_in_rows(rows.take(constant))

    def _stores(self) -> dict[str, Stored]:
        return super()._stores() | {
            "reg_": Number(low=0),
            "liked_": Number(),
            "best_": Number(),
            "average_": floats("dim"),
        }

    def _cost(self, size: Size) -> Cost:
        if self.loss == "regression":
            return Cost(SORTED * size.rows, KERNEL * half_steps(size, self.dim))
        rows = np.minimum(size.lengths, self.list_length).sum()
        work = 2 * KERNEL * self.passes * (min(self.top_k, 10) * size.squared(self.list_length) + 4 * rows * self.dim)
        return Cost(SORTED * size.rows, work)

    def _memory(self, size: Size) -> float:
        solving = scratch_memory(equations_memory(self.dim + 1), size.nodes)  # the fold-in solves least squares too
        return rows_memory(size, 3) + 96.0 * size.rows + factors_memory(self, size, self.dim, 3) + solving

    def _fold_in_memory(self, size: Size) -> float:
        return scratch_memory(equations_memory(self.dim + 1), size.users) + 112.0 * size.rows

    # ---- NDCG ----------------------------------------------------------------------------------------------------

    def _fit_lists(self, rows: CSR, lists: NdcgLists, training: Training) -> None:
        from ..kernels.threads import run
        from ..kernels.vectors import inner_products

        items, U = by_item(rows), self.user_factors_
        U[~lists.some] = 0
        score, loss = np.empty(rows.index.size, np.float32), np.empty(rows.rows)
        run(inner_products, rows.rows, *rows[:2], U, self.item_factors_, score, cost=rows.indptr)
        self._losses(lists, score, loss)
        # The dual state: one linear function per list and side, that of the ideal order at first.
        mixed, height = np.stack([lists.anchor] * 2), np.zeros((2, rows.rows))
        item_dual, user_dual = zip(mixed, height, strict=True)
        for _ in training.epochs(score=score, loss=loss, anchor=lists.anchor, mixed=mixed, height=height):
            self._item_step(rows, lists, items, item_dual, score, loss, training.rng)
            ceiling = loss + 0.5 * self.reg_ * np.einsum("if,if->i", U, U, dtype=np.float64)
            self._user_steps(lists, self.passes, 1e-6, ceiling, user_dual, U, score)
            self._losses(lists, score, loss)
            objective = float(loss.sum()) + self._penalty(U) + self._penalty(self.item_factors_)
            training.report(objective=objective)
        self.average_ = U[lists.some].mean(axis=0)
        self.best_ = self._liked_score(rows, score)

    def _liked_score(self, rows: CSR, score: NDArray[np.float32]) -> float:
        """Mean score of the items that each user rated highest, over users with different ratings."""
        level, width = levels_of(rows)
        lengths = np.diff(rows.indptr)
        return float(score[(level == np.repeat(width - 1, lengths)) & np.repeat(width > 1, lengths)].mean())

    def _lists(self, rows: CSR) -> NdcgLists:
        from ..kernels.ndcg_bound import NdcgLists, gains
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
        lists = NdcgLists(rows.indptr, rows.index, rows.value, np.zeros(n), np.zeros(n), some, discount, decay)
        run(gains, rows.rows, lists, cost=rows.indptr)
        return lists

    def _cut(self, rows: CSR) -> CSR:
        """Rows of at most list_length entries; which ones stay depends on the seed and the row's length only."""
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
        lists: NdcgLists,
        items: GroupedEntries,
        dual: tuple[NDArray[np.float64], NDArray[np.float64]],
        score: NDArray[np.float32],
        loss: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> None:
        """Dual steps for all items jointly; the step is halved until the objective falls."""
        from ..kernels.cofirank import item_sweep
        from ..kernels.threads import run
        from ..kernels.vectors import inner_products, weighted_sums

        U, V = self.user_factors_, np.zeros_like(self.item_factors_)
        weight = (lists.anchor - dual[0]) / self.reg_
        run(weighted_sums, len(V), *items, weight, U, np.float32(0), V, V, cost=items.indptr)
        item_sweep(rng.permutation(rows.rows), lists, U, self.reg_, self.passes, *dual, V)
        before = float(loss.sum()) + self._penalty(self.item_factors_)
        trial, found = np.empty_like(score), np.empty_like(loss)
        for _ in range(1 + HALVINGS):
            run(inner_products, rows.rows, *rows[:2], U, V, trial, cost=rows.indptr)
            self._losses(lists, trial, found)
            if float(found.sum()) + self._penalty(V) < before:
                self.item_factors_, score[:], loss[:] = V, trial, found
                return
            V = np.float32(0.5) * (V + self.item_factors_)
        self._losses(lists, score, loss)

    def _user_steps(
        self,
        lists: NdcgLists,
        passes: int,
        tolerance: float,
        ceiling: NDArray[np.float64],
        dual: tuple[NDArray[np.float64], NDArray[np.float64]],
        users: Array,
        score: NDArray[np.float32],
    ) -> None:
        """Each user's own problem (see `kernels.cofirank.user_steps`)."""
        from ..kernels.cofirank import user_steps
        from ..kernels.threads import run

        options = (self.item_factors_, self.reg_, passes, tolerance, ceiling)
        run(user_steps, len(users), lists, *options, *dual, users, score, cost=lists.indptr)

    def _losses(self, lists: NdcgLists, score: NDArray[np.float32], out: NDArray[np.float64]) -> None:
        from ..kernels.ndcg_bound import losses
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
        """The least-squares solution of each row of `out`; returns its biases, which are practically 0."""
        from ..kernels.als import half_step
        from ..kernels.threads import run

        reg, bias = np.full(rows.rows, self.reg_, np.float32), np.zeros(rows.rows, np.float32)
        none = np.zeros(len(fixed), np.float32)
        run(half_step, rows.rows, *rows[:3], 0.0, reg, NO_BIAS, fixed, none, out, bias, cost=rows.indptr)
        return bias

    # ---- fold-in -------------------------------------------------------------------------------------------------

    def _fold_in(self, histories: CSR) -> NDArray[np.float32]:
        rows = histories.merged()
        if self.loss == "ndcg":
            return self._fold_in_rows(self._cut(rows))
        users = np.zeros((rows.rows, self.dim), np.float32)
        self._half_step(rows, self.item_factors_, users)
        return users

    def _vector_parts(self, history: CSR) -> VectorParts | None:
        """By least squares where the fold-in is, else by the dual state, whose weighted sum the solution is."""
        rows = history.merged()
        if self.loss == "regression" or levels_of(rows)[1][0] == 1:
            target = rows.value if self.loss == "regression" else np.full(rows.index.size, self.best_)
            F = self.item_factors_[rows.index]
            parts = ridge_parts(F, np.ones(target.size), target.astype(np.float64), self.reg_ * np.eye(self.dim))
            return VectorParts(rows.index, parts)
        rows = self._cut(rows)
        _, lists, mixed = self._solved(rows)
        return weighted_parts(rows.index, rows.index, (lists.anchor - mixed) / self.reg_, self.item_factors_, "")

    def _fold_in_rows(self, rows: CSR) -> NDArray[np.float32]:
        return self._solved(rows)[0]

    def _solved(self, rows: CSR) -> tuple[NDArray[np.float32], NdcgLists, NDArray[np.float64]]:
        """Vectors of the rows, their lists, and the dual state.

        Dual steps until the duality gap closes, starting from the least-squares fit of the centred ratings.

        Users with constant ratings state no order: they get the least-squares vector that scores their items as users
        score the items they like best. Users without items, or whose vector remains 0, get the average user's vector.
        """
        from ..kernels.threads import run
        from ..kernels.vectors import inner_products

        lengths, constant = np.diff(rows.indptr), levels_of(rows)[1] == 1
        owner = np.repeat(np.arange(rows.rows), lengths)
        mean = np.bincount(owner, rows.value, rows.rows) / np.maximum(lengths, 1)
        values = np.where(constant[owner], self.best_, rows.value - mean[owner]).astype(np.float32)
        users, score = np.zeros((rows.rows, self.dim), np.float32), np.empty(rows.index.size, np.float32)
        self._half_step(rows._replace(value=values), self.item_factors_, users)
        run(inner_products, rows.rows, *rows[:2], users, self.item_factors_, score, cost=rows.indptr)
        lists, loss = self._lists(rows), np.empty(rows.rows)
        for _ in range(FOLD_IN_ROUNDS):  # the anchors of equal ratings follow the scores
            self._losses(lists, score, loss)
            dual, ceiling = (lists.anchor.copy(), np.zeros(rows.rows)), np.full(rows.rows, np.inf)
            self._user_steps(lists, FOLD_IN_STEPS, FOLD_IN_GAP, ceiling, dual, users, score)
        users[~users.any(axis=1)] = self.average_
        return users, lists, dual[0]
