"""Dropout from cheap random bytes: torch's own draws a number at a time, which takes longer than a matrix product."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


class Noise:
    """Masks for one pass through a network, fixed by a seed.

    A byte an element: probabilities are rounded to 1/256 (never to 0 or 1), and what is kept is scaled by exactly what
    was rounded to, so that the mean is right.
    """

    def __init__(self, seed: int | tuple[int, ...]) -> None:
        self._stream = np.random.SFC64(seed)

    def mask(self, shape: tuple[int, ...], p: float) -> Tensor:
        """float32 of this shape: 0 with probability p, else 1 / (1 - p)."""
        size = int(np.prod(shape))
        cut = min(255, max(1, round(256 * p)))
        raw = self._stream.random_raw(-(-size // 8)).view(np.uint8)[:size]
        kept = (raw >= cut).astype(np.float32)
        kept *= np.float32(256 / (256 - cut))
        return torch.from_numpy(kept.reshape(shape))


def dropout(x: Tensor, p: float, noise: Noise | None) -> Tensor:
    """Elements of x are zero with probability p; without noise (not training) x as it is."""
    return x if noise is None or p <= 0 else x * noise.mask(tuple(x.shape), p)
