"""Training steps of torch models: parts of a batch in parallel, one fused Adam step on one flat vector.

Results are bit-identical for any number of threads: a batch is divided into a fixed number of parts, each is computed
by a single thread with its own gradient, and the gradients are added in order. This is also faster than torch's
intra-op threads, which synchronise after each of hundreds of small operations.

All state is in numpy arrays that are updated in place (weights and two moments), so that a checkpoint can restore them.
On another device than the CPU there are copies, which are brought there and back once per epoch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .devices import CPU
from .parameters import Layout
from .tables import add_gradient, with_sink

Floats = NDArray[np.float32]
Part = Callable[[dict[str, Tensor]], Tensor]  # weights -> its contribution to the loss


class Trainer:
    """Adam (or, with weight decay, AdamW) on the parameters of a `Layout` that live in `weights`.

    first, second : Adam's moments, arrays like weights, zero before the first step.
    lr : learning rate. weight_decay : of tables and matrices; biases and gains are not decayed.
    l2 : regularisation of the tables, l2 / 2 times their squared norm in the loss.
    threads : number of parts of a batch that are computed in parallel. device : where they are computed.
    """

    def __init__(
        self,
        layout: Layout,
        weights: Floats,
        first: Floats,
        second: Floats,
        *,
        lr: float,
        betas: tuple[float, float] = (0.9, 0.98),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        l2: float = 0.0,
        threads: int = 1,
        device: torch.device = CPU,
    ) -> None:
        self.layout, self.threads, self.l2, self.device = layout, threads, l2, device
        self.host = [torch.from_numpy(array) for array in (weights, first, second)]
        self.flat, *self.moments = (tensor.to(device) for tensor in self.host)  # on a CPU, the same tensors
        self.total = torch.from_numpy(layout.empty()).to(device)
        self.tables = {name: view for name, view in layout.views(self.total).items() if name in layout.tables}
        self.rest = layout.tables_end
        self.grads: list[Tensor] = []
        self.leaves: list[dict[str, Tensor]] = []
        self.options = {"lr": lr, "betas": betas, "eps": eps, "fused": device.type in ("cpu", "cuda")}
        self.optimizer = self._optimizer(weight_decay)

    def _optimizer(self, weight_decay: float) -> torch.optim.Optimizer:
        groups: list[dict[str, Any]] = []
        self.slices: list[tuple[Tensor, slice]] = []
        cut = self.layout.decayed_end if weight_decay else self.layout.size
        for start, stop, decay in ((0, cut, weight_decay), (cut, self.layout.size, 0.0)):
            if stop > start:
                part = self.flat[start:stop]
                groups.append({"params": [part], "weight_decay": decay})
                self.slices.append((part, slice(start, stop)))
        kind = torch.optim.AdamW if weight_decay else torch.optim.Adam
        made: torch.optim.Optimizer = kind(groups, **self.options)  # type: ignore[arg-type]
        for part, at in self.slices:
            first, second = (moment[at] for moment in self.moments)
            step = torch.zeros((), device=self.device if self.options["fused"] else CPU)
            made.state[part] = {"step": step, "exp_avg": first, "exp_avg_sq": second}
        return made

    def _leaves(self, number: int) -> None:
        """Create the leaves (parameters with gradients of their own) of the parts up to `number`."""
        while len(self.leaves) <= number:
            grad = self.total if number == 0 else torch.from_numpy(self.layout.empty()).to(self.device)
            leaves = self.layout.views(self.flat)
            for name, view in self.layout.views(grad).items():
                if name in self.tables:
                    leaves[name] = with_sink(leaves[name])
                else:
                    leaves[name] = leaves[name].detach().requires_grad_()
                    leaves[name].grad = view
            self.grads.append(grad[self.rest :])
            self.leaves.append(leaves)

    def set_lr(self, lr: float) -> None:
        """Change the learning rate."""
        for group in self.optimizer.param_groups:
            group["lr"] = lr

    def step(self, number: int, parts: Sequence[Part], pool: ThreadPoolExecutor | None) -> float:
        """One Adam step, the `number`-th of training from 1, on the sum of the losses of the parts; returns the sum."""
        for at in range(len(parts)):
            self._leaves(at)

        def work(at: int) -> float:
            self.grads[at].zero_()
            loss = parts[at](self.leaves[at])
            loss.backward()  # type: ignore[no-untyped-call]
            return float(loss.detach())

        every = range(len(parts))
        losses = list(pool.map(work, every)) if pool is not None and len(parts) > 1 else [work(at) for at in every]
        for more in self.grads[1 : len(parts)]:
            self.grads[0].add_(more)
        for name, out in self.tables.items():
            add_gradient(out, [leaves[name] for leaves in self.leaves[: len(parts)]])
            if self.l2:
                out.add_(self.leaves[0][name].detach(), alpha=self.l2)
        for part, where in self.slices:
            part.grad = self.total[where]
            self.optimizer.state[part]["step"].fill_(number - 1)
        self.optimizer.step()
        return float(sum(losses))

    @contextlib.contextmanager
    def workers(self) -> Iterator[ThreadPoolExecutor | None]:
        """For one epoch: a thread pool for the parts of batches; torch uses a single thread within each part."""
        self._copy(self.host, [self.flat, *self.moments])
        with one_thread():
            if self.threads <= 1 or self.device.type != "cpu":
                yield None
            else:
                with ThreadPoolExecutor(self.threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
                    yield pool
        self._copy([self.flat, *self.moments], self.host)

    def _copy(self, source: list[Tensor], to: list[Tensor]) -> None:
        """To the device and back; a checkpoint may have changed the arrays since."""
        for one, other in zip(source, to, strict=True):
            if one is not other:
                other.copy_(one)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Within this context torch uses only the calling thread: work is parallel over parts, not inside operations."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
