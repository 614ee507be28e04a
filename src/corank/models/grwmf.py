"""GRWMF: implicit feedback with a graph over the users or the items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..data import CSR, Array, Dataset
from ..params import param
from ._graph_term import GraphRegularised, GraphTerm
from .wmf import WMF, WeightedSide, penalty

if TYPE_CHECKING:
    from ..training import Training


@dataclass(kw_only=True, eq=False)
class GRWMF(GraphRegularised, WMF):
    """Graph-regularised weighted matrix factorisation for implicit feedback.

    The objective is that of `WMF`, in which every pair without interaction is a 0 of weight `rho`, plus, for each side
    with a graph,

        reg_graph * tr(U' Lap U) = reg_graph * sum over edges (i, j) of weight * |u_i - u_j|^2

    The graph can be the given one, a sum of its powers or Graph DNA (`user_graph`, `item_graph`). With `form="shared"`,
    a vector is instead the sum of its own component and of components shared with the nodes around it.

    Reference: Wu 2020, chapter 2.

    Use it where users have few interactions and a graph connects similar users or items. Cost per epoch on a
    side with a graph: that of `WMF` with the solver "exact" and, per conjugate-gradient step, 2 * edges * dim + rows *
    dim^2 multiply-adds. It reduces to `WMF` without a graph.
    """

    steps: int = param(3, "conjugate-gradient steps: per row (solver cg), per half-step on a side with a graph", low=1)

    from_data: ClassVar[tuple[str, ...]] = (*GraphRegularised.from_data, *WMF.from_data)

    fits_on_disk: ClassVar[bool] = False

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        graphs = self._graph_terms(data, width=self.dim)
        users, items = self._start(data, rows, training.rng)
        state = graphs.start(users.vectors, items.vectors)
        if graphs.user is not None:
            users.vectors[:] = 0  # users with neither interactions nor neighbours would keep some of the random start
        for epoch in training.epochs(**state):
            self._smooth_step(users, items.vectors, graphs.user)
            if epoch == 1 and graphs.item is not None:
                items.vectors[:] = 0  # likewise; the users needed the random start
            objective = self._smooth_step(items, users.vectors, graphs.item)
            objective += graphs.penalty((users.vectors, None), (items.vectors, None))
            training.report(objective=objective + penalty(users))

    def _smooth_step(self, side: WeightedSide, V: Array, term: GraphTerm | None) -> float:
        """As in `WMF` on a side without a graph, else conjugate gradient on all rows of the side together.

        Returns the objective without the penalties on V and of the graphs.
        """
        if term is None:
            return self._half_step(side, V, self.solver)
        from ..kernels.grwmf import losses, prepare
        from ..kernels.threads import run

        rows, reg, X = side
        rho = np.float32(self.rho_)
        gram = V.T @ V
        gram *= rho

        def fill(pull: Array, L: Array, R: Array) -> None:
            run(prepare, rows.rows, *rows[:3], rho, reg, pull, gram, V, X, L, R, cost=rows.indptr)

        term.half_step(fill, reg, 0.0, X, None, self.steps)
        loss = np.empty(rows.rows, np.float64)
        run(losses, rows.rows, *rows[:3], rho, reg, gram, V, X, loss, cost=rows.indptr)
        return float(loss.sum())
