"""Vectors that rows have in common: a row is its own part and the sum of what it shares with those around it.

With S the matrix of `shells`, row r is x_r = o_r + sum_b S_rb w_b, and its penalty is hold |o_r|^2 instead of hold
|x_r|^2, with lam |w_b|^2 for each of the shared vectors. So whoever meets the same nodes has much in common from the
start, and a row without ratings is what it shares. Two rows are as alike, before anything is known, as their rows of
S are (their covariance is I + weight S S'); a Laplacian can only pull together what its edges join.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ..data import CSR, Array
from ..memory import make_room
from ._sparse import sums, transposed

Fill: TypeAlias = Callable[[Array, Array, Array], None]  # fills L and R, given pull[rows]


class Shared:
    """The shared vectors of one side, and the half-step that finds them with the rows."""

    def __init__(self, matrix: CSR, width: int, weight: float) -> None:
        self.matrix, self.back = matrix, transposed(matrix)
        self.vectors = np.zeros((matrix.columns, width), np.float32)
        self.weight = float(weight)
        self.hold = np.zeros((matrix.rows, width), np.float32)
        self.lam = np.ones(width, np.float32)

    def start(self, X: Array) -> None:
        """Make a random start one in which those around each other are alike.

        From one without any order the rows would first learn their ratings by heart, each in its own part, and take
        long to find what they share.
        """
        d = X.shape[1]
        meets = np.diff(self.matrix.indptr) > 0
        length = float(np.linalg.norm(X[meets]))
        if length == 0:
            return
        for _ in range(3):
            self.vectors[:, :d] = sums(self.back, X)
            common = sums(self.matrix, self.vectors, d)
            scale = np.float32(length / np.linalg.norm(common))
            X[meets] = scale * common[meets]
        self.vectors *= scale

    def descend(
        self,
        prepare: Fill,
        hold: Array,
        hold_bias: float,
        X: Array,
        bias: Array | None,
        steps: int,
    ) -> None:
        """Some steps of conjugate gradient on the shared vectors, the rows always at their best; all in place.

        hold, hold_bias : penalties of the own parts of each row's vector, and of the biases.
        prepare : called with pull[rows], L and R; fills L and R as `kernels.grmf.prepare` does.
        """
        from ..kernels.graph_block import solve_rows
        from ..kernels.threads import run

        n, d = X.shape
        size = self.vectors.shape[1]
        triangle = size * (size + 1) // 2
        need = 4.0 * n * (triangle + 6 * size) + 16.0 * self.vectors.size
        make_room(need, f"the half-step with shared vectors at dim={d}", "choose a smaller dim or fewer bits")
        self.hold[:, :d] = hold[:, None]
        self.hold[:, d:] = hold_bias if np.isfinite(hold_bias) else 0
        lam = np.where(self.hold.any(axis=0), self.hold.mean(axis=0, dtype=np.float64) / self.weight, 1)
        self.lam = np.minimum(lam, 1e30).astype(np.float32)
        # A row that has nothing to say is not held by `hold`; any pull brings it to what it shares.
        pull = np.asarray(hold == 0, np.float32)
        held = self.hold.copy()
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

        left = sums(self.back, held * own) - self.lam * self.vectors
        square = CSR(self.back.indptr, self.back.index, np.square(self.back.value), self.back.columns)
        weight = sums(square, np.ascontiguousarray(held[:, [0, -1]]))  # all numbers of a vector are held alike
        inverse = np.empty_like(self.vectors)
        inverse[:, :d] = 1 / (weight[:, :1] + self.lam[:d])
        inverse[:, d:] = 1 / (weight[:, 1:] + self.lam[d:])
        way = inverse * left
        now = first = _inner(left, way)
        for _ in range(steps):
            if not now > 1e-10 * first:
                break
            step = sums(self.matrix, way)
            run(solve_rows, n, L, held * step, move, product)
            image = sums(self.back, held * (step - move)) + self.lam * way
            bend = _inner(way, image)
            if not bend > 0:
                break
            length = np.float32(now / bend)
            self.vectors += length * way
            X += length * move[:, :d]
            if bias is not None:
                bias += length * move[:, d]
            left -= length * image
            fresh = _inner(left, inverse * left)
            way *= np.float32(fresh / now)
            way += inverse * left
            now = fresh

    def energy(self, X: Array, bias: Array | None) -> float:
        """What the objective has more than with hold |x_r|^2."""
        rows = X if bias is None else np.column_stack([X, bias])
        common = sums(self.matrix, self.vectors)
        # |x - c|^2 - |x|^2
        part = np.einsum("if,if,if->", self.hold, common, common - 2 * rows, dtype=np.float64)
        return float(part + np.einsum("f,bf,bf->", self.lam, self.vectors, self.vectors, dtype=np.float64))


def _inner(a: Array, b: Array) -> float:
    return float(np.einsum("if,if->", a, b, dtype=np.float64))
