"""SSE-PT: the personalised transformer, SASRec with user embeddings regularised by stochastic shared embeddings.

What differs from SASRec is here: the user embeddings, their replacement in training, and their part in the loss.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import nn
from ..answering.update import Growth
from ..cost import Size
from ..data import CSR, Dataset
from ..errors import CorankError
from ..nn.batches import replace
from ..params import param
from ..stored import Stored, codes
from ._torch import torch
from .sasrec import SASRec, SASRecNetwork

if TYPE_CHECKING:
    from torch import Tensor

    from ..nn.batches import Batch, Examples
    from ..nn.parameters import Parameter, Weights
    from ..training import Training


@dataclass(frozen=True, kw_only=True)
class SSEPTNetwork(SASRecNetwork):
    """SASRec's network on tokens [item; user]. d = `width` = dim + dim_user."""

    dim_user: int
    user_row: NDArray[np.int64]  # (users,) row of each user in the table of user embeddings

    @property
    def width(self) -> int:
        return self.dim + self.dim_user

    def parameters(self) -> dict[str, Parameter]:
        """Shape and role of each parameter."""
        user = nn.Parameter((int(self.user_row.max()) + 1, self.dim_user), "table")
        return super().parameters() | {"user": user}

    def user_vectors(self, w: Weights, batch: Batch) -> Tensor:
        """Embedding (s, dim_user) of the user of each token; for unseen users the mean of all user embeddings."""
        user = None if batch.user is None else nn.beside(w["user"], self.user_row)[batch.user]  # (b,)
        vectors = nn.rows_or_mean(w["user"], user, batch.packed.last.size)  # (b, dim_user)
        return vectors[nn.beside(w["user"], batch.packed.row)]  # (s, dim_user)

    def inputs(self, w: Weights, batch: Batch, user: Tensor | None = None) -> Tensor:
        """[item; user] (s, d), each scaled by the square root of its size; user : `user_vectors`, where known."""
        if user is None:
            user = self.user_vectors(w, batch)  # (s, dim_user)
        return torch.cat([super().inputs(w, batch), user * math.sqrt(self.dim_user)], 1)  # (s, d)


@dataclass(kw_only=True, eq=False)
class SSEPT(SASRec):
    """SSE-PT: the personalised transformer, SASRec with user embeddings regularised by stochastic shared embeddings.

    The token at each position is [v; u], the embeddings of the item and of the user, each scaled by the square root of
    its size, plus a position embedding of size dim + dim_user. Everything else, and the objective, is as in `SASRec`.
    Without regularisation the network memorises users (PT, all `sse_*` at 0, is worse than SASRec in the paper).
    Stochastic shared embeddings prevent that: in training the user of a sequence is replaced by a random one with
    probability `sse_user`, and so are inputs and targets (`sse_item`, `sse_target`). `window` > 0 is SSE-PT++.

    The user part of the output adds the same constant to all scores of a user. It matters in losses that depend on the
    scores themselves (bce, gbce, bpr_max, top1), cancels in softmax and bpr, and is left out of scores. Unseen users
    get the mean of all user vectors.

    `SSEPT(dim=100, dim_user=50, norm="published", loss="bce", negatives=1, dropout=0.2, sse_user=0.92, sse_item=0.1,
    sse_target=0.1)` is the published setting for ML-1M; sse_coupled=True draws as the released code does.

    Use it where users with similar histories choose different next items. Cost: that of `SASRec` with hidden size dim +
    dim_user.

    References
    ----------
    Wu, Li, Hsieh and Sharpnack, SSE-PT: Sequential Recommendation Via Personalized Transformer, RecSys 2020;
    dissertation ch. 6.
    """

    dim_user: int = param(32, "size of the user embeddings", low=1, high=4096, search=(8, 64), log=True)
    sse_user: float = param(
        0.9,
        "SSE: probability that the user of a sequence is replaced by a random one",
        low=0.0,
        high=1.0,
        search=(0.5, 0.95),
    )
    sse_item: float = param(
        0.1, "SSE: probability that an input item is replaced by a random one", low=0.0, high=1.0, search=(0.0, 0.2)
    )
    sse_target: float = param(
        0.0, "SSE: probability that a target is replaced by a random item", low=0.0, high=1.0, search=(0.0, 0.2)
    )

    share: str = param(
        "", "user label whose values define groups that share one vector; 'everyone': all users share one"
    )

    def _network(self) -> SSEPTNetwork:
        return SSEPTNetwork(**self._sizes(), dim_user=self.dim_user, user_row=self.user_row_)

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        self.user_row_ = np.arange(len(data.users), dtype=np.int64)
        if self.share == "everyone":
            self.user_row_[:] = 0
        elif self.share:
            labels = data.user_labels.get(self.share)
            if labels is None:
                known = "they have none" if not data.user_labels else "known are " + ", ".join(sorted(data.user_labels))
                raise CorankError(f"SSEPT(share={self.share!r}): the users of this data have no such label; {known}")
            # As text, because labels may be missing: users without a label form one group.
            self.user_row_ = np.unique([str(label) for label in labels], return_inverse=True)[1].astype(np.int64)
        super()._fit(data, rows, training)

    def _pointless(self, data: Dataset) -> Collection[str]:
        # Where all users share one vector, another user in place of this one is no change.
        return (*super()._pointless(data), "sse_user") if self.share == "everyone" else super()._pointless(data)

    def _absorb(self, growth: Growth) -> None:
        """As in `SequenceModel`; new users share one vector, the mean of all users (and groups)."""
        new = np.setdiff1d(np.arange(len(self.users_)), growth.users)
        shared = 0 if self.share == "everyone" else int(self.user_row_.max()) + 1
        self.user_row_[new] = shared
        super()._absorb(growth)

    def _stores(self) -> dict[str, Stored]:
        # Before the weights: their number depends on it.
        return {"user_row_": codes("users", below="users", dtype="int64")} | super()._stores()

    def _width(self) -> int:
        return self.dim + self.dim_user

    def _weight_count(self, size: Size) -> float:
        return super()._weight_count(size) + 1.0 * size.users * self.dim_user

    def _batch_users(self, rng: np.random.Generator, users: NDArray[np.int64]) -> NDArray[np.int64]:
        return replace(rng, users, self.sse_user, len(self.users_))

    def _loss(self, net: Any, w: Weights, batch: Examples) -> Tensor:
        """The mean loss of a batch, with the user's part of the scores: sqrt(dim_user) h_user . u, the same for all."""
        user = net.user_vectors(w, batch)  # (s, dim_user)
        with self._precision(batch):
            transform = net.transform_last if self.targets == "last" else net.transform
            hidden = transform(w, net.inputs(w, batch, user), batch, nn.Noise(batch.seed)).float()
        hidden, user = self._of_targets(hidden, batch), batch.of_targets(user)  # (n, d), (n, dim_user)
        offset = None
        if self.loss_ not in ("softmax", "sampled_softmax"):  # there it cancels
            offset = (hidden[:, self.dim :] * user).sum(1) * math.sqrt(self.dim_user)  # (n,)
        return self._next_item_loss(w, hidden, batch, offset)
