"""Stochastic shared embeddings: in training an id is replaced, with some probability, before it is looked up.

Wu, Li, Hsieh and Sharpnack (NeurIPS 2019). An id is kept with probability 1 - p. Otherwise, with N ids to choose from:

- SSE-SE draws uniformly from all N ids, the id itself included, as in the authors' code: p (1 - 1/N) of them change.
- SSE-Graph draws from the N - 1 other ids, each neighbour in the graph rho times as often as each non-neighbour:
  a neighbour is drawn with probability rho deg / (rho deg + N - 1 - deg), and within each of the two sets uniformly.
  rho below 1 makes neighbours less likely; where all ids are neighbours, rho makes no difference.

Reserved ids (padding, unknown) are neither replaced nor drawn, and do not count in N. Nothing of size N x N is
built: the r-th non-neighbour is found by one binary search, for a whole batch at once and without rejection.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from .sse_graph import Graph, Integers, reserved_ids

__all__ = ["Graph", "Replacement", "SharedEmbedding", "apply_sse", "sse", "sse_"]

Probability = float | Tensor
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

    indices : ids in [0, size), int64 or int32, of any shape; ids out of range stay, for the lookup to report.
    p : a number, or a tensor that broadcasts to the shape of `indices` (e.g. one probability per position).
    reserved : ids that are never replaced and never drawn.
    graph : for SSE-Graph. A pair (indptr, index) is prepared in each call: better make a `Graph` of it once.
    rho : how many times as often a neighbour is drawn as a non-neighbour.
    generator : of the device of `indices`; torch's global one when absent. p = 0 draws nothing from it.

    To replace the user of a whole sequence: `sse(users[:, None], ...).expand(-1, length)`.
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


class Replacement:
    """How the ids of one table are replaced, for `sse` and `SharedEmbedding`: checked once, called often."""

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
        self.reserved = reserved_ids(reserved, size)
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
        # Drawing from a graph is expensive: only for the ids that are replaced.
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
        """Follow the indices to their device. No buffers of a module, because they are not part of its state."""
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
    `state_dict` of either can be loaded into the other. `table.sse = 0.2` changes the probability.
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

    The embeddings stay the same objects: tied weights stay tied, and hooks and optimizers keep working. Nothing is
    changed if one of the names or values is wrong.
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
    """p after a check, and whether any of it is above 0."""
    if not isinstance(p, Tensor):
        if not isinstance(p, int | float | np.floating) or not 0 <= p <= 1:
            raise ValueError(f"p={p!r}: the probability of a replacement must be a number between 0 and 1, or a tensor")
        return float(p), bool(p > 0)
    wrong = ~((p >= 0) & (p <= 1))
    if bool(wrong.any()):
        raise ValueError(f"p holds {p[wrong][0].item():g}: the probability of a replacement must be between 0 and 1")
    return p.detach().clone(), bool(p.any())
