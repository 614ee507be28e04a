"""How an outer iteration of Primal-CR++ grows: with the ratings of a user, and with the ratings in all.

Lists are of one length and their items drawn at random, so that one thing changes at a time. Every point is a process
of its own, for its peak memory.
"""

from __future__ import annotations

import resource
from typing import Any

import numpy as np

import corank as cr

from .tools import Table, growth_picture, in_process

LENGTHS = (50, 100, 200, 500, 1000, 2000, 5000)
SIZES = (1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000)
USERS, ITEMS = 480_189, 17_770  # the Netflix prize
STEPS = 5  # of conjugate gradient in every Newton step, however well they do: this is about cost
CODE = "import json; from benchmarks.growth import point; print(json.dumps(point({}, {}, {}, {})))"


def run() -> Table:
    rows, pictures = [], {}
    for what, x, dim, points in (
        ("ratings per user, 1,000 users", "length", 100, [(n, 1_000, 20_000, n) for n in LENGTHS]),
        ("ratings in all, Netflix shape", "size", 100, [_share(n) for n in SIZES]),
    ):
        found = []
        for n, users, items, length in points:
            seconds, peak = in_process(CODE.format(users, items, length, dim))["point"]
            found.append((users * length if x == "size" else n, seconds))
            shape = [f"{users:,}", f"{items:,}", f"{users * length:,}", f"{length:,}", str(dim)]
            rows.append([*shape, f"{seconds:.3f}", f"{seconds / (users * length) * 1e9:.0f}", f"{peak:.1f}", ""])
        exponent = float(np.polyfit(*np.log(np.array(found)).T, 1)[0])
        rows[-1][-1] = f"time ~ {x}^**{exponent:.2f}**"
        name = what.split(",")[0].replace(" ", "-")
        pictures[f"growth-{x}"] = growth_picture(name, what, "seconds per iteration", found, exponent)
    header = ["users", "items", "ratings", "a user", "rank", "s / iteration", "ns / rating", "peak GB", "fit"]
    note = (
        f"The quicker of the second and third outer iteration, {STEPS} steps of conjugate gradient in each "
        "Newton step, all threads; peak memory of the whole process."
    )
    return Table("Primal-CR++: growth", header, rows, note, pictures)


def _share(size: int) -> tuple[int, int, int, int]:
    length = 100_000_000 // USERS
    return size, size // length, ITEMS, length


def point(users: int, items: int, length: int, dim: int) -> dict[str, Any]:
    """Wall seconds of an iteration and the peak memory of this process in GB; the first iteration starts from noise."""
    model = cr.PrimalCR(dim=dim, epochs=3, steps=STEPS, tolerance=0.0).fit(_random(users, items, length))
    seconds = float(np.diff([h["seconds"] for h in model.history_]).min())
    return {"point": (seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)}


def _random(users: int, items: int, length: int) -> cr.Dataset:
    """Every user rates `length` random items with five levels that follow a hidden taste of rank 4."""
    rng = np.random.default_rng(0)
    taste, nature = rng.standard_normal((users, 4), np.float32), rng.standard_normal((items, 4), np.float32)
    item = np.empty((users, length), np.int32)
    for u in range(users):
        item[u] = _distinct(rng, items, length)
    value = np.empty((users, length), np.float32)
    for start in range(0, users, 10_000):
        part = slice(start, start + 10_000)
        score = np.einsum("ulf,uf->ul", nature[item[part]], taste[part])
        value[part] = np.digitize(score, (-2.0, -0.7, 0.7, 2.0)) + 1
    user = np.repeat(np.arange(users, dtype=np.int32), length)
    ids = (cr.Vocab(np.arange(users)), cr.Vocab(np.arange(items)))
    return cr.Dataset(*ids, user, item.ravel(), value.ravel())


def _distinct(rng: np.random.Generator, items: int, length: int) -> np.ndarray:
    if length * 4 > items:
        return rng.choice(items, length, replace=False, shuffle=False)
    drawn = np.unique(rng.integers(0, items, 2 * length, np.int32))
    return rng.permutation(drawn)[:length]
