"""Negatives that all positions of a step share, and how likely each item is to be drawn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SAMPLING = ("uniform", "popular", "batch")
Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


class SharedNegatives:
    """Draws `k` items of a catalogue per step, with replacement unless said otherwise.

    sampling : uniform, each item is as likely as any other. popular, an item with n interactions has a probability
        proportional to n^power. batch, targets of the step, each position at most once: k of them, or all if there are
        fewer; an item is then drawn as often as it is a target.
    count : (items,) interactions of each item.

    A negative may be the target of some of the positions. It does not count there (see `losses.next_item_loss`).
    """

    def __init__(self, sampling: str, count: NDArray[np.integer], k: int, power: float = 0.75) -> None:
        self.sampling, self.items, self.k = sampling, count.size, k
        self.log_probability: Floats | None = None  # (items,) of one draw; None: uniform
        if sampling == "uniform":
            return
        weight = np.power(count, power if sampling == "popular" else 1.0, where=count > 0, out=np.zeros(count.size))
        self.cumulative = np.cumsum(weight)
        with np.errstate(divide="ignore"):  # an item without interactions is never drawn
            self.log_probability = np.log(weight / self.cumulative[-1]).astype(np.float32)

    def draw(self, rng: np.random.Generator, target: Ints) -> Ints:
        """Items (k,) for a step with these targets (n,)."""
        if self.sampling == "uniform":
            return rng.integers(0, self.items, self.k)
        if self.sampling == "batch":
            chosen: Ints = rng.choice(target, min(self.k, target.size), replace=False)
            return chosen
        # Rounded up, a product could be the whole sum: `right` and the last item with interactions bound the place.
        place = np.searchsorted(self.cumulative, rng.random(self.k) * self.cumulative[-1], side="right")
        return np.asarray(np.minimum(place, np.searchsorted(self.cumulative, self.cumulative[-1])), np.int64)
