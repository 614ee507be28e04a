"""Co-Factor: ratings and a graph explained by the same vectors.

The objective of `als` and, for each side with a graph, reg_graph * sum over the ties (g_ij - u_i.w_j)^2: the vectors
U that explain the ratings, with a second set of factors W, also say who is tied to whom, or which bits of its Graph DNA
a node has (Wu 2020, chapter 2). Ties that are there are all 1, and one constant explains them: `zeros` pairs without a
tie for each one with are drawn and explained too, else the graph says next to nothing. Use it to compare with `grmf`.
One epoch costs about (ratings + ties) * dim^2 multiply-adds. Without a graph it is `als`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Array, Dataset, from_scipy, row_ends
from ..params import param
from ._graph import GraphOptions, Side
from ._sparse import transposed
from .als import ALS

if TYPE_CHECKING:
    from ..training import Training


class Ties(NamedTuple):
    """What the vectors of a side must explain beside the ratings."""

    rows: CSR  # a row of the side and what it is tied to: 1, or another weight, and 0 where a zero was drawn
    back: CSR  # the same by what they are tied to
    W: NDArray[np.float32]  # vectors of what rows are tied to


@dataclass(kw_only=True, eq=False)
class CoFactor(GraphOptions, ALS):
    """Ratings and a graph with shared factors."""

    zeros: float = param(1.0, "pairs without a tie for each one with, drawn at random", low=0.0, high=100.0)

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        self._ties: dict[Side, Ties] = {
            side: self._tied(self._side_graph(data, side, kind), len(getattr(data, f"{side}s")))
            for side, kind in self._kinds(data).items()
        }
        try:
            super()._fit(data, rows, training)
        finally:
            del self._ties

    def _state(self) -> dict[str, Array]:
        """W is not part of the model, but training continues from it."""
        return {f"{side}_ties": ties.W for side, ties in self._ties.items()}

    def _tied(self, graph: CSR, size: int) -> Ties:
        """The ties of the nodes of a side to each other, or to bits where the graph has some, and drawn zeros."""
        bits = graph.rows > size
        ones = from_scipy(graph.scipy()[:size, size:] if bits else graph.scipy())
        rows = self._with_zeros(ones)
        return Ties(rows, transposed(rows), np.zeros((rows.columns, self.dim), np.float32))

    def _with_zeros(self, ones: CSR) -> CSR:
        from ..kernels.co_factor import draw_zeros
        from ..kernels.threads import run

        counts = np.diff(ones.indptr)
        # At most half of what is free: a row that has nearly everything would have no zeros left to draw.
        wanted = np.minimum(np.rint(self.zeros * counts).astype(np.int64), (ones.columns - counts) // 2)
        zeros = row_ends(wanted)
        drawn = np.empty(zeros[-1], np.int32)
        run(draw_zeros, ones.rows, ones.indptr, ones.index, ones.columns, self.seed, zeros, drawn, cost=ones.indptr)
        indptr = ones.indptr + zeros
        index, value = np.empty(indptr[-1], np.int32), np.zeros(indptr[-1], np.float32)
        own = np.arange(ones.index.size) + np.repeat(zeros[:-1], counts)
        index[own], value[own] = ones.index, ones.value
        index[np.arange(drawn.size) + np.repeat(ones.indptr[1:], wanted)] = drawn
        return CSR(indptr, index, value, ones.columns)

    def _side_of(self, vectors: Array) -> Side | None:
        """The side with ties whose vectors these are; strangers have none."""
        ties = getattr(self, "_ties", {})
        return next((side for side in ties if vectors is getattr(self, f"{side}_factors_")), None)

    def _tied_reg(self, rows: CSR, ties: Ties) -> NDArray[np.float32]:
        """A tie counts as reg_graph ratings, so that who has ties alone is held too."""
        counts = np.diff(rows.indptr) + self.reg_graph * np.diff(ties.rows.indptr)
        return np.asarray(self.reg * counts**self.reg_power, np.float32)

    def _half_step(self, rows: CSR, fixed: tuple[Array, Array], out: tuple[Array, Array]) -> None:
        """Exact rows as in `als`; on a side with ties first W, then the rows with both of their jobs."""
        side = self._side_of(out[0])
        if side is None:
            super()._half_step(rows, fixed, out)
            return
        from ..kernels.als import half_step as own
        from ..kernels.co_factor import half_step as shared
        from ..kernels.threads import run

        ties, back = self._ties[side], self._ties[side].back
        none = np.zeros(max(rows.rows, back.rows), np.float32)  # ties know no biases
        settings = (0.0, self._reg(back), np.inf)
        run(own, back.rows, *back[:3], *settings, out[0], none, ties.W, none.copy(), cost=back.indptr)
        settings = (self.mean_, self._tied_reg(rows, ties), float(self.reg_bias) if self.biases else np.inf)
        both = (*rows[:3], *settings, *ties.rows[:3], float(self.reg_graph), ties.W)
        run(shared, rows.rows, *both, *fixed, *out, cost=rows.indptr + ties.rows.indptr)

    def _objective(self, users: CSR, items: CSR) -> float:
        from ..kernels.als import losses
        from ..kernels.threads import run

        total = super()._objective(users, items)
        for side, ties in self._ties.items():
            rows, X = users if side == "user" else items, getattr(self, f"{side}_factors_")
            loss, none = np.empty(rows.rows, np.float64), np.zeros(max(ties.rows.columns, rows.rows), np.float32)
            run(losses, rows.rows, *ties.rows[:3], 0.0, ties.W, none, X, none, loss, cost=ties.rows.indptr)
            total += self.reg_graph * (float(loss.sum()) + _penalty(self._reg(ties.back), ties.W))
            total += _penalty(self._tied_reg(rows, ties), X) - _penalty(self._reg(rows), X)
        return total


def _penalty(reg: NDArray[np.float32], vectors: Array) -> float:
    return float(reg.astype(np.float64) @ np.einsum("if,if->i", vectors, vectors, dtype=np.float64))
