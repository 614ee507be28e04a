"""Stochastic shared embeddings: while training, an id is now and then replaced by another one before it is looked up.

Wu, Li, Hsieh and Sharpnack (NeurIPS 2019). An id is kept with probability 1 - p. Otherwise, with N ids to choose from:

- SSE-SE draws uniformly from all N. The id itself may come, as in the authors' code: a share p (1 - 1/N) changes.
- SSE-Graph draws from the N - 1 others, each neighbour in the graph rho times as often as each id that is none:
  the set of neighbours has probability rho deg / (rho deg + N - 1 - deg), and inside a set all are equal.
  rho below 1 keeps neighbours apart; where everybody is a neighbour, rho makes no difference.

Reserved ids (padding, unknown) are neither replaced nor drawn, and do not count in N. Nothing of size N x N is made:
the r-th id that is not a neighbour is found by one binary search, for a whole batch at once and without rejection.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Probability = float | Tensor
Integers = Tensor | NDArray[np.integer[Any]]
CSR = tuple[Integers, Integers]

FEW = 4  # reserved ids up to which comparing with each of them is faster than a search


def sse(
    indices: Tensor,
    size: int,
    p: Probability,
    *,
    reserved: Iterable[int] = (),
    graph: Graph | CSR | None = None,
    rho: float = 1.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """A new tensor like `indices` in which each id is replaced with probability p.

    indices : ids in [0, size), int64 or int32, of any shape; what is outside stays, for the lookup to complain about.
    p : a number, or a tensor that broadcasts to the shape of `indices` (e.g. one probability a position).
    reserved : ids that are never replaced and never drawn.
    graph : for SSE-Graph. A pair (indptr, index) is prepared in each call: make a `Graph` of it once.
    rho : how many times as often a neighbour is drawn as an id that is none.
    generator : of the device of `indices`; torch's global one when absent. p = 0 draws nothing from it.

    One id for a whole sequence: `sse(users[:, None], ...).expand(-1, length)`.
    """
    out = Replacement(size, p, reserved, graph, rho, generator)(indices)
    return indices.clone() if out is indices else out


def sse_(
    indices: Tensor,
    size: int,
    p: Probability,
    *,
    reserved: Iterable[int] = (),
    graph: Graph | CSR | None = None,
    rho: float = 1.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """`sse` in place: changes `indices` and returns it."""
    return indices.copy_(Replacement(size, p, reserved, graph, rho, generator)(indices))


class Graph:
    """The neighbours of each id, prepared for SSE-Graph.

    indptr : int[size + 1], index : int[edges]; the neighbours of id j are index[indptr[j] : indptr[j + 1]], in any
    order. Edges lead one way: give both directions where both are meant. An edge given twice counts once; edges from an
    id to itself and edges from or to `reserved` ids are left out.
    """

    def __init__(self, indptr: Integers, index: Integers, *, reserved: Iterable[int] = ()) -> None:
        start, to = _integers(indptr, "indptr"), _integers(index, "index")
        if start.size < 2 or start[0] != 0 or (np.diff(start) < 0).any():
            raise ValueError("indptr must hold size + 1 numbers that start at 0 and never fall")
        if start[-1] != to.size:
            raise ValueError(f"indptr ends at {start[-1]} and index has {to.size} entries: they must be equal")
        self.size = start.size - 1
        if (wrong := to[(to < 0) | (to >= self.size)]).size:
            raise ValueError(f"the graph has an edge to id {wrong[0]}, and indptr is for the ids 0 to {self.size - 1}")
        self.reserved = _reserved(reserved, self.size)
        ids = self.size - len(self.reserved)
        if ids < 2:
            raise ValueError(
                f"the graph has {ids} ids that are not reserved: SSE-Graph draws another one, so give 2 or more"
            )
        # From here on the ids that are not reserved count 0, 1, ..., ids - 1.
        free = np.ones(self.size, np.bool_)
        free[list(self.reserved)] = False
        code = np.cumsum(free) - 1
        row = np.repeat(np.arange(self.size), np.diff(start))
        real = free[row] & free[to] & (row != to)
        edge = np.unique(code[row[real]] * ids + code[to[real]])  # sorted
        row, to = np.divmod(edge, ids)
        first = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=ids))])
        # A neighbour c at place t of its row has c - t non-neighbours below it. That never falls along a row, so with
        # the row in front all of them are one sorted list, in which a binary search counts for any row.
        gaps = edge - (np.arange(edge.size) - first[row])
        # Counted among its non-neighbours, the id itself is the own-th.
        own = np.arange(ids) - np.bincount(row[to < row], minlength=ids)
        self.indptr, self.gaps, self.own = (torch.from_numpy(x.astype(np.int64)) for x in (first, gaps, own))

    def to(self, device: torch.device) -> Graph:
        """The same graph on a device."""
        moved = object.__new__(Graph)
        moved.size, moved.reserved = self.size, self.reserved
        moved.indptr, moved.gaps, moved.own = (x.to(device) for x in (self.indptr, self.gaps, self.own))
        return moved

    def draw(self, code: Tensor, rho: float, generator: torch.Generator | None) -> Tensor:
        """Another id for each of `code` (int64[n], both counted without reserved ids): int64[n]."""
        ids = self.own.numel()
        start = self.indptr[code]
        degree = self.indptr[code + 1] - start
        rest = ids - 1 - degree
        weight = rho * degree.double()
        near = torch.rand(code.shape, dtype=torch.float64, device=code.device, generator=generator)
        near = (near * (weight + rest) < weight) | (rest == 0)  # the second where a product is rounded up
        # A remainder is uniform but for one part in 2^62 / ids. A set that is empty is never chosen.
        rank = torch.randint(2**62, code.shape, device=code.device, generator=generator)
        rank = rank % torch.where(near, degree, rest).clamp(min=1)
        other = rank + (rank >= self.own[code])  # among non-neighbours, past the id itself
        other = other + torch.searchsorted(self.gaps, code * ids + other, right=True) - start
        if self.gaps.numel() == 0:
            return other
        at = (start + rank).clamp(max=self.gaps.numel() - 1)
        return torch.where(near, self.gaps[at] - code * ids + rank, other)


class Replacement:
    """One table's way to replace ids: what `sse` and `SharedEmbedding` share. It checks once and is called often."""

    def __init__(
        self,
        size: int,
        p: Probability,
        reserved: Iterable[int] = (),
        graph: Graph | CSR | None = None,
        rho: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        self.size, self.generator = size, generator
        self.reserved = _reserved(reserved, size)
        self.p, self.on = _probability(p)
        self.rho = float(rho)
        if not 0 <= self.rho < math.inf:
            raise ValueError(f"rho={rho}: neighbours are drawn rho times as often, so it must be at least 0 and finite")
        if self.reserved and len(self.reserved) == size:
            raise ValueError(f"all {size} ids are reserved: leave at least one that can be drawn")
        rows = size if graph is None else graph.size if isinstance(graph, Graph) else len(graph[0]) - 1
        if rows != size:
            raise ValueError(f"the graph is of {rows} ids and the table has {size}: they must be equal")
        self.graph = graph if graph is None or isinstance(graph, Graph) else Graph(*graph, reserved=self.reserved)
        if self.graph is not None and self.graph.reserved != self.reserved:
            raise ValueError(
                f"the graph reserves the ids {list(self.graph.reserved)} and the table {list(self.reserved)}: "
                f"make it with Graph(indptr, index, reserved={list(self.reserved)})"
            )
        # Made by numpy, so that they are real also where a model is built under torch.device("meta").
        fixed = np.array(self.reserved, np.int64)
        self.fixed, self.skips = torch.from_numpy(fixed), torch.from_numpy(fixed - np.arange(fixed.size))

    def with_p(self, p: Probability) -> Replacement:
        """The same with another probability."""
        return Replacement(self.size, p, self.reserved, self.graph, self.rho, self.generator)

    def __call__(self, indices: Tensor) -> Tensor:
        """`indices` itself where p is 0, else a new tensor."""
        if not self.on:
            return indices
        self._check(indices)
        if self.fixed.device != indices.device:
            self._move(indices.device)
        shape, device, generator = indices.shape, indices.device, self.generator
        hit = torch.rand(shape, device=device, generator=generator) < self.p
        hit &= (indices >= 0) & (indices < self.size)
        if len(self.reserved) > FEW:
            hit &= ~torch.isin(indices, self.fixed)
        else:
            for one in self.reserved:
                hit &= indices != one
        if self.graph is None:
            drawn = torch.randint(self.size - len(self.reserved), shape, device=device, generator=generator)
            return torch.where(hit, self._id(drawn).to(indices.dtype), indices)
        # A draw from a graph costs more than a coin: only for the ids that go.
        out = indices.clone()
        going = indices[hit].long()
        if self.reserved:
            going = going - torch.searchsorted(self.fixed, going)
        out[hit] = self._id(self.graph.draw(going, self.rho, generator)).to(indices.dtype)
        return out

    def _id(self, code: Tensor) -> Tensor:
        """The code-th id that is not reserved."""
        if len(self.reserved) > FEW:
            return code + torch.searchsorted(self.skips, code, right=True)
        for one in self.reserved:
            code = code + (code >= one)
        return code

    def _check(self, indices: Tensor) -> None:
        if indices.dtype not in (torch.int64, torch.int32):
            raise ValueError(f"indices are of type {indices.dtype}: an embedding takes torch.int64 or torch.int32")
        if self.generator is not None and self.generator.device.type != indices.device.type:
            raise ValueError(
                f"the generator is on {self.generator.device} and the indices are on {indices.device}: "
                "make it with torch.Generator(device=indices.device)"
            )
        if isinstance(self.p, Tensor):
            tail = indices.shape[max(0, indices.dim() - self.p.dim()) :]
            if len(tail) != self.p.dim() or any(a not in (1, b) for a, b in zip(self.p.shape, tail, strict=True)):
                raise ValueError(
                    f"p of the shape {list(self.p.shape)} does not broadcast to {list(indices.shape)}, the "
                    "shape of the indices: give one number, or one for each position"
                )

    def _move(self, device: torch.device) -> None:
        """Follow the indices to their device. These are no buffers of a module: they are no part of its state."""
        self.fixed, self.skips = self.fixed.to(device), self.skips.to(device)
        if self.graph is not None:
            self.graph = self.graph.to(device)
        if isinstance(self.p, Tensor):
            self.p = self.p.to(device)

    def __repr__(self) -> str:
        p = f"[{', '.join(map(str, self.p.shape))}]" if isinstance(self.p, Tensor) else f"{self.p:g}"
        graph = "" if self.graph is None else f", graph={self.graph.gaps.numel()} edges, rho={self.rho:g}"
        reserved = f", reserved={list(self.reserved)}" if self.reserved else ""
        return f"sse={p}{graph}{reserved}"


class SharedEmbedding(nn.Embedding):
    """`nn.Embedding` with SSE while training; in eval mode it is `nn.Embedding`.

    It takes all arguments of `nn.Embedding`, and `sse` (the probability p), `graph`, `rho`, `reserved` and `generator`
    as the function `sse` does; `padding_idx` is reserved by itself. The state is that of `nn.Embedding`, so a
    `state_dict` of either can be loaded into the other. `table.sse = 0.2` sets the probability anew.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        *args: Any,
        sse: Probability = 0.0,
        graph: Graph | CSR | None = None,
        rho: float = 1.0,
        reserved: Iterable[int] = (),
        generator: torch.Generator | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_embeddings, embedding_dim, *args, **kwargs)
        self.replacement = _for_table(self, p=sse, graph=graph, rho=rho, reserved=reserved, generator=generator)

    @property
    def sse(self) -> Probability:
        """The probability of a replacement."""
        return self.replacement.p

    @sse.setter
    def sse(self, p: Probability) -> None:
        self.replacement = self.replacement.with_p(p)

    def forward(self, input: Tensor) -> Tensor:
        """Vectors of the ids `input` (of any shape): float[*shape, embedding_dim]."""
        return super().forward(self.replacement(input) if self.training else input)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, {self.replacement}"


def apply_sse(
    module: nn.Module,
    tables: Mapping[str, Probability | Mapping[str, Any]],
    *,
    generator: torch.Generator | None = None,
) -> nn.Module:
    """Make embeddings of a model `SharedEmbedding`s, in place; returns the model.

    tables : {name of an embedding in `module.named_modules()`: p, or dict(p=, graph=, rho=, reserved=, generator=)}.

    The objects stay who they are: weights stay tied, hooks stay, and an optimizer made before goes on. Nothing changes
    where one of the names or values is wrong.
    """
    known = {name: one for name, one in module.named_modules(remove_duplicate=False) if isinstance(one, nn.Embedding)}
    ready: list[tuple[nn.Embedding, Replacement]] = []
    for name, options in tables.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.4) or sorted(known)
            names = ", ".join(map(repr, near))
            raise ValueError(
                f"there is no embedding {name!r} in the model: " + (f"did you mean {names}?" if near else "it has none")
            )
        table = known[name]
        if type(table) not in (nn.Embedding, SharedEmbedding):
            raise ValueError(
                f"{name!r} is a {type(table).__name__}, which may do more than nn.Embedding: "
                "call sse(indices, ...) before it instead"
            )
        given = {"generator": generator, **(options if isinstance(options, Mapping) else {"p": options})}
        unknown = given.keys() - {"p", "graph", "rho", "reserved", "generator"}
        if unknown or "p" not in given:
            wrong = f"unknown option {min(unknown)!r}" if unknown else "no p"
            raise ValueError(f"{name!r} has {wrong}: the options are p (required), graph, rho, reserved and generator")
        ready.append((table, _for_table(table, **given)))
    for table, replacement in ready:
        table.__class__ = SharedEmbedding
        cast(SharedEmbedding, table).replacement = replacement
    return module


def _for_table(table: nn.Embedding, *, reserved: Iterable[int] = (), **options: Any) -> Replacement:
    padding = [] if table.padding_idx is None else [table.padding_idx]
    return Replacement(table.num_embeddings, reserved=[*reserved, *padding], **options)


def _probability(p: Probability) -> tuple[Probability, bool]:
    """p after a check, and whether it is anything but 0."""
    if not isinstance(p, Tensor):
        if not isinstance(p, int | float | np.floating) or not 0 <= p <= 1:
            raise ValueError(f"p={p!r}: the probability of a replacement must be a number between 0 and 1, or a tensor")
        return float(p), bool(p > 0)
    wrong = ~((p >= 0) & (p <= 1))
    if bool(wrong.any()):
        raise ValueError(f"p holds {p[wrong][0].item():g}: the probability of a replacement must be between 0 and 1")
    return p.detach().clone(), bool(p.any())


def _reserved(ids: Iterable[int], size: int) -> tuple[int, ...]:
    out = tuple(sorted({int(i) for i in ids}))
    if out and not 0 <= out[0] <= out[-1] < size:
        wrong = out[0] if out[0] < 0 else out[-1]
        raise ValueError(f"the reserved id {wrong} is not one of the table: its ids are 0 to {size - 1}")
    return out


def _integers(values: Integers, name: str) -> NDArray[np.int64]:
    out = np.asarray(values.cpu() if isinstance(values, Tensor) else values)
    if out.ndim != 1 or out.dtype.kind not in "iu":
        raise ValueError(f"{name} must be a list of whole numbers, got {out.dtype} of the shape {list(out.shape)}")
    return out.astype(np.int64)
