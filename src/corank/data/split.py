"""A split is two or three datasets over the same vocabularies: learn on `train`, choose on `valid`, report on `test`.

Everywhere: equal timestamps keep the order of the file, and a split depends on nothing but the data and the seed.
"""

from __future__ import annotations

import dataclasses
import logging
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import CorankError
from .csr import Array
from .dataset import Dataset
from .edges import symmetric

logger = logging.getLogger("corank")


@dataclass(frozen=True, eq=False)
class Split:
    """Parts of one dataset.

    history : rows of held-out users that a model sees only when asked (fold-in); None when train users are tested.
    """

    train: Dataset
    valid: Dataset
    test: Dataset
    name: str
    history: Dataset | None = None

    def __post_init__(self) -> None:
        for part in (self.valid, self.test, self.history):
            if part is not None and (part.users != self.train.users or part.items != self.train.items):
                raise CorankError(
                    "the parts of a split have different users or items: take() them all from one dataset"
                )

    @property
    def users(self) -> Array:
        """The ids that have test rows."""
        return self.test.users.ids[np.unique(self.test.user)]

    def known(self, part: Literal["valid", "test"] = "test") -> Dataset:
        """What is known of the users when `part` is predicted: seen items, and histories for models that use them."""
        if part not in ("valid", "test"):
            raise CorankError(f"part={part!r} is not known: use 'valid' or 'test'")
        if self.history is not None:
            return self.history
        return self.train if part == "valid" else self.train.join(self.valid)

    def refit(self) -> Split:
        """The same test with the validation rows given back to training, for the final fit after tuning."""
        train = self.train.join(self.valid)
        if self.history is not None:
            train = train.join(self.history.take(np.isin(self.history.user, self.valid.user)))
        return dataclasses.replace(self, train=train, valid=self.valid.take(np.zeros(len(self.valid), np.bool_)))

    def __repr__(self) -> str:
        parts = f"train {len(self.train):,}, valid {len(self.valid):,}, test {len(self.test):,}"
        return f"Split({self.name}: {parts} rows, {len(np.unique(self.test.user)):,} test users)"


def leave_last_out(data: Dataset) -> Split:
    """Each user's last row is test, the one before is validation; users with fewer than 3 rows only train."""
    require_dataset(data, "leave_last_out")
    _need(data, 3)
    position, length = _from_the_end(data)
    long = length >= 3
    return _parts(data, long & (position == 1), long & (position == 0), "leave-last-out")


def holdout(
    data: Dataset, *, test: float = 0.2, valid: float = 0.1, by: Literal["row", "user"] = "row", seed: int = 0
) -> Split:
    """A random share of all rows ('row') or of each user's ('user'; rounded down: each keeps a training row)."""
    require_dataset(data, "holdout")
    if not (0 < test < 1 and 0 <= valid < 1 and test + valid < 1):
        raise CorankError(f"test={test} and valid={valid} are shares of the rows: their sum must lie between 0 and 1")
    if by not in ("row", "user"):
        raise CorankError(f"by={by!r} is not known: use 'row' or 'user'")
    _need(data, 3)
    rng = _random(seed)
    if by == "row":
        place, size = rng.permutation(len(data)), np.full(len(data), len(data))
    else:
        place, size = _shuffled_place(data, rng)
    n_test, n_valid = _share(test, size), _share(valid, size)
    name = f"holdout by {by} {test:g} test {valid:g} valid seed {seed}"
    return _parts(data, (place >= n_test) & (place < n_test + n_valid), place < n_test, name)


