"""Co-Factor: ratings and a graph factorised with shared vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..cost import KERNEL, SCATTERED, Cost, Size, factors_memory
from ..data import CSR, Array, Dataset, from_scipy, row_ends
from ..params import param
from ._graph_options import GraphOptions, Side
from .als import ALS, RatedSide

if TYPE_CHECKING:
    from ..training import Training


class EdgeFactors(NamedTuple):
    """The factorisation of the graph of one side: g_ij = x_i.w_j over its edges and some pairs without an edge."""

    rows: CSR  # one row per user (or item), one column per node or bit: the weight of an edge, 0 at a negative
    back: CSR  # the transpose
    W: NDArray[np.float32]  # (columns, dim)


@dataclass(kw_only=True, eq=False)
class CoFactor(GraphOptions, ALS):
    """Joint factorisation of ratings and a graph.

    The objective is that of `ALS` plus, for each side with a graph,

        reg_graph * sum over pairs (i, j) of (g_ij - u_i.w_j)^2 + regularisation of W

    so that the vectors U that explain the ratings also explain, with a second set of factors W, the edges of the graph
    or the bits of the Graph DNA of each node. All edges without weights have the target 1, which one constant explains:
    `zeros` pairs without an edge are sampled per edge as negatives, without which the graph has next to no effect.

    Reference: Wu 2020, chapter 2.

    Use it as a baseline for `GRMF`. Cost per epoch: about (ratings + edges) * dim^2 multiply-adds. It reduces to `ALS`
    without a graph.
    """

    zeros: float = param(1.0, "number of sampled pairs without an edge per edge", low=0.0, high=100.0)

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        graphs = self._edge_factors(data)
        users, items = self._start(data, training.rng)
        # W is not part of the model, but training continues from it.
        for _ in training.epochs(**{f"{side}_ties": edges.W for side, edges in graphs.items()}):
            self._joint_step(items, users.vectors, users.bias, graphs.get("item"))
            self._joint_step(users, items.vectors, items.bias, graphs.get("user"))
            total = self._objective(users.rows, items.rows)
            for side, edges in graphs.items():
                total = self._add_edges(total, users if side == "user" else items, edges)
            training.report(objective=total)

    def _cost(self, size: Size) -> Cost:
        setup, epoch, _ = super()._cost(size)
        for entries in self._graph_entries(size).values():
            pairs = (1 + self.zeros) * entries
            setup, epoch = setup + 20 * SCATTERED * pairs, epoch + 2 * KERNEL * pairs * self.dim * (self.dim + 4)
        return Cost(setup, epoch)

    def _memory(self, size: Size) -> float:
        pairs = (1 + self.zeros) * sum(self._graph_entries(size).values())
        return super()._memory(size) + 48.0 * pairs + factors_memory(self, size, self.dim, 1)

    def _edge_factors(self, data: Dataset) -> dict[Side, EdgeFactors]:
        """What is factorised beside the ratings, for the sides that have a graph."""
        out: dict[Side, EdgeFactors] = {}
        for side, kind in self._kinds(data).items():
            size, graph = len(getattr(data, f"{side}s")), self._side_graph(data, side, kind)
            bits = graph.rows > size  # edges to bits, where the graph has some, instead of edges between nodes
            rows = self._with_negatives(from_scipy(graph.scipy()[:size, size:] if bits else graph.scipy()))
            W = np.zeros((rows.columns, self.dim), np.float32)
            out[side] = EdgeFactors(rows, from_scipy(rows.scipy().T), W)
        return out

    def _with_negatives(self, edges: CSR) -> CSR:
        """The edges and, in each row, `zeros` times as many columns without an edge, of value 0."""
        from ..kernels.co_factor import draw_zeros
        from ..kernels.threads import run

        counts = np.diff(edges.indptr)
        # At most half of the free columns: a row that has nearly all columns would have none left to sample.
        wanted = np.minimum(np.rint(self.zeros * counts).astype(np.int64), (edges.columns - counts) // 2)
        zeros = row_ends(wanted)
        drawn = np.empty(zeros[-1], np.int32)
        run(draw_zeros, edges.rows, *edges[:2], edges.columns, self.seed, zeros, drawn, cost=edges.indptr)
        indptr = edges.indptr + zeros
        index, value = np.empty(indptr[-1], np.int32), np.zeros(indptr[-1], np.float32)
        own = np.arange(edges.index.size) + np.repeat(zeros[:-1], counts)
        index[own], value[own] = edges.index, edges.value
        index[np.arange(drawn.size) + np.repeat(edges.indptr[1:], wanted)] = drawn
        return CSR(indptr, index, value, edges.columns)

    def _joint_reg(self, rows: CSR, edges: EdgeFactors) -> NDArray[np.float32]:
        """An edge counts as reg_graph ratings, so that rows with edges alone are regularised too."""
        counts = np.diff(rows.indptr) + self.reg_graph * np.diff(edges.rows.indptr)
        return np.asarray(self.reg * counts**self.reg_power, np.float32)

    def _joint_step(self, side: RatedSide, V: Array, c: Array, edges: EdgeFactors | None) -> None:
        """As in `ALS` on a side without a graph, else first W, then each row from its ratings and edges; both exact."""
        if edges is None:
            self._half_step(side, V, c)
            return
        from ..kernels.als import half_step as own
        from ..kernels.co_factor import half_step as joint
        from ..kernels.threads import run

        rows, X, bias = side
        back, W = edges.back, edges.W
        zero = np.zeros(max(rows.rows, back.rows), np.float32)  # the graph has no biases
        run(own, back.rows, *back[:3], 0.0, self._reg(back), np.inf, X, zero, W, zero.copy(), cost=back.indptr)
        settings = (self.mean_, self._joint_reg(rows, edges), self._bias_penalty)
        problem = (*rows[:3], *settings, *edges.rows[:3], self.reg_graph, W, V, c)
        run(joint, rows.rows, *problem, X, bias, cost=rows.indptr + edges.rows.indptr)

    def _add_edges(self, total: float, side: RatedSide, edges: EdgeFactors) -> float:
        """The objective `total` of the ratings and, of one side, that of the edges."""
        from ..kernels.als import losses
        from ..kernels.threads import run

        rows, X, _ = side
        loss, zero = np.empty(rows.rows, np.float64), np.zeros(max(edges.rows.columns, rows.rows), np.float32)
        run(losses, rows.rows, *edges.rows[:3], 0.0, edges.W, zero, X, zero, loss, cost=edges.rows.indptr)
        total += self.reg_graph * (float(loss.sum()) + _penalty(self._reg(edges.back), edges.W))
        total += _penalty(self._joint_reg(rows, edges), X) - _penalty(self._reg(rows), X)
        return total


def _penalty(reg: NDArray[np.float32], vectors: Array) -> float:
    return float(reg.astype(np.float64) @ np.einsum("if,if->i", vectors, vectors, dtype=np.float64))
