"""The dissertation's simulation of ratings from low-rank factors that are smoothed over a friendship graph."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..data import Dataset
from ..data.split import Split
from ..errors import CorankError
from .generated import (
    Synthetic,
    check_number,
    check_room,
    check_shares,
    check_sizes,
    mean_with_neighbours,
    range_vocab,
    symmetric_graph,
)
from .oracles import FactorOracle, pair_products

_CHUNK = 4_000_000  # ratings that are computed at a time


def simulation(
    users: int = 10_000,
    items: int = 2_000,
    rank: int = 50,
    edge: float = 0.001,
    weight: float = 0.6,
    steps: int = 3,
    train: float = 0.05,
    test: float = 0.02,
    valid: float = 0.05,
    noise: float = 0.0,
    cold: float = 0.0,
    seed: int = 0,
) -> Synthetic:
    """The dissertation's "Simulation of Synthetic Data" (chapter 2), which measures the value of a friendship graph.

    U and V are standard normal. In each of `steps` rounds, every row of U becomes
    weight * (mean of the friends' rows) + (1 - weight) * (own row),
    where friends are the neighbours in an Erdos-Renyi graph with edge probability `edge`. (The printed algorithm sums
    over the friends, but its text says average, and with sums the ratings would have a standard deviation of 131.)
    Ratings are U V^T + noise * N(0, 1) at random cells of the users x items matrix.

    train, test : fractions of all cells.
    valid : fraction of the training rows that are held out as `split.valid`; `split.refit()` adds them again.
    cold : fraction of the users that have test rows only.

    Truth: user_factors (users, rank), item_factors (items, rank).
    """
    check_sizes(users=users, items=items, rank=rank, seed=(seed, 0), steps=(steps, 0))
    check_shares(edge=edge, weight=weight, train=train, test=test, valid=valid, cold=cold)
    check_number("noise", noise, high=1e6)
    n_train, n_test = round(train * users * items), round(test * users * items)
    n_valid = int(valid * n_train)
    if n_train - n_valid < 1 or n_test < 1 or n_train + n_test > users * items:
        raise CorankError(
            f"train={train:g} and test={test:g} of {users} x {items} cells are {n_train:,} ({n_valid:,} to validate) "
            f"and {n_test:,} rows: training and test need a row each, and both together at most all cells"
        )
    pairs = users * (users - 1) // 2
    if edge * pairs > 5e8:
        raise CorankError(
            f"edge={edge:g} among {users:,} users makes about {edge * pairs:.0f} edges: at most 5e8, lower it"
        )
    check_room(2.0 * rank * (users + items) + 4.0 * (n_train + n_test) + 4.0 * edge * pairs)
    rng = np.random.default_rng(seed)
    U, V = rng.standard_normal((users, rank)), rng.standard_normal((items, rank))
    # Pair number -> (a, b), a < b: row a of the upper triangle holds users - 1 - a pairs.
    pair = _distinct(rng, pairs, int(rng.binomial(pairs, edge)))
    ends = np.cumsum(np.arange(users - 1, -1, -1))
    a = np.searchsorted(ends, pair, side="right")
    graph = symmetric_graph(a, users - (ends[a] - pair), users)
    for _ in range(steps):
        U = mean_with_neighbours(graph, U, weight)
    truth = {"users": np.array(users), "items": np.array(items), "user_factors": U, "item_factors": V}

    cell = _distinct(rng, users * items, n_train + n_test)
    user, item = (cell // items).astype(np.int32), (cell % items).astype(np.int32)
    del cell
    value = np.empty(user.size, np.float32)
    for start in range(0, user.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        exact = pair_products(truth, user[part], item[part])
        value[part] = exact + noise * rng.standard_normal(exact.size) if noise else exact
    data = Dataset(range_vocab(users), range_vocab(items), user, item, value, user_graph=graph, values="ratings")
    place = rng.permutation(user.size)
    known = ~np.isin(user, rng.permutation(users)[: round(cold * users)]) if cold else np.ones(user.size, np.bool_)
    if not (known & (place >= n_test + n_valid)).any():
        raise CorankError(f"cold={cold:g} leaves no training row: lower it, or raise train={train:g}")
    split = Split(
        data.take(known & (place >= n_test + n_valid)),
        data.take(known & (place >= n_test) & (place < n_test + n_valid)),
        data.take(place < n_test),
        f"simulation: {train:g} of the cells for training ({valid:g} of them validation), {test:g} test, seed {seed}"
        + (f", {cold:g} of the users cold" if cold else ""),
    )
    return Synthetic(data, FactorOracle(truth), truth, split)


def _distinct(rng: np.random.Generator, total: int, count: int) -> NDArray[np.int64]:
    """`count` distinct integers below `total`, sorted, all sets equally likely; memory grows with `count` alone."""
    if count > total // 2:
        kept = np.ones(total, np.bool_)
        kept[_distinct(rng, total, total - count)] = False
        return np.flatnonzero(kept)
    found = np.zeros(0, np.int64)
    while found.size < count:
        # This many draws give `count` distinct ones on average; a random subset of them is dropped if there are more.
        missing = -math.log1p(-(count - found.size) / (total - found.size)) * total
        found = np.sort(np.concatenate([found, rng.integers(total, size=int(1.01 * missing) + 16)]))
        # Not np.unique: where nearly all numbers differ, its hash table takes sixty times as long as the sort.
        found = found[np.append(True, found[1:] != found[:-1])]
    return np.delete(found, rng.choice(found.size, found.size - count, replace=False))
