"""GRMF: explicit ratings, with friends (or related items) held together by a graph.

The objective of `als` and reg_graph * tr(U' Lap U), the sum over the edges of weight * |u_i - u_j|^2 (Rao et al. 2015;
Wu 2020, chapter 2, for the deep graphs): users who are tied get vectors that are alike, and one without ratings gets
those of the friends. Use it where ratings are few and a graph says who is like whom. One epoch costs what `als` does
and, a step of conjugate gradient, 2 * edges * dim + rows * dim^2 multiply-adds on each side that has a graph. Without
a graph it is `als`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data import CSR, Array
from ..params import param
from ._graph import Smoothed
from .als import ALS


@dataclass(kw_only=True, eq=False)
class GRMF(Smoothed, ALS):
    """Graph-regularised matrix factorisation of ratings."""

    steps: int = param(3, "conjugate-gradient steps on a side that has a graph; more for a higher order", low=1)

    def _half_step(self, rows: CSR, fixed: tuple[Array, Array], out: tuple[Array, Array]) -> None:
        """Exact rows as in `als` where nothing ties them, as for strangers; else some steps on all rows together."""
        tie = self._operator_under(out[0])
        if tie is None:
            super()._half_step(rows, fixed, out)
            return
        from ..kernels.grmf import prepare
        from ..kernels.threads import run

        if not self.history_:  # the random start: who has neither ratings nor friends would keep it
            out[0][:] = 0
        reg, reg_bias = self._reg(rows), float(self.reg_bias) if self.biases else np.inf

        def fill(pull: Array, L: Array, R: Array) -> None:
            run(prepare, rows.rows, *rows[:3], self.mean_, reg, reg_bias, pull, *fixed, *out, L, R, cost=rows.indptr)

        self._descend(tie, fill, reg, reg_bias, *out)

    def _width(self) -> int:
        return self.dim + 1

    def _objective(self, users: CSR, items: CSR) -> float:
        return super()._objective(users, items) + self._tension()
