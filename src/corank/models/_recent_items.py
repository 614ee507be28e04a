"""What `Caser` and `HGN` share: a state is computed from the last few items and a user vector; items have biases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import nn
from ..cost import Size
from ..nn.batches import replace
from ..params import param
from ._sequence import SequenceModel

if TYPE_CHECKING:
    from torch import Tensor

    from ..answering.update import Growth
    from ..data import Array
    from ..nn.batches import Batch
    from ..nn.noise import Noise
    from ..nn.parameters import Parameter, Weights


@dataclass(frozen=True, kw_only=True)
class RecentItemsNetwork:
    """A network over the last `order` items before each position.

    Shapes: n states of a packed batch of b sequences in s slots, L = `order`, d = `dim`.
    """

    users: int
    items: int
    dim: int
    order: int
    dropout: float

    @property
    def width(self) -> int:
        """Size of a state, and of the vectors that score items."""
        return self.dim

    @property
    def table_std(self) -> float | None:
        return 1 / self.dim

    def states(self, w: Weights, x: Tensor, there: Tensor, user: Tensor, noise: Noise | None) -> Tensor:
        """States (n, width) from items x (n, L, d), zero where `there` (n, L) is 0, and users (n, d)."""
        raise NotImplementedError

    def parameters(self) -> dict[str, Parameter]:
        """Shape and role of each parameter."""
        P, d = nn.Parameter, self.dim
        out = {"item": P((self.items, self.width), "table"), "item.bias": P((self.items,), "bias")}
        return out | {"input": P((self.items, d), "table"), "user": P((self.users, d), "table")}

    def encode(self, w: Weights, batch: Batch, noise: Noise | None) -> Tensor:
        """States (s, width) of all tokens."""
        return self.states_of(w, batch, np.arange(batch.packed.row.size), noise)

    def encode_last(self, w: Weights, batch: Batch, noise: Noise | None = None) -> Tensor:
        """States (b, width) of the last token of each sequence; nothing else is computed."""
        return self.states_of(w, batch, batch.packed.last, noise)

    def states_of(self, w: Weights, batch: Batch, slots: NDArray[np.int64], noise: Noise | None) -> Tensor:
        """States (n, width) of the tokens in these slots (n,)."""
        at, there = (nn.beside(batch.item, found) for found in batch.packed.recent(self.order, slots))  # (n, L)
        x = nn.rows(w["input"], batch.item[at.view(-1)]).view(*at.shape, self.dim) * there[:, :, None]  # (n, L, d)
        user = nn.rows_or_mean(w["user"], batch.user, batch.packed.last.size)  # (b, d)
        user = user[nn.beside(user, batch.packed.row[slots])]  # (n, d)
        return self.states(w, x, there, user, noise)


@dataclass(kw_only=True, eq=False)
class RecentItemsModel(SequenceModel):
    """Base class of sequence models that read the last `order` items of a user and have a vector per user."""

    biased: ClassVar[bool] = True

    order: int = param(5, "items that a state is computed from (L of the paper)", low=1, high=50, search=(2, 10))
    sse_user: float = param(
        0.0,
        "SSE: probability that the user of a sequence is replaced by a random one",
        low=0.0,
        high=1.0,
        search=(0.0, 0.95),
    )

    def _sizes(self) -> dict[str, Any]:
        return {
            "users": len(self.users_),
            "items": len(self.items_),
            "dim": self.dim,
            "order": self.order,
            "dropout": self.dropout_,
        }

    def _batch_users(self, rng: np.random.Generator, users: NDArray[np.int64]) -> NDArray[np.int64]:
        return replace(rng, users, self.sse_user, len(self.users_))

    def _grown_table(self, growth: Growth, name: str, table: Array, rows: int) -> Array:
        if name == "user":
            return growth.grown_with_means(table, "users")
        return super()._grown_table(growth, name, table, rows)

    def _layer_size(self) -> float:
        """Number of weights of the layers."""
        raise NotImplementedError

    def _weight_count(self, size: Size) -> float:
        return size.items * (self._item_width() + 1 + self.dim) + 1.0 * size.users * self.dim + self._layer_size()

    def _states(self, lengths: NDArray[np.int64]) -> float:
        """Number of states that are computed from sequences of these lengths."""
        return float(lengths.size if self.targets == "last" else lengths.sum())

    def _kept(self, lengths: NDArray[np.int64]) -> float:
        return (20.0 + 12.0 * self.order) * self.dim * self._states(lengths)
