"""Sequences from a Markov chain whose predictability is a parameter."""

from __future__ import annotations

import numpy as np

from ..data import Dataset
from ..errors import CorankError
from .generated import Synthetic, check_room, check_shares, check_sizes, range_vocab
from .oracles import MarkovOracle


def markov(
    users: int = 1_000,
    items: int = 200,
    length: int = 30,
    predictability: float = 0.8,
    successors: int = 1,
    seed: int = 0,
) -> Synthetic:
    """Sequences: with probability `predictability` the next item is a fixed successor of the last one, else uniform.

    At 1 the chain is deterministic (but for the choice among `successors`), at 0 it is uniform noise. The time of a row
    is its position in the sequence. Items can occur again, so keep `length` well below `items` where seen items are
    filtered out. Every item is a successor of `successors` others: all items are equally popular, so that popularity
    predicts nothing.

    Truth: successors (items, successors), predictability.
    """
    from ..kernels.sample import chains
    from ..kernels.threads import run

    check_sizes(users=users, items=(items, 2), length=(length, 2), successors=successors, seed=(seed, 0))
    check_shares(predictability=predictability)
    if successors >= items:
        raise CorankError(f"successors={successors} must be below items={items}: an item is not its own successor")
    check_room(4.0 * users * length + 4.0 * items * successors)
    rng = np.random.default_rng(seed)
    # Successors are some positions ahead on a shuffled circle; one is always the next: a cycle through all items.
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
    data = Dataset(range_vocab(users), range_vocab(items), user, item, np.ones(item.size, np.float32), step)
    return Synthetic(data, MarkovOracle(truth), truth)
