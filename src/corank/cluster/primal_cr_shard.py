"""Primal-CR on shards: each step of conjugate gradient on the items adds up one array of the size of their vectors."""

from __future__ import annotations

import numpy as np

from ..data import Array
from ..models._rated import by_item, most_popular, usual_reg
from ..models.primal_cr import PrimalCR
from .method import Method
from .steps import Steps, joined, scattered, total

SMALL = 1000  # numbers up to which an array is summed by all workers instead of each summing a part


class PrimalCRShard(Method):
    """The training of `PrimalCR` on one worker."""

    shared = ("item_factors_", "item_bias_", "average_", "background_")
    own = ("user_factors_",)
    model: PrimalCR

    def start(self) -> Steps[None]:
        model, place = self.model, self.place
        self.rows = rows = self.shard.data.csr()
        self.lists, self.kind, pairs = model._lists(rows)
        self.items, self.some = by_item(rows), pairs > 0
        sums = yield from total(place, np.array([pairs.sum(), np.count_nonzero(self.some)], np.float64))
        usual = usual_reg(np.array([sums[0] / max(sums[1], 1)]), "Primal-CR")
        model.reg_ = model.reg_scale * usual if model.reg is None else model.reg
        model.background_ = most_popular((yield from total(place, np.diff(self.items.indptr))))
        rng = np.random.default_rng(model.seed)
        model.user_factors_ = np.float32(0.1) * self.shard.normal(rng, model.dim)
        model.item_factors_ = np.float32(0.1) * rng.standard_normal((rows.columns, model.dim), np.float32)
        model.user_factors_[~self.some] = 0
        model.item_bias_ = np.zeros(rows.columns, np.float32)
        model.average_ = np.zeros(model.dim, np.float32)

    def arrays(self) -> dict[str, Array]:
        return {**super().arrays(), "order": self.lists.order}

    def epoch(self) -> Steps[dict[str, float]]:
        model, lists = self.model, self.lists
        model._rescore(lists, self.kind)
        step = model._item_step(lists, self.kind, self.items, 1 / self.place.size)
        try:
            part = next(step)
            while True:
                part = step.send((yield from self._sum(part)))
        except StopIteration:
            pass
        model._user_steps(lists, self.kind, 1, model.user_factors_)
        own = float(lists.loss.sum()) + model._penalty(model.user_factors_)
        loss = yield from total(self.place, np.array([own]))
        vectors = np.append(model.item_factors_, model.item_bias_[:, None], axis=1)
        return {"objective": float(loss[0]) + model._penalty(vectors)}

    def _sum(self, part: Array) -> Steps[Array]:
        if part.size <= SMALL:
            return (yield from total(self.place, part))
        (mine,) = yield from scattered(self.place, part)
        return (yield from joined(self.place, mine))

    def finish(self) -> Steps[None]:
        model, some = self.model, self.some
        sums = np.append(model.user_factors_[some].sum(axis=0, dtype=np.float64), np.count_nonzero(some))
        sums = yield from total(self.place, sums)
        model.average_[...] = sums[:-1] / sums[-1]
        model.user_factors_[~some] = model._fold_in_rows(self.rows.take(np.flatnonzero(~some)))
