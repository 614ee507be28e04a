"""Item-kNN: items similar to those of the user's history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ..answering.explain import Reasons
from ..answering.inference import seen_items
from ..answering.update import Growth
from ..cost import SCATTERED, SORTED, Cost, Size, rows_memory, scratch_memory
from ..data import CSR, Array, Dataset, from_scipy, row_ends
from ..errors import CorankError
from ..params import param
from ..stored import Stored, floats, word
from ._item_weights import ItemWeights

if TYPE_CHECKING:
    from ..training import Training

SIMILARITIES = ("cosine", "jaccard", "conditional")
WEIGHTINGS = ("none", "idf", "value", "tfidf", "bm25")
K1, B = 1.2, 0.75  # of BM25, the usual values in text retrieval


@dataclass(kw_only=True, eq=False)
class ItemKNN(ItemWeights):
    """Item-based nearest neighbours: users who interacted with these items also interacted with that one.

    Each item keeps its most similar items; the score of an item is the sum of its similarities to the items of the
    user's history.

    Reference: Deshpande and Karypis, "Item-based top-N recommendation algorithms", TOIS 2004.

    Use it as the first personalised method: it trains in seconds, its recommendations are easy to explain, unseen users
    need no training, and on sparse catalogues (Amazon-Book) plain cosine beats most graph networks. It costs the sum
    over users of their squared number of items; memory is items x neighbors.

    Where values are counts and `weighting` uses them, a row weighs log(1 + count) in a score, and in the similarities
    with `weighting="value"`: otherwise one item that a user plays all day decides both.
    """

    neighbors: int = param(200, "number of similar items kept per item", low=1, search=(10, 500), log=True)
    similarity: Literal["cosine", "jaccard", "conditional"] = param(
        "cosine",
        "similarity of two items, from the users they have in common",
        choices=SIMILARITIES,
        search=SIMILARITIES,
    )
    weighting: Literal["none", "idf", "value", "tfidf", "bm25"] = param(
        "idf",
        "weight of an interaction: 1 (none), less for users with many (idf), its value, or TF-IDF or BM25 weight of "
        "its value",
        choices=WEIGHTINGS,
        search=WEIGHTINGS,
    )
    shrink: float = param(
        30.0,
        "added to the denominator: shrinks similarities based on few common users",
        low=0.0,
        search=(0.1, 300.0),
        log=True,
    )

    value_scale_ = "linear"  # 'log' where the values were counts; files from before there was a choice do not hold it

    starts: ClassVar[Sequence[Mapping[str, Any]]] = (
        {"weighting": "idf", "similarity": "jaccard", "shrink": 15.0, "neighbors": 100},
        {"weighting": "bm25", "similarity": "conditional", "shrink": 0.1, "neighbors": 400},
        {"weighting": "idf", "neighbors": 500},
        {"weighting": "idf", "shrink": 100.0, "neighbors": 100},
        {"weighting": "none", "neighbors": 20},
    )

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        from ..kernels.knn import neighbors
        from ..kernels.threads import run

        if self._uses_values and data.value.min() < 0:
            raise CorankError(
                f"ItemKNN(weighting={self.weighting!r}) needs values of at least 0 and the smallest is "
                f"{data.value.min():g}: shift them or use weighting='idf'"
            )
        columns = data.csr(by="item")
        self.value_scale_ = "log" if data.values == "counts" else "linear"
        row_weight, column_weight = self._weights(rows, columns)
        size = np.bincount(rows.index, row_weight.astype(np.float64) ** 2, rows.columns).astype(np.float32)
        kept = min(self.neighbors, rows.columns)
        items = np.empty((rows.columns, kept), np.int32)
        best = np.empty((rows.columns, kept), np.float32)
        run(
            neighbors,
            rows.columns,
            *(columns.indptr, columns.index, column_weight),
            *(rows.indptr, rows.index, row_weight),
            *(size, SIMILARITIES.index(self.similarity), self.shrink, items, best),
            cost=columns.indptr,
            progress=lambda done, of: training.progress(done, of, "comparing items"),
        )
        real = items >= 0
        self._keep_weights(CSR(row_ends(real.sum(axis=1)), items[real], best[real], rows.columns))
        # The weight of each training row in a score; empty means 1 each.
        self.seen_value_ = self._scaled(rows.value) if self._uses_values else np.empty(0, np.float32)

    def _stores(self) -> dict[str, Stored]:
        return super()._stores() | {
            "value_scale_": word("linear", "log", optional=True),
            "seen_value_": floats("training rows" if self._uses_values else 0),
        }

    @property
    def _uses_values(self) -> bool:
        return self.weighting not in ("none", "idf")

    def _scaled(self, value: Array) -> Array:
        return np.log1p(value) if self.value_scale_ == "log" else value

    def _cost(self, size: Size) -> Cost:
        return Cost(
            SORTED * size.rows + SCATTERED * (8 * size.squared() + min(self.neighbors, size.items) * size.items)
        )

    def _memory(self, size: Size) -> float:
        # By user and by item, with weights; per thread a dense accumulator; neighbours, padded and not.
        padded = 1.0 * min(self.neighbors, size.items) * size.items
        lists = 9.0 * padded + 8.0 * min(padded, size.squared())
        return rows_memory(size, 3) + 16.0 * size.rows + lists + scratch_memory(12.0 * size.items, size.items)

    def _smaller(self, size: Size, free: int | None) -> str:
        return "choose fewer neighbors, or keep fewer items"

    def _weights(self, rows: CSR, columns: CSR) -> tuple[Array, Array]:
        """Weights of the entries in the similarities, by user and by item; items are documents, users their terms."""
        length, width = np.diff(columns.indptr), np.diff(rows.indptr)
        # Inverse document frequency: a user with many items says little about which of them are similar.
        rarity = np.log1p(rows.columns / np.maximum(width, 1))
        if self.weighting == "idf":
            # Of mean square 1 over the interactions, so that `shrink` means as much as without weights.
            rarity = rarity / np.sqrt(max((width * rarity**2).sum() / max(width.sum(), 1), 1e-12))
        if self.weighting == "bm25":
            total = np.bincount(rows.index, rows.value, rows.columns)
            norm = K1 * (1 - B + B * total / max(total.sum() / max(np.count_nonzero(length), 1), 1e-12))

        def weigh(value: Array, user: Array, item: Array) -> Array:
            if self.weighting == "none":
                return np.ones(value.size, np.float32)
            if self.weighting == "idf":
                return np.asarray(rarity[user], np.float32)
            if self.weighting == "value":
                return self._scaled(value)
            if self.weighting == "tfidf":
                return np.asarray(np.sqrt(value) * rarity[user], np.float32)
            return np.asarray(value * (K1 + 1) / np.maximum(value + norm[item], 1e-12) * rarity[user], np.float32)

        return (
            weigh(rows.value, np.repeat(np.arange(width.size), width), rows.index),
            weigh(columns.value, columns.index, np.repeat(np.arange(length.size), length)),
        )

    def _score(self, users: NDArray[np.int32]) -> NDArray[np.float32]:
        value = self.seen_value_ if self.seen_value_.size else np.broadcast_to(np.float32(1), self.seen_index_.size)
        return self._sum(CSR(self.seen_indptr_, self.seen_index_, value, len(self.items_)).take(users))

    def _score_histories(self, histories: CSR) -> NDArray[np.float32]:
        return self._sum(self._weighted(histories))

    def _weighted(self, histories: CSR) -> CSR:
        """Histories with the weights of their items in a score."""
        rows = histories.merged()
        if not self.seen_value_.size:
            return rows._replace(value=np.ones(rows.index.size, np.float32))
        if rows.value.size and rows.value.min() < 0:
            raise CorankError(
                f"a history holds the value {rows.value.min():g}: the values of a history must be at least 0"
            )
        return rows._replace(value=self._scaled(rows.value))

    def _history(self, user: int) -> CSR:
        return seen_items(self)._replace(value=self._row_values()).take(np.array([user]))

    def _row_values(self) -> NDArray[np.float32]:
        if not self.seen_value_.size:
            return np.broadcast_to(np.float32(1), self.seen_index_.size)
        return np.expm1(self.seen_value_) if self.value_scale_ == "log" else self.seen_value_

    def _absorb(self, growth: Growth) -> None:
        """Fresh items get their similarities, from all rows; those between older items stay as they are."""
        self.seen_value_ = self._scaled(growth.rows.value) if self._uses_values else np.empty(0, np.float32)
        if not growth.fresh.size:
            return
        fresh, other, near, back = self._fresh_neighbors(growth)
        older = ~np.isin(other, growth.fresh)  # two fresh items have each other already
        both = ((fresh, other[older]), (other, fresh[older]), (near, back[older]))
        self._add_weights(*(np.concatenate(pair) for pair in both))

    def _fresh_neighbors(self, growth: Growth) -> tuple[Array, Array, Array, Array]:
        """(fresh item, other item, similarity of the other to it, and its to the other) of the closest pairs."""
        from ..kernels.knn import neighbors
        from ..kernels.threads import run

        rows, fresh = growth.rows, growth.fresh
        columns = from_scipy(rows.scipy().T)
        row_weight, column_weight = self._weights(rows, columns)
        size = np.bincount(rows.index, row_weight.astype(np.float64) ** 2, rows.columns).astype(np.float32)
        # The kernel compares its first rows with all others, so the fresh items come first.
        order = np.concatenate([fresh, np.setdiff1d(np.arange(rows.columns), fresh)])
        place = np.empty(order.size, np.int32)
        place[order] = np.arange(order.size)
        mine = columns._replace(value=column_weight).take(fresh)
        kept = min(self.neighbors, rows.columns)
        items, best = np.empty((fresh.size, kept), np.int32), np.empty((fresh.size, kept), np.float32)
        data = (*mine[:3], rows.indptr, place[rows.index], row_weight, size[order])
        run(neighbors, fresh.size, *data, SIMILARITIES.index(self.similarity), self.shrink, items, best)
        real = items >= 0
        one, other, near = np.repeat(fresh, real.sum(axis=1)), order[items[real]], best[real]
        if self.similarity != "conditional":
            return one, other, near, near
        return one, other, near, near * (size[one] + self.shrink) / (size[other] + self.shrink)

    def _contributions(
        self, user: int | None, history: CSR, items: NDArray[np.int32], scores: NDArray[np.float64]
    ) -> Reasons:
        return self._reasons(self._weighted(history), items)
