"""The hyper-parameters of models that learn from a graph, and the graph that these select."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from ..cost import Size
from ..data import CSR, Dataset
from ..data.edges import tidy
from ..errors import CorankError
from ..graph.powers import KINDS, side_graph
from ..model import Model
from ..params import param
from ..training import logger

Side = Literal["user", "item"]
SIDES: tuple[Side, Side] = ("user", "item")

SEARCHED = ("g", "dna-1", "dna-2")  # kinds that a search tries


@dataclass(kw_only=True, eq=False)
class GraphOptions(Model):
    """Which graph of the users and of the items is used, and its weight in the objective."""

    graph: ClassVar[Literal["unused", "optional", "needed"]] = "needed"

    reg_graph: float = param(
        0.1,
        "weight of the graph (form shared: relative to the regularisation); 0 = none",
        low=0.0,
        search=(0.01, 10.0),
        log=True,
    )
    user_graph: str = param(
        "auto",
        "graph made from the data's user graph; auto = dna-2 where there is one (g with form shared)",
        choices=("auto", *KINDS),
        search=SEARCHED,
    )
    item_graph: str = param(
        "auto",
        "graph made from the data's item graph; auto = dna-2 where there is one (g with form shared)",
        choices=("auto", *KINDS),
        search=SEARCHED,
    )
    graph_weights: str = param(
        "",
        "comma-separated weights, for both graphs: of G^2, G^3, ... relative to G (g2 to g6), or one weight for the "
        "edges to bits (dna); empty = all 1",
    )
    threshold: float = param(
        0.0, "entries of the highest power below this are dropped (g2 to g6); lower powers are kept whole", low=0.0
    )
    capacity: int = param(500, "number of nodes that a Bloom filter is sized for (dna)", low=1, high=10_000_000)
    error: float = param(0.1, "false-positive rate of a full Bloom filter (dna)", low=1e-6, high=0.5)
    theta: float | None = param(
        None,
        "a node merges no further neighbour in a round once its Bloom filter holds more nodes than this (dna); None = "
        "no limit",
        low=1.0,
    )

    def _pointless(self, data: Dataset) -> Collection[str]:
        absent = [f"{side}_graph" for side in SIDES if getattr(data, f"{side}_graph") is None]
        unused = ("reg_graph", "form") if len(absent) == len(SIDES) else ()
        return (*super()._pointless(data), *unused, *absent)

    def _kind(self, data: Dataset, side: Side) -> str:
        """The kind of graph to make for a side; 'none' where no graph is used."""
        available = getattr(data, f"{side}_graph") is not None
        kind: str = getattr(self, f"{side}_graph")
        if kind == "auto":
            kind = self._automatic() if available else "none"
        if kind == "none" or self.reg_graph == 0:
            return "none"
        if not available:
            raise CorankError(
                f"{type(self).__name__}({side}_graph={kind!r}): the data has no {side} graph; give it one with "
                f"Dataset.with_graph (on the command line --{side}-edges FILE), or leave {side}_graph at 'auto'"
            )
        return kind

    def _automatic(self) -> str:
        """The kind of graph where none is named."""
        return "dna-2"

    def _kinds(self, data: Dataset) -> dict[Side, str]:
        """The kind of graph per side; sides without a graph are left out."""
        kinds = {side: self._kind(data, side) for side in SIDES}
        used = {side: kind for side, kind in kinds.items() if kind != "none"}
        absent = data.user_graph is None and data.item_graph is None
        if absent or (used and not any(tidy(getattr(data, f"{side}_graph")).index.size for side in used)):
            plain = next(base for base in type(self).__mro__ if getattr(base, "graph", "") == "unused").__name__
            what = "has no graph of users or items"
            if not absent:
                what = f"has a graph of {'s and '.join(used)}s without edges"
            logger.warning("%s: the data %s, so it reduces to %s", self.name(), what, plain)
        if self._weights() and used and set(used.values()) == {"g"}:
            raise CorankError(
                f"{type(self).__name__}(graph_weights={self.graph_weights!r}): the kind 'g' is G alone and takes no "
                "weights; set reg_graph, the weight of G, or choose g2 to g6 or a dna"
            )
        if self.threshold and used and not any(kind[1:].isdecimal() for kind in used.values()):
            raise CorankError(self._unused("threshold", "cuts the highest power of a graph", "g2 to g6", used))
        if self.theta is not None and used and not any(kind.startswith("dna") for kind in used.values()):
            raise CorankError(self._unused("theta", "limits the Bloom filters of Graph DNA", "dna-1 to dna-4", used))
        return used

    def _unused(self, name: str, effect: str, needed: str, used: dict[Side, str]) -> str:
        """The sentence about an option that the kinds of graph in use would ignore."""
        kinds = " and ".join(f"{side}_graph={kind!r}" for side, kind in used.items())
        return (
            f"{type(self).__name__}({name}={getattr(self, name):g}) with {kinds}: {name} {effect}; choose {needed}, or "
            f"leave {name} out"
        )

    def _graph_entries(self, size: Size) -> dict[Side, float]:
        """Roughly the entries of the graph of each side that has one, for estimates."""
        out: dict[Side, float] = {}
        for side in SIDES:
            nodes, edges = (size.users, size.user_edges) if side == "user" else (size.items, size.item_edges)
            kind: str = getattr(self, f"{side}_graph")
            kind = self._automatic() if kind == "auto" else kind
            if not edges or kind == "none" or self.reg_graph == 0:
                continue
            depth = int(kind.removeprefix("dna-").removeprefix("g") or 1)
            if kind.startswith("dna-"):  # a node sets some bits of its filter for each node around it
                around = min((edges / nodes) ** depth, 1.0 * self.capacity, nodes)
                out[side] = edges + 2.0 * nodes * around * max(1.0, np.log2(1 / self.error))
            else:
                out[side] = float(edges) * depth
        return out

    def _side_graph(self, data: Dataset, side: Side, kind: str) -> CSR:
        """The graph of a side as a matrix; nodes beyond the users or items are the bits of Graph DNA."""
        graph: CSR = getattr(data, f"{side}_graph")
        return side_graph(graph, kind, weights=self._weights(), threshold=self.threshold, **self._filter())

    def _filter(self) -> dict[str, Any]:
        """Size and hashes of the Bloom filters of Graph DNA."""
        return {"capacity": self.capacity, "error": self.error, "theta": self.theta, "seed": self.seed}

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
