"""Models whose score of an item is a sum of weights from the items of a history, few of which are not zero."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..answering.explain import Reasons
from ..answering.update import owners
from ..data import CSR, Array, row_ends
from ..model import Model
from ..stored import Ends, Stored, codes, floats


class ItemWeights(Model):
    """Row i of the weights holds the items j to whose score item i adds, as the CSR parts `sim_*_`."""

    sim_indptr_: NDArray[np.int64]
    sim_index_: NDArray[np.int32]
    sim_value_: NDArray[np.float32]

    def _stores(self) -> dict[str, Stored]:
        return super()._stores() | {
            "sim_indptr_": Ends(of="items", into="similar items"),
            "sim_index_": codes("similar items"),
            "sim_value_": floats("similar items"),
        }

    def _item_weights(self) -> CSR:
        return CSR(self.sim_indptr_, self.sim_index_, self.sim_value_, len(self.items_))

    def _keep_weights(self, weights: CSR) -> None:
        self.sim_indptr_, self.sim_index_, self.sim_value_ = weights[:3]

    def _add_weights(self, owner: Array, index: Array, value: Array) -> None:
        """Add entries (owner, index) to the weights; the older ones of a row come first."""
        old = self._item_weights()
        owner = np.concatenate([owners(old), owner])
        order = np.argsort(owner, kind="stable")
        self.sim_indptr_ = row_ends(np.bincount(owner, minlength=len(self.items_)))
        self.sim_index_ = np.concatenate([old.index, index])[order].astype(np.int32)
        self.sim_value_ = np.concatenate([old.value, value])[order].astype(np.float32)

    def _sum(self, rows: CSR) -> NDArray[np.float32]:
        """Scores of all items, (rows, items), from weighted histories."""
        from ..kernels.knn import add_rows
        from ..kernels.threads import run

        out = np.empty((rows.rows, rows.columns), np.float32)
        run(add_rows, rows.rows, rows.indptr, rows.index, rows.value, *self._item_weights()[:3], out, cost=rows.indptr)
        return out

    def _reasons(self, rows: CSR, items: Array) -> Reasons:
        """Exact: each entry of one weighted history adds its value times its weights."""
        near = self._item_weights().take(rows.index).scipy()[:, items].toarray()  # (entries, items)
        return Reasons("exact", rows.index, (rows.value[:, None] * near).T.astype(np.float64))

    def _similar(self, items: NDArray[np.int32]) -> NDArray[np.float32]:
        near = self._item_weights().take(items)
        out = np.full((items.size, len(self.items_)), -np.inf, np.float32)  # other items are not similar
        out[np.repeat(np.arange(items.size), np.diff(near.indptr)), near.index] = near.value
        return out
