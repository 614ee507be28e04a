"""ALS on shards: the normal equations of the items are added up, users are solved for as on one machine."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Array
from ..models.als import ALS, RatedSide
from .equations import Entries, Ridge, solve_items
from .method import Method
from .steps import Place, Steps, total

LIKED = 0.9  # quantile of the ratings that stands for one that is not known


class ALSShard(Method):
    """The training of `ALS` on one worker."""

    shared = ("item_factors_", "item_bias_")
    own = ("user_factors_", "user_bias_")
    model: ALS

    def start(self) -> Steps[None]:
        from ..kernels import csr

        model, data, items = self.model, self.shard.data, self.shard.items
        sums = yield from total(self.place, np.array([data.value.sum(dtype=np.float64), len(data)]))
        model.mean_ = float(sums[0] / sums[1]) if model.biases else 0.0
        model.liked_ = yield from quantile(self.place, data.value, LIKED)
        users = data.sequences()
        by_item = csr.count(data.item, items)
        index, value = csr.place(data.item, data.user, data.value, np.arange(len(data)), by_item)
        counts = yield from total(self.place, np.diff(by_item))
        rng = np.random.default_rng(model.seed)
        model.user_factors_ = self.shard.normal(rng, model.dim) * np.float32(0.1 / np.sqrt(model.dim))
        model.user_bias_ = np.zeros(users.rows, np.float32)
        model.item_factors_ = np.zeros((items, model.dim), np.float32)
        model.item_bias_ = np.zeros(items, np.float32)
        self.users = RatedSide(users, model.user_factors_, model.user_bias_)
        self.rows = CSR(by_item, index, value, users.rows)
        self.reg, self.counts = model._reg_of(counts), counts

    def epoch(self) -> Steps[dict[str, float]]:
        model = self.model
        yield from self._solve_items()
        model._half_step(self.users, model.item_factors_, model.item_bias_)
        own = model._loss(self.users.rows) + model._penalty(model._reg(self.users.rows), *self.users[1:])
        loss = yield from total(self.place, np.array([own]))
        objective = float(loss[0]) + model._penalty(self.reg, model.item_factors_, model.item_bias_)
        return {"objective": objective}

    def _solve_items(self) -> Steps[None]:
        model, rows = self.model, self.rows
        if self.place.size == 1:  # all users are here
            side = RatedSide(rows, model.item_factors_, model.item_bias_)
            model._half_step(side, model.user_factors_, model.user_bias_)
            return
        target = rows.value - np.float32(model.mean_) - model.user_bias_[rows.index]
        entries = Entries(rows, np.empty(0, np.float32), target)
        size = model.dim + 1
        last = np.full(self.reg.size, model._bias_penalty, np.float32)
        ridge = Ridge(np.zeros((size, size), np.float32), self.reg, last, self.counts.astype(np.float64))
        found = np.empty((self.reg.size, size), np.float32)
        yield from solve_items(self.place, entries, model.user_factors_, ridge, found)
        model.item_factors_[...] = found[:, :-1]
        model.item_bias_[...] = found[:, -1]


def quantile(place: Place, values: NDArray[np.float32], share: float) -> Steps[float]:
    """A quantile of the values of all workers, from two histograms of the bits that order them."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    order = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31))  # as unsigned numbers, in the order of the values
    high = yield from total(place, np.bincount(order >> 16, minlength=1 << 16))
    at = share * (int(high.sum()) - 1)
    found: list[float] = []
    for rank in (math.floor(at), math.ceil(at)):
        upper = int(np.searchsorted(np.cumsum(high), rank, side="right"))
        below = int(high[:upper].sum())
        inside = order[order >> 16 == upper] & 0xFFFF
        low = yield from total(place, np.bincount(inside, minlength=1 << 16))
        lower = int(np.searchsorted(np.cumsum(low), rank - below, side="right"))
        found.append(_value(upper << 16 | lower))
    return found[0] + (found[1] - found[0]) * (at - math.floor(at))


def _value(order: int) -> float:
    bits: Array = np.array([order ^ (1 << 31) if order >> 31 else ~order & 0xFFFFFFFF], np.uint32)
    return float(bits.view(np.float32)[0])
