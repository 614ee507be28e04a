"""Splits that hold out whole users: unseen users with a history to fold in, and cold-start users without one."""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray

from ..errors import CorankError
from .csr import Array
from .dataset import Dataset
from .edges import symmetric
from .split import Split, random_generator, require_dataset, share_of, shuffled_place

logger = logging.getLogger("corank")


def strong_generalization(
    data: Dataset, *, users: float = 0.1, target: float = 0.2, min_rows: int = 5, seed: int = 0
) -> Split:
    """Unseen users: a fraction `users` is held out for test and as many for validation.

    Of their rows a fraction `target` is to be predicted; the others are in `history`, and none is in `train`.
    """
    require_dataset(data, "strong_generalization")
    if not (0 < users < 0.5 and 0 < target < 1):
        raise CorankError(f"users={users} must lie between 0 and 0.5, target={target} between 0 and 1")
    if min_rows < 2:
        raise CorankError(f"min_rows={min_rows}: a held-out user needs at least 2 rows, one as history, one to predict")
    rng = random_generator(seed)
    lengths = np.bincount(data.user, minlength=len(data.users))
    fit = np.flatnonzero(lengths >= min_rows)
    each = int(share_of(users, fit.size))
    if each < 1:
        raise CorankError(f"{fit.size} users have {min_rows} rows or more: too few to hold out a share of {users:g}")
    of = _drawn_users(data, fit, each, rng)
    place, size = shuffled_place(data, rng)
    goal = place < np.maximum(1, share_of(target, size))
    train = data.take(of == 0)
    # No model can predict an item without training rows: it is neither a fair target nor part of a history.
    trained = np.isin(data.item, train.item)
    return Split(
        train,
        data.take((of == 1) & goal & trained),
        _held_out(data, (of == 2) & goal & trained),
        f"strong generalization, {each} test users, {target:g} of their rows, seed {seed}",
        history=data.take((of > 0) & ~goal & trained),
    )


def cold_users(data: Dataset, *, users: float = 0.2, seed: int = 0) -> Split:
    """Cold-start users: all rows of a fraction `users` are test, those of as many users validation.

    Nothing is known about these users except the user graph. If the data has one, only users with a neighbour in it
    are drawn, because nothing could be predicted for the others.
    """
    require_dataset(data, "cold_users")
    if not 0 < users < 0.5:
        raise CorankError(f"users={users} must lie between 0 and 0.5: as many are held out for validation")
    rng = random_generator(seed)
    able = np.bincount(data.user, minlength=len(data.users)) > 0
    if data.user_graph is None:
        logger.warning("the data has no user graph: models predict the same for all cold-start users")
    else:
        able &= np.diff(symmetric(data.user_graph).indptr) > 0
    each = int(share_of(users, int(able.sum())))
    if each < 1:
        raise CorankError(
            f"{able.sum()} users have rows{'' if data.user_graph is None else ' and a neighbour in the graph'}: "
            f"too few to hold out a share of {users:g}"
        )
    of = _drawn_users(data, np.flatnonzero(able), each, rng)
    train = data.take(of == 0)
    trained = np.isin(data.item, train.item)  # as above: items without training rows are no fair targets
    test = _held_out(data, (of == 2) & trained)
    return Split(
        train, data.take((of == 1) & trained), test, f"cold users, {users:g} of the users for test, seed {seed}"
    )


def _drawn_users(data: Dataset, able: Array, each: int, rng: np.random.Generator) -> Array:
    """For each row: 2 if its user is among the `each` users drawn for test, 1 for validation, 0 for training."""
    group = np.zeros(len(data.users), np.int8)
    drawn = rng.permutation(able)
    group[drawn[:each]] = 2
    group[drawn[each : 2 * each]] = 1
    return np.asarray(group[data.user])


def _held_out(data: Dataset, test: NDArray[np.bool_]) -> Dataset:
    """The test rows of held-out users."""
    if not test.any():
        raise CorankError("no test row is left: the held-out users share no item with the training users; use holdout")
    return data.take(test)
