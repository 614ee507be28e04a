"""Stochastic shared embeddings (SSE) and dropout for models trained by stochastic gradient descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from ..data import CSR, Dataset, tally
from ..errors import CorankError
from ..model import Model
from ..params import param

if TYPE_CHECKING:
    from ..kernels.sse import Replacement


@dataclass(kw_only=True, eq=False)
class SSEModel(Model):
    """Options of stochastic shared embeddings (Wu et al. 2019; see `kernels.sse`) and dropout, off by default."""

    sse_user: float = param(0.0, "SSE: probability that a step uses the embedding of another user", low=0.0, high=1.0)
    sse_item: float = param(0.0, "SSE: probability that a step uses the embedding of another item", low=0.0, high=1.0)
    rho_user: float = param(
        1.0, "SSE: odds of a neighbour in the user graph as the replacement, relative to others; 1 = no graph", low=0.0
    )
    rho_item: float = param(
        1.0, "SSE: odds of a neighbour in the item graph as the replacement, relative to others; 1 = no graph", low=0.0
    )
    dropout: float = param(0.0, "probability that a step does not update an embedding coordinate", low=0.0, high=0.99)

    graph: ClassVar[Literal["unused", "optional", "needed"]] = "optional"

    def _replacements(self, data: Dataset) -> tuple[Replacement, Replacement]:
        """How users and items are replaced; those without training rows take no part."""
        return self._replacement(data, "user"), self._replacement(data, "item")

    def _replacement(self, data: Dataset, side: Literal["user", "item"]) -> Replacement:
        from ..kernels.sse import replacement

        p, rho = (self.sse_user, self.rho_user) if side == "user" else (self.sse_item, self.rho_item)
        graph: CSR | None = data.user_graph if side == "user" else data.item_graph
        if rho != 1 and graph is None:
            raise CorankError(
                f"{type(self).__name__}(rho_{side}={rho:g}): the data has no {side} graph; "
                f"give the dataset its {side}_graph, or leave rho_{side} at 1"
            )
        codes, vocab = (data.user, data.users) if side == "user" else (data.item, data.items)
        codes = np.flatnonzero(tally(codes, len(vocab))).astype(np.int32)
        return replacement(p, codes, rho, None if graph is None else graph[:2])
