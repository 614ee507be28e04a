"""Laplacians of the graph of one side: of the graph itself, of sums of its powers, and of higher order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Array, from_scipy


def sums(matrix: CSR, X: Array, width: int | None = None) -> NDArray[np.float32]:
    """The product of a sparse matrix and X, or the first `width` columns of X."""
    from ..kernels import graph_block
    from ..kernels.threads import run

    out = np.empty((matrix.rows, X.shape[1] if width is None else width), np.float32)
    run(graph_block.sums, matrix.rows, *matrix[:3], X, out, cost=matrix.indptr)
    return out


class Laplacian:
    """The Laplacian of a symmetric weighted graph over the rows (users or items) and, beyond them, bits of Graph DNA.

    The first `rows` nodes are the rows; the vectors of the others are eliminated, as their minimum is known.

    Parameters
    ----------
    held : penalty held * |z_b|^2 of the vector of each bit b, part of the quadratic form. Without it a bit is at the
        weighted mean of its nodes; with it, the mean is shrunk towards 0.
    """

    def __init__(self, graph: CSR, rows: int, held: float = 0.0) -> None:
        matrix = graph.scipy()
        self.degree = np.asarray(matrix.sum(axis=1)[:rows], np.float32)
        self.among = from_scipy(matrix[:rows, :rows])  # edges between rows
        self.held = held
        self.bits = self.back = None
        if graph.rows > rows:
            self.bits = from_scipy(matrix[:rows, rows:])  # edges from rows to the other nodes
            back = matrix[rows:, :rows]  # and back, for means
            weight = np.repeat(back.sum(axis=1) + held, np.diff(back.indptr))
            self.back = from_scipy(back)._replace(value=np.asarray(back.data / weight, np.float32))

    def _centres(self, X: Array, width: int) -> NDArray[np.float32]:
        """The minimum of the vectors of the eliminated nodes: the (shrunk) weighted means of their neighbours."""
        assert self.back is not None
        return sums(self.back, X, width)

    def add(self, scale: float, X: Array, width: int, out: Array) -> None:
        """out += scale * Lap X, on the first `width` columns."""
        from ..kernels.graph_block import add_differences
        from ..kernels.threads import run

        g = self.among
        run(add_differences, g.rows, *g[:3], scale, width, X, X, out, cost=g.indptr)
        if self.bits is not None:
            b = self.bits
            run(add_differences, b.rows, *b[:3], scale, width, X, self._centres(X, width), out, cost=b.indptr)

    def energy(self, X: Array) -> float:
        """tr(X' Lap X): the sum over the edges (i, j) of weight * |x_i - x_j|^2, plus held * |z_b|^2 per bit."""
        from ..kernels.graph_block import energies
        from ..kernels.threads import run

        out = np.empty(self.among.rows, np.float64)
        run(energies, self.among.rows, *self.among[:3], X, X, out, cost=self.among.indptr)
        total = float(out.sum()) / 2  # both directions of an edge are stored
        if self.bits is not None:
            centres = self._centres(X, X.shape[1])
            run(energies, self.bits.rows, *self.bits[:3], X, centres, out, cost=self.bits.indptr)
            total += float(out.sum()) + self.held * float(np.einsum("if,if->", centres, centres, dtype=np.float64))
        return total


class Powers:
    """The Laplacian of a1 G + a2 G^2 + ... of a symmetric graph G; the powers themselves are never computed.

    A self loop adds nothing to a Laplacian, so the diagonals of the powers are not needed. With d_k = G^k 1 and L_k x =
    d_k x - G^k x, row i of L_k x is the sum over its neighbours j of g_ij (d_{k-1, j} (x_i - x_j) + (L_{k-1} x)_j): one
    pass over the edges per power, and only differences are summed, since sums of large equal vectors would cancel.
    """

    def __init__(self, graph: CSR, weights: Sequence[float]) -> None:
        self.graph, self.weights = graph, weights
        matrix = graph.scipy().astype(np.float64)
        counts = [np.ones(graph.rows)]
        for _ in weights:
            counts.append(matrix @ counts[-1])
        self.counts = [c.astype(np.float32) for c in counts]
        self.degree = np.asarray(np.array(weights) @ np.stack(counts[1:]), np.float32)

    def add(self, scale: float, X: Array, width: int, out: Array) -> None:
        """out += scale * Lap X, on the first `width` columns."""
        from ..kernels.graph_block import next_power
        from ..kernels.threads import run

        g = self.graph
        old, new = np.zeros((g.rows, width), np.float32), np.empty((g.rows, width), np.float32)
        for a, count in zip(self.weights, self.counts[:-1], strict=True):
            run(next_power, g.rows, *g[:3], count, X, old, new, cost=g.indptr)
            out[:, :width] += np.float32(scale * a) * new
            old, new = new, old

    def energy(self, X: Array) -> float:
        """tr(X' Lap X)."""
        X = X - X.mean(axis=0)  # the Laplacian of a constant is 0: this only improves the rounding
        out = np.zeros_like(X)
        self.add(1.0, X, X.shape[1], out)
        return float(np.einsum("if,if->", X, out, dtype=np.float64))


class Iterated:
    """Lap (D^-1 Lap)^(order - 1): smoothness of a higher order.

    At order 2 the penalty is on the deviation of each vector from the mean of its neighbours, at order 3 on the
    differences of these deviations between neighbours. Components that vary fast along the graph are penalised far more
    than slow ones. A sum of powers of G does the opposite: the deeper it goes, the less it separates the two. D has the
    degrees; those of `Powers` include self loops.
    """

    def __init__(self, lap: Laplacian | Powers, order: int) -> None:
        self.lap, self.order, self.degree = lap, order, lap.degree
        self.inverse = np.divide(1, lap.degree, out=np.zeros_like(lap.degree), where=lap.degree > 0)[:, None]

    def _differences(self, X: Array, times: int) -> Array:
        """(D^-1 Lap)^times X."""
        for _ in range(times):
            out = np.zeros_like(X)
            self.lap.add(1.0, X, X.shape[1], out)
            X = self.inverse * out
        return X

    def add(self, scale: float, X: Array, width: int, out: Array) -> None:
        """out += scale * Lap (D^-1 Lap)^(order - 1) X, on the first `width` columns."""
        deep = self._differences(np.ascontiguousarray(X[:, :width]), self.order - 1)
        self.lap.add(scale, deep, width, out)

    def energy(self, X: Array) -> float:
        """tr(X' Lap (D^-1 Lap)^(order - 1) X), as a square: half of the factors on each side."""
        deep = self._differences(X, self.order // 2)
        if self.order % 2:
            return self.lap.energy(deep)
        return float(np.einsum("i,if,if->", self.degree, deep, deep, dtype=np.float64))


Smoothness: TypeAlias = Laplacian | Powers | Iterated
