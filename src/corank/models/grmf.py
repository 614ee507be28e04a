"""GRMF: explicit ratings with a graph over the users or the items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..data import CSR, Array, Dataset
from ..params import param
from ._graph_term import GraphRegularised, GraphTerm
from .als import ALS, RatedSide

if TYPE_CHECKING:
    from ..training import Training


@dataclass(kw_only=True, eq=False)
class GRMF(GraphRegularised, ALS):
    """Graph-regularised matrix factorisation of ratings.

    The objective is that of `ALS` plus, for each side with a graph,

        reg_graph * tr(U' Lap U) = reg_graph * sum over edges (i, j) of weight * |u_i - u_j|^2

    so that neighbours get similar vectors, and a user without ratings gets the mean of the neighbours. The graph can be
    the given one, a sum of its powers or Graph DNA (`user_graph`, `item_graph`). With `form="shared"`, a vector is
    instead the sum of a component of its own and of components shared with the nodes around it.

    References: Rao et al. 2015, "Collaborative filtering with graph information"; Wu 2020, chapter 2, for deep graphs.

    Use it where ratings are sparse and a graph connects similar users or items. Cost per epoch: that of `ALS` and,
    per conjugate-gradient step on a side with a graph, 2 * edges * dim + rows * dim^2 multiply-adds. It reduces to
    `ALS` without a graph.
    """

    steps: int = param(
        3, "conjugate-gradient steps per half-step on a side with a graph; use more for a higher order", low=1
    )

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        graphs = self._graph_terms(data, width=self.dim + 1)
        users, items = self._start(data, training.rng)
        state = graphs.start(users.vectors, items.vectors)
        for epoch in training.epochs(**state):
            self._smooth_step(items, users.vectors, users.bias, graphs.item)
            if epoch == 1 and graphs.user is not None:
                # The random vectors were for the items: users with neither ratings nor neighbours would keep them.
                users.vectors[:] = 0
            self._smooth_step(users, items.vectors, items.bias, graphs.user)
            penalty = graphs.penalty((users.vectors, users.bias), (items.vectors, items.bias))
            training.report(objective=self._objective(users.rows, items.rows) + penalty)

    def _smooth_step(self, side: RatedSide, V: Array, c: Array, term: GraphTerm | None) -> None:
        """As in `ALS` on a side without a graph, else conjugate gradient on all rows of the side together."""
        if term is None:
            self._half_step(side, V, c)
            return
        from ..kernels.grmf import prepare
        from ..kernels.threads import run

        rows, X, bias = side
        reg = self._reg(rows)
        settings = (self.mean_, reg, self._bias_penalty)

        def fill(pull: Array, L: Array, R: Array) -> None:
            run(prepare, rows.rows, *rows[:3], *settings, pull, V, c, X, bias, L, R, cost=rows.indptr)

        term.half_step(fill, reg, self._bias_penalty, X, bias, self.steps)
