"""`Ranking`: for each user the best items, in order, with their scores."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .data import Array, Vocab
from .errors import CorankError

BLOCK_BYTES = 8_000_000  # scores per block: small enough for the cache, large enough for the matrix product


@dataclass(frozen=True, eq=False)
class Ranking:
    """The best items of each user: `items` are codes of `vocab`, -1 where there were fewer candidates."""

    users: Array  # [n] external ids; for histories their names or row numbers
    items: NDArray[np.int32]  # [n, k]
    scores: NDArray[np.float32]  # [n, k], -inf where padded
    vocab: Vocab

    def __len__(self) -> int:
        return len(self.users)

    def __iter__(self) -> Iterator[tuple[Hashable, list[tuple[Hashable, float]]]]:
        for row, user in enumerate(self.users.tolist()):
            yield user, self._row(row)

    def __getitem__(self, user: Hashable) -> list[tuple[Hashable, float]]:
        """[(item, score), ...] of one user."""
        at = np.flatnonzero(self.users == user)
        if at.size == 0:
            raise CorankError(f"user {user!r} is not in this ranking of {len(self)} users")
        return self._row(int(at[0]))

    def _row(self, row: int) -> list[tuple[Hashable, float]]:
        codes = self.items[row]
        real = codes >= 0
        return list(zip(self.vocab.ids[codes[real]].tolist(), self.scores[row][real].tolist(), strict=True))

    def to_frame(self, backend: str = "polars") -> Any:
        """A table with the columns user, item, score, rank (rank from 1); backend: 'polars', 'pandas' or 'pyarrow'."""
        import polars as pl

        real = self.items >= 0
        row, column = np.nonzero(real)
        frame = pl.DataFrame(
            {
                "user": self.users[row],
                "item": self.vocab.ids[self.items[real]],
                "score": self.scores[real],
                "rank": column + 1,
            },
            schema_overrides={
                "user": pl.String if self.users.dtype == object else pl.Int64,
                "item": pl.String if self.vocab.strings else pl.Int64,
            },
        )
        if backend == "polars":
            return frame
        if backend == "pandas":
            return frame.to_pandas()
        if backend == "pyarrow":
            return frame.to_arrow()
        raise CorankError(f"backend {backend!r} is not known: use 'polars', 'pandas' or 'pyarrow'")


def blocks(rows: int, columns: int) -> Iterator[slice]:
    """Row ranges whose blocks of scores are small, so that nothing ever holds users x items."""
    size = max(16, BLOCK_BYTES // (4 * max(columns, 1)))
    for start in range(0, rows, size):
        yield slice(start, min(start + size, rows))


def top_k(scores: Array, k: int, items: Array, best: Array) -> None:
    """The k best of each row of float32[b, n] into items[b, k] and best[b, k]; see `kernels.topk`."""
    from .kernels.threads import run
    from .kernels.topk import select

    if k <= 256:
        run(select, len(scores), scores, items, best)
        return
    # The kernel inserts into a short list; for long ones sorting is faster.
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    best[:, : order.shape[1]] = np.take_along_axis(scores, order, axis=1)
    items[:, : order.shape[1]] = order
    nothing = ~(best > -np.inf)  # NaN too, as in the kernel
    items[nothing], best[nothing] = -1, -np.inf
