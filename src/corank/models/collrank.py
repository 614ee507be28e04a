"""CollRank (AltSVM): learn the order of each user's ratings from explicit pairs, by dual coordinate descent.

The objective is that of `primal_cr`: for every user and every pair of items that the user rated differently (or
compared, `Dataset.from_comparisons`) a squared hinge on the difference of the two scores, plus
reg / 2 (|U|^2 + |V|^2). Park, Neeman, Zhang, Sanghavi and Dhillon (ICML 2015) alternate between two ranking SVMs, one
over all items and one a user, each with a dual variable a pair that is kept from one epoch to the next. Use it to
compare with `primal_cr`, which gets to the same place without writing the pairs down: 16 bytes a pair here, and a user
with n ratings has up to n^2 / 2 of them. Cost of an epoch: about 5 * passes * pairs * dim. Users are solved on all
threads; the items are one chain of updates and use one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Array, Dataset, row_ends
from ..errors import CorankError
from ..model import Model
from ..params import param
from ._rated import BACKGROUND, Items, against, by_item, levels_of, places, usual_reg

if TYPE_CHECKING:
    from ..training import Training

BYTES = 16  # a pair: two positions and two duals
SWEEPS = 8  # at most in a half-step of an epoch, before a half-step that does not lower the objective is given up
PRECISE = 1e-6  # relative duality gap at which a folded-in user stands
PATIENCE = 300  # sweeps at most to get there


class _Pairs(NamedTuple):
    """The pairs of each row of a CSR, in random order (see `kernels.collrank`)."""

    indptr: NDArray[np.int64]
    high: NDArray[np.int32]
    low: NDArray[np.int32]


@dataclass(kw_only=True, eq=False)
class CollRank(Model):
    """Pairwise collaborative ranking by alternating dual coordinate descent."""

    dim: int = param(64, "size of the embeddings", low=1, high=65_536, search=(10, 128), log=True)
    reg: float | None = param(None, "regularisation (38 * sqrt(pairs a user) when absent)", low=1e-6)
    reg_scale: float = param(
        1.0, "multiple of that usual regularisation, where reg is absent", low=1e-3, search=(0.25, 4.0), log=True
    )
    epochs: int = param(15, "outer iterations: items, then users", low=1, search=(5, 20))
    passes: int = param(1, "sweeps over the pairs in each half of an epoch", low=1, search=(1, 4))
    max_pairs: int = param(500_000_000, "refuse data with more pairs (16 bytes each)", low=1)

    needs_ratings: ClassVar[bool] = True
    tasks: ClassVar[tuple[str, ...]] = ("explicit",)
    takes_comparisons: ClassVar[bool] = True

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        rng = training.rng
        from ..kernels.primal_cr import products
        from ..kernels.threads import run

        pairs = self._pairs(rows, data.comparisons, np.arange(rows.rows))
        counts = np.diff(pairs.indptr)
        some = counts > 0
        usual = usual_reg(counts, "CollRank")
        self.reg_ = self.reg_scale * usual if self.reg is None else float(self.reg)
        items = by_item(rows)
        self.user_factors_ = np.float32(0.1) * rng.standard_normal((rows.rows, self.dim), np.float32)
        self.item_factors_ = np.float32(0.1) * rng.standard_normal((rows.columns, self.dim), np.float32)
        self.user_factors_[~some] = 0
        self.average_ = np.zeros(self.dim, np.float32)
        popularity = np.diff(items.indptr)
        self.background_ = np.argsort(-popularity, kind="stable")[:BACKGROUND].astype(np.int32)
        score, loss = np.empty(rows.index.size, np.float32), np.empty(rows.rows, np.float64)
        run(products, rows.rows, *rows[:2], self.user_factors_, self.item_factors_, score, cost=rows.indptr)
        self._losses(rows, pairs, score, loss)
        user_duals, item_duals = np.zeros((2, pairs.high.size), np.float32)
        for _ in training.epochs(user_duals=user_duals, item_duals=item_duals, score=score, loss=loss):
            self._item_step(rows, pairs, items, item_duals, score, loss, rng)
            ceiling = loss + 0.5 * self.reg_ * np.einsum("if,if->i", *[self.user_factors_.astype(np.float64)] * 2)
            begin = _begins(counts, rng)
            self._user_steps(rows, pairs, begin, SWEEPS, np.inf, ceiling, user_duals, self.user_factors_, score, loss)
            training.report(objective=self._objective(loss))
        self.average_ = self.user_factors_[some].mean(axis=0)
        alike = np.flatnonzero(~some)
        for part in np.array_split(alike, 1 + alike.size // 1000):  # their pairs need not be there all at once
            self.user_factors_[part] = self._fold(rows.take(part))

    def _pairs(self, rows: CSR, comparisons: Array | None, stream: Array) -> _Pairs:
        """All pairs of each row; `stream` int64[rows] names the random numbers that put them into order."""
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
                "the same without writing pairs down"
            )
        indptr = row_ends(count)
        if comparisons is not None:
            high, low = places(rows, comparisons)
        else:
            high, low = np.empty((2, total), np.int32)
            run(kernels.enumerate_pairs, rows.rows, rows.indptr, level, indptr, high, low, cost=indptr)
        run(shuffle, rows.rows, indptr, np.asarray(stream, np.int64), self.seed, high, low, cost=indptr)
        return _Pairs(indptr, high, low)

    def _item_step(
        self,
        rows: CSR,
        pairs: _Pairs,
        items: Items,
        alpha: NDArray[np.float32],
        score: NDArray[np.float32],
        loss: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> None:
        """Sweeps over the pairs for all items jointly, until the objective falls; it is not taken where it does not."""
        from ..kernels.collrank import item_sweep, weights
        from ..kernels.primal_cr import collect, products
        from ..kernels.threads import run

        given, trial, hinges = np.empty_like(score), np.empty_like(score), np.empty_like(loss)
        run(weights, rows.rows, rows.indptr, *pairs, alpha, self.reg_, given, cost=pairs.indptr)
        V = np.zeros_like(self.item_factors_)
        run(collect, len(V), *items, given, self.user_factors_, np.float32(0), V, V, cost=items.indptr)
        before = float(loss.sum()) + self._penalty(self.item_factors_)
        counts = np.diff(pairs.indptr)
        for sweep in range(1, max(SWEEPS, self.passes) + 1):
            order, begin = rng.permutation(rows.rows), _begins(counts, rng)
            item_sweep(order, begin, *rows[:2], *pairs, self.user_factors_, self.reg_, alpha, V)
            if sweep < self.passes:
                continue
            run(products, rows.rows, *rows[:2], self.user_factors_, V, trial, cost=rows.indptr)
            self._losses(rows, pairs, trial, hinges)
            if float(hinges.sum()) + self._penalty(V) < before:
                self.item_factors_, score[:], loss[:] = V, trial, hinges
                return

    def _user_steps(
        self,
        rows: CSR,
        pairs: _Pairs,
        begin: NDArray[np.int64],
        most: int,
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

        options = (self.item_factors_, self.reg_, self.passes, max(most, self.passes), tolerance, ceiling)
        state = (alpha, users, score, loss)
        run(user_steps, len(users), *rows[:2], *pairs, begin, *options, *state, cost=pairs.indptr)

    def _losses(self, rows: CSR, pairs: _Pairs, score: NDArray[np.float32], out: NDArray[np.float64]) -> None:
        from ..kernels.collrank import losses
        from ..kernels.threads import run

        run(losses, rows.rows, rows.indptr, *pairs, score, out, cost=pairs.indptr)

    def _penalty(self, vectors: Array) -> float:
        return 0.5 * self.reg_ * float(np.einsum("if,if->", vectors, vectors, dtype=np.float64))

    def _objective(self, loss: NDArray[np.float64]) -> float:
        return float(loss.sum()) + self._penalty(self.user_factors_) + self._penalty(self.item_factors_)

    def _score(self, users: NDArray[np.int32]) -> NDArray[np.float32]:
        return np.asarray(self.user_factors_[users] @ self.item_factors_.T)

    def _score_histories(self, histories: CSR) -> NDArray[np.float32]:
        """Fold-in: the new users' SVMs until the duality gap closes, the items staying as they are."""
        from ..kernels.csr import merged

        users = self._fold(CSR(*merged(*histories[:3]), histories.columns))
        return np.asarray(users @ self.item_factors_.T)

    def _fold(self, rows: CSR) -> Array:
        """Vectors of new users. Who rated all items alike is taken to prefer them to what most others rated."""
        _, width = levels_of(rows)
        alike = np.flatnonzero(width == 1)
        users = self._solved(rows)
        users[alike] = self._solved(against(rows.take(alike), self.background_))
        return users

    def _solved(self, rows: CSR) -> Array:
        """Each row's SVM to its end; a row without pairs gets the average taste."""
        users = np.tile(self.average_, (rows.rows, 1))
        # One stream for all: an answer must not depend on who else is asked about.
        pairs = self._pairs(rows, None, np.zeros(rows.rows, np.int64))
        begin, ceiling = np.zeros(rows.rows, np.int64), np.full(rows.rows, np.inf)
        alpha, score = np.zeros(pairs.high.size, np.float32), np.empty(rows.index.size, np.float32)
        loss = np.empty(rows.rows, np.float64)
        self._user_steps(rows, pairs, begin, PATIENCE, PRECISE, ceiling, alpha, users, score, loss)
        return users

    def _predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float64]:
        scores = np.einsum("nf,nf->n", self.user_factors_[users], self.item_factors_[items])
        return np.asarray(scores, np.float64)


def _begins(counts: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """A random pair of each list at which a sweep begins."""
    return (rng.random(counts.size) * counts).astype(np.int64)
