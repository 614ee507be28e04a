"""Datasets of many shapes, for defaults that must hold on data that nobody has tuned them to.

Real sets come from the folder of named datasets (those that are missing there are left out); synthetic ones add what
no real set here has: very small and very large catalogues, five to two hundred rows per user, counts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

import corank as cr

MOST_USERS = 4_000  # users that are evaluated: enough to compare settings, in a tenth of the time
REAL = {
    "ml-100k": ("implicit", "explicit", "sequential"),
    "ml-1m": ("implicit", "explicit"),
    "ml-latest-small": ("implicit", "explicit"),
    "games": ("implicit", "sequential"),
    "beauty-bert4rec": ("implicit",),
    "s3rec-beauty": ("implicit", "sequential"),
    "s3rec-sports": ("implicit",),
    "ciao": ("implicit", "explicit"),
    "filmtrust": ("implicit", "explicit"),
    "foursquare": ("implicit",),
    "douban": ("implicit", "explicit"),
    "flixster": ("implicit", "explicit"),
    "yahoo-music": ("explicit",),
}

LARGE = (
    "games",
    "beauty-bert4rec",
    "s3rec-sports",
    "ciao",
    "20,000 items, counts",
    "30,000 items, 40 rows per user",
    "100,000 items, 20 rows per user",
)


def _shape(users: int, items: int, rows: int, groups: int) -> dict[str, Any]:
    return {"users": users, "items": items, "rows": rows, "groups": groups}


# Name -> tasks, and the options of `synthetic.realistic`.
MADE: Mapping[str, tuple[tuple[str, ...], Mapping[str, Any]]] = {
    "1,000 items, 200 rows per user": (("implicit", "explicit"), _shape(2_000, 1_000, 400_000, 10)),
    "3,000 items, 20 rows per user": (("implicit", "explicit"), _shape(8_000, 3_000, 160_000, 30)),
    "10,000 items, 5 rows per user": (("implicit",), _shape(40_000, 10_000, 210_000, 80)),
    "20,000 items, counts": (("implicit",), _shape(3_000, 20_000, 150_000, 100)),
    "30,000 items, 40 rows per user": (("implicit",), _shape(15_000, 30_000, 600_000, 300)),
    "100,000 items, 20 rows per user": (("implicit",), _shape(20_000, 100_000, 400_000, 500)),
}


def names(task: str) -> list[str]:
    """The datasets on which a task is tried."""
    return [name for name, tasks in REAL.items() if task in tasks] + [
        name for name, (tasks, _) in MADE.items() if task in tasks
    ]


def suits(shape: str, model: str) -> bool:
    """Whether a model is tried on a dataset: graph models where there is a graph, EASE up to 13,000 items."""
    if model in ("grwmf", "grmf"):
        return shape in ("ciao", "filmtrust", "douban", "flixster", "3,000 items, 20 rows per user")
    return model != "ease" or shape not in LARGE


def load(name: str) -> cr.Dataset:
    """One dataset of the family."""
    if name not in MADE:
        return cr.datasets.load(name)
    data = cr.synthetic.realistic(**MADE[name][1], seed=1).data
    if "counts" not in name:
        return data
    # Plays follow how much a user likes the item, with a long tail.
    noise = np.random.default_rng(1).standard_normal(len(data))
    return dataclasses.replace(data, value=np.ceil(np.exp(0.7 * data.value + 1.2 * noise)).astype(np.float32))


def split(name: str, task: str) -> cr.Split:
    """With at most `MOST_USERS` users to evaluate in each part.

    A fifth of each user's rows is test: with the last row alone, the small sets would say little.
    """
    data = load(name)
    share = 0.2 if ", 5 rows" in name else 0.1  # of five rows, a tenth is none
    parts = cr.leave_last_out(data) if task == "sequential" else cr.holdout(data, by="user", valid=share, seed=0)
    rng = np.random.default_rng(0)
    return dataclasses.replace(parts, valid=_fewer(parts.valid, rng), test=_fewer(parts.test, rng))


def _fewer(part: cr.Dataset, rng: np.random.Generator) -> cr.Dataset:
    users = np.unique(part.user)
    if users.size <= MOST_USERS:
        return part
    return part.take(np.isin(part.user, rng.choice(users, MOST_USERS, replace=False)))
