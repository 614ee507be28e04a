"""The models that are served: loading, checking, swapping and removing them while requests are being answered.

A request keeps the model that it was given until it is answered. So a swap is the exchange of one entry of a table: no
request sees half of it, and the old model goes when its last request is answered.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import CorankError, ModelFileError, reason, show, suggest
from ..model import Model
from ..models import load
from .answers import Answer, Answerer, Asked
from .catalogue import Catalogue
from .lanes import Lane
from .metrics import Metrics
from .problems import Problem, refused, unknown
from .recent import RecentEvents
from .settings import Settings, check_name, check_shares
from .split import arm


@dataclass(frozen=True, eq=False)
class Served:
    """One model that is served. Nothing in it refers back to it: its memory is free once its last request is over."""

    name: str
    file: str
    model: Model
    catalogue: Catalogue
    answerer: Answerer
    lane: Lane[Asked, Answer]
    loaded: float = field(default_factory=time.time)  # unix seconds; workers tell swaps of one file apart by it

    def about(self, share: float | None) -> dict[str, Any]:
        """What `/models` says about it."""
        return {
            "name": self.name,
            "kind": self.model.name(),
            "file": Path(self.file).name,
            "users": len(self.model.users_),
            "items": len(self.model.items_),
            "share": share,
            "loaded": int(self.loaded),
            "labels": self.catalogue.labels,
        }


def load_checked(file: str, prepare: Callable[[Model], Model]) -> Model:
    """Read a model, label its items and ask it for one list, so that a file that cannot answer is never served."""
    model = prepare(load(file))
    if not len(model.items_) or not len(model.users_):
        raise ModelFileError(f"{file} has no users or no items: fit it on data that has some")
    user = model.users_.ids[int(np.argmax(np.diff(model.seen_indptr_)))]
    best = model.recommend([user], k=1, exclude_seen=False)
    item = best.items[0, 0]
    if item < 0 or not np.isfinite(best.scores[0, 0]):
        raise ModelFileError(f"{file} does not give finite scores: fit it again")
    model.recommend(histories=[[model.items_.ids[item]]], k=1)
    return model


class Registry:
    """The models by name. All methods run in the event loop; loading runs in a thread."""

    def __init__(
        self,
        settings: Settings,
        recent: RecentEvents,
        metrics: Metrics,
        prepare: Callable[[Model], Model],
    ) -> None:
        """prepare : labels the items of a model."""
        self.models: dict[str, Served] = {}
        self.shares: dict[str, float] = dict(settings.shares)
        self.default = next(iter(settings.models))
        self.folders = {Path(file).resolve().parent for file in settings.models.values()}
        self._prepare = prepare
        self._recent = recent
        self._metrics = metrics
        self._changing = asyncio.Lock()

    def serve(self, name: str, file: str, model: Model, loaded: float | None = None) -> Served:
        """Put a loaded model in place, beside or instead of another one."""
        answerer = Answerer(model, self._recent)
        lane = Lane(self._metrics.measured(answerer, name), name)
        served = Served(name, file, model, Catalogue(model), answerer, lane, loaded or time.time())
        self.models = {**self.models, name: served}
        return served

    @property
    def first(self) -> Model:
        """The default model, whose ids decide how those of requests are read."""
        return self.models[self.default].model

    def find(self, name: str | None, key: str | None = None) -> Served:
        """The model of a name, else of a user."""
        if name is None:
            return self.models[arm(key, self.default, self.shares)]
        found = self.models.get(name)
        if found is None:
            raise unknown(CorankError(f"there is no model {show(name)}{suggest(name, self.models)}"))
        return found

    async def load(self, name: str, file: str, share: float | None) -> Served:
        """Load a file beside what is served, then exchange; if the file is bad, what is served stays."""
        try:
            check_name(name)
        except CorankError as why:
            raise refused(why) from None
        path = self._allowed(file)
        async with self._changing:
            shares = self._shares_with(name, share)
            try:
                model = await asyncio.to_thread(load_checked, str(path), self._prepare)
            except CorankError as why:
                raise refused(f"{why}. Nothing was changed") from None
            except Exception as why:
                raise refused(f"{path.name} cannot be served: {reason(why)}. Nothing was changed") from why
            self.shares = shares
            return self.serve(name, str(path), model)

    async def share(self, name: str, share: float) -> Served:
        """Change the share of users of a model."""
        served = self.find(name)
        async with self._changing:
            self.shares = self._shares_with(name, share)
        return served

    async def remove(self, name: str) -> None:
        self.find(name)
        if name == self.default:
            raise Problem(409, f"{name} answers all users without another model: swap it instead of removing it")
        async with self._changing:
            self.models = {key: one for key, one in self.models.items() if key != name}
            self.shares = {key: one for key, one in self.shares.items() if key != name}

    def listed(self) -> list[dict[str, Any]]:
        return [served.about(self.share_of(name)) for name, served in self.models.items()]

    def share_of(self, name: str) -> float:
        if name == self.default:
            return max(0.0, 1.0 - sum(share for other, share in self.shares.items() if other != name))
        return self.shares.get(name, 0.0)

    def state(self) -> dict[str, Any]:
        """What another worker needs to serve the same."""
        models = {name: [one.file, one.loaded] for name, one in self.models.items()}
        return {"models": models, "shares": self.shares}

    async def follow(self, state: dict[str, Any]) -> list[str]:
        """Serve what another worker serves; returns a sentence for each model that could not be read."""
        mistakes = []
        async with self._changing:
            for name, (file, loaded) in state["models"].items():
                mine = self.models.get(name)
                if mine is not None and (mine.file == file and mine.loaded >= loaded):
                    continue
                try:
                    model = await asyncio.to_thread(load_checked, file, self._prepare)
                except Exception as why:
                    mistakes.append(f"{name}: {reason(why)}")
                else:
                    self.serve(name, file, model, loaded)
            self.models = {name: one for name, one in self.models.items() if name in state["models"]}
            self.shares = {name: share for name, share in state["shares"].items() if name in self.models}
        return mistakes

    async def close(self) -> None:
        """Wait until everything that was asked is answered."""
        for served in self.models.values():
            await served.lane.close()

    def _shares_with(self, name: str, share: float | None) -> dict[str, float]:
        """The shares after a change of one, checked."""
        if share is None:
            return self.shares
        if name == self.default:
            raise refused(
                f"{name} is the default model, which has the users that are left: give the others their shares"
            )
        shares = {**self.shares, name: share}
        try:
            check_shares(shares, [*self.models, name])
        except CorankError as why:
            raise refused(why) from None
        return shares

    def _allowed(self, file: str) -> Path:
        """The file, if it is in a folder of the models that the service was started with."""
        if "\0" in file:
            raise refused("the name of a file cannot hold a NUL character")
        path = Path(file)
        if not path.is_absolute():
            path = next(iter(self.folders)) / path if len(self.folders) == 1 else path
        path = path.resolve()
        if path.parent not in self.folders:
            shown = ", ".join(sorted(map(str, self.folders)))
            raise refused(f"{show(file)} is not in a folder that models are served from: put it into {shown}")
        return path
