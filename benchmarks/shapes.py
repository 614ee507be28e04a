"""Datasets of many shapes, for defaults that must hold on data that nobody has tuned them to.

Real sets come from the folder of named datasets (those that are missing there are left out); synthetic ones add what
no real set here has: very small and very large catalogues, five to five hundred rows per user, counts.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

import corank as cr
from corank.data import Array
from corank.data.split import Split

MOST_USERS = 4_000  # users that are evaluated: enough to compare settings, at a tenth of the time

REAL = {
    "ml-100k": ("implicit", "explicit", "sequential"),
    "ml-1m": ("implicit", "explicit", "sequential"),
    "ml-latest-small": ("implicit", "explicit"),
    "games": ("implicit", "sequential"),
    "beauty-bert4rec": ("implicit", "sequential"),
    "s3rec-beauty": ("implicit", "sequential"),
    "s3rec-sports": ("implicit", "sequential"),
    "ciao": ("implicit", "explicit"),
    "filmtrust": ("implicit", "explicit"),
    "foursquare": ("implicit",),
    "douban": ("implicit", "explicit"),
    "flixster": ("implicit", "explicit"),
    "yahoo-music": ("explicit",),
}
# name -> tasks, and the options of `synthetic.realistic`
MADE: Mapping[str, tuple[tuple[str, ...], Mapping[str, float]]] = {
    "1,000 items, 500 rows per user": (("implicit", "explicit"), {"users": 2_000, "items": 1_000, "rows": 400_000, "groups": 10}),
    "3,000 items, 20 rows per user": (("implicit", "explicit"), {"users": 8_000, "items": 3_000, "rows": 160_000, "groups": 30}),
    "10,000 items, 5 rows per user": (("implicit",), {"users": 40_000, "items": 10_000, "rows": 210_000, "groups": 80}),
    "30,000 items, 40 rows per user": (("implicit",), {"users": 15_000, "items": 30_000, "rows": 600_000, "groups": 300}),
    "100,000 items, 20 rows per user": (("implicit",), {"users": 20_000, "items": 100_000, "rows": 400_000, "groups": 500}),
    "20,000 items, counts": (("implicit",), {"users": 3_000, "items": 20_000, "rows": 150_000, "groups": 100}),
}  # fmt: skip


def names(task: str) -> list[str]:
    """The shapes on which a task is tried."""
    return [name for name, tasks in REAL.items() if task in tasks] + [
        name for name, (tasks, _) in MADE.items() if task in tasks
    ]


def load(name: str) -> cr.Dataset:
    """One dataset of the family."""
    if name not in MADE:
        return cr.datasets.load(name)
    made = cr.synthetic.realistic(**MADE[name][1], seed=1)
    if "counts" in name:
        # Plays follow how much a user likes the item, with a long tail.
        rng = np.random.default_rng(1)
        plays = np.ceil(np.exp(0.7 * made.data.value + 1.2 * rng.standard_normal(len(made.data))))
        return dataclasses.replace(made.data, value=plays.astype(np.float32))
    return made.data


def split(name: str, task: str) -> Split:
    """As `compare` splits it, with at most `MOST_USERS` users to evaluate."""
    parts = cr.Experiment(data=load(name), task=task).make_split()
    rng = np.random.default_rng(0)
    valid, test = (_fewer(part, rng) for part in (parts.valid, parts.test))
    return dataclasses.replace(parts, valid=valid, test=test)


def _fewer(part: cr.Dataset, rng: np.random.Generator) -> cr.Dataset:
    users = np.unique(part.user)
    if users.size <= MOST_USERS:
        return part
    return part.take(np.isin(part.user, rng.choice(users, MOST_USERS, replace=False)))
