"""A realistic market: user groups, friends, drifting popularity and ratings, with exact choice probabilities."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Array, Dataset, row_ends
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
from .oracles import ChoiceOracle

START = 1_672_531_200  # 2023-01-01, the first second of `realistic`
PERIODS = 24  # of about a month: item popularity is constant within one
PERIOD = 2 * 365 * 86_400 // PERIODS  # seconds
LEAST = 5  # rows per user


def realistic(
    users: int = 2_000,
    items: int = 1_000,
    rows: int = 100_000,
    groups: int = 20,
    levels: int = 5,
    drift: float = 0.5,
    friends: int = 8,
    concentration: float = 5.0,
    homophily: float = 0.8,
    influence: float = 0.3,
    seed: int = 0,
) -> Synthetic:
    """A market over two years: long-tailed, drifting popularity, user groups, friends, ratings, exact probabilities.

    Each user draws items one after the other without replacement, with probability
    P(item | user, period) = taste[user, group of the item] * popularity[period, item],
    renormalised over the items that the user has not drawn yet.

    concentration : similarity of the users within a user group (Dirichlet around the group's taste; high: identical).
    drift : standard deviation of an item's log-popularity over the 24 periods; 0: constant popularity.
    friends : mean number of friends; a fraction `homophily` of the friendships is drawn within the user group.
    influence : weight of the friends' mean taste in a user's taste.
    levels : ratings are 1 to `levels`: `preference` of the pair + noise * N(0, 1), cut at quantiles.

    Truth: taste (users, groups), popularity (24, items), which sums to 1 within a group, base (items,), the Zipf
    weights behind it, user_group (users,), item_group (items,), leniency (users,), quality (items,), weight, noise,
    cuts (levels - 1,), last_period (users,).
    """
    from ..kernels.sample import choices, grades
    from ..kernels.threads import run

    check_sizes(users=users, items=(items, 4 * LEAST), rows=rows, groups=groups, levels=(levels, 2))
    check_sizes(friends=(friends, 0), seed=(seed, 0))
    check_shares(homophily=homophily, influence=influence)
    check_number("drift", drift, high=10)  # at 10 the top item of a period already has nearly all of its group
    check_number("concentration", concentration, low=0.01, high=1e6)
    if groups > items:
        raise CorankError(f"groups={groups} is more than items={items}: each group needs an item, ask for fewer groups")
    if friends >= users:
        raise CorankError(f"friends={friends} must be below users={users}: a user has at most users - 1 friends")
    if not LEAST * users <= rows <= users * items // 4:
        raise CorankError(
            f"rows={rows:,} must lie between {LEAST * users:,} ({LEAST} per user) and {users * items // 4:,} "
            f"(a quarter of {users:,} users x {items:,} items): change rows, users or items"
        )
    check_room(5.0 * rows + users * (3.0 * groups + 2 * friends) + 3.0 * PERIODS * items)
    rng = np.random.default_rng(seed)
    user_group, item_group = _grouped(rng, users, groups), _grouped(rng, items, groups)
    graph = _friendships(rng, user_group, groups, friends, homophily)
    taste = mean_with_neighbours(graph, _tastes(rng, user_group, groups, concentration), influence).astype(np.float32)

    # Items sorted by group: a group is a slice of `member`, and of each row of `ladder`.
    member = np.argsort(item_group, kind="stable").astype(np.int32)
    first = np.searchsorted(item_group[member], np.arange(groups + 1))
    base, ladder, popularity = _popularities(rng, first, member, drift)
    fame = np.log(base)
    quality = 0.6 * (0.4 * (fame - fame.mean()) / max(fame.std(), 1e-9) + 0.9 * rng.standard_normal(items))
    leniency = 0.4 * rng.standard_normal(users)
    weight, noise = 0.35, 0.6

    counts = _activity(rng, users, rows, items // 2)
    indptr = row_ends(counts)
    span = PERIODS * PERIOD
    begin = (0.8 * span * rng.random(users)).astype(np.int64)
    end = begin + ((span - begin) * (0.2 + 0.8 * rng.random(users))).astype(np.int64)
    item, time, value = np.empty(rows, np.int32), np.empty(rows, np.int64), np.empty(rows, np.float32)
    stream = int(rng.integers(2**63))
    laws = (taste, ladder, first, member, leniency, quality, weight, noise)
    run(choices, users, stream, indptr, begin, end, PERIOD, *laws, item, time, value, cost=indptr)

    # A rating distribution like that of film sites: few low ratings, most of them one below the top.
    share = [math.comb(levels - 1, level) * 0.65**level * 0.35 ** (levels - 1 - level) for level in range(levels)]
    cuts = np.quantile(value[:: max(1, rows // 1_000_000)].astype(np.float64), np.cumsum(share)[:-1])
    run(grades, rows, value, cuts)
    last_period = np.minimum(time[indptr[1:] - 1] // PERIOD, PERIODS - 1)
    time += START
    truth = {
        "users": np.array(users), "items": np.array(items), "taste": taste, "popularity": popularity, "base": base,
        "user_group": user_group, "item_group": item_group, "leniency": leniency, "quality": quality,
        "weight": np.array(weight), "noise": np.array(noise), "cuts": cuts, "last_period": last_period,
    }  # fmt: skip
    titles = np.array([f"Item {i} of group {g}" for i, g in enumerate(item_group.tolist())], dtype=object)
    data = Dataset(
        range_vocab(users),
        range_vocab(items),
        np.repeat(np.arange(users, dtype=np.int32), counts),
        item,
        value,
        time,
        user_graph=graph,
        user_labels={"group": user_group},
        item_labels={"group": item_group, "title": titles},
        values="ratings",
    )
    return Synthetic(data, ChoiceOracle(truth), truth)


def _grouped(rng: np.random.Generator, size: int, groups: int) -> NDArray[np.int64]:
    """A group for each of `size` users or items: groups of uneven size, none empty if there are enough."""
    group = rng.choice(groups, size, p=rng.dirichlet(np.full(groups, 5.0)))
    forced = rng.permutation(size)[:groups]
    group[forced] = np.arange(forced.size)
    return group


def _tastes(rng: np.random.Generator, user_group: Array, groups: int, concentration: float) -> NDArray[np.float64]:
    """Probability of each item group for each user: [users, groups], rows sum to 1."""
    appeal = rng.dirichlet(np.full(groups, 2.0))  # some item groups are popular with most users
    shared = rng.dirichlet(0.15 * groups * appeal + 1e-3, size=groups)  # each user group prefers a few item groups
    own = rng.standard_gamma(concentration * shared[user_group]) + 1e-30  # gamma shapes near 0 can give all zeros
    own /= own.sum(axis=1, keepdims=True)
    return np.asarray(0.95 * own + 0.05 / groups)  # one choice in twenty is uniform over the groups


def _friendships(rng: np.random.Generator, user_group: Array, groups: int, friends: int, homophily: float) -> CSR:
    """Random friendships; a fraction `homophily` of them is within the user group."""
    users = user_group.size
    edges = users * friends // 2
    a = rng.integers(users, size=edges)
    anyone = rng.integers(users, size=edges)
    by_group = np.argsort(user_group, kind="stable")
    start = np.searchsorted(user_group[by_group], np.arange(groups + 1))
    size = np.diff(start)
    same_group = by_group[start[user_group[a]] + (rng.random(edges) * size[user_group[a]]).astype(np.int64)]
    return symmetric_graph(a, np.where(rng.random(edges) < homophily, same_group, anyone), users)


def _popularities(rng: np.random.Generator, first: Array, member: Array, drift: float) -> tuple[Array, Array, Array]:
    """Zipf weights (items,), cumulative probabilities per period (24, items), sorted by group, and probabilities.

    Log-popularity follows a stationary first-order autoregression of standard deviation `drift`.
    """
    items, groups = member.size, first.size - 1
    place = np.empty(items)
    for g in range(groups):
        place[first[g] : first[g + 1]] = 1 + rng.permutation(first[g + 1] - first[g])
    zipf = place**-1.1
    deviation = rng.standard_normal(items)
    ladder = np.empty((PERIODS, items))
    popularity = np.empty((PERIODS, items), np.float32)
    for p in range(PERIODS):
        mass = zipf * np.exp(drift * deviation)
        mass /= np.repeat(np.add.reduceat(mass, first[:-1]), np.diff(first))
        popularity[p, member] = mass
        for g in range(groups):
            ladder[p, first[g] : first[g + 1]] = np.cumsum(mass[first[g] : first[g + 1]])
        deviation = 0.9 * deviation + math.sqrt(1 - 0.9**2) * rng.standard_normal(items)
    base = np.empty(items)
    base[member] = zipf
    return base, ladder, popularity


def _activity(rng: np.random.Generator, users: int, rows: int, most: int) -> NDArray[np.int64]:
    """Number of rows per user: log-normal, at least `LEAST`, at most `most`, `rows` in total."""
    drawn = rng.lognormal(sigma=1.0, size=users)
    counts = np.full(users, LEAST)
    while True:
        room = np.flatnonzero(counts < most)
        spare = rows - int(counts.sum())
        if spare < room.size:
            counts[rng.choice(room, spare, replace=False)] += 1
            return counts
        share = drawn[room] / drawn[room].sum()
        counts[room] = np.minimum(counts[room] + (spare * share).astype(np.int64), most)
