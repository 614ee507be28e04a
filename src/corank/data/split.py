"""Splits: datasets over the same vocabularies to train on, to select hyper-parameters on, and to report on.

Every split depends only on the data and the seed. Rows of equal timestamps keep the order of the file, unless a split
by time is told to order them by item id (`ties`); the rows of its parts then stand in that order, so that models see
it too.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..errors import CorankError, shorten, show
from .csr import Array
from .dataset import Dataset

Ties = Literal["file", "item"]
TIES: tuple[Ties, ...] = get_args(Ties)


@dataclass(frozen=True, eq=False)
class Split:
    """Train, validation and test part of one dataset.

    history : for held-out users, the rows that a model sees only at prediction time (fold-in); None if the test users
        are training users.
    notes : sentences that a reader of the results must know; leaderboards and reports print them.
    valid_from_train : the validation rows were cut from a given training part, so that the final fit uses them too.
    refitted : the validation rows are part of the training rows (`refit`).
    ties : how rows of equal timestamps are ordered: as in the file, or by item id.
    """

    train: Dataset
    valid: Dataset
    test: Dataset
    name: str
    history: Dataset | None = None
    notes: tuple[str, ...] = ()
    valid_from_train: bool = False
    refitted: bool = False
    ties: Ties = "file"

    def __post_init__(self) -> None:
        for part in (self.valid, self.test, self.history):
            if part is not None and (part.users != self.train.users or part.items != self.train.items):
                raise CorankError(
                    "the parts of a split have different users or items: given_split(train, test) brings them together"
                )

    @property
    def users(self) -> Array:
        """The ids of the users with test rows."""
        return self.test.users.ids[np.unique(self.test.user)]

    def known(self, part: Literal["valid", "test"] = "test") -> Dataset:
        """The rows that are known when `part` is predicted: seen items, and histories for models that use them."""
        if part not in ("valid", "test"):
            raise CorankError(f"part={part!r} is not known: use 'valid' or 'test'")
        if self.history is not None:
            return self.history
        return self.train if part == "valid" else self.train.join(self.valid)

    def all_rows(self) -> Dataset:
        """The rows of all parts as one dataset, histories of held-out users included."""
        data = self.train.join(self.valid).join(self.test)
        return data if self.history is None else data.join(self.history)

    def refit(self) -> Split:
        """The same split with the validation rows added to the training rows, for the final fit after tuning."""
        train = self.train.join(self.valid)
        if self.history is not None:
            train = train.join(self.history.take(np.isin(self.history.user, self.valid.user)))
        none = self.valid.take(np.zeros(len(self.valid), np.bool_))
        return dataclasses.replace(self, train=train, valid=none, refitted=self.refitted or len(self.valid) > 0)

    def _repr_html_(self) -> str:
        from ..notebook import html_table

        parts = {"train": self.train, "valid": self.valid, "test": self.test, "history": self.history}
        rows = [
            (name, f"{len(part):,}", f"{np.unique(part.user).size:,}", f"{np.unique(part.item).size:,}")
            for name, part in parts.items()
            if part is not None
        ]
        return html_table(rows, ("part", "rows", "users", "items"), caption=self.name)

    def __repr__(self) -> str:
        parts = f"train {len(self.train):,}, valid {len(self.valid):,}, test {len(self.test):,}"
        return f"Split({self.name}: {parts} rows, {len(np.unique(self.test.user)):,} test users)"


def leave_last_out(data: Dataset, *, ties: Ties = "file") -> Split:
    """The last row of each user is test, the one before validation; users with fewer than 3 rows are only in train.

    ties : rows of equal timestamps keep the order of the file ('file'), or are ordered by item id ('item'; integer ids
        as numbers).
    """
    require_dataset(data, "leave_last_out")
    data = _in_order(data, ties)
    _need(data, 3)
    position, length = from_the_end(data)
    long = length >= 3
    return _parts(data, long & (position == 1), long & (position == 0), "leave-last-out", ties)


def holdout(
    data: Dataset, *, test: float = 0.2, valid: float = 0.1, by: Literal["row", "user"] = "row", seed: int = 0
) -> Split:
    """A random fraction of all rows (by='row') or of the rows of each user (by='user'; rounded down)."""
    require_dataset(data, "holdout")
    _check_shares(test, valid)
    if by not in ("row", "user"):
        raise CorankError(f"by={by!r} is not known: use 'row' or 'user'")
    _need(data, 3)
    rng = random_generator(seed)
    if by == "row":
        place, size = rng.permutation(len(data)), np.full(len(data), len(data))
    else:
        place, size = shuffled_place(data, rng)
    n_test, n_valid = share_of(test, size), share_of(valid, size)
    name = f"holdout by {by} {test:g} test {valid:g} valid seed {seed}"
    return _parts(data, (place >= n_test) & (place < n_test + n_valid), place < n_test, name)


def time_cut(data: Dataset, *, test: float = 0.1, valid: float = 0.1, ties: Ties = "file") -> Split:
    """Cut at a global time: the latest fraction of the rows is test, the fraction before it validation.

    Rows of equal timestamps are never separated, so that nothing leaks from the same moment.

    ties : their order within a history, which models of sequences read: see `leave_last_out`.
    """
    require_dataset(data, "time_cut")
    if data.time is None:
        raise CorankError("time_cut needs timestamps and this data has none: name a time column or use holdout")
    _check_shares(test, valid)
    data = _in_order(data, ties)
    _need(data, 3)
    assert data.time is not None
    times = np.sort(data.time)
    n_test = max(1, int(share_of(test, times.size)))
    test_from = times[times.size - n_test]
    valid_from = times[times.size - n_test - int(share_of(valid, times.size))]
    is_test = data.time >= test_from
    name = f"time cut {test:g} test {valid:g} valid"
    split = _parts(data, ~is_test & (data.time >= valid_from), is_test, name, ties)
    if len(split.train) == 0:
        raise CorankError("time_cut leaves nothing to train on: too many rows share one timestamp; use holdout")
    return split


def fixed_per_user(
    data: Dataset, *, train: int, test: int | None = None, at_least: int = 10, valid: int = 0, seed: int = 0
) -> Split:
    """`train` random rows per user for training, `valid` for validation, `test` for test (None: all other rows).

    Users with fewer than train + valid + (test or `at_least`) rows are dropped (the dissertation's "N per user").
    """
    require_dataset(data, "fixed_per_user")
    if train < 1 or valid < 0 or (test is not None and test < 1) or at_least < 1:
        raise CorankError("fixed_per_user needs train >= 1, valid >= 0, test >= 1 and at_least >= 1")
    place, size = shuffled_place(data, random_generator(seed))
    enough = size >= train + valid + (at_least if test is None else test)
    if not enough.any():
        raise CorankError(
            f"no user has {train} training, {valid} validation and {at_least if test is None else test} test rows: "
            f"the largest number of rows of a user is {size.max() if size.size else 0}; ask for fewer"
        )
    data, place = data.take(enough), place[enough]
    end = np.inf if test is None else train + valid + test
    is_test = (place >= train + valid) & (place < end)
    is_valid = (place >= train) & (place < train + valid)
    kept = is_test | is_valid | (place < train)
    compact = data.take(kept).compact()
    chosen = f", {valid} for validation" if valid else ""
    name = f"{train} per user for training{chosen}, {'the rest' if test is None else test} for test, seed {seed}"
    return _parts(compact, is_valid[kept], is_test[kept], name)


def thinned(data: Dataset, per_user: int, seed: int = 0) -> Dataset:
    """At most `per_user` random rows of each user, for learning curves over the amount of data."""
    place, _ = shuffled_place(data, random_generator(seed))
    return data.take(place < per_user)


def require_dataset(data: object, what: str) -> None:
    """Raise a helpful error if a table or a whole split is passed where a dataset belongs."""
    if isinstance(data, Split):
        raise CorankError(f"{what} takes a dataset and got a Split: pass one of its parts, split.train for example")
    if not isinstance(data, Dataset):
        raise CorankError(
            f"{what} takes a dataset and got a {type(data).__name__}: make one with "
            "from_frame(table, user=..., item=...), from_arrays or read_csv"
        )


def _check_shares(test: float, valid: float) -> None:
    if not (0 < test < 1 and 0 <= valid < 1 and test + valid < 1):
        raise CorankError(
            f"test={test} and valid={valid} are fractions of the rows: their sum must lie between 0 and 1"
        )


def _need(data: Dataset, rows: int) -> None:
    if len(data) < rows:
        raise CorankError(f"the data has {len(data)} rows: a split needs at least {rows}")


def random_generator(seed: int) -> np.random.Generator:
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise CorankError(f"seed={seed!r}: a seed is an integer of at least 0")
    return np.random.default_rng(seed)


def share_of(share: float, size: Array | int) -> Array:
    """A fraction of a number of rows, rounded down; 0.29 of 100 is 29, although 0.29 * 100 < 29 in floating point."""
    return np.floor(share * np.asarray(size) + 1e-9).astype(np.int64)


def require_histories(data: Dataset) -> None:
    """Raise where no user has a second row, as in a table of texts or of places: nothing can be learned of a user."""
    users = np.unique(data.user)
    if users.size == len(data):
        first = shorten(str(data.users.ids[users[0]]), 40)
        raise CorankError(
            f"each of the {users.size:,} users has one row (the first is {first!r}): this is no table of interactions, "
            "or another column is the user; name the columns with user=... and item=... (--user, --item)"
        )


def _in_order(data: Dataset, ties: Ties) -> Dataset:
    """The rows in an order whose stable sort by time obeys the rule for equal timestamps."""
    if ties not in TIES:
        raise CorankError(f"ties={show(ties)}: rows of equal timestamps are ordered as in the 'file' or by 'item' id")
    if ties == "file":
        return data
    if data.time is None:
        raise CorankError("ties='item' orders rows of equal timestamps and this data has none: name a time column")
    return data.take(np.lexsort((data.item, data.time)))  # codes are in the order of the ids


def _parts(data: Dataset, valid: NDArray[np.bool_], test: NDArray[np.bool_], name: str, ties: Ties = "file") -> Split:
    if not test.any():
        require_histories(data)
        raise CorankError(f"{name}: no user has enough rows for a test part; use holdout, or more data")
    if ties == "item":
        name += ", equal times by item id"
    return Split(data.take(~(valid | test)), data.take(valid), data.take(test), name, ties=ties)


def from_the_end(data: Dataset) -> tuple[Array, Array]:
    """For each row: the number of later rows of its user, and the number of all rows of its user."""
    first = data.time_order()
    order = first[np.argsort(data.user[first], kind="stable")]
    lengths = np.bincount(data.user, minlength=len(data.users))
    ends = np.cumsum(lengths)
    position = np.empty(len(data), np.int64)
    position[order] = ends[data.user[order]] - 1 - np.arange(len(data))
    return position, lengths[data.user]


def shuffled_place(data: Dataset, rng: np.random.Generator) -> tuple[Array, Array]:
    """For each row: its place in a random order of the rows of its user, and the number of those rows."""
    position, length = from_the_end(dataclasses.replace(data, time=rng.permutation(len(data))))
    return position, length
