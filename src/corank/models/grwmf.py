"""GRWMF: implicit feedback, with friends (or related items) held together by a graph.

The objective of `wmf`, in which every pair that is not there is a 0 of weight rho, and reg_graph * tr(U' Lap U), the
sum over the edges of weight * |u_i - u_j|^2 (Wu 2020, chapter 2). Use it where people have taken little and a graph
says who is like whom. On a side that has a graph, an epoch costs what the solver "exact" of `wmf` does and, a step of
conjugate gradient, 2 * edges * dim + rows * dim^2 multiply-adds. Without a graph it is `wmf`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Array
from ..params import param
from ._graph import Smoothed
from .wmf import WMF


@dataclass(kw_only=True, eq=False)
class GRWMF(Smoothed, WMF):
    """Graph-regularised weighted MF for implicit feedback."""

    steps: int = param(
        3, "conjugate-gradient steps: of a row (solver cg), of all rows together where there is a graph", low=1
    )

    def _solve(self, rows: CSR, reg: NDArray[np.float32], fixed: Array, out: Array) -> float:
        """As in `wmf` where nothing ties the rows, else some steps on all of them; the objective has the graphs'
        part.
        """
        tie = self._operator_under(out)
        if tie is None:
            return super()._solve(rows, reg, fixed, out) + self._tension()
        from ..kernels.grwmf import losses, prepare
        from ..kernels.threads import run

        if not self.history_:  # the random start: who has neither rows nor friends would keep some of it
            out[:] = 0
        rho = np.float32(self.rho)
        gram = rho * (fixed.T @ fixed)

        def fill(pull: Array, L: Array, R: Array) -> None:
            run(prepare, rows.rows, *rows[:3], rho, reg, pull, gram, fixed, out, L, R, cost=rows.indptr)

        self._descend(tie, fill, reg, 0.0, out, None)
        loss = np.empty(rows.rows, np.float64)
        run(losses, rows.rows, *rows[:3], rho, reg, gram, fixed, out, loss, cost=rows.indptr)
        return float(loss.sum()) + self._tension()

    def _width(self) -> int:
        return self.dim

    def _score_histories(self, histories: CSR) -> NDArray[np.float32]:
        """Fold-in: strangers have no friends, and are those of `wmf`."""
        plain = WMF(**{f.name: getattr(self, f.name) for f in fields(WMF)})
        plain.item_factors_ = self.item_factors_
        return plain._score_histories(histories)
