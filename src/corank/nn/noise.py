"""Dropout from cheap random bytes: torch draws one number at a time, which takes longer than a matrix product."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


class Noise:
    """Dropout masks for one pass through a network, determined by a seed.

    One random byte per element: p is rounded to a multiple of 1/256 (never to 0 or 1), and kept elements are scaled by
    the rounded 1 / (1 - p), so that the expectation is unchanged.
    """

    def __init__(self, seed: int | tuple[int, ...]) -> None:
        self._stream = np.random.SFC64(seed)

    def mask(self, shape: tuple[int, ...], p: float) -> Tensor:
        """float32 of this shape: 0 with probability p, otherwise 1 / (1 - p)."""
        size = int(np.prod(shape))
        cut = min(255, max(1, round(256 * p)))
        raw = self._stream.random_raw(-(-size // 8)).view(np.uint8)[:size]
        kept = (raw >= cut).astype(np.float32)
        kept *= np.float32(256 / (256 - cut))
        return torch.from_numpy(kept.reshape(shape))


def dropout(x: Tensor, p: float, noise: Noise | None) -> Tensor:
    """Set elements of x to zero with probability p and rescale the others; without noise (not in training) x itself."""
    return x if noise is None or p <= 0 else x * noise.mask(tuple(x.shape), p)
