"""The service itself: models, feedback store and counts behind plain methods; `routes` gives them addresses."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any

from ..errors import CorankError
from . import schemas
from .answers import Answer
from .feedback import CLICKED, SHOWN, Feedback
from .lanes import Crowded
from .logs import Log
from .metrics import Metrics
from .people import known_item, past, reasons, shown_user
from .problems import Problem, refused, unavailable
from .recent import RecentEvents
from .registry import Registry, Served, load_checked
from .requests import asked_of, history_of, listed
from .settings import MOST_HISTORY, Settings
from .store import Store
from .workers import Shared

TICK = 1.0  # seconds between rounds of housekeeping
ASIDE = 2  # explanations and similar items that are computed at a time


class Service:
    """Everything that answers requests. `start` and `stop` are called in the event loop."""

    def __init__(self, settings: Settings, log: Log) -> None:
        """Open the store and read the models; what is wrong is a `CorankError` before anything listens."""
        self.settings = settings
        self.log = log
        self.token = settings.token()
        self.metrics = Metrics()
        self.store = None if settings.store is None else Store(settings.store)
        self.recent = RecentEvents(self.store, MOST_HISTORY)
        self.prepare = labelled(settings.items)
        self.shared = Shared(settings.shared)
        self._first = {name: load_checked(file, self.prepare) for name, file in settings.models.items()}
        self.ready = False
        self.registry: Registry
        self.feedback: Feedback
        self._keeping: asyncio.Task[None] | None = None
        self._aside: asyncio.Semaphore  # for work that takes long: it must not use all processors

    async def start(self) -> None:
        self.registry = Registry(self.settings, self.recent, self.metrics, self.prepare)
        for name, model in self._first.items():
            self.registry.serve(name, self.settings.models[name], model)
            self.metrics.swaps.labels(name, "loaded").inc()
        self._first = {}
        self._aside = asyncio.Semaphore(ASIDE)
        await self._follow()  # a worker that is started again
        self.feedback = Feedback(self.store, self.registry, self.metrics)
        self._keeping = asyncio.create_task(self._keep_house())
        self.ready = True
        self.log.event("ready", models=list(self.registry.models), writable=self.settings.writable)

    async def stop(self) -> None:
        """Finish what was begun: answers, feedback, counts."""
        self.ready = False
        if self._keeping is not None:
            self._keeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeping
        await self.registry.close()
        await self.feedback.close()
        self.log.event("stopped")

    # ---- recommendations ---------------------------------------------------------------------------------------------

    async def recommend(self, request: schemas.RecommendQuery | schemas.RecommendBody) -> dict[str, Any]:
        key = None if request.user is None else self.feedback.key(request.user)
        served = self.registry.find(request.model, key)
        asked = asked_of(request, served.model.items_)
        asked.user = key
        try:
            answer = await served.lane.ask(asked)
        except Crowded:
            raise unavailable("more requests are waiting than this service can answer: try again later") from None
        if request.model is None and key is not None:
            self.feedback.showed(served.name, len(answer.codes))
        return self._recommended(served, key, answer)

    def _recommended(self, served: Served, user: str | None, answer: Answer) -> dict[str, Any]:
        item = served.catalogue.item
        out: dict[str, Any] = {"model": served.name}
        if user is not None:
            out["user"] = shown_user(served, user)
        out["items"] = [{**item(code), "score": score} for code, score in zip(answer.codes, answer.scores, strict=True)]
        out["events"] = answer.events
        if answer.skipped:
            out["skipped"] = answer.skipped
        if answer.stale:
            out["stale"] = True
        if answer.notes:
            out["notes"] = answer.notes
        return out

    async def similar(self, request: schemas.SimilarQuery) -> dict[str, Any]:
        served = self.registry.find(request.model)
        code, catalogue = known_item(served, request.item), served.catalogue
        item = served.model.items_.ids[code]
        try:
            ranking = await self._beside(served.model.similar_items, [item], k=request.k)
        except CorankError as why:
            raise refused(why) from None
        found = zip(ranking.items[0].tolist(), ranking.scores[0].tolist(), strict=True)
        items = [{**catalogue.item(at), "score": score} for at, score in found if at >= 0]
        return {"model": served.name, "item": catalogue.item(code), "items": items}

    async def explain(self, request: schemas.ExplainQuery | schemas.ExplainBody) -> dict[str, Any]:
        key = None if request.user is None else self.feedback.key(request.user)
        served = self.registry.find(request.model, key)
        history = history_of(request, served.model.items_)
        items = [known_item(served, one) for one in listed(request.items, served.model.items_)]
        return await self._beside(reasons, served, self.recent, key, history, items, request.k)  # type: ignore[no-any-return]

    async def _beside(self, work: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Work that takes longer than a recommendation, in a thread beside those of the lanes."""
        async with self._aside:
            return await asyncio.to_thread(work, *args, **options)

    # ---- users and items ---------------------------------------------------------------------------------------------

    async def items(self, request: schemas.SearchQuery) -> dict[str, Any]:
        served = self.registry.find(request.model)
        found = await asyncio.to_thread(served.catalogue.items, request.q, request.k)
        return {"model": served.name, "items": found}

    async def users(self, request: schemas.SearchQuery) -> dict[str, Any]:
        served = self.registry.find(request.model)
        found = await asyncio.to_thread(served.catalogue.users, request.q, request.k)
        return {"model": served.name, "users": found}

    async def history(self, request: schemas.UserQuery) -> dict[str, Any]:
        """What the service knows of a user: training rows and feedback."""
        key = self.feedback.key(request.user)
        served = self.registry.find(request.model, key)
        return await self._beside(past, served, self.recent, key)  # type: ignore[no-any-return]

    # ---- models ------------------------------------------------------------------------------------------------------

    async def change_model(self, name: str, change: schemas.ModelChange) -> dict[str, Any]:
        """Load a file under a name, change a share, or both."""
        await self._follow()
        if change.file is None:
            served = await self.registry.share(name, change.share or 0.0)
        else:
            try:
                served = await self.registry.load(name, change.file, change.share)
            except Problem as why:
                self.metrics.swaps.labels(name if name in self.registry.models else "other", "refused").inc()
                self.log.event("model refused", model=name[:64], why=why.detail)
                raise
            self.metrics.swaps.labels(name, "loaded").inc()
        self._tell()
        return served.about(self.registry.share_of(name))

    async def remove_model(self, name: str) -> None:
        await self._follow()
        await self.registry.remove(name)
        self._tell()

    def _tell(self) -> None:
        """Log what is served now, and tell the other workers."""
        self.shared.write(self.registry.state())
        self.log.event("models", models=self.registry.listed())

    async def _follow(self) -> None:
        """Serve what another worker was told to serve."""
        state = self.shared.news()
        if state is not None:
            for mistake in await self.registry.follow(state):
                self.log.event("model refused", why=mistake)
            self.log.event("models", models=self.registry.listed())

    # ---- counts and housekeeping -------------------------------------------------------------------------------------

    async def stats(self) -> dict[str, Any]:
        """Traffic and the A/B counts."""
        total = await self.feedback.totals()
        names = dict.fromkeys([*self.registry.models, *sorted(name for name, _ in total)])
        arms = [
            {
                "model": name,
                "share": self.registry.share_of(name) if name in self.registry.models else 0.0,
                "impressions": total.get((name, SHOWN), 0),
                "clicks": total.get((name, CLICKED), 0),
            }
            for name in names
        ]
        seconds = {f"{quantile:g}": value for quantile, value in self.metrics.quantiles().items()}
        return {**self.metrics.totals(), "seconds": seconds, "arms": arms, "time": time.time()}

    async def _keep_house(self) -> None:
        """Once per second: write counts and log lines, notice a store that came back."""
        while True:
            await asyncio.sleep(TICK)
            self.log.flush()
            await self._follow()
            self.metrics.ready.set(len(self.registry.models))
            await self.feedback.write_counts()
            if self.store is not None:
                self.metrics.store.set(float(self.store.up))


def labelled(items: str | None) -> Any:
    """A function that labels the items of a model from a table, which is read once."""
    if items is None:
        return lambda model: model
    from ..reading.item_tables import item_table

    table = item_table(items)
    return lambda model: model.with_items(table)
