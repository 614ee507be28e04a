"""SSE as a switch: forward pre-hooks that replace ids before a table looks them up, and a handle that undoes them.

A hook changes neither the modules nor their state: `save_pretrained`, `state_dict`, tied weights, adapters, optimizers
and wrappers (DDP, torch.compile) see the model that was there before. Random numbers come from torch's global
generator, as those of dropout do, so that gradient checkpointing, which restores it, recomputes with the same ids.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from ..errors import CorankError
from ..nn.sse import CSR, Graph, Replacement
from .tables import Table, find, special_ids
from .targets import TargetHook


class Handle:
    """What was switched on; `remove()`, or the end of a `with` block, switches it off. Removing twice does nothing.

    tables : the names of the tables.
    """

    def __init__(self, tables: list[str], what: str) -> None:
        self.tables = tables
        self._what = what
        self._hooks: list[RemovableHandle] = []

    def remove(self) -> None:
        for handle in self._hooks:
            handle.remove()
        self._hooks = []

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        state = self._what if self._hooks else "removed"
        return f"<{type(self).__name__} of {', '.join(map(repr, self.tables))}: {state}>"


class InputHook:
    """Replaces the ids that a table is called with, while it is in training mode."""

    def __init__(self, replacement: Replacement) -> None:
        self.replacement = replacement

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not module.training:
            return None
        if args:
            return (self.replacement(args[0]), *args[1:]), kwargs
        name = "input" if "input" in kwargs else next(iter(kwargs))  # an adapter names its first argument as it likes
        return args, {**kwargs, name: self.replacement(kwargs[name])}


class NoiseHook:
    """Adds uniform noise of the size alpha / sqrt(length x width) to looked-up vectors, while in training mode."""

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Tensor) -> Tensor:
        if not module.training:
            return output
        size = self.alpha / (output.shape[-2] * output.shape[-1]) ** 0.5
        return output + torch.empty_like(output).uniform_(-size, size)


def apply_sse(
    model: nn.Module,
    p: float = 0.01,
    *,
    tokenizer: Any = None,
    reserved: Iterable[int] | None = None,
    graph: Graph | CSR | None = None,
    rho: float = 1.0,
    tables: Iterable[str] | str | None = None,
    p_target: float = 0.0,
) -> Handle:
    """Switch stochastic shared embeddings on for the inputs of a model; returns a handle that switches them off.

    In training mode each id is replaced with probability p before it is looked up, by one drawn uniformly from all ids
    or, with a graph, by a neighbour rho times as often as by another. In eval mode nothing is replaced. Padding and
    special tokens are neither replaced nor drawn.

    model : any torch model. Of transformers, also wrapped by PEFT, DDP or torch.compile; inputs given as
        `inputs_embeds` are not looked up, so nothing is replaced in them.
    tokenizer : says which ids are special. Without it, the tokenizer stored beside the weights and the configuration of
        the model say it.
    reserved : ids that are left alone, in addition to padding and to those of the configuration. With it, no
        tokenizer is looked for.
    graph : neighbours of each id: see `nearest_graph` and `token_graph`.
    tables : names of the embeddings, where they are not the model's input embeddings.
    p_target : replaces `labels` that the model is called with, with this probability, in training mode: label
        smoothing in expectation. The inputs of a decoder are made from the labels before.

    Reference: Wu, Li, Hsieh and Sharpnack (NeurIPS 2019). Cost: one random number per id.
    """
    _check_probability(p, "p")
    _check_probability(p_target, "p_target")
    found = find(model, tables)
    hooks = []
    for table in found:
        _check_new(table, InputHook, "SSE")
        fixed = special_ids(table, tokenizer, reserved)
        if isinstance(graph, Graph) and graph.size == table.size and graph.reserved != tuple(fixed):
            raise CorankError(
                f"the graph was made for other reserved ids than those of {table.name!r} (padding, special tokens): "
                "give it as a pair (indptr, index), which is then prepared for them"
            )
        try:
            replacement = Replacement(table.size, p, fixed, graph, rho)
        except (TypeError, ValueError) as why:
            raise CorankError(f"SSE on {table.name!r}: {why}") from None
        hooks.append((table.module, InputHook(replacement)))
    target = TargetHook.of(model, p_target) if p_target else None  # may refuse: before anything is changed
    _let_compiler_see_hooks()
    handle = Handle([table.name for table in found], f"p={p:g}" + (f", p_target={p_target:g}" if target else ""))
    for module, hook in hooks:
        handle._hooks.append(module.register_forward_pre_hook(hook, with_kwargs=True))
    if target is not None:
        handle._hooks.append(target.module.register_forward_pre_hook(target, with_kwargs=True))
    return handle


def apply_neftune(model: nn.Module, alpha: float = 5.0, *, tables: Iterable[str] | str | None = None) -> Handle:
    """Switch the noise of NEFTune (Jain et al. 2023) on, the baseline to compare SSE with; returns a handle.

    As `Trainer` does with `neftune_noise_alpha`, for any torch model: in training mode, uniform noise between -s and s
    with s = alpha / sqrt(length x width) is added to the vectors that were looked up.
    """
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 <= alpha < float("inf"):
        raise CorankError(f"alpha={alpha!r}: the size of the noise must be a number that is at least 0, such as 5")
    found = find(model, tables)
    for table in found:
        _check_new(table, NoiseHook, "NEFTune")
    _let_compiler_see_hooks()
    handle = Handle([table.name for table in found], f"alpha={alpha:g}")
    for table in found:
        handle._hooks.append(table.module.register_forward_hook(NoiseHook(float(alpha))))
    return handle


def remove_sse(model: nn.Module) -> int:
    """Switch off all SSE and NEFTune of a model, also where the handle is lost; returns how many hooks there were."""
    count = 0
    for module in model.modules():
        hooks: dict[int, Any]
        for hooks in (module._forward_pre_hooks, module._forward_hooks):
            ours = [key for key, hook in hooks.items() if isinstance(hook, InputHook | TargetHook | NoiseHook)]
            for key in ours:
                del hooks[key]
                module._forward_pre_hooks_with_kwargs.pop(key, None)
            count += len(ours)
    return count


def _let_compiler_see_hooks() -> None:
    """torch.compile takes hooks for fixed: code compiled without one would run on, for any model of the same class."""
    import torch._dynamo.config

    if getattr(torch._dynamo.config, "skip_nnmodule_hook_guards", False):
        torch._dynamo.config.skip_nnmodule_hook_guards = False
        torch.compiler.reset()  # what was compiled before has no such guard


def _check_probability(p: float, name: str) -> None:
    if isinstance(p, bool) or not isinstance(p, int | float) or not 0 <= p <= 1:
        raise CorankError(f"{name}={p!r}: the probability of a replacement must be a number between 0 and 1, e.g. 0.01")


def _check_new(table: Table, kind: type, what: str) -> None:
    """Two hooks would replace twice: a second application is a mistake (a cell of a notebook that is run again)."""
    for module in (table.module, table.core):
        if any(isinstance(h, kind) for h in (*module._forward_pre_hooks.values(), *module._forward_hooks.values())):
            raise CorankError(f"{table.name!r} already has {what}: call remove() of its handle, or remove_sse(model)")
    if kind is InputHook and getattr(table.core, "replacement", None) is not None:
        raise CorankError(f"{table.name!r} is a SharedEmbedding, which has SSE already: set its sse instead")
