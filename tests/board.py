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
    # In no order that tells anything: a model of sequences should learn colours, not that the next item is 2 further.
    time = np.random.default_rng(0).permutation(user.size)
    return cr.from_arrays(user=user, item=item, value=value if rated else None, time=time)


def assert_sane(ranking, rows, width):
    """Real items, each once, finite falling scores; padding at the end only."""
    assert ranking.items.shape == ranking.scores.shape == (rows, width)
    assert ranking.scores.dtype == np.float32
    assert ranking.items.dtype == np.int32
    for items, scores in zip(ranking.items, ranking.scores, strict=True):
        real = items >= 0
        assert np.isfinite(scores[real]).all()
        assert (scores[~real] == -np.inf).all()
        assert (np.diff(real.astype(int)) <= 0).all()
        assert (np.diff(scores[real]) <= 0).all()
        assert np.unique(items[real]).size == real.sum()


def assert_same_ranking(one, other):
    """Equal scores, and equal items where the score says which comes first.

    Not to the last bit: a matrix product may round differently for other batch sizes and memory addresses.
    """
    np.testing.assert_allclose(one.scores, other.scores, rtol=1e-4, atol=1e-5)
    for mine, theirs, scores in zip(one.items, other.items, one.scores, strict=True):
        for rank in range(scores.size - 1):  # the last place may be shared with what did not make it
            tied = np.isclose(np.delete(scores, rank), scores[rank], rtol=0, atol=1e-4)
            if not tied.any():
                assert mine[rank] == theirs[rank]
