"""Language models of real architectures at toy size, and what their tables really look up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from torch import nn  # noqa: E402

SMALL = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
IDS = torch.arange(5, 50).repeat(20, 1)
FIXED = [0, 1, 2]


def bert(kind: str = "BertModel", **more):
    torch.manual_seed(0)
    return getattr(transformers, kind)(
        transformers.BertConfig(**SMALL, intermediate_size=32, max_position_embeddings=64, **more)
    )


def bart(kind: str = "BartForConditionalGeneration"):
    torch.manual_seed(0)
    sizes = {
        f"{side}_{what}": n
        for side in ("encoder", "decoder")
        for what, n in (("layers", 1), ("ffn_dim", 32), ("attention_heads", 2))
    }
    config = transformers.BartConfig(vocab_size=50, d_model=16, max_position_embeddings=64, **sizes)
    return getattr(transformers, kind)(config)


@contextmanager
def seen(module: nn.Module) -> Iterator[list[torch.Tensor]]:
    """The ids that a table really looks up: hooks run in order, so this one sees what those before it made."""
    ids: list[torch.Tensor] = []
    handle = module.register_forward_pre_hook(
        lambda _, args, kwargs: ids.append((*args, *kwargs.values())[0]), with_kwargs=True
    )
    yield ids
    handle.remove()


def looked_up(model: nn.Module, table: nn.Module, *args, backward: bool = False, **kwargs) -> list[torch.Tensor]:
    with seen(table) as ids:
        out = model(*args, **kwargs)
        if backward:
            out.logits.square().sum().backward()
    return ids
