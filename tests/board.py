"""The checkerboard: even users like even items and odd users odd ones, so the right recommendation is known."""

from __future__ import annotations

import functools

import numpy as np

import corank as cr

USERS, ITEMS = 24, 16


def own_items(user: int) -> list[int]:
    return [i for i in range(ITEMS) if i % 2 == user % 2]


def missing_item(user: int) -> int:
    return own_items(user)[(user // 2) % (ITEMS // 2)]


@functools.cache
def board_for(rated: bool) -> cr.Dataset:
    """The checkerboard: a user has the items of the own colour but one, and that one is the right recommendation.

    Rated: those are rated 5, and half of the other colour 1, since ratings that are all equal teach nothing.
    """
    rows = [(u, i, 5.0) for u in range(USERS) for i in own_items(u) if i != missing_item(u)]
    if rated:
        rows += [(u, i, 1.0) for u in range(USERS) for i in own_items(u + 1)[u % 4 :: 2]]
    user, item, value = (np.array(column) for column in zip(*rows, strict=True))
    return cr.from_arrays(user=user, item=item, value=value if rated else None, time=np.arange(user.size))
