"""Sequence models whose network is a stack of equal blocks: how many there are, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..cost import Size
from ..params import param
from ._sequence import SequenceModel


@dataclass(kw_only=True, eq=False)
class LayeredModel(SequenceModel):
    """Base class of sequence models with `blocks` layers of matrix products, of about 12 * width^2 weights each."""

    blocks: int = param(2, "layers of the network", low=0, high=64, search=(1, 3))

    def _width(self) -> int:
        """Size of a hidden state, before there is a network."""
        return self.dim

    def _weight_count(self, size: Size) -> float:
        return size.items * self.dim + self._width() * (self.max_len + 12.0 * self.blocks * self._width())

    def _forward_work(self, lengths: NDArray[np.int64]) -> tuple[float, float]:
        squares, width = float(np.square(lengths, dtype=np.float64).sum()), self._width()
        layers = float(lengths.sum()) * self.blocks * width
        return 12 * layers * width + 2 * squares * width, 60 * layers

    def _kept(self, lengths: NDArray[np.int64]) -> float:
        each = self.blocks * (30.0 * self._width() + self._attention_kept(float(lengths.max(initial=0))))
        return each * float(lengths.sum()) + super()._kept(lengths)

    def _attention_kept(self, longest: float) -> float:
        """Attention weights per position and block that are kept for the backward pass."""
        return 0.0
