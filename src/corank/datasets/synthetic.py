"""Data whose truth is known: the dissertation's simulation, a realistic market of tastes, and Markov sequences.

Each generator returns a `Synthetic`: the rows, the numbers that made them, and an `Oracle`, a model that ranks by those
numbers and so shows the best that any method could do. Rows depend on the arguments alone, never on the number of
threads; time and memory grow with the rows, users and items, never with users x items.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Array, Dataset, Vocab, from_scipy, row_ends
from ..data.split import Split
from ..errors import CorankError, suggest
from .oracles import ChoiceOracle, FactorOracle, MarkovOracle, Oracle, pair_products, preference

__all__ = ["Oracle", "Synthetic", "made", "markov", "preference", "realistic", "simulation"]

START = 1_672_531_200  # 2023-01-01, the first second of `realistic`
PERIODS = 24  # of about a month: item popularity is constant within one
PERIOD = 2 * 365 * 86_400 // PERIODS  # seconds
LEAST = 5  # rows a user
_CHUNK = 4_000_000


@dataclass(frozen=True, eq=False)
class Synthetic:
    """What a generator made.

    oracle : knows the truth and is used like any model; `oracle.fit(split.train)` tells it only which ids there are.
    truth : the arrays behind the data; the generator's docstring names them. Row u is user id u, row i is item id i.
    split : the parts, where the algorithm itself makes them.
    """

    data: Dataset
    oracle: Oracle
    truth: dict[str, Array]
    split: Split | None = None


def made(asked: Mapping[str, Any], seed: int) -> Synthetic:
    """What a table asks for: {synthetic = the name of a generator, ... its arguments}; `seed` where it names none."""
    kinds: dict[Any, Callable[..., Synthetic]] = {"simulation": simulation, "realistic": realistic, "markov": markov}
    options = {"seed": seed, **asked}
    kind = options.pop("synthetic", None)
    if kind not in kinds:
        raise CorankError(f"data: synthetic = {kind!r} names no generator{suggest(str(kind), kinds)}")
    known = inspect.signature(kinds[kind]).parameters
    for key in options:
        if key not in known:
            raise CorankError(f"data: {kind} has no option {key!r}{suggest(str(key), known)}")
    return kinds[kind](**options)


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
    """The dissertation's "Simulation of Synthetic Data" (chapter 2) for what a friendship graph is worth.

    U and V are standard normal; `steps` times, each user moves to weight * (mean of the friends) + (1 - weight) * own,
    friends being the neighbours in a random graph where each edge exists with probability `edge` (the printed algorithm
    adds the friends up, its text says average, and sums would give ratings of standard deviation 131). The ratings are
    U V^T (+ noise * N(0, 1)) on random cells.

    train, test : shares of all cells.
    valid : share of the training rows that `split.valid` takes off; `split.refit()` gives them back.
    cold : share of the users who keep their test rows only.

    Truth: user_factors [users, rank], item_factors [items, rank].
    """
    _sizes(users=users, items=items, rank=rank, seed=(seed, 0), steps=(steps, 0))
    _shares(edge=edge, weight=weight, train=train, test=test, valid=valid, cold=cold)
    _number("noise", noise, high=1e6)
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
    rng = np.random.default_rng(seed)
    U, V = rng.standard_normal((users, rank)), rng.standard_normal((items, rank))
    # Pair number -> (a, b), a < b: row a of the upper triangle holds users - 1 - a pairs.
    pair = _distinct(rng, pairs, int(rng.binomial(pairs, edge)))
    ends = np.cumsum(np.arange(users - 1, -1, -1))
    a = np.searchsorted(ends, pair, side="right")
    graph = _graph(a, users - (ends[a] - pair), users)
    for _ in range(steps):
        U = _with_friends(graph, U, weight)
    truth = {"users": np.array(users), "items": np.array(items), "user_factors": U, "item_factors": V}

    cell = _distinct(rng, users * items, n_train + n_test)
    user, item = (cell // items).astype(np.int32), (cell % items).astype(np.int32)
    del cell
    value = np.empty(user.size, np.float32)
    for start in range(0, user.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        exact = pair_products(truth, user[part], item[part])
        value[part] = exact + noise * rng.standard_normal(exact.size) if noise else exact
    data = Dataset(_ids(users), _ids(items), user, item, value, user_graph=graph)
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
    """A market of tastes: heavy tails, groups, friends, two years, ratings, and an exact probability for every choice.

    A user draws items one after the other, never the same twice, with
    P(item | user, period) = taste[user, group of the item] * popularity[period, item],
    renormalised over what the user has not had yet.

    concentration : how alike the users of a user group are (Dirichlet around the taste of the group; high = clones).
    drift : standard deviation of the wandering of an item's log-popularity over the 24 periods; 0 = constant.
    friends : mean number of friends; a share `homophily` of the ties is made inside the user group.
    influence : a user's taste is this share the mean taste of the friends.
    levels : ratings are 1..levels, a preference cut at quantiles: `preference` of the pair + noise * N(0, 1).

    Truth: taste [users, groups], popularity [24, items] (sums to 1 within a group), base [items] (the Zipf weights
    behind it), user_group, item_group, leniency [users], quality [items], weight, noise, cuts [levels - 1],
    last_period [users].
    """
    from ..kernels.sample import choices, grades
    from ..kernels.threads import run

    _sizes(users=users, items=(items, 4 * LEAST), rows=rows, groups=groups, levels=(levels, 2))
    _sizes(friends=(friends, 0), seed=(seed, 0))
    _shares(homophily=homophily, influence=influence)
    _number("drift", drift, high=10)  # at 10 the top item of a month already takes nearly all of its group
    _number("concentration", concentration, low=0.01, high=1e6)
    if groups > items:
        raise CorankError(f"groups={groups} is more than items={items}: each group needs an item, ask for fewer groups")
    if friends >= users:
        raise CorankError(f"friends={friends} must be below users={users}: nobody is friends with more than the others")
    if not LEAST * users <= rows <= users * items // 4:
        raise CorankError(
            f"rows={rows:,} must lie between {LEAST * users:,} ({LEAST} a user) and {users * items // 4:,} "
            f"(a quarter of {users:,} users x {items:,} items): change rows, users or items"
        )
    rng = np.random.default_rng(seed)
    user_group, item_group = _grouped(rng, users, groups), _grouped(rng, items, groups)
    graph = _friendships(rng, user_group, groups, friends, homophily)
    taste = _with_friends(graph, _tastes(rng, user_group, groups, concentration), influence).astype(np.float32)

    # Items sorted by group: a group is a slice of `member`, and its probabilities a stretch of each row of `ladder`.
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

    # Shares of the ratings like those of film sites: few low ones, most one below the top.
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
        _ids(users),
        _ids(items),
        np.repeat(np.arange(users, dtype=np.int32), counts),
        item,
        value,
        time,
        user_graph=graph,
        user_labels={"group": user_group},
        item_labels={"group": item_group, "title": titles},
    )
    return Synthetic(data, ChoiceOracle(truth), truth)


def markov(
    users: int = 1_000,
    items: int = 200,
    length: int = 30,
    predictability: float = 0.8,
    successors: int = 1,
    seed: int = 0,
) -> Synthetic:
    """Sequences: the next item is, with probability `predictability`, a fixed successor of the last one, else any item.

    1 is deterministic (but for the choice among `successors`), 0 is chance. The time of a row is its step; items can
    come back, so keep length well below items where seen items are filtered out. Every item is a successor of
    `successors` others: all are equally popular, and popularity is worth nothing.

    Truth: successors [items, successors], predictability.
    """
    from ..kernels.sample import chains
    from ..kernels.threads import run

    _sizes(users=users, items=(items, 2), length=(length, 2), successors=successors, seed=(seed, 0))
    _shares(predictability=predictability)
    if successors >= items:
        raise CorankError(f"successors={successors} must be below items={items}: an item does not follow itself")
    rng = np.random.default_rng(seed)
    # Successors are some steps ahead on a shuffled circle; one step is always among them: a cycle through all items.
    circle = rng.permutation(items)
    ahead = np.append(1, 2 + rng.permutation(items - 2)[: successors - 1])
    follows = np.empty((items, successors), np.int32)
    follows[circle] = circle[(np.arange(items)[:, None] + ahead) % items]
    item = np.empty(users * length, np.int32)
    run(chains, users, int(rng.integers(2**63)), length, float(predictability), follows, item)
    truth = {
        "users": np.array(users),
        "items": np.array(items),
        "successors": follows,
        "predictability": np.array(float(predictability)),
    }
    user = np.repeat(np.arange(users, dtype=np.int32), length)
    step = np.tile(np.arange(length), users)
    data = Dataset(_ids(users), _ids(items), user, item, np.ones(item.size, np.float32), step)
    return Synthetic(data, MarkovOracle(truth), truth)


# ---- parts -----------------------------------------------------------------------------------------------------------


def _distinct(rng: np.random.Generator, total: int, count: int) -> NDArray[np.int64]:
    """`count` of the numbers below `total`, sorted, each set equally likely; memory grows with `count`."""
    if count > total // 2:
        kept = np.ones(total, np.bool_)
        kept[_distinct(rng, total, total - count)] = False
        return np.flatnonzero(kept)
    found = np.zeros(0, np.int64)
    while found.size < count:
        # So many draws leave `count` distinct ones on average; what is too much goes at random.
        missing = -math.log1p(-(count - found.size) / (total - found.size)) * total
        found = np.sort(np.concatenate([found, rng.integers(total, size=int(1.01 * missing) + 16)]))
        # Not np.unique: its hash table takes sixty times as long as the sort where nearly all numbers differ.
        found = found[np.append(True, found[1:] != found[:-1])]
    return np.delete(found, rng.choice(found.size, found.size - count, replace=False))


def _graph(a: Array, b: Array, nodes: int) -> CSR:
    """Symmetric 0/1 adjacency of the edges a-b; loops and repeats are dropped."""
    from scipy.sparse import coo_array

    a, b = a[a != b], b[a != b]
    both = (np.concatenate([a, b]), np.concatenate([b, a]))
    graph = from_scipy(coo_array((np.ones(2 * a.size, np.float32), both), shape=(nodes, nodes)))
    return graph._replace(value=np.ones_like(graph.value))


def _with_friends(graph: CSR, x: Array, weight: float) -> NDArray[np.float64]:
    """weight * mean of the neighbours + (1 - weight) * own row; a node without neighbours keeps its row."""
    degree = np.diff(graph.indptr)[:, None]
    mean = (graph.scipy() @ x) / np.maximum(degree, 1)
    return np.where(degree > 0, weight * mean + (1 - weight) * x, x)


def _grouped(rng: np.random.Generator, size: int, groups: int) -> NDArray[np.int64]:
    """A group for each of `size` things: uneven groups, none empty as long as there are enough things."""
    group = rng.choice(groups, size, p=rng.dirichlet(np.full(groups, 5.0)))
    forced = rng.permutation(size)[:groups]
    group[forced] = np.arange(forced.size)
    return group


def _tastes(rng: np.random.Generator, user_group: Array, groups: int, concentration: float) -> NDArray[np.float64]:
    """Probability of each item group for each user: [users, groups], rows sum to 1."""
    appeal = rng.dirichlet(np.full(groups, 2.0))  # some item groups are liked by most
    shared = rng.dirichlet(0.15 * groups * appeal + 1e-3, size=groups)  # each user group likes a few item groups
    own = rng.standard_gamma(concentration * shared[user_group]) + 1e-30  # shapes near 0 can give 0 everywhere
    own /= own.sum(axis=1, keepdims=True)
    return np.asarray(0.95 * own + 0.05 / groups)  # one choice in twenty is mere curiosity


def _friendships(rng: np.random.Generator, user_group: Array, groups: int, friends: int, homophily: float) -> CSR:
    users = user_group.size
    ties = users * friends // 2
    a = rng.integers(users, size=ties)
    anyone = rng.integers(users, size=ties)
    by_group = np.argsort(user_group, kind="stable")
    start = np.searchsorted(user_group[by_group], np.arange(groups + 1))
    size = np.diff(start)
    alike = by_group[start[user_group[a]] + (rng.random(ties) * size[user_group[a]]).astype(np.int64)]
    return _graph(a, np.where(rng.random(ties) < homophily, alike, anyone), users)


def _popularities(rng: np.random.Generator, first: Array, member: Array, drift: float) -> tuple[Array, Array, Array]:
    """Zipf weights of the items, and from them the running totals (sorted by group) and probabilities of each period.

    Log-popularity wanders as a stationary first-order autoregression of standard deviation `drift`.
    """
    items, groups = member.size, first.size - 1
    place = np.empty(items)
    for g in range(groups):
        place[first[g] : first[g + 1]] = 1 + rng.permutation(first[g + 1] - first[g])
    zipf = place**-1.1
    wander = rng.standard_normal(items)
    ladder = np.empty((PERIODS, items))
    popularity = np.empty((PERIODS, items), np.float32)
    for p in range(PERIODS):
        mass = zipf * np.exp(drift * wander)
        mass /= np.repeat(np.add.reduceat(mass, first[:-1]), np.diff(first))
        popularity[p, member] = mass
        for g in range(groups):
            ladder[p, first[g] : first[g + 1]] = np.cumsum(mass[first[g] : first[g + 1]])
        wander = 0.9 * wander + math.sqrt(1 - 0.9**2) * rng.standard_normal(items)
    base = np.empty(items)
    base[member] = zipf
    return base, ladder, popularity


def _activity(rng: np.random.Generator, users: int, rows: int, most: int) -> NDArray[np.int64]:
    """Rows of each user: log-normal, at least `LEAST`, at most `most`, `rows` in all."""
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


def _ids(size: int) -> Vocab:
    return Vocab(np.arange(size, dtype=np.int64))


def _sizes(**named: Any) -> None:
    """Each a whole number of at least 1, or of at least the second of a pair."""
    for name, given in named.items():
        value, least = given if isinstance(given, tuple) else (given, 1)
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not whole or not least <= value < 2**31:
            raise CorankError(f"{name}={value!r} must be a whole number of at least {least} (and below 2^31)")


def _shares(**named: float) -> None:
    for name, value in named.items():
        if not isinstance(value, int | float | np.number) or not 0 <= value <= 1:
            raise CorankError(f"{name}={value!r} is a share or probability: it must lie between 0 and 1")


def _number(name: str, value: float, *, high: float, low: float = 0) -> None:
    if not isinstance(value, int | float | np.number) or not low <= value <= high:
        raise CorankError(f"{name}={value!r} must be a number between {low:g} and {high:g}")
