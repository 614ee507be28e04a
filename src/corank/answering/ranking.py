"""`Ranking`: for each user the best items, in order, with their scores and titles."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import Array, Vocab
from ..data.frames import in_backend
from ..errors import CorankError

MANY = 256  # items of a list from which sorting is faster than the kernel, which inserts into a short list
BLOCK_BYTES = 8_000_000  # scores per block: small enough for the cache, large enough for the matrix product


@dataclass(frozen=True, eq=False)
class Ranking:
    """The best items of each user: `items` are codes of `vocab`, -1 where there were fewer candidates."""

    users: Array  # [n] external ids; for histories their names or row numbers
    items: NDArray[np.int32]  # [n, k]
    scores: NDArray[np.float32]  # [n, k], -inf where padded
    vocab: Vocab
    titles: Sequence[str] = ()  # the title of each item of `vocab`, "" where it has none; empty if there are no titles
    columns: tuple[str, str] = ("user", "item")  # what is asked about and what is listed, as columns of a table

    def __len__(self) -> int:
        return len(self.users)

    def __repr__(self) -> str:
        return f"Ranking({len(self):,} {self.columns[0]}s, k={self.items.shape[1]})"

    def _repr_html_(self) -> str:
        from ..notebook import html_table

        users = 3 if len(self) > 1 else 1
        frame = next(self.parts(users)).to_frame()
        rows = [["" if cell is None else cell for cell in row] for row in frame.iter_rows()]
        more = f"... and {len(self) - users:,} more {self.columns[0]}s" if len(self) > users else ""
        return html_table(rows, frame.columns, caption=repr(self), more=more)

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

    def to_frame(self, backend: str = "polars", *, titles: bool = True) -> Any:
        """A table with the columns user, rank (from 1), item and score, and title where the model knows titles.

        For similar items (users) the first column is `item` (`user`), and the items (users) found are in `similar`.

        backend : 'polars', 'pandas' or 'pyarrow'.
        """
        import polars as pl

        real = self.items >= 0
        row, column = np.nonzero(real)
        asked, listed = self.columns
        frame = pl.DataFrame(
            {
                asked: self.users[row],
                "rank": column + 1,
                listed: self.vocab.ids[self.items[real]],
                "score": self.scores[real],
            },
            schema_overrides={
                asked: pl.String if self.users.dtype == object else pl.Int64,
                listed: pl.String if self.vocab.strings else pl.Int64,
            },
        )
        if titles and len(self.titles):
            known = pl.Series("title", self.titles, dtype=pl.String).replace("", None)
            frame = frame.with_columns(known.gather(self.items[real].astype(np.uint32)))
        return in_backend(frame, backend)

    def write(self, path: str | Path) -> None:
        """Write the lists to a file whose ending says how: .parquet, .csv, .tsv or .jsonl, text also with .gz.

        The columns are those of `to_frame`. The file is renamed into place when it is complete.
        """
        from .ranking_file import write_lists

        write_lists(path, self.parts())

    def parts(self, users: int = 50_000) -> Iterator[Ranking]:
        """The ranking in pieces of so many users, at least one piece."""
        for start in range(0, max(len(self), 1), users):
            cut = slice(start, start + users)
            yield dataclasses.replace(self, users=self.users[cut], items=self.items[cut], scores=self.scores[cut])


def blocks(rows: int, columns: int) -> Iterator[slice]:
    """Row ranges whose blocks of scores are small, so that nothing ever holds users x items."""
    size = max(16, BLOCK_BYTES // (4 * max(columns, 1)))
    for start in range(0, rows, size):
        yield slice(start, min(start + size, rows))


def top_k(scores: Array, k: int, items: Array, best: Array) -> None:
    """The k best of each row of float32[b, n] into items[b, k] and best[b, k]; see `kernels.topk`."""
    from ..kernels.threads import run
    from ..kernels.topk import select

    if k <= MANY:
        run(select, len(scores), scores, items, best)
        return
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    best[:, : order.shape[1]] = np.take_along_axis(scores, order, axis=1)
    items[:, : order.shape[1]] = order
    nothing = ~(best > -np.inf)  # NaN too, as in the kernel
    items[nothing], best[nothing] = -1, -np.inf
