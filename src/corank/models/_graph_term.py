"""The term that a graph adds to the objective of a factor model, and the half-step of a side with such a term."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol, TypeAlias

import numpy as np

from ..cost import KERNEL, SCATTERED, Cost, Size
from ..data import CSR, Array, Dataset
from ..data.edges import symmetric
from ..errors import CorankError
from ..graph.lazy_walk import shells
from ..params import param
from ..stored import Stored, word
from ..system.memory import make_room
from ..training import logger
from ._graph_options import SIDES, GraphOptions, Side
from ._laplacian import Iterated, Laplacian, Powers, Smoothness
from ._shared_vectors import SharedVectors

# Called with (pull, L, R): fills L and R as `kernels.grmf.prepare` does.
Prepare: TypeAlias = Callable[[Array, Array, Array], None]


class GraphTerm(Protocol):
    """The graph's part of the objective of one side, in training.

    X (rows, dim) are the vectors of the side and bias (rows,) its biases, None in a model without biases.
    """

    def start(self, X: Array) -> dict[str, Array]:
        """Adapt the random start X in place; returns the arrays beside X that training changes, by name."""

    def half_step(
        self, prepare: Prepare, reg: Array, reg_bias: float, X: Array, bias: Array | None, steps: int
    ) -> None:
        """`steps` of conjugate gradient on all rows of the side together, from the X and bias given, in place.

        reg (rows,) and reg_bias are the penalties of the vectors and of the biases.
        """

    def penalty(self, X: Array, bias: Array | None) -> float:
        """The value of the term."""


class GraphTerms(NamedTuple):
    """The graph terms of both sides; None where a side has no graph."""

    user: GraphTerm | None
    item: GraphTerm | None

    def start(self, U: Array, V: Array) -> dict[str, Array]:
        """Adapt the random starts in place; returns the state of both terms, for `training.epochs`."""
        state: dict[str, Array] = {}
        for side, term, X in zip(SIDES, self, (U, V), strict=True):
            if term is not None:
                state |= {f"{side}_{name}": array for name, array in term.start(X).items()}
        return state

    def penalty(self, users: tuple[Array, Array | None], items: tuple[Array, Array | None]) -> float:
        """The graph's part of the objective, given (vectors, biases) of both sides."""
        total = 0.0
        for term, (X, bias) in zip(self, (users, items), strict=True):
            total += 0.0 if term is None else term.penalty(X, bias)
        return total


class SmoothnessTerm:
    """weight * tr(X' Lap X): the vectors of neighbours are similar."""

    def __init__(self, lap: Smoothness, weight: float) -> None:
        self.lap, self.weight = lap, weight

    def start(self, X: Array) -> dict[str, Array]:
        return {}

    def half_step(
        self, prepare: Prepare, reg: Array, reg_bias: float, X: Array, bias: Array | None, steps: int
    ) -> None:
        """See `kernels.graph_block`: the preconditioner is the exact inverse of the diagonal blocks."""
        from ..kernels.graph_block import solve_rows
        from ..kernels.threads import run

        n, d = X.shape
        size = d + (bias is not None)
        triangle = size * (size + 1) // 2
        make_room(4.0 * n * (triangle + 5 * size), f"the graph's half-step at dim={d}", "choose a smaller dim")
        L = np.empty((n, triangle), np.float32)
        residual = np.empty((n, size), np.float32)
        pull = np.float32(self.weight) * self.lap.degree
        prepare(pull, L, residual)
        self.lap.add(-self.weight, X, d, residual)
        Z, product = np.empty_like(residual), np.empty(n, np.float64)
        run(solve_rows, n, L, residual, Z, product)
        norm = first = float(product.sum())  # squared, in the metric of the preconditioner
        # scaled = M direction, with M the diagonal blocks: it follows the recurrence of direction, since M Z = residual
        direction, scaled = Z.copy(), residual.copy()
        for k in range(steps):
            if not norm > 1e-10 * first:  # converged, or at the minimum from the start
                break
            image = scaled.copy()
            image[:, :d] -= pull[:, None] * direction[:, :d]
            self.lap.add(self.weight, direction, d, image)
            curvature = float(np.einsum("if,if->", direction, image, dtype=np.float64))
            if not curvature > 0:
                break
            step = np.float32(norm / curvature)
            X += step * direction[:, :d]
            if bias is not None:
                bias += step * direction[:, d]
            if k == steps - 1:
                break
            residual -= step * image
            run(solve_rows, n, L, residual, Z, product)
            new_norm = float(product.sum())
            beta = np.float32(new_norm / norm)
            norm = new_norm
            direction *= beta
            direction += Z
            scaled *= beta
            scaled += residual

    def penalty(self, X: Array, bias: Array | None) -> float:
        return self.weight * self.lap.energy(X)


