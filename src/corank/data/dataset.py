"""Data is a value: who (users) touched what (items), how much (value) and when (time).

`Dataset` is frozen and flat: one entry a row, in the order of the file, so that equal timestamps keep that order. Ids
are external (ints or strings) and live in a `Vocab`; everything inside works with codes, the positions in it.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import CorankError, suggest
from .columns import id_array, numbers
from .csr import CSR, Array, from_scipy

if TYPE_CHECKING:
    from .describe import Description

log = logging.getLogger("corank.reading")
Duplicates = Literal["last", "first", "sum", "mean", "max", "keep", "error"]
DUPLICATES = ("last", "first", "sum", "mean", "max", "keep", "error")


class Vocab:
    """External ids, ints or strings, sorted and frozen; the code of an id is its position."""

    __slots__ = ("_codes", "ids")

    def __init__(self, ids: Array) -> None:
        """`ids`: distinct and sorted, int64 or object (str); `Vocab.build` makes them from a column."""
        self.ids = frozen(ids)
        self._codes: dict[str, int] | None = None

    @classmethod
    def build(cls, column: Any, what: str = "id") -> tuple[Vocab, NDArray[np.int32]]:
        """The vocabulary of a column and the code of each of its entries."""
        if type(column).__module__.startswith("polars") and str(column.dtype) == "String":
            return cls._build_strings(column, what)
        values = id_array(column, what)
        if values.dtype == object:
            return cls._build_strings(values, what)
        if values.size == 0:
            return cls(values), np.zeros(0, np.int32)
        low, high = int(values.min()), int(values.max())
        if high - low > 8 * values.size + 1_000_000:
            ids, codes = np.unique(values, return_inverse=True)
            return cls(ids), codes.astype(np.int32)
        # Dense enough for a table: linear time, where sorting 20 million ids takes seconds.
        present = np.zeros(high - low + 1, np.bool_)
        present[values - low] = True
        table = np.cumsum(present, dtype=np.int32) - np.int32(1)
        return cls(np.flatnonzero(present).astype(np.int64) + low), table[values - low]

    @classmethod
    def _build_strings(cls, values: Any, what: str) -> tuple[Vocab, NDArray[np.int32]]:
        import polars as pl

        column = pl.Series(values, dtype=pl.String)  # a Series passes through without a Python string being made
        if column.null_count():
            raise CorankError(
                f"{column.null_count():,} of {len(column):,} {what} ids are missing: drop those rows first"
            )
        distinct = column.unique().sort()
        # An Enum cast is a hash look-up whose codes follow the order of its categories.
        codes = column.cast(pl.Enum(distinct)).to_physical().to_numpy().astype(np.int32)
        return cls(distinct.to_numpy().astype(object)), codes

    @property
    def strings(self) -> bool:
        return self.ids.dtype == object

    def __len__(self) -> int:
        return int(self.ids.size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocab) and (self is other or np.array_equal(self.ids, other.ids))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        head = ", ".join(repr(i) for i in self.ids[:3].tolist())
        return f"Vocab({len(self):,} {'strings' if self.strings else 'ints'}: {head}{', ...' if len(self) > 3 else ''})"

    def codes(self, ids: Iterable[Hashable] | Array) -> NDArray[np.int32]:
        """The code of each id, -1 where it is unknown (an id of the other type is unknown too)."""
        wanted = ids if isinstance(ids, np.ndarray) else np.array(list(ids), dtype=object)
        if not self.strings and wanted.dtype.kind in "iu":
            at = np.minimum(np.searchsorted(self.ids, wanted), max(len(self) - 1, 0))
            known = self.ids[at] == wanted if len(self) else np.zeros(wanted.size, np.bool_)
            return np.where(known, at, -1).astype(np.int32)
        if self._codes is None:
            self._codes = {key: code for code, key in enumerate(self.ids.tolist())}
        get = self._codes.get
        return np.fromiter((get(_plain(i), -1) for i in wanted.tolist()), np.int32, len(wanted))

    def require(self, ids: Iterable[Hashable] | Array, what: str) -> NDArray[np.int32]:
        """Like `codes`, but an unknown id is an error that names it."""
        wanted = list(ids)
        codes = self.codes(wanted)
        if (codes < 0).any():
            bad = _plain(wanted[int(np.argmax(codes < 0))])
            kind = str if self.strings else int
            hint = f"; ids here are {'strings' if self.strings else 'integers'}" if not isinstance(bad, kind) else ""
            if not hint and isinstance(bad, str):
                hint = suggest(bad, self.ids[:20_000].tolist()).split("; known")[0]
            raise CorankError(f"unknown {what} {bad!r}: it is not among the {len(self):,} {what}s the data has{hint}")
        return codes

    def parse(self, text: str) -> Hashable:
        """The id that a word on the command line means."""
        if self.strings:
            return text
        try:
            return int(text)
        except ValueError:
            raise CorankError(f"id {text!r} is not an integer, and the ids of this data are integers") from None


@dataclass(frozen=True, eq=False)
class Dataset:
    """Interactions with their vocabularies; made by `read_csv`, `from_frame` or `from_arrays`.

    Graphs are adjacency matrices over the codes; labels are one array a name, aligned with the vocabulary.
    """

    users: Vocab
    items: Vocab
    user: NDArray[np.int32]
    item: NDArray[np.int32]
    value: NDArray[np.float32]
    time: NDArray[np.int64] | None = None
    user_graph: CSR | None = None
    item_graph: CSR | None = None
    user_labels: Mapping[str, Array] = field(default_factory=dict)
    item_labels: Mapping[str, Array] = field(default_factory=dict)
    comparisons: NDArray[np.int32] | None = None  # [m, 3] user, preferred item, other item

    @staticmethod
    def from_comparisons(user: Any, preferred: Any, other: Any) -> Dataset:
        """Pairwise data: user u prefers one item to another, a row each; for models that learn from pairs."""
        from .preferences import dataset

        return dataset(user, preferred, other)

    def __post_init__(self) -> None:
        n = self.user.size
        for name, dtype in (("user", np.int32), ("item", np.int32), ("value", np.float32), ("time", np.int64)):
            array = getattr(self, name)
            if array is None:
                continue
            if array.shape != (n,):
                raise CorankError(f"{name} has {array.size:,} entries and user has {n:,}: give columns of one length")
            object.__setattr__(self, name, frozen(np.ascontiguousarray(array, dtype)))
        bad = np.flatnonzero(~np.isfinite(self.value))
        if bad.size:
            raise CorankError(
                f"row {bad[0]:,} has the value {self.value[bad[0]]}, and values must be finite numbers: "
                f"drop or fill such rows ({bad.size:,} of {n:,}) first"
            )
        for side, vocab in (("user", self.users), ("item", self.items)):
            graph: CSR | None = getattr(self, f"{side}_graph")
            if graph is not None and (graph.rows, graph.columns) != (len(vocab), len(vocab)):
                raise CorankError(
                    f"the {side} graph is {graph.rows} x {graph.columns} and there are {len(vocab)} {side}s: "
                    f"give one row and one column a {side}, in the order of the vocabulary"
                )
            labels = {name: np.asarray(label) for name, label in getattr(self, f"{side}_labels").items()}
            object.__setattr__(self, f"{side}_labels", labels)
            for name, label in labels.items():
                if label.shape[:1] != (len(vocab),):
                    raise CorankError(f"label {name!r} has {label.size} entries and there are {len(vocab)} {side}s")

    def __len__(self) -> int:
        return int(self.user.size)

    def __repr__(self) -> str:
        return f"Dataset({len(self):,} rows, {len(self.users):,} users, {len(self.items):,} items)"

    def csr(self, by: Literal["user", "item"] = "user") -> CSR:
        """Rows = users (or items), sorted by column; repeated pairs are added up. Linear time."""
        from ..kernels import csr as kernels

        row, col, n_rows, n_cols = self.user, self.item, len(self.users), len(self.items)
        if by == "item":
            row, col, n_rows, n_cols = col, row, n_cols, n_rows
        by_column = kernels.stable_order(col, np.arange(col.size), kernels.count(col, n_cols))
        indptr = kernels.count(row, n_rows)
        index, value = kernels.place(row, col, self.value, by_column, indptr)
        left = kernels.merge(indptr, index, value)
        if left < index.size:
            index, value = index[:left].copy(), value[:left].copy()
        return CSR(indptr, index, value, n_cols)

    def sequences(self) -> CSR:
        """Each user's items in time order (file order where times are equal or absent)."""
        from ..kernels import csr as kernels

        first = np.arange(len(self)) if self.time is None else np.argsort(self.time, kind="stable")
        indptr = kernels.count(self.user, len(self.users))
        index, value = kernels.place(self.user, self.item, self.value, first, indptr)
        return CSR(indptr, index, value, len(self.items))

    def take(self, rows: Array) -> Dataset:
        """The rows chosen by a mask or by positions; the vocabularies stay as they are."""
        user, item, compared = self.user[rows], self.item[rows], self.comparisons
        if compared is not None:  # a comparison goes with its two rows
            from .preferences import within

            compared = compared[within(compared, user, item, len(self.items))]
        time = None if self.time is None else self.time[rows]
        return dataclasses.replace(self, user=user, item=item, value=self.value[rows], time=time, comparisons=compared)

    def join(self, other: Dataset) -> Dataset:
        """The rows of both; they must share their vocabularies, as the parts of a split do."""
        if self.users != other.users or self.items != other.items:
            raise CorankError("these datasets have different users or items: only parts of one dataset can be joined")
        times = None if self.time is None or other.time is None else np.concatenate([self.time, other.time])
        compared = [part.comparisons for part in (self, other) if part.comparisons is not None]
        return dataclasses.replace(
            self,
            user=np.concatenate([self.user, other.user]),
            item=np.concatenate([self.item, other.item]),
            value=np.concatenate([self.value, other.value]),
            time=times,
            comparisons=np.concatenate(compared) if compared else None,
        )

    def compact(self) -> Dataset:
        """The same rows with only the users and items that occur in them; graphs and labels follow."""
        keep = {"user": np.unique(self.user), "item": np.unique(self.item)}
        changes: dict[str, Any] = {}
        for side, old in keep.items():
            vocab: Vocab = getattr(self, f"{side}s")
            graph: CSR | None = getattr(self, f"{side}_graph")
            changes[f"{side}s"] = Vocab(vocab.ids[old])
            changes[side] = np.searchsorted(old, getattr(self, side)).astype(np.int32)
            changes[f"{side}_labels"] = {k: v[old] for k, v in getattr(self, f"{side}_labels").items()}
            if graph is not None:
                changes[f"{side}_graph"] = from_scipy(graph.scipy()[old][:, old])
        if self.comparisons is not None:
            codes = [
                np.searchsorted(keep[side], self.comparisons[:, at]) for at, side in enumerate(("user", "item", "item"))
            ]
            changes["comparisons"] = np.stack(codes, axis=1).astype(np.int32)
        return dataclasses.replace(self, **changes)

    def with_graph(self, users: Any = None, items: Any = None, *, new_items: bool = False) -> Dataset:
        """The same rows with a graph over the users, the items or both, in place of what graphs there were.

        users, items : a file with a row an edge, or what `graph.from_edges` and `graph.read_edges` give.
        new_items : items that only the edges name become items too; else they are left out, with their edges.

        Everybody whom the edges of users name becomes a user, who may have friends only. It is logged how many did.
        """
        from .edges import with_graph

        return with_graph(self, users, items, new_items=new_items)

    def describe(self) -> Description:
        """Counts, density, distributions and time span; prints as a small table."""
        from .describe import describe

        return describe(self)


