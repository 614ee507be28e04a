"""What the service counts and measures, for Prometheus and for the page."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

Answer = Callable[[Sequence[Any]], Sequence[Any]]  # of a batch
MEDIA = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1, 2, 5, 10)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
QUANTILES = (0.5, 0.9, 0.99)
LATEST = 5_000  # answers whose quantiles are shown
WATCHED = "/recommend"  # the route of these answers


disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """Counters and histograms of one process; with several workers, `text` adds up those of all."""

    def __init__(self) -> None:
        self.registry = own = CollectorRegistry()
        self.several = "PROMETHEUS_MULTIPROC_DIR" in os.environ
        self.requests = Counter("corank_requests", "Answers by route and status", ["route", "status"], registry=own)
        self.seconds = Histogram(
            "corank_request_seconds", "Seconds per answer", ["route"], buckets=SECONDS, registry=own
        )
        self.latest = Gauge(
            "corank_recent_seconds",
            f"Seconds per answer: quantiles of the latest {LATEST:,} recommendations",
            ["quantile"],
            multiprocess_mode="livemostrecent",
            registry=own,
        )
        self.batch = Histogram("corank_batch_size", "Requests scored together", ["model"], buckets=SIZES, registry=own)
        self.scoring = Histogram(
            "corank_scoring_seconds", "Seconds per batch", ["model"], buckets=SECONDS, registry=own
        )
        self.events = Counter("corank_feedback", "Feedback events", ["event"], registry=own)
        self.shown = Counter("corank_impressions", "Items in answers, by model", ["model"], registry=own)
        self.clicked = Counter("corank_clicks", "Feedback on items, by model", ["model"], registry=own)
        self.swaps = Counter("corank_model_loads", "Models loaded, by outcome", ["model", "outcome"], registry=own)
        self.store = Gauge(
            "corank_store_up", "1 if the feedback store answers", multiprocess_mode="livemin", registry=own
        )
        self.ready = Gauge("corank_models", "Models that are served", multiprocess_mode="livemostrecent", registry=own)
        if not self.several:
            ProcessCollector(registry=own)
            PlatformCollector(registry=own)
        self._latest: deque[float] = deque(maxlen=LATEST)
        self._routes: dict[tuple[str, int], Any] = {}
        self._times: dict[str, Any] = {}
        self._shown: dict[str, Any] = {}

    def showed(self, model: str, items: int) -> None:
        """Count items in an answer."""
        child = self._shown.get(model)
        if child is None:
            child = self._shown[model] = self.shown.labels(model)
        child.inc(items)

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count an answer. The children of labels are kept: to look them up takes longer than to count."""
        key = (route, status)
        child = self._routes.get(key)
        if child is None:
            child = self._routes[key] = self.requests.labels(route, str(status))
            self._times.setdefault(route, self.seconds.labels(route))
        child.inc()
        self._times[route].observe(seconds)
        if route == WATCHED:
            self._latest.append(seconds)

    def measured(self, answer: Answer, model: str) -> Answer:
        """The same function; the size of each batch and its seconds are recorded."""
        sizes, seconds = self.batch.labels(model), self.scoring.labels(model)

        def call(batch: Sequence[Any]) -> Sequence[Any]:
            began = time.perf_counter()
            answers = answer(batch)
            seconds.observe(time.perf_counter() - began)
            sizes.observe(len(batch))
            return answers

        return call

    def quantiles(self) -> dict[float, float]:
        """Seconds of the latest recommendations: the median and higher quantiles."""
        times = sorted(self._latest)
        return {q: times[min(len(times) - 1, int(q * len(times)))] for q in QUANTILES} if times else {}

    def text(self) -> bytes:
        """All metrics in Prometheus' format."""
        for quantile, seconds in self.quantiles().items():
            self.latest.labels(f"{quantile:g}").set(seconds)
        if not self.several:
            return generate_latest(self.registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)

    def totals(self) -> dict[str, dict[str, float]]:
        """Answers by route, and failed ones, as the page shows them."""
        registry = self.registry
        if self.several:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        routes: dict[str, float] = {}
        failed: dict[str, float] = {}
        for family in registry.collect():
            if family.name != "corank_requests":
                continue
            for sample in family.samples:
                if sample.name.endswith("_total"):
                    route = sample.labels["route"]
                    routes[route] = routes.get(route, 0) + sample.value
                    if sample.labels["status"].startswith("5"):
                        failed[route] = failed.get(route, 0) + sample.value
        return {"answers": routes, "failed": failed}
