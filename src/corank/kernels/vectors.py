"""What several kernels do with a vector."""

from __future__ import annotations

import numpy as np

from .threads import kernel


@kernel
def dot(x: np.ndarray, y: np.ndarray) -> float:
    """Inner product in single precision."""
    total = np.float32(0)
    for f in range(x.size):
        total += x[f] * y[f]
    return total  # type: ignore[return-value]
