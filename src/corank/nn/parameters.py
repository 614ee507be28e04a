"""Named parameters inside one flat float32 vector, so that optimiser, checkpoint and model file handle one array."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

LINE = 16  # floats per cache line: every parameter starts at the beginning of one
Weights = Mapping[str, Tensor]
Role = Literal["table", "matrix", "bias", "gain"]
ORDER: dict[Role, int] = {"table": 0, "matrix": 1, "bias": 2, "gain": 2}


@dataclass(frozen=True)
class Parameter:
    """Shape and role of one parameter.

    role : what decides its initial values, its gradient and its weight decay.
        table: embeddings whose rows are looked up (`tables.rows`); the gradient is collected per looked-up row.
        matrix: weights of a layer; Glorot uniform at the start, as tables are by default.
        bias: zero at the start, no weight decay. gain: one at the start, no weight decay.
    stacked : how many matrices stand below each other in this one; Glorot's bound is that of each of them.
    start : initial values (of `shape`) from a generator, where they are not those of the role.
    """

    shape: tuple[int, ...]
    role: Role
    stacked: int = 1
    start: Callable[[np.random.Generator], NDArray[np.floating[Any]]] | None = None

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class Layout:
    """Where each parameter is in the flat vector: tables, then matrices, then biases and gains, each as declared.

    Attributes
    ----------
    offset : first element of each parameter.
    size : length of the flat vector.
    """

    def __init__(self, parameters: Mapping[str, Parameter]) -> None:
        ordered = sorted(parameters.items(), key=lambda entry: ORDER[entry[1].role])  # stable
        self.parameters = dict(ordered)
        self.offset: dict[str, int] = {}
        self.size = 0
        ends = [0, 0, 0]  # of tables, of matrices, of biases and gains
        for name, parameter in ordered:
            self.offset[name] = self.size
            self.size += -(-parameter.size // LINE) * LINE
            ends[ORDER[parameter.role]] = self.size
        self.tables = [name for name, parameter in ordered if parameter.role == "table"]
        self.tables_end = ends[0]
        self.decayed_end = max(ends[:2])  # biases and gains are not subject to weight decay

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """The parameters as views into a flat float32 tensor of `size` elements."""
        if flat.shape != (self.size,):
            raise ValueError(f"these parameters need {self.size} numbers, not {tuple(flat.shape)}")
        return {
            name: flat[self.offset[name] : self.offset[name] + parameter.size].view(parameter.shape)
            for name, parameter in self.parameters.items()
        }

    def empty(self) -> NDArray[np.float32]:
        """Zeros of `size`, aligned to a cache line: matrix products may round differently at other addresses."""
        whole = np.zeros(self.size + LINE, np.float32)
        skip = (-whole.ctypes.data // 4) % LINE
        return whole[skip : skip + self.size]

    def initial_weights(self, rng: np.random.Generator, table_std: float | None = None) -> NDArray[np.float32]:
        """Random tables and matrices (Glorot uniform), zero biases, unit gains; a `start` of its own comes first.

        table_std : standard deviation of the tables instead of Glorot's, which grows as tables get shorter: in a small
            catalogue the random part of the embeddings would then outweigh the learned one.
        """
        flat = self.empty()
        for name, parameter in self.parameters.items():
            part = flat[self.offset[name] : self.offset[name] + parameter.size]
            if parameter.start is not None:
                part[:] = parameter.start(rng).ravel()
            elif parameter.role == "gain":
                part[:] = 1
            elif parameter.role != "bias":
                fan_out, fan_in = parameter.shape[0] // parameter.stacked, parameter.shape[1]
                bound = math.sqrt(6 / (fan_out + fan_in))
                if parameter.role == "table" and table_std is not None:
                    bound = math.sqrt(3) * table_std
                part[:] = rng.uniform(-bound, bound, part.size)
        return flat
