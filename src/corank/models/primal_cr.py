"""Primal-CR and Primal-CR++: learn the order of each user's ratings, at nearly the cost of learning the ratings.

Objective: for every user and every pair of items that the user rated differently, a squared hinge on the difference of
the two scores, plus reg / 2 (|U|^2 + |V|^2) (Wu, Hsieh and Sharpnack, KDD 2017; dissertation ch. 3). Primal-CR++ never
writes the pairs down: sorting a list of n ratings gives loss, gradient and Hessian products in O(n log n). Given
comparisons (`Dataset.from_comparisons`), or a logistic loss, it works on the pairs themselves (Primal-CR).
Use it when the ratings of a user say what the user prefers, and the order among rated items is what counts. Cost of an
epoch: about 4 * steps * ratings * dim.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Array, Dataset, row_ends
from ..model import Model
from ..params import param
from ._rated import BACKGROUND, Items, against, by_item, levels_of, places, usual_reg

if TYPE_CHECKING:
    from ..kernels.primal_cr import Lists
    from ..training import Training


@dataclass(kw_only=True, eq=False)
class PrimalCR(Model):
    """Pairwise collaborative ranking by alternating truncated Newton."""

    dim: int = param(64, "size of the embeddings", low=1, high=65_536, search=(10, 128), log=True)
    reg: float | None = param(None, "regularisation (38 * sqrt(pairs a user) when absent)", low=0.0)
    reg_scale: float = param(
        1.0, "multiple of that usual regularisation, where reg is absent", low=0.0, search=(0.25, 4.0), log=True
    )
    epochs: int = param(15, "outer iterations: items, then users", low=1, search=(5, 20))
    loss: str = param("squared_hinge", "loss of a pair of items", choices=("squared_hinge", "logistic"))
    reg_bias: float | None = param(
        None,
        "regularisation of an item's own quality (no such term when absent)",
        low=0.0,
    )
    pairwise: bool = param(False, "write all pairs down (Primal-CR) where sorting would do (Primal-CR++)")
    steps: int = param(10, "conjugate-gradient steps at most in a Newton step", low=1)
    tolerance: float = param(0.01, "share of the residual at which conjugate gradient stops", low=0.0, high=1.0)

    needs_ratings: ClassVar[bool] = True
    tasks: ClassVar[tuple[str, ...]] = ("explicit",)
    takes_comparisons: ClassVar[bool] = True

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        rng = training.rng
        from ..kernels.primal_cr import products
        from ..kernels.threads import run

        lists, kind, pairs = self._lists(rows, data.comparisons)
        some = pairs > 0
        usual = usual_reg(pairs, "Primal-CR")
        self.reg_ = self.reg_scale * usual if self.reg is None else float(self.reg)
        items = by_item(rows)
        self.user_factors_ = np.float32(0.1) * rng.standard_normal((rows.rows, self.dim), np.float32)
        self.item_factors_ = np.float32(0.1) * rng.standard_normal((rows.columns, self.dim), np.float32)
        self.user_factors_[~some] = 0
        self.item_bias_ = np.zeros(rows.columns, np.float32)
        for _ in training.epochs(order=lists.order):
            # Within an epoch the scores follow the steps. Each epoch starts from the factors alone: rounding does
            # not pile up, and training can go on from them.
            run(products, rows.rows, *rows[:2], self.user_factors_, self.item_factors_, lists.score, cost=rows.indptr)
            lists.score[:] += self.item_bias_[rows.index]
            self._prepare(lists, kind, lists.score)
            self._item_step(lists, kind, items)
            self._user_steps(lists, kind, 1, self.user_factors_)
            training.report(objective=self._objective(lists))
        self.average_ = self.user_factors_[some].mean(axis=0)
        counts = np.diff(items.indptr)
        self.background_ = np.argsort(-counts, kind="stable")[:BACKGROUND].astype(np.int32)
        alike = np.flatnonzero(~some)
        self.user_factors_[alike] = self._fold(rows.take(alike))

    def _lists(self, rows: CSR, comparisons: Array | None = None) -> tuple[Lists, int, NDArray[np.int64]]:
        """The lists at scores of 0, the kind of their loss, and the number of pairs of each."""
        from ..kernels import pairs as pair_kernels
        from ..kernels.primal_cr import WINDOWS, Lists
        from ..kernels.threads import run

        n = rows.index.size
        level, width = levels_of(rows)
        count = np.empty(rows.rows, np.int64)
        kind = WINDOWS
        high = low = np.zeros(0, np.int32)
        if comparisons is not None:
            count[:] = np.bincount(comparisons[:, 0], minlength=rows.rows)
            kind = pair_kernels.SQUARED_HINGE
            high, low = places(rows, comparisons)
        else:
            run(pair_kernels.comparable, rows.rows, rows.indptr, level, width, count, cost=rows.indptr)
        pair_indptr = row_ends(count)
        if comparisons is None and (self.pairwise or self.loss == "logistic"):
            kind = pair_kernels.SQUARED_HINGE
            high, low = np.empty((2, pair_indptr[-1]), np.int32)
            run(pair_kernels.enumerate_pairs, rows.rows, rows.indptr, level, pair_indptr, high, low, cost=pair_indptr)
        if self.loss == "logistic":
            kind = pair_kernels.LOGISTIC
        size = n if kind == WINDOWS else 0
        place = np.arange(n) - np.repeat(rows.indptr[:-1], np.diff(rows.indptr))
        lists = Lists(
            rows.indptr,
            rows.index,
            np.zeros(n, np.float32),
            np.empty(n, np.float32),
            np.empty(rows.rows, np.float64),
            level,
            width,
            place[:size].astype(np.int32),
            np.empty(size, np.int32),
            np.empty(size, np.int32),
            np.empty(size, np.float32),
            pair_indptr,
            high,
            low,
            np.empty(high.size, np.float32),
        )
        return lists, kind, count

    def _prepare(self, lists: Lists, kind: int, score: NDArray[np.float32]) -> float:
        """Everything that hangs on the scores; returns the loss."""
        from ..kernels.primal_cr import prepare
        from ..kernels.threads import run

        run(prepare, lists.loss.size, lists, kind, score, cost=lists.indptr)
        return float(lists.loss.sum())

    def _user_steps(self, lists: Lists, kind: int, rounds: int, users: Array) -> None:
        """At most `rounds` Newton steps on each user alone."""
        from ..kernels.primal_cr import user_steps
        from ..kernels.threads import run

        options = (np.float32(self.reg_), self.steps, np.float32(self.tolerance), rounds)
        run(user_steps, len(users), lists, kind, self.item_factors_, *options, users, cost=lists.indptr)

    def _item_step(self, lists: Lists, kind: int, items: Items) -> None:
        """One truncated Newton step on all items jointly; a step that would raise the objective is not taken."""
        from ..kernels.primal_cr import collect, curves
        from ..kernels.threads import run

        U, V, reg = self.user_factors_, self.item_factors_, np.float32(self.reg_)
        if self.reg_bias is not None:  # an item's quality is one more coordinate, which is 1 for every user
            U = np.append(U, np.ones((len(U), 1), np.float32), axis=1)
            V = np.append(V, self.item_bias_[:, None], axis=1)

        def collected(weight: Array, at: Array) -> Array:
            out = np.empty_like(V)
            run(collect, len(V), *items, weight, U, reg, at, out, cost=items.indptr)
            if self.reg_bias is not None:
                out[:, -1] += (np.float32(self.reg_bias) - reg) * at[:, -1]
            return out

        left = collected(lists.slope, V)  # at step 0 the residual is the gradient
        way, step = left.copy(), np.zeros_like(V)
        b, bent = np.empty((2, lists.score.size), np.float32)
        shift = np.zeros_like(b)  # what the step does to the scores
        size = float(np.vdot(left, left))
        goal = max(self.tolerance**2, 1e-12) * size  # beyond that is rounding
        for _ in range(self.steps):
            if size < 1e-30:
                break
            run(curves, lists.loss.size, lists, kind, U, way, b, bent, cost=lists.indptr)
            image = collected(bent, way)
            length = np.float32(size / float(np.vdot(way, image)))
            step += length * way
            left -= length * image
            shift += length * b
            fresh = float(np.vdot(left, left))
            if fresh <= goal:
                break
            way *= np.float32(fresh / size)
            way += left
            size = fresh
        before = float(lists.loss.sum()) + self._penalty(V)
        for halvings in range(20):
            share = np.float32(0.5**halvings)
            trial, moved = lists.score - share * shift, V - share * step
            if self._prepare(lists, kind, trial) + self._penalty(moved) < before:
                lists.score[:] = trial
                self.item_factors_ = np.ascontiguousarray(moved[:, : self.dim])
                if self.reg_bias is not None:
                    self.item_bias_ = np.ascontiguousarray(moved[:, -1], np.float32)
                return
        self._prepare(lists, kind, lists.score)

    def _penalty(self, vectors: Array) -> float:
        """Of user vectors, or of item vectors with the item's quality as one more coordinate."""
        own, extra = vectors[:, : self.dim], vectors[:, self.dim :]
        return 0.5 * self.reg_ * float(np.sum(own * own)) + 0.5 * (self.reg_bias or 0.0) * float(np.sum(extra * extra))

    def _objective(self, lists: Lists) -> float:
        items = np.append(self.item_factors_, self.item_bias_[:, None], axis=1)
        return float(lists.loss.sum()) + self._penalty(self.user_factors_) + self._penalty(items)

    def _score(self, users: NDArray[np.int32]) -> NDArray[np.float32]:
        return np.asarray(self.user_factors_[users] @ self.item_factors_.T + self.item_bias_)

    def _score_histories(self, histories: CSR) -> NDArray[np.float32]:
        """Fold-in: Newton's method on the new users' vectors until it stands, the items staying as they are."""
        from ..kernels.csr import merged

        users = self._fold(CSR(*merged(*histories[:3]), histories.columns))
        return np.asarray(users @ self.item_factors_.T + self.item_bias_)

    def _fold(self, rows: CSR) -> Array:
        """Vectors of new users. Who rated all items alike is taken to prefer them to what most others rated."""
        _, width = levels_of(rows)
        alike = np.flatnonzero(width == 1)
        users = self._solved(rows)
        users[alike] = self._solved(against(rows.take(alike), self.background_))
        return users

    def _solved(self, rows: CSR) -> Array:
        """Newton's method on each row's vector until it stands; a row without pairs gets the average taste."""
        lists, kind, pairs = self._lists(rows)
        users = np.zeros((rows.rows, self.dim), np.float32)
        lists.score[:] = self.item_bias_[rows.index]
        self._prepare(lists, kind, lists.score)
        self._user_steps(lists, kind, 20, users)
        users[pairs == 0] = self.average_
        return users

    def _predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float64]:
        scores = np.einsum("nf,nf->n", self.user_factors_[users], self.item_factors_[items])
        return np.asarray(scores + self.item_bias_[items], np.float64)
