"""SSE-PT: the personalised transformer, kept from learning users by heart by stochastic shared embeddings.

SASRec with a vector for each user beside the item at every place: [v; u], both scaled by the root of their width, plus
a position of width dim + dim_user (Wu, Li, Hsieh and Sharpnack, RecSys 2020; dissertation ch. 6). While training, the
user of a sequence is replaced by a random one with probability `sse_user`, and so are inputs and targets (`sse_item`,
`sse_target`). Without that the users are learned by heart: PT, all three 0, is worse than SASRec in the paper.
`window` > 0 is SSE-PT++. Use it where users with like histories go on differently.

`SSEPT(dim=100, dim_user=50, norm="published", loss="bce", negatives=1, dropout=0.2, sse_user=0.92, sse_item=0.1,
sse_target=0.1)` is the published setting for ML-1M; sse_coupled=True draws as the released code does.

The user part of the output adds the same to all scores of a user, so it counts in pairwise training only and is left
out of scores. Somebody that fit never saw has the mean of all user vectors. Cost: as SASRec of width dim + dim_user.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Dataset
from ..errors import CorankError
from ..params import param
from .sasrec import SASRec

if TYPE_CHECKING:
    from torch import Tensor

    from ..nn.attention import Weights
    from ..training import Training


@dataclass(kw_only=True, eq=False)
class SSEPT(SASRec):
    """Self-attention over a user's items, each beside a vector of the user."""

    dim_user: int = param(32, "size of the user embeddings", low=1, high=4096, search=(8, 64), log=True)
    sse_user: float = param(
        0.9,
        "probability that the user of a sequence is replaced by a random one",
        low=0.0,
        high=1.0,
        search=(0.5, 0.95),
    )
    sse_item: float = param(
        0.1, "probability that an input item is replaced by a random one", low=0.0, high=1.0, search=(0.0, 0.2)
    )
    sse_target: float = param(
        0.0, "probability that a target is replaced by a random item", low=0.0, high=1.0, search=(0.0, 0.2)
    )

    share: str = param(
        "", "name of a label of the users: all of one value have one vector, or everyone has; empty = a vector each"
    )

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        self.user_row_ = np.arange(len(data.users), dtype=np.int64)
        if self.share == "everyone":
            self.user_row_[:] = 0
        elif self.share:
            labels = data.user_labels.get(self.share)
            if labels is None:
                known = "they have none" if not data.user_labels else "known are " + ", ".join(sorted(data.user_labels))
                raise CorankError(f"SSEPT(share={self.share!r}): the users of this data have no such label; {known}")
            # As text, because some may be missing: who has no label is in the group of those.
            self.user_row_ = np.unique([str(label) for label in labels], return_inverse=True)[1].astype(np.int64)
        super()._fit(data, rows, training)

    def _user_vectors(self) -> int:
        return int(self.user_row_.max()) + 1

    def _rows_of_users(self, w: Weights, users: NDArray[np.int64] | None) -> Tensor | None:
        import torch

        from ..nn.tables import rows

        if users is None:
            return w["user"].mean(0, keepdim=True)
        return rows(w["user"], torch.from_numpy(self.user_row_[users]))