@dataclass(kw_only=True, eq=False)
class GraphRegularised(GraphOptions):
    """A model whose objective has a graph term per side with a graph."""

    form: str | None = param(
        None,
        "ties = neighbours get similar vectors, shared = a vector is the sum of its own component and of vectors "
        "shared with the nodes around it (default: shared; ties, as published, where the kind of a graph is given)",
        choices=("ties", "shared"),
        search=("ties", "shared"),
    )
    walk: float = param(
        0.5,
        "form shared: probability that a step of the random walk moves outwards; higher values reach farther nodes",
        low=0.01,
        high=1.0,
    )
    order: int = param(
        1,
        "form ties: order of the penalty; 1 = differences between neighbours, 2 = deviations from the neighbours' mean",
        low=1,
        high=6,
    )

    reg_bits: float = param(
        0.0,
        "form ties: regularisation of the vectors of bits (dna); the dissertation's objective has reg here, 0 = none",
        low=0.0,
    )

    from_data: ClassVar[tuple[str, ...]] = ("form",)

    def _choose(self, data: Dataset, rows: CSR) -> None:
        super()._choose(data, rows)
        published = {self.user_graph, self.item_graph} - {"auto", "none"} or self._weights() or self.threshold
        usual = "ties" if published or self.order != 1 or self.reg_bits else "shared"
        self.form_ = usual if self.form is None else self.form

    def _automatic(self) -> str:
        return "g" if self.used_params()["form"] == "shared" else super()._automatic()

    def _stores(self) -> dict[str, Stored]:
        return super()._stores() | {"form_": word("ties", "shared")}

    def _cost(self, size: Size) -> Cost:
        setup, epoch, _ = super()._cost(size)
        d: int = self.params()["dim"]
        for side, entries in self._graph_entries(size).items():
            nodes = size.users if side == "user" else size.items
            steps: int = self.params()["steps"] + 1
            setup += 20 * SCATTERED * entries
            epoch += KERNEL * (size.rows * d * (d + 4) + nodes * (d**3 / 6 + steps * d**2) + 4.0 * steps * entries * d)
        return Cost(setup, epoch)

    def _memory(self, size: Size) -> float:
        total = super()._memory(size)
        d: int = self.params()["dim"] + 1
        halves = [0.0]  # of each half-step, the normal equations of all rows and some vectors
        for side, entries in self._graph_entries(size).items():
            nodes = size.users if side == "user" else size.items
            total += 40.0 * entries
            halves.append(4.0 * nodes * (d * (d + 1) / 2 + 10 * d))
        return total + max(halves)

    def _graph_terms(self, data: Dataset, width: int) -> GraphTerms:
        """The terms of both sides; `width` is the number of parameters per row, the bias included."""
        kinds = self._kinds(data)
        if self.reg_bits and kinds and not any(kind.startswith("dna") for kind in kinds.values()):
            effect = "is the penalty on the vectors of the bits of Graph DNA"
            raise CorankError(self._unused("reg_bits", effect, "dna-1 to dna-4", kinds))
        terms = {side: self._graph_term(data, side, kind, width) for side, kind in kinds.items()}
        return GraphTerms(terms.get("user"), terms.get("item"))

    def _graph_term(self, data: Dataset, side: Side, kind: str, width: int) -> GraphTerm:
        if self.form_ == "shared":
            self._check_shared()
            graph: CSR = getattr(data, f"{side}_graph")
            if graph.value.size and np.ptp(graph.value) > 0:
                logger.warning("%s: form='shared' ignores the weights of the edges", self.name())
            return SharedVectors(shells(graph, kind, walk=self.walk, **self._filter()), width, self.reg_graph)
        lap = self._laplacian(data, side, kind)
        return SmoothnessTerm(lap if self.order == 1 else Iterated(lap, self.order), self.reg_graph)

    def _check_shared(self) -> None:
        name = type(self).__name__
        if self._weights() or self.threshold or self.order != 1 or self.reg_bits:
            raise CorankError(
                f"{name}(form='shared') uses the edges without weights: graph_weights, threshold, order and reg_bits "
                "are for form='ties'; leave them out"
            )
        reg: float = self.used_params()["reg"]
        if not reg > 0:
            raise CorankError(
                f"{name}(reg={reg:g}) with form='shared': reg must be above 0, or the own part of each vector would "
                "explain everything and nothing would be shared"
            )

    def _laplacian(self, data: Dataset, side: Side, kind: str) -> Laplacian | Powers:
        graph: CSR = getattr(data, f"{side}_graph")
        if kind[1:].isdecimal() and self.threshold == 0:
            depth = int(kind[1:])
            weights = self._weights() or (1.0,) * (depth - 1)
            if len(weights) != depth - 1:
                raise CorankError(
                    f"{type(self).__name__}(graph_weights={self.graph_weights!r}) with {side}_graph={kind!r}: give "
                    f"the {depth - 1} factors of G^2 to G^{depth}, or none at all"
                )
            return Powers(symmetric(graph), (1.0, *weights))
        # The penalty of the bits relative to the weight of the graph, which multiplies the whole term.
        return Laplacian(self._side_graph(data, side, kind), graph.rows, held=self.reg_bits / self.reg_graph)