def from_arrays(
    *,
    user: ArrayLike | Sequence[Any],
    item: ArrayLike | Sequence[Any],
    value: ArrayLike | None = None,
    time: ArrayLike | None = None,
    duplicates: Duplicates = "last",
    user_graph: Any = None,
    item_graph: Any = None,
    user_labels: Mapping[str, Array] | None = None,
    item_labels: Mapping[str, Array] | None = None,
) -> Dataset:
    """A dataset from columns of one length; without `value` each row counts 1.

    user_graph, item_graph : a CSR, or any scipy sparse matrix or dense array, over the users (items) in the order of
        the vocabulary, which is that of the sorted ids.

    duplicates : what to do with rows that name the same (user, item) pair: keep the 'last' one (latest time, then file
        order), the 'first', their 'sum', 'mean' or 'max' (at the last one's place), 'keep' all, or raise an 'error'.
    """
    users, user_codes = Vocab.build(user, "user")
    items, item_codes = Vocab.build(item, "item")
    data = Dataset(
        users,
        items,
        user_codes,
        item_codes,
        np.ones(user_codes.size, np.float32) if value is None else numbers(value, "value"),
        None if time is None else numbers(time, "time"),
        user_graph if user_graph is None or isinstance(user_graph, CSR) else from_scipy(user_graph),
        item_graph if item_graph is None or isinstance(item_graph, CSR) else from_scipy(item_graph),
        dict(user_labels or {}),
        dict(item_labels or {}),
    )
    return settle_duplicates(data, duplicates, tell=True)


