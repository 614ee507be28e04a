"""What models that learn by steps on rows of embeddings share: SSE and dropout (see `kernels.sse`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from ..data import CSR, Dataset
from ..errors import CorankError
from ..model import Model
from ..params import param

if TYPE_CHECKING:
    from ..kernels.sse import Law


@dataclass(kw_only=True, eq=False)
class SharedRows(Model):
    """The options, all of them off by default."""

    sse_user: float = param(0.0, "SSE: probability that a step uses the row of another user", low=0.0, high=1.0)
    sse_item: float = param(0.0, "SSE: probability that a step uses the row of another item", low=0.0, high=1.0)
    rho_user: float = param(
        1.0, "SSE: how much likelier than others a neighbour in the user graph stands in; 1 = no graph", low=0.0
    )
    rho_item: float = param(
        1.0, "SSE: how much likelier than others a neighbour in the item graph stands in; 1 = no graph", low=0.0
    )
    dropout: float = param(0.0, "probability that a step leaves a coordinate as it is", low=0.0, high=0.99)

    graph: ClassVar[Literal["unused", "optional", "needed"]] = "optional"

    def _laws(self, data: Dataset) -> tuple[Law, Law]:
        """How users and items are replaced; those without training rows take no part."""
        return self._law(data, "user"), self._law(data, "item")

    def _law(self, data: Dataset, side: Literal["user", "item"]) -> Law:
        from ..kernels.sse import law

        p, rho = float(getattr(self, f"sse_{side}")), float(getattr(self, f"rho_{side}"))
        graph: CSR | None = getattr(data, f"{side}_graph")
        if rho != 1 and graph is None:
            raise CorankError(
                f"{type(self).__name__}(rho_{side}={rho:g}): the data has no {side} graph to look for neighbours in; "
                f"give the dataset its {side}_graph, or leave rho_{side} at 1"
            )
        return law(p, np.unique(getattr(data, side)), rho, None if graph is None else graph[:2])
