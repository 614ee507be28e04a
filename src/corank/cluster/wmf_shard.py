"""WMF on shards. Users are solved for as on one machine; of the items, each worker adds up what its users contribute.

With conjugate gradient, one array of the size of the item vectors is added up per step; with exact solutions, the
normal equations are, which are dim / 2 times as large but added up only once per half-step.
"""

from __future__ import annotations

import math

import numpy as np

from ..data import Array
from ..errors import CorankError
from ..models.wmf import WMF, WeightedSide, penalty
from .equations import Entries, Ridge, solve_items
from .method import Method
from .steps import Steps, gather, joined, scattered, total


class WMFShard(Method):
    """The training of `WMF` on one worker."""

    shared = ("item_factors_",)
    own = ("user_factors_",)
    model: WMF

    @staticmethod
    def check(model: WMF) -> None:
        """Raise an error for settings that a cluster does not have."""
        if model.solver == "blocks":
            raise CorankError("solver='blocks' is not available on a cluster: use solver='cg' or 'exact'")

    def start(self) -> Steps[None]:
        model, data, place, items = self.model, self.shard.data, self.place, self.shard.items
        lowest = yield from gather(place, float(data.value.min()) if len(data) else math.inf)
        model._choose_confidence(data.values, min(lowest))
        users, by_item = model._weighted(data.csr()), model._weighted(data.csr("item"))
        counts = yield from total(place, np.diff(by_item.indptr))
        owner = np.repeat(np.arange(items), np.diff(by_item.indptr))
        weight = yield from total(place, np.bincount(owner, by_item.value, items).astype(np.float64))
        some = yield from total(place, np.array([np.count_nonzero(np.diff(users.indptr))]))
        model._choose_weights(int(some[0]), int(np.count_nonzero(counts)), int(counts.sum()), float(weight.sum()))
        rng = np.random.default_rng(model.seed)
        model.user_factors_ = self.shard.normal(rng, model.dim) * np.float32(1 / np.sqrt(model.dim))
        model.item_factors_ = model._random(rng, items)
        self.users = WeightedSide(users, model._reg(users), model.user_factors_)
        self.items = Entries(by_item, by_item.value - np.float32(model.rho_), by_item.value)
        self.reg, self.weight, self.empty = model._reg_of(weight, counts, self.shard.users), weight, counts == 0

    def epoch(self) -> Steps[dict[str, float]]:
        model, U, X = self.model, self.model.user_factors_, self.model.item_factors_
        model._half_step(self.users, X, model.solver)
        if self.place.size == 1:  # all users are here
            loss = model._half_step(WeightedSide(self.items.rows, self.reg, X), U, model.solver)
            return {"objective": loss + penalty(self.users)}
        gram = yield from total(self.place, U.T @ U)
        gram *= np.float32(model.rho_)
        if model.solver == "cg":
            loss = yield from self._descend(gram, U, X)
        else:
            ridge = Ridge(gram, self.reg, self.reg, self.weight)
            loss = yield from solve_items(self.place, self.items, U, ridge, X)
        objective = yield from total(self.place, np.array([loss + penalty(self.users)]))
        return {"objective": float(objective[0])}

    def _descend(self, gram: Array, U: Array, X: Array) -> Steps[float]:
        """Steps of conjugate gradient on all items at once; each worker keeps the residuals of the items it owns.

        Returns this worker's part of the loss.
        """
        from ..kernels.partial import products, sums
        from ..kernels.threads import run

        place, (rows, c, w) = self.place, self.items
        own = place.own(len(X))
        x, reg = X[own].copy(), self.reg[own, None]
        x[self.empty[own]] = 0
        image, target = np.empty_like(X), np.empty_like(X)
        run(products, len(X), *rows[:2], c, U, X, image, cost=rows.indptr)
        run(sums, len(X), *rows[:2], w, U, target, cost=rows.indptr)
        rhs, residual = yield from scattered(place, target, image)
        residual = rhs - residual - x @ gram - reg * x
        residual[self.empty[own]] = 0
        direction, norm = residual.copy(), _dots(residual, residual)
        for _ in range(self.model.steps):
            run(products, len(X), *rows[:2], c, U, (yield from joined(place, direction)), image, cost=rows.indptr)
            (along,) = yield from scattered(place, image)
            along = along + direction @ gram + reg * direction
            going = norm >= 1e-20  # a smaller residual is rounding error
            step = np.divide(norm, _dots(direction, along), out=np.zeros_like(norm), where=going)
            x += step[:, None] * direction
            residual -= step[:, None] * along
            new = _dots(residual, residual)
            direction *= np.divide(new, norm, out=np.zeros_like(norm), where=going)[:, None]
            direction += residual
            norm = np.where(going, new, norm)
        X[...] = yield from joined(place, x)
        return float(self.weight[own].sum() - np.vdot(x, rhs) - np.vdot(x, residual))


def _dots(a: Array, b: Array) -> Array:
    """The inner products of equal rows (rows,)."""
    return np.asarray(np.einsum("if,if->i", a, b))
