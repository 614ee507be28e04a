"""Popularity on shards: each worker counts its own rows."""

from __future__ import annotations

import numpy as np

from ..errors import CorankError
from ..models.popularity import Popularity
from .method import Method
from .steps import Steps, gather, total


class PopularityShard(Method):
    """The training of `Popularity` on one worker: it has no epochs."""

    shared = ("counts_",)
    model: Popularity

    def start(self) -> Steps[None]:
        model, data, items = self.model, self.shard.data, self.shard.items
        ever = yield from total(self.place, np.bincount(data.item, minlength=items))
        if model.days is None:
            model._settle(ever, ever)
            return
        newest = yield from gather(self.place, None if data.time is None else int(data.time.max(initial=0)))
        if data.time is None:
            raise CorankError(f"Popularity(days={model.days:g}) needs timestamps (unix seconds) and this data has none")
        lately = data.item[data.time > max(newest) - model.days * 86_400]
        model._settle((yield from total(self.place, np.bincount(lately, minlength=items))), ever)