def time_cut(data: Dataset, *, test: float = 0.1, valid: float = 0.1) -> Split:
    """One global time: the latest share of the rows is test, the share before it validation, the past trains.

    Rows of one timestamp are never cut apart, so that nothing from the same moment leaks.
    """
    require_dataset(data, "time_cut")
    if data.time is None:
        raise CorankError("time_cut needs timestamps and this data has none: name a time column or use holdout")
    if not (0 < test < 1 and 0 <= valid < 1 and test + valid < 1):
        raise CorankError(f"test={test} and valid={valid} are shares of the rows: their sum must lie between 0 and 1")
    _need(data, 3)
    times = np.sort(data.time)
    n_test = max(1, int(_share(test, times.size)))
    test_from = times[times.size - n_test]
    valid_from = times[times.size - n_test - int(_share(valid, times.size))]
    is_test = data.time >= test_from
    split = _parts(data, ~is_test & (data.time >= valid_from), is_test, f"time cut {test:g} test {valid:g} valid")
    if len(split.train) == 0:
        raise CorankError("time_cut leaves nothing to train on: too many rows share one timestamp; use holdout")
    return split


def fixed_per_user(
    data: Dataset, *, train: int, test: int | None = None, at_least: int = 10, valid: int = 0, seed: int = 0
) -> Split:
    """`train` random rows a user for training, then `valid`, then `test` of the rest (all of it when None).

    Only users with at least train + valid + (test or `at_least`) rows stay: the dissertation's N ratings a user.
    """
    require_dataset(data, "fixed_per_user")
    if train < 1 or valid < 0 or (test is not None and test < 1) or at_least < 1:
        raise CorankError("fixed_per_user needs train >= 1, valid >= 0, test >= 1 and at_least >= 1")
    place, size = _shuffled_place(data, _random(seed))
    enough = size >= train + valid + (at_least if test is None else test)
    if not enough.any():
        raise CorankError(
            f"no user has {train} training, {valid} validation and {at_least if test is None else test} test rows: "
            f"the longest has {size.max() if size.size else 0}; ask for fewer"
        )
    data, place = data.take(enough), place[enough]
    end = np.inf if test is None else train + valid + test
    is_test = (place >= train + valid) & (place < end)
    is_valid = (place >= train) & (place < train + valid)
    kept = is_test | is_valid | (place < train)
    compact = data.take(kept).compact()
    chosen = f", {valid} for validation" if valid else ""
    name = f"{train} a user for training{chosen}, {'the rest' if test is None else test} for test, seed {seed}"
    return _parts(compact, is_valid[kept], is_test[kept], name)


def thinned(data: Dataset, per_user: int, seed: int = 0) -> Dataset:
    """At most `per_user` random rows of each user: how much does more data help?"""
    place, _ = _shuffled_place(data, _random(seed))
    return data.take(place < per_user)


def strong_generalization(
    data: Dataset, *, users: float = 0.1, target: float = 0.2, min_rows: int = 5, seed: int = 0
) -> Split:
    """Held-out users: a share `users` for test, as many for validation; `target` of their rows is predicted.

    Held-out users' rows are not in `train`; what may be seen of them is in `history`.
    """
    require_dataset(data, "strong_generalization")
    if not (0 < users < 0.5 and 0 < target < 1):
        raise CorankError(f"users={users} must lie between 0 and 0.5, target={target} between 0 and 1")
    if min_rows < 2:
        raise CorankError(f"min_rows={min_rows}: a held-out user needs at least 2 rows, one to see and one to predict")
    rng = _random(seed)
    lengths = np.bincount(data.user, minlength=len(data.users))
    fit = np.flatnonzero(lengths >= min_rows)
    each = int(_share(users, fit.size))
    if each < 1:
        raise CorankError(f"{fit.size} users have {min_rows} rows or more: too few to hold out a share of {users:g}")
    of = _drawn_users(data, fit, each, rng)
    place, size = _shuffled_place(data, rng)
    goal = place < np.maximum(1, _share(target, size))
    train = data.take(of == 0)
    # An item that no training user touched cannot be predicted by anyone: it is not a fair target, nor a history.
    trained = np.isin(data.item, train.item)
    test = data.take((of == 2) & goal & trained)
    if len(test) == 0:
        raise CorankError("no test row is left: the held-out users touch nothing that the others do; use holdout")
    return Split(
        train,
        data.take((of == 1) & goal & trained),
        test,
        f"strong generalization, {each} test users, {target:g} of their rows, seed {seed}",
        history=data.take((of > 0) & ~goal & trained),
    )


