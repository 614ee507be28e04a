"""Runs of one model with several seeds, pooled into one report: the noise of one seed should not decide a table."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from functools import reduce

import numpy as np

from ..errors import CorankError
from .intervals import summary
from .report import Report


def pooled(reports: Sequence[Report], *, bootstrap: int = 1000, seed: int = 0) -> Report:
    """Average each user's values over the runs; bootstrap intervals over users, as in a single report.

    Users that are not tested in all runs (a random split may drop some) are left out; metrics of all users together,
    such as coverage, are averaged. The top lists are those of the first run.
    """
    first = reports[0]
    if len(reports) == 1:
        return first
    same = [(list(r.mean), r.protocol.kind, r.protocol.gain) for r in reports]
    if any(one != same[0] for one in same):
        raise CorankError("only runs of one protocol and the same metrics can be pooled")
    users = reduce(np.intersect1d, [r.users for r in reports])
    at = [np.argsort(r.users, kind="stable")[np.searchsorted(np.sort(r.users), users)] for r in reports]
    values = {}
    for m in first.metrics:
        own = [r.values[m.name] if m.scope == "all" else r.values[m.name][a] for r, a in zip(reports, at, strict=True)]
        values[m.name] = np.mean(own, axis=0)
    rows = np.mean([r.rows[a] for r, a in zip(reports, at, strict=True)], axis=0)
    mean, interval = summary(first.metrics, values, rows, bootstrap, seed)
    return dataclasses.replace(
        first,
        users=users,
        rows=rows,
        values=values,
        mean=mean,
        interval=interval,
        seconds=sum(r.seconds for r in reports),
        fit_seconds=float(np.mean([r.fit_seconds for r in reports])),
        fingerprint=hashlib.sha256("".join(r.fingerprint for r in reports).encode()).hexdigest()[:16],
    )


def spread(reports: Sequence[Report], name: str) -> float:
    """Standard deviation of a metric over the runs; NaN for one run."""
    return float(np.std([r[name] for r in reports], ddof=1)) if len(reports) > 1 else float("nan")
