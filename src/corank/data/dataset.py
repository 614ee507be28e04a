"""Interactions as an immutable value: which user interacted with which item, with what value (rating, count) and when.

`Dataset` is immutable and flat: one entry per row, in the order of the file, so that equal timestamps keep that order.
External ids (integers or strings) are kept in a `Vocab`; all arrays hold codes, the positions in it.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import CorankError, suggest
from .columns import numbers, plain
from .csr import CSR, Array, from_scipy
from .values import Values, check_values, declared, detect
from .vocab import Vocab, frozen

if TYPE_CHECKING:
    from .describe import Description

log = logging.getLogger("corank.reading")
Duplicates = Literal["last", "first", "sum", "mean", "max", "keep", "error"]
DUPLICATES = ("last", "first", "sum", "mean", "max", "keep", "error")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Interactions with their vocabularies; created by `read_csv`, `from_frame` or `from_arrays`.

    users, items : the vocabularies.
    user, item, value, time : one entry per row, (n,): codes, ratings or counts (1 where only presence is known), and
        integer times of any unit, or None.
    user_graph, item_graph : adjacency matrices over the codes, or None.
    user_labels, item_labels : name -> array with one entry per user (item) of the vocabulary.
    comparisons : (m, 3) codes (user, preferred item, other item), or None.
    values : the kind of the values: 'ratings' on a scale, 'counts' (or other amounts) or 'none' (all equal). Detected
        from all rows ('auto'), and kept by parts of the data, such as those of a split.
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
    comparisons: NDArray[np.int32] | None = None
    values: Values = "auto"

    on_disk: ClassVar[bool] = False  # whether the rows are in files: see `DatasetOnDisk`

    @staticmethod
    def from_comparisons(user: Any, preferred: Any, other: Any) -> Dataset:
        """Pairwise data for models that learn from comparisons: one entry per statement "user prefers A to B"."""
        from .preferences import encode

        users, items, triples = encode(user, preferred, other)
        # One row of value 1 for each item that a user compared.
        pairs = np.unique(np.concatenate([triples[:, [0, 1]], triples[:, [0, 2]]]), axis=0)
        ones = np.ones(len(pairs), np.float32)
        return Dataset(users, items, pairs[:, 0].copy(), pairs[:, 1].copy(), ones, comparisons=triples)

    def __post_init__(self) -> None:
        n = self.user.size
        for name, dtype in (("user", np.int32), ("item", np.int32), ("value", np.float32), ("time", np.int64)):
            array = getattr(self, name)
            if array is None:
                continue
            if array.shape != (n,):
                raise CorankError(f"{name} has {array.size:,} entries and user has {n:,}: give columns of equal length")
            object.__setattr__(self, name, frozen(np.ascontiguousarray(array, dtype)))
        if n and not np.isfinite([self.value.min(), self.value.max()]).all():
            bad = np.flatnonzero(~np.isfinite(self.value))
            raise CorankError(
                f"row {bad[0]:,} has the value {self.value[bad[0]]}, and values must be finite numbers: "
                f"drop or fill such rows ({bad.size:,} of {n:,}) first"
            )
        if check_values(self.values) == "auto":
            object.__setattr__(self, "values", detect(self.value))
        for side, vocab in (("user", self.users), ("item", self.items)):
            graph: CSR | None = getattr(self, f"{side}_graph")
            if graph is not None and (graph.rows, graph.columns) != (len(vocab), len(vocab)):
                raise CorankError(
                    f"the {side} graph is {graph.rows} x {graph.columns} and there are {len(vocab)} {side}s: "
                    f"give one row and one column per {side}, in the order of the vocabulary"
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

    def _repr_html_(self) -> str:
        return self.describe()._repr_html_()

    def csr(self, by: Literal["user", "item"] = "user") -> CSR:
        """Rows are users (or items), sorted by column; values of repeated pairs are summed. Linear time."""
        from ..kernels import csr as kernels

        row, col, n_rows, n_cols = self.user, self.item, len(self.users), len(self.items)
        if by == "item":
            row, col, n_rows, n_cols = col, row, n_cols, n_rows
        by_column = kernels.stable_order(col, np.arange(col.size), kernels.count(col, n_cols))
        indptr = kernels.count(row, n_rows)
        index, value = kernels.place(row, col, self.value, by_column, indptr)
        merged = kernels.merge(indptr, index, value)
        if merged < index.size:
            index, value = index[:merged].copy(), value[:merged].copy()
        return CSR(indptr, index, value, n_cols)

    def sequences(self) -> CSR:
        """Each user's items in time order (file order where times are equal or absent)."""
        from ..kernels import csr as kernels

        indptr = kernels.count(self.user, len(self.users))
        index, value = kernels.place(self.user, self.item, self.value, self.time_order(), indptr)
        return CSR(indptr, index, value, len(self.items))

    def time_order(self) -> Array:
        """Positions of the rows sorted by time; rows of equal or absent times keep the order of the file."""
        return np.arange(len(self)) if self.time is None else np.argsort(self.time, kind="stable")

    def take(self, rows: Array) -> Dataset:
        """The rows selected by a mask or by positions; the vocabularies stay the same."""
        user, item, compared = self.user[rows], self.item[rows], self.comparisons
        if compared is not None:  # a comparison is kept only if both of its rows are
            from .preferences import within

            compared = compared[within(compared, user, item, len(self.items))]
        time = None if self.time is None else self.time[rows]
        return dataclasses.replace(self, user=user, item=item, value=self.value[rows], time=time, comparisons=compared)

    def _among(self, users: Array) -> Dataset:
        """The same rows, or only those of these users where that saves looking at all of them."""
        return self

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
            values=other.values if self.values == "none" else self.values,
        )

    def compact(self) -> Dataset:
        """The same rows with only the users and items that occur in them; graphs and labels follow."""
        return restricted(self, np.unique(self.user), np.unique(self.item))

    def with_graph(self, users: Any = None, items: Any = None, *, new_items: bool = False) -> Dataset:
        """The same rows with a graph over the users, the items or both; it replaces the graph that was there.

        users, items : a file with one row per edge, or what `graph.from_edges` and `graph.read_edges` return.
        new_items : whether items that occur only in the edges are added; else they are dropped, with their edges.

        Users that occur only in the edges are always added: they have neighbours but no rows. Their number is logged.
        """
        from .graph_alignment import with_graph

        return with_graph(self, users, items, new_items=new_items)

    def to_frame(self, backend: str = "polars") -> Any:
        """The rows as a table with the columns user, item, value and, where there are times, time.

        `from_frame` reads it again, with duplicates="keep" where pairs repeat. backend : polars, pandas or pyarrow.
        """
        import polars as pl

        from .frames import in_backend

        columns = {"user": self.users.ids[self.user], "item": self.items.ids[self.item], "value": self.value}
        if self.time is not None:
            columns["time"] = self.time
        kinds = {side: pl.String if getattr(self, f"{side}s").strings else pl.Int64 for side in ("user", "item")}
        return in_backend(pl.DataFrame(columns, schema_overrides=kinds), backend)

    def describe(self) -> Description:
        """Counts, density, distributions and time span; prints as a small table."""
        from .describe import describe

        return describe(self)