def cold_users(data: Dataset, *, users: float = 0.2, seed: int = 0) -> Split:
    """Users of whom nothing is known but the graph: all rows of a share `users` are the test, as many validate.

    Where the data has a user graph, they are drawn among those who have a neighbour in it: of nobody else could
    anything be told.
    """
    require_dataset(data, "cold_users")
    if not 0 < users < 0.5:
        raise CorankError(f"users={users} must lie between 0 and 0.5: as many are held out for validation")
    rng = _random(seed)
    able = np.bincount(data.user, minlength=len(data.users)) > 0
    if data.user_graph is None:
        logger.warning("the data has no user graph: nobody can tell its cold users apart, whatever the model")
    else:
        able &= np.diff(symmetric(data.user_graph).indptr) > 0
    each = int(_share(users, int(able.sum())))
    if each < 1:
        raise CorankError(
            f"{able.sum()} users have rows{'' if data.user_graph is None else ' and a neighbour in the graph'}: "
            f"too few to hold out a share of {users:g}"
        )
    of = _drawn_users(data, np.flatnonzero(able), each, rng)
    train = data.take(of == 0)
    trained = np.isin(data.item, train.item)  # as above, what no training user touched is no fair target
    test = data.take((of == 2) & trained)
    if len(test) == 0:
        raise CorankError("no test row is left: the held-out users touch nothing that the others do; use holdout")
    return Split(
        train, data.take((of == 1) & trained), test, f"cold users, {users:g} of the users for test, seed {seed}"
    )


def require_dataset(data: object, what: str) -> None:
    """A sentence for whoever passes a table or a whole split where a dataset belongs."""
    if isinstance(data, Split):
        raise CorankError(f"{what} takes a dataset and got a Split: pass one of its parts, split.train for example")
    if not isinstance(data, Dataset):
        raise CorankError(
            f"{what} takes a dataset and got a {type(data).__name__}: make one with "
            "from_frame(table, user=..., item=...), from_arrays or read_csv"
        )


def _need(data: Dataset, rows: int) -> None:
    if len(data) < rows:
        raise CorankError(f"the data has {len(data)} rows: a split needs at least {rows}")


def _drawn_users(data: Dataset, able: Array, each: int, rng: np.random.Generator) -> Array:
    """For each row 2 where its user is one of `each` drawn for test, 1 for validation, 0 for training."""
    group = np.zeros(len(data.users), np.int8)
    drawn = rng.permutation(able)
    group[drawn[:each]] = 2
    group[drawn[each : 2 * each]] = 1
    return np.asarray(group[data.user])


def _random(seed: int) -> np.random.Generator:
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise CorankError(f"seed={seed!r}: a seed is a whole number of at least 0")
    return np.random.default_rng(seed)


def _share(share: float, size: Array | int) -> Array:
    """A share of a number of rows, rounded down; 0.29 of 100 is 29, whatever the binary fraction says."""
    return np.floor(share * np.asarray(size) + 1e-9).astype(np.int64)


def _parts(data: Dataset, valid: NDArray[np.bool_], test: NDArray[np.bool_], name: str) -> Split:
    if not test.any():
        raise CorankError(f"{name}: no user has enough rows for a test part; use holdout, or more data")
    return Split(data.take(~(valid | test)), data.take(valid), data.take(test), name)


def _from_the_end(data: Dataset) -> tuple[Array, Array]:
    """For each row: how many of the user's rows come later, and how many the user has."""
    first = data.time_order()
    order = first[np.argsort(data.user[first], kind="stable")]
    lengths = np.bincount(data.user, minlength=len(data.users))
    ends = np.cumsum(lengths)
    position = np.empty(len(data), np.int64)
    position[order] = ends[data.user[order]] - 1 - np.arange(len(data))
    return position, lengths[data.user]


def _shuffled_place(data: Dataset, rng: np.random.Generator) -> tuple[Array, Array]:
    """For each row: a random place among the rows of its user, and how many there are."""
    position, length = _from_the_end(dataclasses.replace(data, time=rng.permutation(len(data))))
    return position, length
