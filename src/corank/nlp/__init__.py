"""Stochastic shared embeddings for language models: any torch or Hugging Face model, its targets, and `Trainer`.

Importing this package imports neither torch nor transformers; using one of its names does.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ..errors import MissingExtra

if TYPE_CHECKING:
    from .graphs import nearest_graph as nearest_graph
    from .graphs import token_graph as token_graph
    from .switch import Handle as Handle
    from .switch import apply_neftune as apply_neftune
    from .switch import apply_sse as apply_sse
    from .switch import remove_sse as remove_sse
    from .targets import SSECollator as SSECollator
    from .trainer import SSECallback as SSECallback

HOME = {
    "Handle": "switch",
    "SSECallback": "trainer",
    "SSECollator": "targets",
    "apply_neftune": "switch",
    "apply_sse": "switch",
    "nearest_graph": "graphs",
    "remove_sse": "switch",
    "token_graph": "graphs",
}
__all__ = [
    "Handle",
    "SSECallback",
    "SSECollator",
    "apply_neftune",
    "apply_sse",
    "nearest_graph",
    "remove_sse",
    "token_graph",
]


def __getattr__(name: str) -> Any:
    if name not in HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f".{HOME[name]}", __name__), name)
    except ModuleNotFoundError as missing:
        if missing.name not in ("torch", "transformers"):
            raise
        raise MissingExtra(f"corank.nlp.{name}", "nn" if missing.name == "torch" else "nlp") from None