def restricted(data: Dataset, users: Array, items: Array) -> Dataset:
    """The rows of these users and items (codes in rising order), with vocabularies of them alone."""
    keep = {"user": users, "item": items}
    data = data._among(users)
    rows = np.isin(data.user, users) & np.isin(data.item, items)
    if not rows.all():
        data = data.take(rows)
    changes: dict[str, Any] = {}
    for side, old in keep.items():
        vocab: Vocab = getattr(data, f"{side}s")
        graph: CSR | None = getattr(data, f"{side}_graph")
        changes[f"{side}s"] = Vocab(vocab.ids[old])
        changes[side] = np.searchsorted(old, getattr(data, side)).astype(np.int32)
        changes[f"{side}_labels"] = {k: v[old] for k, v in getattr(data, f"{side}_labels").items()}
        if graph is not None:
            changes[f"{side}_graph"] = from_scipy(graph.scipy()[old][:, old])
    if data.comparisons is not None:
        codes = [
            np.searchsorted(keep[side], data.comparisons[:, at]) for at, side in enumerate(("user", "item", "item"))
        ]
        changes["comparisons"] = np.stack(codes, axis=1).astype(np.int32)
    return dataclasses.replace(data, **changes)


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
    values: Values = "auto",
) -> Dataset:
    """A dataset from columns of equal length; without `value` every row has the value 1.

    duplicates : what to do with rows of the same (user, item) pair: keep the 'last' one (latest time, then file
        order), the 'first', their 'sum', 'mean' or 'max' (at the position of the last), 'keep' all, or raise an
        'error'.
    user_graph, item_graph : a CSR, or any scipy sparse matrix or dense array, over the users (items) in the order of
        the vocabulary, which is that of the sorted ids.
    user_labels, item_labels : name -> array with one entry per user (item), in the same order.
    values : the kind of the values where the detected one is wrong: 'ratings', 'counts', or 'none' to ignore them.
    """
    check_values(values)
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
    return declared(settle_duplicates(data, duplicates, tell=True), values)


def settle_duplicates(data: Dataset, rule: Duplicates, *, tell: bool = False) -> Dataset:
    """Apply the rule for repeated (user, item) pairs, see `from_arrays`; `tell` logs their number."""
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
        user_id, item_id = plain(data.users.ids[data.user[row]]), plain(data.items.ids[data.item[row]])
        raise CorankError(
            f"user {user_id!r} and item {item_id!r} occur together more than once ({repeated:,} repeated rows in all): "
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
        # A sum of rows without values is their number.
        values: Values = "counts" if rule == "sum" and data.values == "none" else data.values
        data = dataclasses.replace(data, value=value, values=values)
    return data.take(rows)


def _by_pair(data: Dataset) -> Array:
    """Row positions grouped by (user, item), each group by time, then file order; linear apart from sorting by time."""
    from ..kernels import csr as kernels

    by_item = kernels.stable_order(data.item, data.time_order(), kernels.count(data.item, len(data.items)))
    return np.asarray(kernels.stable_order(data.user, by_item, kernels.count(data.user, len(data.users))))
