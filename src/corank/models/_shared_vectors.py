"""Vectors that the nodes of a graph share: a row is its own component plus those shared with the nodes around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..data import CSR, Array, from_scipy
from ..system.memory import make_room
from ._laplacian import sums

if TYPE_CHECKING:
    from ._graph_term import Prepare


class SharedVectors:
    """The shared vectors of one side, as a `GraphTerm`.

    With S the matrix of `graph.lazy_walk.shells`, row r is x_r = o_r + sum_b S_rb w_b. Its penalty is reg_r |o_r|^2
    instead of reg_r |x_r|^2, plus lam |w_b|^2 for each shared vector, with lam = mean reg / weight. So rows that reach
    the same nodes are similar from the start, and a row without ratings is the sum of its shared vectors. A priori, the
    covariance of two rows is that of I + weight S S'; a Laplacian can only pull together rows that share an edge.

    Parameters
    ----------
    matrix : S (rows, shared vectors).
    width : number of parameters per row: its vector and, in a model with biases, its bias.
    """

    def __init__(self, matrix: CSR, width: int, weight: float) -> None:
        self.matrix, self.back = matrix, from_scipy(matrix.scipy().T)
        self.vectors = np.zeros((matrix.columns, width), np.float32)
        self.weight = weight
        self.reg = np.zeros((matrix.rows, width), np.float32)
        self.lam = np.ones(width, np.float32)

    def start(self, X: Array) -> dict[str, Array]:
        """Smooth the random start, so that nearby nodes are similar.

        From independent vectors the rows would first fit their ratings with their own parts, and take many epochs to
        find what they share.
        """
        d = X.shape[1]
        connected = np.diff(self.matrix.indptr) > 0
        norm = float(np.linalg.norm(X[connected]))
        if norm > 0:
            for _ in range(3):
                self.vectors[:, :d] = sums(self.back, X)
                common = sums(self.matrix, self.vectors, d)
                scale = np.float32(norm / np.linalg.norm(common))
                X[connected] = scale * common[connected]
            self.vectors *= scale
        return {"shared": self.vectors}

    def half_step(
        self, prepare: Prepare, reg: Array, reg_bias: float, X: Array, bias: Array | None, steps: int
    ) -> None:
        """Conjugate gradient on the shared vectors, with the rows always at their minimum given these; in place."""
        from ..kernels.graph_block import solve_rows
        from ..kernels.threads import run

        n, d = X.shape
        size = self.vectors.shape[1]
        triangle = size * (size + 1) // 2
        need = 4.0 * n * (triangle + 6 * size) + 16.0 * self.vectors.size
        make_room(need, f"the half-step with shared vectors at dim={d}", "choose a smaller dim or fewer bits")
        self.reg[:, :d] = reg[:, None]
        self.reg[:, d:] = reg_bias if np.isfinite(reg_bias) else 0
        lam = np.where(self.reg.any(axis=0), self.reg.mean(axis=0, dtype=np.float64) / self.weight, 1)
        self.lam = np.minimum(lam, 1e30).astype(np.float32)
        # A row without data has no penalty; any positive one moves it to the sum of its shared vectors.
        pull = np.asarray(reg == 0, np.float32)
        held = self.reg.copy()
        held[:, :d] += pull[:, None]

        L, R = np.empty((n, triangle), np.float32), np.empty((n, size), np.float32)
        prepare(pull, L, R)
        common = sums(self.matrix, self.vectors)
        R[:, :d] -= pull[:, None] * X
        R += held * common
        move, product = np.empty_like(R), np.empty(n, np.float64)
        run(solve_rows, n, L, R, move, product)
        X += move[:, :d]
        own = X - common[:, :d]
        if bias is not None:
            bias += move[:, d]
            own = np.column_stack([own, bias - common[:, d]])

        residual = sums(self.back, held * own) - self.lam * self.vectors
        square = CSR(self.back.indptr, self.back.index, np.square(self.back.value), self.back.columns)
        # The diagonal of the system: all coordinates of a vector have the same penalty, the bias has its own.
        diagonal = sums(square, np.ascontiguousarray(held[:, [0, -1]]))
        inverse = np.empty_like(self.vectors)
        inverse[:, :d] = 1 / (diagonal[:, :1] + self.lam[:d])
        inverse[:, d:] = 1 / (diagonal[:, 1:] + self.lam[d:])
        direction = inverse * residual
        norm = first = _inner(residual, direction)
        for _ in range(steps):
            if not norm > 1e-10 * first:
                break
            change = sums(self.matrix, direction)
            run(solve_rows, n, L, held * change, move, product)
            image = sums(self.back, held * (change - move)) + self.lam * direction
            curvature = _inner(direction, image)
            if not curvature > 0:
                break
            step = np.float32(norm / curvature)
            self.vectors += step * direction
            X += step * move[:, :d]
            if bias is not None:
                bias += step * move[:, d]
            residual -= step * image
            new_norm = _inner(residual, inverse * residual)
            direction *= np.float32(new_norm / norm)
            direction += inverse * residual
            norm = new_norm

    def penalty(self, X: Array, bias: Array | None) -> float:
        """The difference to an objective with the penalty reg_r |x_r|^2."""
        rows = X if bias is None else np.column_stack([X, bias])
        common = sums(self.matrix, self.vectors)
        # |x - c|^2 - |x|^2
        part = np.einsum("if,if,if->", self.reg, common, common - 2 * rows, dtype=np.float64)
        return float(part + np.einsum("f,bf,bf->", self.lam, self.vectors, self.vectors, dtype=np.float64))


def _inner(a: Array, b: Array) -> float:
    return float(np.einsum("if,if->", a, b, dtype=np.float64))
