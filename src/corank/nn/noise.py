"""Dropout from cheap random bytes: torch draws one number at a time, which takes longer than a matrix product."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from .devices import CPU, send


class Noise:
    """Dropout masks for one pass through a network, determined by a seed.

    One random byte per element: p is rounded to a multiple of 1/256 (never to 0 or 1), and kept elements are scaled by
    the rounded 1 / (1 - p), so that the expectation is unchanged. On a GPU, which draws faster than it could be sent
    masks, they come from a generator of its own: other masks than on a CPU, with the same probabilities.
    """

    def __init__(self, seed: int | tuple[int, ...]) -> None:
        self._seed = seed
        self._stream = np.random.SFC64(seed)
        self._generator: torch.Generator | None = None

    def mask(self, shape: tuple[int, ...], p: float, device: torch.device = CPU) -> Tensor:
        """float32 of this shape: 0 with probability p, otherwise 1 / (1 - p)."""
        cut = min(255, max(1, round(256 * p)))
        if device.type in ("cuda", "mps"):
            return self._drawn_there(shape, cut, device)
        size = int(np.prod(shape))
        raw = self._stream.random_raw(-(-size // 8)).view(np.uint8)[:size]
        kept = (raw >= cut).astype(np.float32)
        kept *= np.float32(256 / (256 - cut))
        return send(kept.reshape(shape), device)

    def _drawn_there(self, shape: tuple[int, ...], cut: int, device: torch.device) -> Tensor:
        if self._generator is None:
            (seed,) = np.random.SeedSequence(self._seed).generate_state(1, np.uint64).tolist()
            self._generator = torch.Generator(device).manual_seed(seed >> 1)
        kept = torch.rand(shape, generator=self._generator, device=device) >= cut / 256
        return kept * (256 / (256 - cut))


def dropout(x: Tensor, p: float, noise: Noise | None) -> Tensor:
    """Set elements of x to zero with probability p and rescale the others; without noise (not in training) x itself."""
    return x if noise is None or p <= 0 else x * noise.mask(tuple(x.shape), p, x.device)
