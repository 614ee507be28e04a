"""What test items are ranked against. Results under different protocols are not comparable and never share a table."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Array, Values, row_ends
from ..data.split import Split
from ..errors import CorankError, suggest

Kind = Literal["full", "sampled", "rated"]
Gain = Literal["binary", "exponential"]


@dataclass(frozen=True)
class Protocol:
    """How test items are ranked; printed with every result.

    full : against the whole catalogue except the user's known items; test items are never excluded.
    sampled : against `negatives` items that the user has in no part of the split, drawn uniformly or by training
        popularity. They depend only on the split and `seed`, so all models are compared on the same negatives.
    rated : the user's test items among themselves.

    Parameters
    ----------
    relevant : test rows with at least this value are relevant for the binary metrics (all test rows when None).
    gain : what a test row adds to NDCG: 'binary' (1 if it is relevant) or 'exponential' (2^rating - 1). When None,
        `evaluate` fills in 'exponential' for ratings on a scale under `rated`, else 'binary'.
    items : size of the catalogue, filled in by `evaluate`.
    refit : whether the tested model has learned from the validation rows too (`Split.refit`), filled in by `evaluate`;
        None without such rows, or for lists of unknown origin. With leave-last-out it can move NDCG by a tenth.
    """

    kind: Kind = "full"
    negatives: int = 100
    popular: bool = False
    seed: int = 0
    relevant: float | None = None
    items: int | None = None
    gain: Gain | None = None
    refit: bool | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise CorankError(f"there is no protocol {self.kind!r}{suggest(str(self.kind), get_args(Kind))}")
        if not isinstance(self.negatives, int | np.integer) or self.negatives < 1:
            raise CorankError(f"negatives={self.negatives!r}: the number of negatives must be at least 1; 100 is usual")
        if not isinstance(self.seed, int | np.integer) or not 0 <= self.seed < 2**63:
            raise CorankError(f"seed={self.seed!r}: a seed is a whole number from 0 to 2^63 - 1")
        if self.relevant is not None and not np.isfinite(self.relevant):
            raise CorankError(f"relevant={self.relevant!r}: the smallest relevant rating must be finite, or None")
        if self.gain is not None and self.gain not in get_args(Gain):
            raise CorankError(f"gain={self.gain!r} is not a gain of NDCG{suggest(str(self.gain), get_args(Gain))}")
        if self.kind != "sampled":
            # Options that have no effect must not make two protocols differ.
            for name, usual in (("negatives", 100), ("popular", False), ("seed", 0)):
                object.__setattr__(self, name, usual)

    def __str__(self) -> str:
        if self.kind == "full":
            size = "all" if self.items is None else f"{self.items:,}"
            text = f"full ranking of {size} items, seen items excluded"
        elif self.kind == "sampled":
            text = f"sampled: {self.negatives} {'popular' if self.popular else 'uniform'} negatives, seed {self.seed}"
        else:
            text = "rated: each user's test items only"
        if self.relevant is not None:
            text += f", relevant from {self.relevant:g}"
        if self.gain is not None:
            text += f", {self.gain} gains"
        return text if self.refit is None else f"{text}, trained {'with' if self.refit else 'without'} validation rows"


def draw_negatives(protocol: Protocol, split: Split, users: NDArray[np.int32]) -> CSR:
    """The negatives of each of `users` (codes): rows of item codes; users with too few unseen items get all of them."""
    from ..kernels.negatives import draw
    from ..kernels.threads import run

    n = len(split.train.items)
    taken = split.all_rows().csr()
    weights: Array = np.zeros(0)
    if protocol.popular:
        weights = np.cumsum(np.bincount(split.train.item, minlength=n)).astype(np.float64)
    out = np.empty((users.size, min(protocol.negatives, n)), np.int32)
    run(draw, users.size, users, taken.indptr, taken.index, weights, n, protocol.seed, out)
    real = out >= 0
    indptr = row_ends(real.sum(axis=1))
    return CSR(indptr, out[real], np.ones(indptr[-1], np.float32), n)


def as_protocol(protocol: Protocol | str, items: int, values: Values, **options: object) -> Protocol:
    """A `Protocol` from a name and `options`, or as given (then without `options`), with what the data decides.

    items : size of the catalogue. values : the kind of the values of the rows to predict.
    """
    made = protocol if isinstance(protocol, Protocol) else Protocol(protocol, **options)  # type: ignore[arg-type]
    graded = made.kind == "rated" and values == "ratings"
    return dataclasses.replace(made, items=items, gain=made.gain or ("exponential" if graded else "binary"))