def from_frame(
    frame: Any, *, user: str, item: str, value: str | None = None, time: str | None = None, **options: Any
) -> Dataset:
    """A dataset from a pandas, polars or pyarrow table; `options` as in `from_arrays`. Dates become unix seconds."""
    from ..reading.tables import frame_columns

    return from_arrays(**frame_columns(frame, user=user, item=item, value=value, time=time), **options)


def settle_duplicates(data: Dataset, rule: Duplicates, *, tell: bool = False) -> Dataset:
    """Apply the rule for repeated (user, item) pairs, see `from_arrays`; `tell` logs how many there are."""
    if rule not in DUPLICATES:
        raise CorankError(f"duplicates={rule!r} is not a rule{suggest(str(rule), DUPLICATES)}")
    if rule == "keep" or len(data) == 0:
        return data
    order = _by_pair(data)
    user, item = data.user[order], data.item[order]
    ends_group = np.append((user[1:] != user[:-1]) | (item[1:] != item[:-1]), True)
    repeated = len(data) - np.count_nonzero(ends_group)
    if repeated == 0:
        return data
    starts_group = np.append(True, ends_group[:-1])
    if rule == "error":
        row = order[np.argmin(ends_group)]
        who, what = _plain(data.users.ids[data.user[row]]), _plain(data.items.ids[data.item[row]])
        raise CorankError(
            f"user {who!r} and item {what!r} occur together more than once ({repeated:,} repeated rows in all): "
            "choose a rule with duplicates='last', 'first', 'sum', 'mean', 'max' or 'keep'"
        )
    if tell:
        what = f"{'the' if rule in ('first', 'last') else 'their'} {rule}"
        counts = f"{repeated:,} of {len(data):,} rows repeat"
        log.info("%s a (user, item) pair: kept %s (duplicates=%r)", counts, what, rule)
    kept = starts_group if rule == "first" else ends_group
    rows = np.ones(len(data), np.bool_)
    rows[order[~kept]] = False
    if rule in ("sum", "mean", "max"):
        starts = np.flatnonzero(starts_group)
        reduce = np.maximum if rule == "max" else np.add
        settled = reduce.reduceat(data.value[order].astype(np.float64), starts)
        if rule == "mean":
            settled /= np.diff(np.append(starts, len(data)))
        value = data.value.copy()
        value[order[kept]] = settled
        data = dataclasses.replace(data, value=value)
    return data.take(rows)


def _by_pair(data: Dataset) -> Array:
    """Row positions grouped by (user, item), each group by time and then in file order; only the times are sorted."""
    from ..kernels import csr as kernels

    first = np.arange(len(data)) if data.time is None else np.argsort(data.time, kind="stable")
    by_item = kernels.stable_order(data.item, first, kernels.count(data.item, len(data.items)))
    return np.asarray(kernels.stable_order(data.user, by_item, kernels.count(data.user, len(data.users))))


def frozen(array: Array) -> Array:
    """A view that cannot be written through."""
    view = array.view()
    view.flags.writeable = False
    return view


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
