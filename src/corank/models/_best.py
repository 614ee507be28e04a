"""Keeping the best epoch: with `patience`, training stops after so many epochs without a better figure on `valid`."""

from __future__ import annotations

import numpy as np

from ..data import Array
from ..model import Model


class Best:
    """Copies of learned arrays as they were after the best epoch so far; nothing for a model without patience."""

    def __init__(self, model: Model, *arrays: Array, by: str = "ndcg@10", sign: int = 1) -> None:
        """by: the entry of `history_` that counts; sign: -1 where less is better."""
        self.model, self.arrays, self.by, self.sign = model, arrays, by, sign
        self.patience: int | None = getattr(model, "patience", None)
        self.copies = [] if self.patience is None else [array.copy() for array in arrays]

    def carried(self) -> dict[str, Array]:
        """What a checkpoint has to keep (see `Model._epochs`)."""
        return {f"best_{number}": copy for number, copy in enumerate(self.copies)}

    def look(self, epoch: int) -> None:
        """After an epoch was reported: is it the best, is it time to stop?"""
        measured = self._measured()
        if self.patience is None or not measured:
            return
        leader = int(np.argmax(np.nan_to_num(measured, nan=-np.inf))) + 1
        if leader == epoch:
            for copy, array in zip(self.copies, self.arrays, strict=True):
                copy[:] = array
        self.model._enough = epoch - leader >= self.patience

    def put_back(self) -> None:
        """At the end of training: the best epoch is what was learned."""
        if self._measured():
            for copy, array in zip(self.copies, self.arrays, strict=False):
                array[:] = copy

    def _measured(self) -> list[float]:
        return [self.sign * entry[self.by] for entry in self.model.history_ if self.by in entry]
