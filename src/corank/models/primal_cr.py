"""Primal-CR and Primal-CR++: pairwise ranking of each user's rated items at nearly the cost of matrix factorisation."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..cost import KERNEL, SCATTERED, SORTED, Cost, Size, factors_memory, row_memory, rows_memory, scratch_memory
from ..data import CSR, Array, Dataset, on_disk, row_ends
from ..params import param
from ..stored import Number, Stored, codes, floats, permutes
from ._rated import GroupedEntries, PreferenceModel, by_item, levels_of, most_popular, pair_places, usual_reg

if TYPE_CHECKING:
    from ..kernels.primal_cr import PreferenceLists
    from ..training import Training

FOLD_IN_STEPS = 20  # Newton steps on the vector of an unseen user


@dataclass(kw_only=True, eq=False)
class PrimalCR(PreferenceModel):
    """Pairwise collaborative ranking by alternating truncated Newton steps.

    Objective: for every user and every pair of items that the user rated differently, the squared hinge of the score
    difference, plus reg / 2 (|U|^2 + |V|^2). Primal-CR++, the default, never enumerates the pairs: after sorting a list
    of n ratings, loss, gradient and Hessian-vector products take O(n log n). With comparisons as input
    (`Dataset.from_comparisons`) or a logistic loss it works on explicit pairs (Primal-CR).

    Reference: Wu, Hsieh and Sharpnack, "Large-scale collaborative ranking in near-linear time", KDD 2017; dissertation,
    chapter 3.

    Use it when the ratings of a user express preferences and the goal is to order the rated items.
    An epoch costs about 4 * steps * ratings * dim multiply-adds.
    """

    dim: int = param(64, "embedding size", low=1, high=65_536, search=(10, 128), log=True)
    reg: float | None = param(None, "regularisation (default: 38 * sqrt(mean number of pairs per user))", low=0.0)
    reg_scale: float = param(
        1.0, "factor on the default regularisation, used when reg is not given", low=0.0, search=(0.25, 4.0), log=True
    )
    epochs: int = param(15, "outer iterations: items, then users", low=1, search=(5, 20))
    loss: str = param("squared_hinge", "loss of a pair of items", choices=("squared_hinge", "logistic"))
    reg_bias: float | None = param(None, "regularisation of the item biases (default: no item biases)", low=0.0)
    pairwise: bool = param(False, "enumerate all pairs (Primal-CR) instead of sorting (Primal-CR++)")
    steps: int = param(10, "maximum number of conjugate-gradient steps per Newton step", low=1)
    tolerance: float = param(0.01, "relative residual at which conjugate gradient stops", low=0.0, high=1.0)

    needs_ratings: ClassVar[bool] = True
    fits_on_disk: ClassVar[bool] = True
    tasks: ClassVar[tuple[str, ...]] = ("explicit",)
    takes_comparisons: ClassVar[bool] = True

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        rng = training.rng
        lists, kind, pairs = self._lists(rows, data.comparisons)
        items, some = by_item(rows), pairs > 0
        usual = usual_reg(pairs, "Primal-CR")
        self.reg_ = self.reg_scale * usual if self.reg is None else self.reg
        self.user_factors_ = np.float32(0.1) * rng.standard_normal((rows.rows, self.dim), np.float32)
        self.item_factors_ = np.float32(0.1) * rng.standard_normal((rows.columns, self.dim), np.float32)
        self.user_factors_[~some] = 0
        self.item_bias_ = np.zeros(rows.columns, np.float32)
        for _ in training.epochs({"order": permutes(rows.indptr)}, order=lists.order):
            self._rescore(lists, kind)
            step = self._item_step(lists, kind, items)
            with contextlib.suppress(StopIteration):
                part = next(step)
                while True:
                    part = step.send(part)  # all users are here: a part is the sum
            self._user_steps(lists, kind, 1, self.user_factors_)
            training.report(objective=self._objective(lists))
        self.average_ = self.user_factors_[some].mean(axis=0)
        self.background_ = most_popular(np.diff(items.indptr))
        self.user_factors_[~some] = self._fold_in_rows(rows.take(np.flatnonzero(~some)))

    def _stores(self) -> dict[str, Stored]:
        return super()._stores() | {
            "reg_": Number(low=0),
            "item_bias_": floats("items"),
            "average_": floats("dim"),
            "background_": codes("background"),
        }

    def _cost(self, size: Size) -> Cost:
        entries = size.pairs if self._explicit_pairs() or size.comparisons else float(size.rows)
        work = 4 * KERNEL * self.dim * size.rows + 10 * SCATTERED * entries
        return Cost(SORTED * size.rows, (self.steps + 2) * work)

    def _memory(self, size: Size) -> float:
        pairs = size.pairs if self._explicit_pairs() or size.comparisons else 0.0
        gathered = scratch_memory(4.0 * self.dim * size.longest, size.users)  # the vectors of a user's items
        rows = rows_memory(size, 2) + row_memory(72.0, size)
        rows += 8.0 * size.rows if size.on_disk else 0.0  # where the entries of each item are, in random order
        return rows + 16.0 * pairs + factors_memory(self, size, self.dim + 1, 4) + gathered

    def _explicit_pairs(self) -> bool:
        return self.pairwise or self.loss == "logistic"

    def _lists(self, rows: CSR, comparisons: Array | None = None) -> tuple[PreferenceLists, int, NDArray[np.int64]]:
        """The lists at scores of 0, the kind of their loss, and the number of pairs per user."""
        from ..kernels import pairs as pair_kernels
        from ..kernels.primal_cr import WINDOWS, PreferenceLists
        from ..kernels.threads import run

        n = rows.index.size
        level, width = levels_of(rows)
        count = np.empty(rows.rows, np.int64)
        kind = WINDOWS
        high = low = np.zeros(0, np.int32)
        if comparisons is not None:
            count[:] = np.bincount(comparisons[:, 0], minlength=rows.rows)
            kind = pair_kernels.SQUARED_HINGE
            high, low = pair_places(rows, comparisons)
        else:
            run(pair_kernels.comparable, rows.rows, rows.indptr, level, width, count, cost=rows.indptr)
        pair_indptr = row_ends(count)
        if comparisons is None and self._explicit_pairs():
            kind = pair_kernels.SQUARED_HINGE
            high, low = np.empty((2, pair_indptr[-1]), np.int32)
            run(pair_kernels.enumerate_pairs, rows.rows, rows.indptr, level, pair_indptr, high, low, cost=pair_indptr)
        if self.loss == "logistic":
            kind = pair_kernels.LOGISTIC
        size = n if kind == WINDOWS else 0
        order, up, down, active = (
            on_disk.empty(size, dtype, rows.index) for dtype in (np.int32, np.int32, np.int32, np.float32)
        )
        if size:
            for part in on_disk.row_blocks(rows.indptr):
                ends = rows.indptr[part.start : part.stop + 1]
                order[ends[0] : ends[-1]] = np.arange(ends[0], ends[-1]) - np.repeat(ends[:-1], np.diff(ends))
        lists = PreferenceLists(
            indptr=rows.indptr,
            index=rows.index,
            score=on_disk.full(n, 0, np.float32, rows.index),
            gradient=on_disk.empty(n, np.float32, rows.index),
            loss=np.empty(rows.rows, np.float64),
            level=level,
            width=width,
            order=order,
            up=up,
            down=down,
            active=active,
            pair_indptr=pair_indptr,
            high=high,
            low=low,
            curvature=np.empty(high.size, np.float32),
        )
        return lists, kind, count

    def _evaluate(self, lists: PreferenceLists, kind: int, score: NDArray[np.float32]) -> float:
        """Gradient and curvature at the scores; returns the loss."""
        from ..kernels.primal_cr import evaluate
        from ..kernels.threads import run

        run(evaluate, lists.loss.size, lists, kind, score, cost=lists.indptr)
        return float(lists.loss.sum())

    def _rescore(self, lists: PreferenceLists, kind: int) -> None:
        """Scores, gradient and curvature at the factors.

        Within an epoch the scores are updated along with the factors. Each epoch recomputes them from the factors
        alone, so that rounding errors do not accumulate and training can resume from the factors.
        """
        from ..kernels.threads import run
        from ..kernels.vectors import inner_products

        entries = (lists.indptr, lists.index)
        factors = (self.user_factors_, self.item_factors_)
        run(inner_products, lists.loss.size, *entries, *factors, lists.score, cost=lists.indptr)
        for part in on_disk.blocks(lists.index.size):
            lists.score[part] += self.item_bias_[lists.index[part]]
        self._evaluate(lists, kind, lists.score)

    def _user_steps(self, lists: PreferenceLists, kind: int, newton_steps: int, users: Array) -> None:
        """At most `newton_steps` truncated Newton steps on each user's vector."""
        from ..kernels.primal_cr import user_steps
        from ..kernels.threads import run

        options = (np.float32(self.reg_), self.steps, np.float32(self.tolerance), newton_steps)
        run(user_steps, len(users), lists, kind, self.item_factors_, *options, users, cost=lists.indptr)

    def _item_step(
        self, lists: PreferenceLists, kind: int, items: GroupedEntries, share: float = 1.0
    ) -> Generator[Array, Array, None]:
        """One truncated Newton step on all items jointly, halved until the objective falls.

        Yields what these users contribute to sums over all users, and receives the sums; share : the part of the
        regularisation that is counted here.
        """
        from ..kernels.primal_cr import hessian_products
        from ..kernels.threads import run
        from ..kernels.vectors import weighted_sums

        U, V, reg = self.user_factors_, self.item_factors_, np.float32(self.reg_ * share)
        if self.reg_bias is not None:  # the bias is an extra coordinate of the items, with a constant 1 for every user
            U = np.append(U, np.ones((len(U), 1), np.float32), axis=1)
            V = np.append(V, self.item_bias_[:, None], axis=1)

        def by_items(weight: Array, vectors: Array) -> Array:
            """Sum over each item's entries of weight * u, plus the share of the regularisation at `vectors`."""
            out = np.empty_like(V)
            run(weighted_sums, len(V), *items, weight, U, reg, vectors, out, cost=items.indptr)
            if self.reg_bias is not None:
                out[:, -1] += (np.float32(self.reg_bias * share) - reg) * vectors[:, -1]
            return out

        # Conjugate gradient on H step = gradient; `shift` is the change of the scores that the step makes.
        residual = (yield by_items(lists.gradient, V)).copy()  # at step 0 the residual is the gradient
        direction, step = residual.copy(), np.zeros_like(V)
        n = lists.score.size
        along, curved, trial = (on_disk.empty(n, np.float32, lists.index) for _ in range(3))
        shift = on_disk.full(n, 0, np.float32, lists.index)
        norm = float(np.vdot(residual, residual))
        goal = max(self.tolerance**2, 1e-12) * norm  # a smaller residual is rounding error
        for _ in range(self.steps):
            if norm < 1e-30:
                break
            run(hessian_products, lists.loss.size, lists, kind, U, direction, along, curved, cost=lists.indptr)
            image = yield by_items(curved, direction)
            step_size = np.float32(norm / float(np.vdot(direction, image)))
            step += step_size * direction
            residual -= step_size * image
            for part in on_disk.blocks(n):
                shift[part] += step_size * along[part]
            new_norm = float(np.vdot(residual, residual))
            if new_norm <= goal:
                break
            direction *= np.float32(new_norm / norm)
            direction += residual
            norm = new_norm
        before = float((yield np.array([lists.loss.sum()]))[0]) + self._penalty(V)
        for halvings in range(20):
            scale = np.float32(0.5**halvings)
            moved = V - scale * step
            for part in on_disk.blocks(n):
                trial[part] = lists.score[part] - scale * shift[part]
            loss = yield np.array([self._evaluate(lists, kind, trial)])
            if float(loss[0]) + self._penalty(moved) < before:
                lists.score[:] = trial
                self.item_factors_ = np.ascontiguousarray(moved[:, : self.dim])
                if self.reg_bias is not None:
                    self.item_bias_ = np.ascontiguousarray(moved[:, -1], np.float32)
                return
        self._evaluate(lists, kind, lists.score)

    def _penalty(self, vectors: Array) -> float:
        """Regularisation of user vectors, or of item vectors with the bias as one more coordinate."""
        own, extra = vectors[:, : self.dim], vectors[:, self.dim :]
        return 0.5 * self.reg_ * float(np.sum(own * own)) + 0.5 * (self.reg_bias or 0.0) * float(np.sum(extra * extra))

    def _objective(self, lists: PreferenceLists) -> float:
        items = np.append(self.item_factors_, self.item_bias_[:, None], axis=1)
        return float(lists.loss.sum()) + self._penalty(self.user_factors_) + self._penalty(items)

    def _solve_users(self, rows: CSR) -> NDArray[np.float32]:
        """Newton's method on each row's vector until convergence; a row without pairs gets the mean user vector."""
        return self._solved(rows)[0]

    def _entry_weights(self, rows: CSR) -> NDArray[np.float64] | None:
        users, lists, kind = self._solved(rows)
        if not self.reg_ > 0 or not lists.pair_indptr[-1]:
            return None
        self._evaluate(lists, kind, self.item_factors_[rows.index] @ users[0] + self.item_bias_[rows.index])
        return -lists.gradient.astype(np.float64) / self.reg_

    def _solved(self, rows: CSR) -> tuple[NDArray[np.float32], PreferenceLists, int]:
        """The vectors of the rows, and their lists with the kind of their loss."""
        lists, kind, pairs = self._lists(rows)
        users = np.zeros((rows.rows, self.dim), np.float32)
        lists.score[:] = self.item_bias_[rows.index]
        self._evaluate(lists, kind, lists.score)
        self._user_steps(lists, kind, FOLD_IN_STEPS, users)
        users[pairs == 0] = self.average_
        return users, lists, kind
