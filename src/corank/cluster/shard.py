"""A shard: the rows of consecutive users, which one worker holds."""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data import Array, Dataset, Vocab, row_ends
from .steps import Place

USER = 8  # rows that a user without rows would cost: a vector is computed for each user


@dataclass(frozen=True)
class Shard:
    """What a worker learns from.

    data : the rows of the users of this worker, with vocabularies of these users and of all items.
    place : which of the workers this one is.
    first, users : the code of the first of its users among all users, and the number of all users.
    """

    data: Dataset
    place: Place
    first: int
    users: int

    @property
    def items(self) -> int:
        return len(self.data.items)

    def normal(self, rng: np.random.Generator, dim: int) -> NDArray[np.float32]:
        """Of a standard normal array of a row per user (users, dim), the rows of these users; rng moves past all.

        So the vectors start as on one machine, however many workers there are.
        """
        own = np.empty((len(self.data.users), dim), np.float32)
        step = max(1, 1_000_000 // dim)
        for start in range(0, self.users, step):
            block = rng.standard_normal((min(step, self.users - start), dim), dtype=np.float32)
            low, high = max(start, self.first), min(start + len(block), self.first + len(own))
            if low < high:
                own[low - self.first : high - self.first] = block[low - start : high - start]
        return own


def even_cuts(cost: Array, size: int) -> list[int]:
    """Where to cut so that each of `size` ranges costs about the same, none being empty; cost is that of each unit."""
    ends = row_ends(cost)
    cuts = np.searchsorted(ends, np.linspace(0, ends[-1], size + 1))
    cuts[0], cuts[-1] = 0, cost.size
    for at in range(1, size):
        cuts[at] = min(max(cuts[at], cuts[at - 1] + 1), cost.size - (size - at))
    return [int(cut) for cut in cuts]


def user_cuts(data: Dataset, size: int) -> list[int]:
    """Ranges of users of about equal cost, which is that of their rows and of their vectors."""
    return even_cuts(np.bincount(data.user, minlength=len(data.users)) + USER, size)


def divided(data: Dataset, size: int) -> list[Shard]:
    """The shards of a dataset; graphs and labels stay behind."""
    cuts = user_cuts(data, size)
    shards = []
    items = Vocab(np.arange(len(data.items)))  # ids stay behind too: workers need codes alone
    for rank, (low, high) in enumerate(itertools.pairwise(cuts)):
        mine = (data.user >= low) & (data.user < high)
        part = dataclasses.replace(
            data,
            users=Vocab(np.arange(low, high)),
            items=items,
            user=data.user[mine] - np.int32(low),
            item=data.item[mine],
            value=data.value[mine],
            time=None if data.time is None else data.time[mine],
            user_graph=None,
            item_graph=None,
            user_labels={},
            item_labels={},
        )
        shards.append(Shard(part, Place(rank, size), low, len(data.users)))
    return shards
