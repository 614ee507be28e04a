"""WMF: implicit feedback as ones, and zeros of small weight everywhere else, by alternating least squares."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answering.update import Growth
from ..cost import KERNEL, SORTED, Cost, Size, equations_memory, factors_memory, rows_memory, scratch_memory
from ..data import CSR, Array, Dataset, on_disk, tally
from ..errors import CorankError
from ..params import param
from ..stored import Number, Stored, word
from ._factors import FactorModel, VectorParts, ridge_parts

if TYPE_CHECKING:
    from ..training import Training

logger = logging.getLogger("corank")
UNEVEN = 100.0  # largest weight / median weight from which a fit warns


class WeightedSide(NamedTuple):
    """The users or the items during training: their interactions and their vectors."""

    rows: CSR  # one row per user (or item); the values are weights
    reg: NDArray[np.float32]  # (rows,)
    vectors: NDArray[np.float32]  # (rows, dim)


@dataclass(kw_only=True, eq=False)
class WMF(FactorModel):
    """Weighted matrix factorisation (implicit ALS, iALS) for implicit feedback.

    Every interaction is a 1, every other pair a 0 with weight `rho`. The objective is

        sum over interactions of (1 + alpha * c)(1 - u.v)^2 + rho * sum over all other pairs of (u.v)^2
        + sum over rows of reg * (w + rho * others)^reg_power |x|^2

    with c the confidence of an interaction, w the weight of all interactions of a user or item and x its vector.
    `confidence` is "linear" (c is the value), "log" (c = log(1 + value)) or "auto": the logarithm for counts, of which
    a few large ones would outweigh all others. `solver` is how a row is solved with the other side fixed: a few
    conjugate-gradient steps ("cg"), an exact solution ("exact"), or exact solutions for blocks of coordinates
    ("blocks", iALS++).

    References: `rho` is the dissertation's weight on zeros (with alpha = 0). rho = 1, alpha = 40 is the confidence of
    Hu, Koren and Volinsky (ICDM 2008), who give both a linear and a logarithmic form. With frequency-scaled
    regularisation (`reg_power` = 1) and a tuned `rho` the method matches neural ones (Rendle et al. 2021).

    Use it as the first model for implicit feedback: it is fast and hard to beat. Cost per epoch: about 16 * non-zeros *
    dim multiply-adds with "cg".
    """

    dim: int = param(128, "size of the embeddings", low=1, high=65_536, search=(16, 256), log=True)
    rho: float | None = param(
        None, "weight of the pairs without interaction (default: density of the data * rho_scale)", low=0.0, high=1e6
    )
    rho_scale: float = param(
        10.0,
        "weight of all pairs without interaction relative to that of all interactions, used when rho is not given",
        low=0.0,
        high=1e6,
        search=(3.0, 300.0),
        log=True,
    )
    alpha: float = param(
        0.0,
        "an interaction weighs 1 + alpha * confidence; tuned for counts only",
        low=0.0,
        search=(0.1, 30.0),
        log=True,
    )
    confidence: str = param(
        "auto",
        "of an interaction: linear (its value), log (log(1 + value)), or auto (log for counts, else linear)",
        choices=("auto", "linear", "log"),
    )
    reg: float | None = param(
        None,
        "regularisation of both sides (default: reg_scale * w^(0.65 - reg_power), w the mean weight of a user)",
        low=0.0,
    )
    reg_scale: float = param(
        0.125,
        "regularisation of a user of mean weight w is reg_scale * w^0.65, used when reg is not given",
        low=0.0,
        search=(0.0125, 1.25),
        log=True,
    )
    reg_power: float = param(
        1.0,
        "reg is multiplied by (weight of a row's pairs)^reg_power; 0 = reg as it is",
        low=0.0,
        high=2.0,
        search=(0.5, 1.0),
    )
    epochs: int = param(15, "passes over users and items", low=1, search=(4, 24))
    solver: str = param("cg", "how a row is solved", choices=("cg", "exact", "blocks"))
    steps: int = param(3, "conjugate-gradient steps per row (solver cg)", low=1)
    block: int = param(128, "coordinates solved at a time (solver blocks)", low=1)

    from_data: ClassVar[tuple[str, ...]] = ("rho", "reg")
    fits_on_disk: ClassVar[bool] = True
    starts: ClassVar[Sequence[Mapping[str, Any]]] = (
        {"dim": 256},
        {"rho_scale": 100.0, "dim": 64},
        {"rho_scale": 20.0, "reg_scale": 0.25},
        {"alpha": 1.0},
    )

    # 'linear' or 'log' once fitted. A file that does not hold it is from before there was a choice: linear, and
    # regularised by the number of interactions instead of their weight.
    confidence_ = ""

    def _pointless(self, data: Dataset) -> Collection[str]:
        return () if data.values == "counts" else ("alpha",)

    def _choose(self, data: Dataset, rows: CSR) -> None:
        self._choose_confidence(data.values, float(data.value.min()))
        users, items = (
            int(np.count_nonzero(np.diff(rows.indptr))),
            int(np.count_nonzero(tally(rows.index, rows.columns))),
        )
        # The weights are not kept: without alpha each of them is 1.
        weight = rows.index.size if self.alpha == 0 else float(self._weighted(rows).value.sum(dtype=np.float64))
        self._choose_weights(users, items, rows.index.size, weight)

    def _choose_confidence(self, values: str, lowest: float) -> None:
        """Store which confidence is used for this kind of values, of which this is the lowest."""
        if self.alpha > 0 and lowest < 0:
            raise CorankError(
                f"{type(self).__name__}(alpha={self.alpha:g}) turns values into weights, and the data has the value "
                f"{lowest:g}: "
                "weights must not be negative; drop such rows or use alpha=0"
            )
        logarithm = self.confidence == "log" or (self.confidence == "auto" and values == "counts")
        self.confidence_ = "log" if logarithm else "linear"

    def _choose_weights(self, users: int, items: int, entries: int, weight: float) -> None:
        """Store rho and reg for so many users and items with interactions, of this weight in all."""
        weight /= users
        # The zeros of a user then weigh rho_scale times as much as the interactions, however large the catalogue is.
        self.rho_ = self.rho_scale * weight / items if self.rho is None else self.rho
        # Long histories need less regularisation per interaction: of the same strength, it would blur what they tell.
        weight += self.rho_ * (items - entries / users)
        self.reg_ = self.reg_scale * weight ** (0.65 - self.reg_power) if self.reg is None else self.reg

    def _stores(self) -> dict[str, Stored]:
        return super()._stores() | {
            "confidence_": word("linear", "log", optional=True),
            "rho_": Number(low=0),
            "reg_": Number(low=0),
        }

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        users, items = self._start(data, rows, training.rng)
        for _ in training.epochs():
            self._half_step(users, items.vectors, self.solver)
            objective = self._half_step(items, users.vectors, self.solver)
            training.report(objective=objective + penalty(users))

    def _cost(self, size: Size) -> Cost:
        d = self.dim
        if self.solver == "cg":  # products with the entries and with the Gram matrix, per step
            work = (self.steps + 2) * d * (4.0 * size.rows + size.nodes * d)
        else:
            block = d if self.solver == "exact" else min(self.block, d)
            work = 2.0 * size.rows * d * (2 + block) + size.nodes * d * (d + block**2 / 6)
        return Cost(SORTED * size.rows, KERNEL * work)

    def _memory(self, size: Size) -> float:
        solving = self._solver_memory(self.solver, size.longest, size.nodes)
        return rows_memory(size, 3) + factors_memory(self, size, self.dim) + solving

    def _solver_memory(self, solver: str, longest: int, rows: int) -> float:
        """Bytes of a half-step: the Gram matrix and, per thread, the vectors of the longest row and its equations."""
        block = {"cg": 1, "exact": self.dim, "blocks": min(self.block, self.dim)}[solver]
        each = 4.0 * self.dim * (longest + 4) + equations_memory(block)
        return 4.0 * self.dim**2 + scratch_memory(each, rows)

    def _fold_in_memory(self, size: Size) -> float:
        # Blocks of histories are solved side by side, each with a Gram matrix of its own.
        return self._solver_memory("exact", size.longest, size.users) + scratch_memory(4.0 * self.dim**2, size.users)

    def _smaller(self, size: Size, free: int | None) -> str:
        return "choose a smaller dim" + (", or solver='cg'" if self.solver == "exact" else "")

    def _start(self, data: Dataset, rows: CSR, rng: np.random.Generator) -> tuple[WeightedSide, WeightedSide]:
        """Users and items with random vectors."""
        users, items = self._weighted(rows), self._weighted(data.csr("item"))
        if data.values == "counts":
            self._check_weights(rows.value, users.value)
        self.user_factors_ = self._random(rng, rows.rows)
        self.item_factors_ = self._random(rng, rows.columns)
        return (
            WeightedSide(users, self._reg(users), self.user_factors_),
            WeightedSide(items, self._reg(items), self.item_factors_),
        )

    def _random(self, rng: np.random.Generator, rows: int) -> NDArray[np.float32]:
        # Rows of norm 1: on MovieLens-1M, the objective after three conjugate-gradient steps is then 1 to 4 % lower
        # than with an initialisation near zero.
        scale = np.float32(1 / np.sqrt(self.dim))
        return rng.standard_normal((rows, self.dim), dtype=np.float32) * scale

    def _weighted(self, rows: CSR) -> CSR:
        """The same rows with weights as values."""
        weight = on_disk.full(rows.value.size, 1, np.float32, rows.value)
        if self.alpha > 0:
            for part in on_disk.blocks(weight.size):
                value = rows.value[part]
                confidence = np.log1p(value) if self.confidence_ == "log" else value
                weight[part] = np.float32(1) + np.float32(self.alpha) * confidence
        return rows._replace(value=weight)

    def _check_weights(self, counts: Array, weights: Array) -> None:
        """Say so if a few interactions weigh so much more than the others that they decide the vectors."""
        ratio = float(weights.max() / np.median(weights))
        if ratio > UNEVEN:
            logger.warning(
                "%s: with alpha=%g and confidence=%r a count of %g weighs %s times as much as the median one, so that "
                "a few interactions decide the vectors: use confidence='log' or a smaller alpha",
                *(self.name(), self.alpha, self.confidence_, counts.max(), f"{ratio:,.0f}"),
            )

    def _reg(self, rows: CSR) -> NDArray[np.float32]:
        """Regularisation of each of the weighted rows, stronger for rows of more weight (Zhou et al. 2008).

        With the number of interactions in place of their weight, a large `alpha` would mean no regularisation.
        """
        counts = np.diff(rows.indptr)
        weight: Array = counts
        if self.confidence_:
            weight = np.empty(rows.rows)
            for part in on_disk.row_blocks(rows.indptr):
                size = part.stop - part.start
                entries = slice(rows.indptr[part.start], rows.indptr[part.stop])
                weight[part] = np.bincount(np.repeat(np.arange(size), counts[part]), rows.value[entries], size)
        return self._reg_of(weight, counts, rows.columns)

    def _reg_of(self, weight: Array, counts: Array, others: int) -> NDArray[np.float32]:
        """Regularisation of rows of this weight and number of interactions with the other side."""
        return np.asarray((self.reg_ * (weight + self.rho_ * (others - counts)) ** self.reg_power), np.float32)

    def _half_step(self, side: WeightedSide, V: Array, solver: str) -> float:
        """Update every row of `side`, given the vectors V of the other side.

        Returns the objective without the penalty on V.
        """
        from ..kernels import wmf as kernels
        from ..kernels.threads import run

        rows, reg, X = side
        rho = np.float32(self.rho_)
        gram = V.T @ V
        gram *= rho
        loss = np.empty(rows.rows, np.float64)
        solve: Any = kernels.cg if solver == "cg" else kernels.blocks
        effort = {"cg": self.steps, "exact": self.dim, "blocks": self.block}[solver]
        run(solve, rows.rows, *rows[:3], rho, reg, gram, V, effort, X, loss, cost=rows.indptr)
        return float(loss.sum())

    def _absorb_items(self, growth: Growth) -> None:
        """The half-step of the items, for the fresh ones alone."""
        rows = self._weighted(growth.by_item)
        side = WeightedSide(rows, self._reg(rows), np.zeros((rows.rows, self.dim), np.float32))
        self._half_step(side, self.user_factors_, "exact")
        self.item_factors_[growth.fresh] = side.vectors

    @property
    def _keeps_values(self) -> bool:
        return self.alpha > 0

    def _vector_parts(self, history: CSR) -> VectorParts:
        """Hu, Koren and Volinsky's decomposition: the fold-in is linear in the weighted history."""
        rows = self._weighted(history.merged())
        V, weight = self.item_factors_.astype(np.float64), rows.value.astype(np.float64)
        system = self.rho_ * V.T @ V + float(self._reg(rows)[0]) * np.eye(self.dim)
        # The sum over all items has the items of the history with weight rho already.
        F = V[rows.index]
        system -= self.rho_ * F.T @ F
        return VectorParts(rows.index, ridge_parts(F, weight, np.ones(weight.size), system))

    def _fold_in(self, histories: CSR) -> NDArray[np.float32]:
        """User vectors from an exact half-step on these histories, with the learned item vectors fixed."""
        rows = self._weighted(histories.merged())
        unseen = WeightedSide(rows, self._reg(rows), np.zeros((rows.rows, self.dim), np.float32))
        self._half_step(unseen, self.item_factors_, "exact")
        return unseen.vectors


def penalty(side: WeightedSide) -> float:
    """The regularisation of one side: sum of reg_r |x_r|^2."""
    return float(side.reg @ np.einsum("if,if->i", side.vectors, side.vectors))
