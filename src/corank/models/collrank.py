"""CollRank (AltSVM): pairwise ranking of each user's ratings by dual coordinate descent on explicit pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..cost import KERNEL, SCATTERED, SORTED, Cost, Size, factors_memory, rows_memory, scratch_memory
from ..data import CSR, Array, Dataset, row_ends
from ..errors import CorankError
from ..params import param
from ..stored import Number, Stored, codes, floats
from ._rated import GroupedEntries, PreferenceModel, by_item, levels_of, most_popular, pair_places, usual_reg

if TYPE_CHECKING:
    from ..training import Training

BYTES = 16  # per pair: two positions and two dual variables
SWEEPS = 8  # per half-step at most; then a half-step that does not lower the objective is abandoned
FOLD_IN_GAP = 1e-6  # relative duality gap at which the fold-in of a user has converged
FOLD_IN_SWEEPS = 300  # at most


class ShuffledPairs(NamedTuple):
    """The pairs of each row of a CSR in random order (see `kernels.collrank`)."""

    indptr: NDArray[np.int64]  # [rows + 1]
    high: NDArray[np.int32]  # [pairs] position of the preferred item in the row
    low: NDArray[np.int32]  # [pairs] position of the other item


@dataclass(kw_only=True, eq=False)
class CollRank(PreferenceModel):
    """Pairwise collaborative ranking by alternating dual coordinate descent (AltSVM).

    Objective, as in `PrimalCR`: for every user and every pair of items that the user rated differently (or compared,
    `Dataset.from_comparisons`), the squared hinge of the score difference, plus reg / 2 (|U|^2 + |V|^2). Training
    alternates between two ranking SVMs, one over all items jointly and one per user, each with a dual variable per pair
    that is kept from epoch to epoch.

    Reference: Park, Neeman, Zhang, Sanghavi and Dhillon, "Preference completion: large-scale collaborative ranking from
    pairwise comparisons", ICML 2015.

    Use it to compare with `PrimalCR`, which reaches the same optimum without enumerating pairs. It needs 16 bytes per
    pair, and a user with n ratings has up to n^2 / 2 pairs. An epoch costs about 5 * passes * pairs * dim
    multiply-adds. Users are solved on all threads; the item updates are sequential and use one thread.
    """

    dim: int = param(64, "embedding size", low=1, high=65_536, search=(10, 128), log=True)
    reg: float | None = param(None, "regularisation (default: 38 * sqrt(mean number of pairs per user))", low=1e-6)
    reg_scale: float = param(
        1.0, "factor on the default regularisation, used when reg is not given", low=1e-3, search=(0.25, 4.0), log=True
    )
    epochs: int = param(15, "outer iterations: items, then users", low=1, search=(5, 20))
    passes: int = param(1, "sweeps over the pairs per half-step of an epoch", low=1, search=(1, 4))
    max_pairs: int = param(500_000_000, "largest number of pairs (16 bytes each) to accept", low=1)

    needs_ratings: ClassVar[bool] = True
    tasks: ClassVar[tuple[str, ...]] = ("explicit",)
    takes_comparisons: ClassVar[bool] = True

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        from ..kernels.threads import run
        from ..kernels.vectors import inner_products

        rng = training.rng
        pairs = self._pairs(rows, data.comparisons, np.arange(rows.rows))
        counts, items = np.diff(pairs.indptr), by_item(rows)
        some = counts > 0
        usual = usual_reg(counts, "CollRank")
        self.reg_ = self.reg_scale * usual if self.reg is None else self.reg
        self.user_factors_ = np.float32(0.1) * rng.standard_normal((rows.rows, self.dim), np.float32)
        self.item_factors_ = np.float32(0.1) * rng.standard_normal((rows.columns, self.dim), np.float32)
        self.user_factors_[~some] = 0
        self.average_ = np.zeros(self.dim, np.float32)
        self.background_ = most_popular(np.diff(items.indptr))
        score, loss = np.empty(rows.index.size, np.float32), np.empty(rows.rows, np.float64)
        run(inner_products, rows.rows, *rows[:2], self.user_factors_, self.item_factors_, score, cost=rows.indptr)
        self._losses(rows, pairs, score, loss)
        user_duals, item_duals = np.zeros((2, pairs.high.size), np.float32)
        for _ in training.epochs(user_duals=user_duals, item_duals=item_duals, score=score, loss=loss):
            self._item_step(rows, pairs, items, item_duals, score, loss, rng)
            ceiling = loss + 0.5 * self.reg_ * np.einsum("if,if->i", *[self.user_factors_.astype(np.float64)] * 2)
            begin = _random_begin(counts, rng)
            self._user_steps(rows, pairs, begin, SWEEPS, np.inf, ceiling, user_duals, self.user_factors_, score, loss)
            training.report(objective=self._objective(loss))
        self.average_ = self.user_factors_[some].mean(axis=0)
        constant = np.flatnonzero(~some)
        for part in np.array_split(constant, 1 + constant.size // 1000):  # bounds the memory for their pairs
            self.user_factors_[part] = self._fold_in_rows(rows.take(part))

    def _stores(self) -> dict[str, Stored]:
        return super()._stores() | {
            "reg_": Number(low=0),
            "average_": floats("dim"),
            "background_": codes("background"),
        }

    def _cost(self, size: Size) -> Cost:
        pairs = size.pairs
        return Cost(SORTED * size.rows + 5 * SCATTERED * pairs, 5 * KERNEL * (1 + self.passes) * pairs * self.dim)

    def _memory(self, size: Size) -> float:
        pairs = BYTES * size.pairs
        gathered = scratch_memory(4.0 * self.dim * size.longest, size.users)  # the vectors of a user's items
        return rows_memory(size, 2) + 64.0 * size.rows + pairs + factors_memory(self, size, self.dim, 5) + gathered

    def _smaller(self, size: Size, free: int | None) -> str:
        return "use primal_cr, which learns the same without enumerating pairs"

    def _pairs(self, rows: CSR, comparisons: Array | None, stream: Array) -> ShuffledPairs:
        """All pairs of each row; stream int64[rows]: number of the random stream that shuffles them."""
        from ..kernels import pairs as kernels
        from ..kernels.collrank import shuffle
        from ..kernels.threads import run

        count = np.empty(rows.rows, np.int64)
        if comparisons is not None:
            count[:] = np.bincount(comparisons[:, 0], minlength=rows.rows)
        else:
            level, width = levels_of(rows)
            run(kernels.comparable, rows.rows, rows.indptr, level, width, count, cost=rows.indptr)
        total = int(count.sum())
        if total > self.max_pairs:
            raise CorankError(
                f"this data has {total:,} pairs, which take {total * BYTES:,} bytes, and "
                f"CollRank(max_pairs={self.max_pairs:,}) allows fewer: raise max_pairs, or use primal_cr, which learns "
                "the same without enumerating pairs"
            )
        indptr = row_ends(count)
        if comparisons is not None:
            high, low = pair_places(rows, comparisons)
        else:
            high, low = np.empty((2, total), np.int32)
            run(kernels.enumerate_pairs, rows.rows, rows.indptr, level, indptr, high, low, cost=indptr)
        run(shuffle, rows.rows, indptr, np.asarray(stream, np.int64), self.seed, high, low, cost=indptr)
        return ShuffledPairs(indptr, high, low)

    def _item_step(
        self,
        rows: CSR,
        pairs: ShuffledPairs,
        items: GroupedEntries,
        alpha: NDArray[np.float32],
        score: NDArray[np.float32],
        loss: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> None:
        """Sweeps over the pairs for all items jointly until the objective falls; if it never does, the items stay."""
        from ..kernels.collrank import item_sweep, weights
        from ..kernels.threads import run
        from ..kernels.vectors import inner_products, weighted_sums

        weight, trial, hinges = np.empty_like(score), np.empty_like(score), np.empty_like(loss)
        run(weights, rows.rows, rows.indptr, *pairs, alpha, self.reg_, weight, cost=pairs.indptr)
        V = np.zeros_like(self.item_factors_)
        run(weighted_sums, len(V), *items, weight, self.user_factors_, np.float32(0), V, V, cost=items.indptr)
        before = float(loss.sum()) + self._penalty(self.item_factors_)
        counts = np.diff(pairs.indptr)
        for sweep in range(1, max(SWEEPS, self.passes) + 1):
            order, begin = rng.permutation(rows.rows), _random_begin(counts, rng)
            item_sweep(order, begin, *rows[:2], *pairs, self.user_factors_, self.reg_, alpha, V)
            if sweep < self.passes:
                continue
            run(inner_products, rows.rows, *rows[:2], self.user_factors_, V, trial, cost=rows.indptr)
            self._losses(rows, pairs, trial, hinges)
            if float(hinges.sum()) + self._penalty(V) < before:
                self.item_factors_, score[:], loss[:] = V, trial, hinges
                return

    def _user_steps(
        self,
        rows: CSR,
        pairs: ShuffledPairs,
        begin: NDArray[np.int64],
        max_passes: int,
        tolerance: float,
        ceiling: NDArray[np.float64],
        alpha: NDArray[np.float32],
        users: Array,
        score: NDArray[np.float32],
        loss: NDArray[np.float64],
    ) -> None:
        """Each user's own ranking SVM (see `kernels.collrank.user_steps`)."""
        from ..kernels.collrank import user_steps
        from ..kernels.threads import run

        options = (self.item_factors_, self.reg_, self.passes, max(max_passes, self.passes), tolerance, ceiling)
        state = (alpha, users, score, loss)
        run(user_steps, len(users), *rows[:2], *pairs, begin, *options, *state, cost=pairs.indptr)

    def _losses(self, rows: CSR, pairs: ShuffledPairs, score: NDArray[np.float32], out: NDArray[np.float64]) -> None:
        from ..kernels.collrank import losses
        from ..kernels.threads import run

        run(losses, rows.rows, rows.indptr, *pairs, score, out, cost=pairs.indptr)

    def _penalty(self, vectors: Array) -> float:
        return 0.5 * self.reg_ * float(np.einsum("if,if->", vectors, vectors, dtype=np.float64))

    def _objective(self, loss: NDArray[np.float64]) -> float:
        return float(loss.sum()) + self._penalty(self.user_factors_) + self._penalty(self.item_factors_)

    def _solve_users(self, rows: CSR) -> NDArray[np.float32]:
        """Each row's SVM until the duality gap closes; a row without pairs gets the average user's vector."""
        return self._solved(rows)[0]

    def _entry_weights(self, rows: CSR) -> NDArray[np.float64] | None:
        """By the dual variables, whose weight vector the solution is."""
        from ..kernels.collrank import weights
        from ..kernels.threads import run

        _, pairs, alpha = self._solved(rows)
        weight = np.empty(rows.index.size, np.float32)
        run(weights, rows.rows, rows.indptr, *pairs, alpha, self.reg_, weight, cost=pairs.indptr)
        return weight.astype(np.float64) if alpha.size else None

    def _solved(self, rows: CSR) -> tuple[NDArray[np.float32], ShuffledPairs, NDArray[np.float32]]:
        """The vectors of the rows, their pairs and dual variables."""
        users = np.tile(self.average_, (rows.rows, 1))
        # The same random stream for all rows: results must not depend on the other users of the request.
        pairs = self._pairs(rows, None, np.zeros(rows.rows, np.int64))
        begin, ceiling = np.zeros(rows.rows, np.int64), np.full(rows.rows, np.inf)
        alpha, score = np.zeros(pairs.high.size, np.float32), np.empty(rows.index.size, np.float32)
        loss = np.empty(rows.rows, np.float64)
        self._user_steps(rows, pairs, begin, FOLD_IN_SWEEPS, FOLD_IN_GAP, ceiling, alpha, users, score, loss)
        return users, pairs, alpha


def _random_begin(counts: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """A random pair per list, with which a sweep begins."""
    return (rng.random(counts.size) * counts).astype(np.int64)
