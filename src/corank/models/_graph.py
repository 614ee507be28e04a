"""What models with a graph share: which graph, its Laplacian, and the half-step of a side that it ties together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Array, Dataset, from_scipy
from ..errors import CorankError
from ..graph import KINDS, side_graph, symmetric, tidy
from ..graph.lazy_walk import shells
from ..memory import make_room
from ..model import Model
from ..params import param
from ..training import logger
from ._shared import Fill, Shared
from ._sparse import sums

if TYPE_CHECKING:
    from ..training import Training

Side = Literal["user", "item"]
SIDES: tuple[Side, Side] = ("user", "item")


@dataclass(kw_only=True, eq=False)
class GraphOptions(Model):
    """The hyper-parameters of the graph."""

    graph: ClassVar[Literal["unused", "optional", "needed"]] = "needed"

    reg_graph: float = param(0.1, "weight of the graph; 0 = none", low=0.0, search=(0.001, 10.0), log=True)
    user_graph: str = param(
        "auto",
        "what is made of the data's user graph; auto = dna-2 where there is one",
        choices=("auto", *KINDS),
    )
    item_graph: str = param(
        "auto", "what is made of the data's item graph; auto = dna-2 where there is one", choices=("auto", *KINDS)
    )
    graph_weights: str = param(
        "",
        "of both graphs, with commas between them: weights of G^2, G^3, ... beside G (g2 ...), or the one weight of a "
        "bit (dna); empty = 1 each",
    )
    threshold: float = param(0.0, "entries of the sum of powers below this are dropped", low=0.0)
    capacity: int = param(500, "nodes that the Bloom filter of a node is made for (dna)", low=1, high=10_000_000)
    error: float = param(0.1, "rate of false positives of a full filter (dna)", low=1e-6, high=0.5)

    def _kind(self, data: Dataset, side: Side) -> str:
        """What is to be made of the graph of a side: 'none' where nothing is."""
        there = getattr(data, f"{side}_graph") is not None
        kind: str = getattr(self, f"{side}_graph")
        if kind == "auto":
            kind = "dna-2" if there else "none"
        if kind == "none" or self.reg_graph == 0:
            return "none"
        if not there:
            raise CorankError(
                f"{type(self).__name__}({side}_graph={kind!r}): the data has no {side} graph; give it one with "
                f"Dataset.with_graph (on the command line --{side}-edges FILE), or leave {side}_graph at 'auto'"
            )
        return kind

    def _kinds(self, data: Dataset) -> dict[Side, str]:
        """What is to be made of each graph; sides without one are left out."""
        kinds = {side: self._kind(data, side) for side in SIDES}
        used = {side: kind for side, kind in kinds.items() if kind != "none"}
        none = data.user_graph is None and data.item_graph is None
        if none or (used and not any(tidy(getattr(data, f"{side}_graph")).index.size for side in used)):
            plain = next(base for base in type(self).__mro__ if getattr(base, "graph", "") == "unused").__name__
            what = "has no graph of users or items" if none else f"has a graph of {'s and '.join(used)}s without edges"
            logger.warning("%s: the data %s, so this is plain %s", self.name(), what, plain)
        if self._weights() and used and set(used.values()) == {"g"}:
            raise CorankError(
                f"{type(self).__name__}(graph_weights={self.graph_weights!r}): the kind 'g' has no weights to give, as "
                "it is G alone; reg_graph says how much G counts, or choose g2 to g6 or a dna"
            )
        return used

    def _side_graph(self, data: Dataset, side: Side, kind: str) -> CSR:
        """The graph over the users or the items, written down: nodes beyond them have no rows of their own."""
        graph: CSR = getattr(data, f"{side}_graph")
        return side_graph(graph, kind, weights=self._weights(), threshold=self.threshold, **self._bits())

    def _bits(self) -> dict[str, Any]:
        """What filters of Graph DNA are like."""
        return {"capacity": self.capacity, "error": self.error, "seed": self.seed}

    def _weights(self) -> tuple[float, ...]:
        try:
            weights = tuple(float(word) for word in self.graph_weights.split(",") if word.strip())
        except ValueError:
            weights = (np.nan,)
        if not all(0 <= w < np.inf for w in weights):
            raise CorankError(
                f"{type(self).__name__}(graph_weights={self.graph_weights!r}): weights must be numbers of at least 0 "
                "with commas between them, such as '0.3,0.05'"
            )
        return weights


@dataclass(kw_only=True, eq=False)
class Smoothed(GraphOptions):
    """A model to whose objective reg_graph * tr(U' Lap U) is added, and the same for items."""

    form: str = param(
        "ties",
        "ties = vectors of those who are tied are alike, shared = a vector has parts in common with those around it",
        choices=("ties", "shared"),
    )
    walk: float = param(
        0.5, "form shared: how far the parts come from, the chance that a step leads on", low=0.01, high=1.0
    )
    order: int = param(
        1, "form ties: order of the smoothness, 1 = like the friends, 2 = like their surroundings", low=1, high=6
    )

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        kinds = self._kinds(data).items()
        self._operators: dict[Side, Operator] = {side: self._operator(data, side, kind) for side, kind in kinds}
        try:
            super()._fit(data, rows, training)
        finally:
            del self._operators

    def _state(self) -> dict[str, Array]:
        """Shared vectors are not part of the model, but training continues from them."""
        state: dict[str, Array] = {}
        for side, tie in self._operators.items():
            if isinstance(tie, Shared):
                tie.start(getattr(self, f"{side}_factors_"))
                state[f"{side}_shared"] = tie.vectors
        return state

    def _operator(self, data: Dataset, side: Side, kind: str) -> Operator:
        """What the graph does to the rows of a side."""
        if self.form == "shared":
            self._check_shared()
            graph: CSR = getattr(data, f"{side}_graph")
            if graph.value.size and np.ptp(graph.value) > 0:
                logger.warning("%s: form='shared' does not look at the weights of the edges", self.name())
            matrix = shells(graph, kind, walk=self.walk, **self._bits())
            return Shared(matrix, self._width(), self.reg_graph)
        lap = self._laplacian(data, side, kind)
        return lap if self.order == 1 else Iterated(lap, self.order)

    def _check_shared(self) -> None:
        name = type(self).__name__
        if self._weights() or self.threshold or self.order != 1:
            raise CorankError(
                f"{name}(form='shared') walks over the edges as they are: graph_weights, threshold and order are for "
                "form='ties'; leave them out"
            )
        reg: float = self.params()["reg"]
        if not reg > 0:
            raise CorankError(
                f"{name}(reg={reg:g}) with form='shared': reg must be above 0, or everybody's own part would explain "
                "all and nothing would be shared"
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
        return Laplacian(self._side_graph(data, side, kind), graph.rows)

    def _width(self) -> int:
        """Numbers that a row has: its vector and, if the model has them, its bias."""
        raise NotImplementedError

    def _operator_under(self, vectors: Array) -> Operator | None:
        """That of the side whose vectors these are; strangers have none, and nobody has after fit."""
        for side, tie in getattr(self, "_operators", {}).items():
            if vectors is getattr(self, f"{side}_factors_"):
                return tie  # type: ignore[no-any-return]
        return None

    def _descend(self, tie: Operator, fill: Fill, reg: Array, reg_bias: float, X: Array, bias: Array | None) -> None:
        """Some steps on all rows of a side together; reg, reg_bias: the penalties of each vector and of the biases."""
        if isinstance(tie, Shared):
            tie.descend(fill, reg, reg_bias, X, bias, self.params()["steps"])
        else:
            descend(tie, self.reg_graph, fill, X, bias, self.params()["steps"])

    def _tension(self) -> float:
        """The graphs' part of the objective."""
        total = 0.0
        for side, tie in self._operators.items():
            vectors, bias = getattr(self, f"{side}_factors_"), getattr(self, f"{side}_bias_", None)
            total += tie.energy(vectors, bias) if isinstance(tie, Shared) else self.reg_graph * tie.energy(vectors)
        return float(total)


class Laplacian:
    """The Laplacian of a symmetric weighted graph whose first `rows` nodes are the rows, the others eliminated."""

    def __init__(self, graph: CSR, rows: int) -> None:
        matrix = graph.scipy()
        self.degree = np.asarray(matrix.sum(axis=1)[:rows], np.float32)
        self.among = from_scipy(matrix[:rows, :rows])  # edges between rows
        self.bits = self.back = None
        if graph.rows > rows:
            self.bits = from_scipy(matrix[:rows, rows:])  # edges to the other nodes, seen from the rows
            back = matrix[rows:, :rows]  # and from there, for means
            weight = np.repeat(back.sum(axis=1), np.diff(back.indptr))
            self.back = from_scipy(back)._replace(value=np.asarray(back.data / weight, np.float32))

    def _centres(self, X: Array, width: int) -> NDArray[np.float32]:
        """The best vectors of the nodes that are no rows: the means of their neighbours."""
        assert self.back is not None
        return sums(self.back, X, width)

    def add(self, scale: float, X: Array, width: int, out: Array) -> None:
        """out += scale * Lap X, on the first `width` columns."""
        from ..kernels.graph_block import add_differences
        from ..kernels.threads import run

        g = self.among
        run(add_differences, g.rows, *g[:3], float(scale), width, X, X, out, cost=g.indptr)
        if self.bits is not None:
            b = self.bits
            run(add_differences, b.rows, *b[:3], float(scale), width, X, self._centres(X, width), out, cost=b.indptr)

    def energy(self, X: Array) -> float:
        """tr(X' Lap X): the sum over the edges of weight * squared distance of their ends."""
        from ..kernels.graph_block import energies
        from ..kernels.threads import run

        out = np.empty(self.among.rows, np.float64)
        run(energies, self.among.rows, *self.among[:3], X, X, out, cost=self.among.indptr)
        total = float(out.sum()) / 2  # each edge is there twice
        if self.bits is not None:
            centres = self._centres(X, X.shape[1])
            run(energies, self.bits.rows, *self.bits[:3], X, centres, out, cost=self.bits.indptr)
            total += float(out.sum())
        return total


class Powers:
    """The Laplacian of a1 G + a2 G^2 + ... of a symmetric graph G, of which only G is ever written down.

    A loop adds nothing to a Laplacian, so the diagonals of the powers need not be known. With d_k = G^k 1 and L_k x =
    d_k x - G^k x, row i of L_k x is the sum over its neighbours j of g_ij (d_{k-1, j} (x_i - x_j) + (L_{k-1} x)_j): one
    pass over the edges a power, and differences only, as sums of large equal vectors cancel.
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
        X = X - X.mean(axis=0)  # changes nothing but the rounding
        out = np.zeros_like(X)
        self.add(1.0, X, X.shape[1], out)
        return float(np.einsum("if,if->", X, out, dtype=np.float64))


class Iterated:
    """Lap (D^-1 Lap)^(order - 1): vectors are held not to those of the friends, but to what friends of friends imply.

    What differs quickly along the graph is punished far more than what differs slowly. A sum of powers of G does the
    opposite: the deeper it goes, the less it tells the two apart. D has the degrees, of `Powers` with their loops.
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


def descend(
    lap: Smoothness,
    mu: float,
    prepare: Fill,
    X: Array,
    bias: Array | None,
    steps: int,
) -> None:
    """Some steps of conjugate gradient from where X (and bias) are, which are overwritten.

    prepare : called with pull[rows], L and R; fills L and R as `kernels.grmf.prepare` does.
    """
    from ..kernels.graph_block import solve_rows
    from ..kernels.threads import run

    n, d = X.shape
    size = d + (bias is not None)
    triangle = size * (size + 1) // 2
    make_room(4.0 * n * (triangle + 5 * size), f"the graph's half-step at dim={d}", "choose a smaller dim")
    L = np.empty((n, triangle), np.float32)
    R = np.empty((n, size), np.float32)
    pull = np.float32(mu) * lap.degree
    prepare(pull, L, R)
    lap.add(-mu, X, d, R)
    Z, product = np.empty_like(R), np.empty(n, np.float64)
    run(solve_rows, n, L, R, Z, product)
    left = float(product.sum())
    way, image = Z.copy(), R.copy()  # image = M way: it follows way's recurrence, since M Z = R
    first = left
    for step in range(steps):
        if not left > 1e-10 * first:  # nothing left to gain, or nothing at all
            break
        whole = image.copy()
        whole[:, :d] -= pull[:, None] * way[:, :d]
        lap.add(mu, way, d, whole)
        bend = float(np.einsum("if,if->", way, whole, dtype=np.float64))
        if not bend > 0:
            break
        length = np.float32(left / bend)
        X += length * way[:, :d]
        if bias is not None:
            bias += length * way[:, d]
        if step == steps - 1:
            break
        R -= length * whole
        run(solve_rows, n, L, R, Z, product)
        fresh = float(product.sum())
        turn = np.float32(fresh / left)
        left = fresh
        way *= turn
        way += Z
        image *= turn
        image += R


Smoothness: TypeAlias = Laplacian | Powers | Iterated
Operator: TypeAlias = Smoothness | Shared
