"""SSE on targets: labels that are replaced by other classes with a small probability while training.

In expectation this is label smoothing: a target y that is replaced with probability p by one of all N classes has the
expected cross-entropy (1 - p) loss(y) + p/N (loss(1) + ... + loss(N)).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import CorankError
from ..nn.sse import Graph, Replacement


class SSECollator:
    """A collator for training batches that replaces their labels with probability p.

    collate : makes a batch, a mapping, from examples: a collator of transformers, or
        `torch.utils.data.default_collate`.
    p : the probability of a replacement.
    classes : how many classes there are: the number of labels, or for a language model the size of its vocabulary.
    graph : which classes are neighbours, for SSE-Graph; rho : how many times as often a neighbour is drawn.
    key : where the labels are in a batch. Labels that are no class (-100: ignored by the loss) stay.

    Only for batches that are trained on: a `Trainer` evaluates with the same collator, so give `p_target` to
    `SSECallback` there. A model that makes its decoder's inputs from the labels would see the replaced ones: put
    `decoder_input_ids` into the batch first, as `DataCollatorForSeq2Seq(tokenizer, model=model)` does.
    """

    def __init__(
        self,
        collate: Callable[[list[Any]], Any],
        p: float,
        classes: int,
        *,
        graph: Graph | None = None,
        rho: float = 1.0,
        key: str = "labels",
    ) -> None:
        if isinstance(classes, bool) or not isinstance(classes, int) or classes < 2:
            raise CorankError(f"classes={classes!r}: SSE on targets needs at least 2 classes to draw from")
        try:
            self._replacement = Replacement(classes, p, (), graph, rho)
        except (TypeError, ValueError) as why:
            raise CorankError(f"SSE on targets: {why}") from None
        self.collate, self.key = collate, key

    def __call__(self, examples: list[Any]) -> Any:
        batch = self.collate(examples)
        if not isinstance(batch, Mapping) or self.key not in batch:
            raise CorankError(f"the batch has no {self.key!r}: name the place of its labels with key=...")
        batch[self.key] = replaced(batch[self.key], self._replacement)  # type: ignore[index]  # as collators return it
        return batch


class TargetHook:
    """Replaces the labels that a model is called with, while it is in training mode."""

    def __init__(self, module: nn.Module, replacement: Replacement) -> None:
        self.module, self.replacement = module, replacement

    @classmethod
    def of(cls, model: nn.Module, p: float) -> TargetHook:
        """For a model of transformers with a head: its classes are those of the head."""
        whole = _headed(model)
        if any(isinstance(hook, cls) for hook in whole._forward_pre_hooks.values()):
            raise CorankError("the model already has SSE on its labels: call remove_sse(model) first")
        return cls(whole, Replacement(_classes(whole), p))

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        labels = kwargs.get("labels")
        if not module.training or labels is None:
            return None
        kwargs = dict(kwargs)
        shift = getattr(module, "prepare_decoder_input_ids_from_labels", None)
        if shift and all(kwargs.get(name) is None for name in ("decoder_input_ids", "decoder_inputs_embeds")):
            # The model would make its decoder's inputs of the replaced labels: they are made of the true ones here.
            kwargs["decoder_input_ids"] = shift(labels)
        kwargs["labels"] = replaced(labels, self.replacement)
        return args, kwargs


def replaced(labels: Any, replacement: Replacement) -> Tensor:
    if not isinstance(labels, Tensor) or labels.dtype not in (torch.int64, torch.int32):
        kind = labels.dtype if isinstance(labels, Tensor) else type(labels).__name__
        raise CorankError(f"the labels are of type {kind}: SSE on targets replaces classes, torch.int64 or torch.int32")
    return replacement(labels)


def _headed(model: nn.Module) -> nn.Module:
    """The model of transformers itself, inside DDP, torch.compile or PEFT."""
    for part in model.modules():
        if hasattr(type(part), "get_output_embeddings"):  # of the type: wrappers hand on what is inside them
            return part
    raise CorankError(
        f"p_target: {type(model).__name__} is no model of transformers, and only these say what their labels are: "
        "replace the targets of your batches with SSECollator or corank.nn.sse.sse"
    )


def _classes(model: Any) -> int:
    """How many classes the labels of a model have: the rows of its language head, or its number of labels."""
    if "labels" not in inspect.signature(model.forward).parameters:
        raise CorankError(f"p_target: {type(model).__name__} takes no labels: SSE on targets needs a model with a head")
    head = model.get_output_embeddings()
    size = getattr(head, "out_features", None) or getattr(getattr(head, "weight", None), "shape", [0])[0]
    size = int(size or getattr(model.config, "num_labels", 0))
    if size < 2 or getattr(model.config, "problem_type", None) in ("regression", "multi_label_classification"):
        raise CorankError(
            f"p_target: {type(model).__name__} has no labels with two or more classes, one of which is right: "
            "SSE on targets is for classification and language models"
        )
    return size
