"""Runs of one model with several seeds, pooled into one report: the noise of one seed should not decide a table."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence

import numpy as np

from ..data import Array
from ..errors import CorankError
from .intervals import summary, totals
from .positions import Floats
from .report import Report


def pooled(reports: Sequence[Report], *, bootstrap: int = 1000, seed: int = 0) -> Report:
    """All runs in one report: the mean of a metric is the mean over the runs, each over the users tested in it.

    A random split tests other users in each run, and a user in as many runs as it happens. A user is one unit of the
    bootstrap and of the tests, with the values of all runs: repeated users are not counted as if they were several.
    Metrics of all users together, such as coverage, are averaged. The top lists are those of the first run.
    """
    first = reports[0]
    if len(reports) == 1:
        return first
    same = [(list(r.mean), r.protocol.kind, r.protocol.gain) for r in reports]
    if any(one != same[0] for one in same):
        raise CorankError("only runs of one protocol and the same metrics can be pooled")
    users, place = np.unique(np.concatenate([r.users for r in reports]), return_inverse=True)

    def over_users(parts: list[Array]) -> Floats:
        return np.bincount(place, np.concatenate(parts), users.size).astype(np.float64)

    values, weights = {}, {}
    for m in first.metrics:
        if m.scope == "all":
            values[m.name] = np.mean([r.values[m.name] for r in reports], axis=0)
            continue
        # Each run has the same weight, however many users it tests.
        parts = [totals(r.values[m.name], r.weights[m.name] / max(r.weights[m.name].sum(), 1)) for r in reports]
        summed, weight = over_users([p[0] for p in parts]), over_users([p[1] for p in parts])
        values[m.name] = np.divide(summed, weight, out=np.full(users.size, np.nan), where=weight > 0)
        weights[m.name] = weight
    mean, interval = summary(first.metrics, values, weights, bootstrap, seed)
    return dataclasses.replace(
        first,
        users=users,
        rows=over_users([r.rows for r in reports]).astype(np.int64),
        values=values,
        weights=weights,
        mean=mean,
        interval=interval,
        seconds=sum(r.seconds for r in reports),
        fit_seconds=float(np.mean([r.fit_seconds for r in reports])),
        fingerprint=hashlib.sha256("".join(r.fingerprint for r in reports).encode()).hexdigest()[:16],
    )


def spread(reports: Sequence[Report], name: str) -> float:
    """Standard deviation of a metric over the runs; NaN for one run."""
    return float(np.std([r[name] for r in reports], ddof=1)) if len(reports) > 1 else float("nan")
