"""Building blocks of the torch models. Importing this package does not import torch; using one of its names does."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .additive import additive_attention as additive_attention
    from .attention import attend as attend
    from .attention import attend_last as attend_last
    from .attention import attention_weights as attention_weights
    from .devices import beside as beside
    from .devices import send as send
    from .loop import Trainer as Trainer
    from .loop import one_thread as one_thread
    from .losses import next_item_loss as next_item_loss
    from .noise import Noise as Noise
    from .noise import dropout as dropout
    from .padded import padded_batch as padded_batch
    from .parameters import Layout as Layout
    from .parameters import Parameter as Parameter
    from .rating_graph import OTHER as OTHER
    from .rating_graph import SIDES as SIDES
    from .rating_graph import BilinearDecoder as BilinearDecoder
    from .rating_graph import RatingGraph as RatingGraph
    from .rating_graph import feature_layer as feature_layer
    from .rating_graph import feature_parameters as feature_parameters
    from .recurrent import gru as gru
    from .recurrent import linear_recurrence as linear_recurrence
    from .recurrent import linear_recurrence_of_rectangle as linear_recurrence_of_rectangle
    from .sparse import Pattern as Pattern
    from .tables import rows as rows
    from .tables import rows_or_mean as rows_or_mean

HOME = {
    "additive_attention": "additive",
    "attend": "attention",
    "attend_last": "attention",
    "attention_weights": "attention",
    "beside": "devices",
    "send": "devices",
    "Trainer": "loop",
    "one_thread": "loop",
    "next_item_loss": "losses",
    "Noise": "noise",
    "dropout": "noise",
    "Layout": "parameters",
    "Parameter": "parameters",
    "OTHER": "rating_graph",
    "SIDES": "rating_graph",
    "BilinearDecoder": "rating_graph",
    "RatingGraph": "rating_graph",
    "feature_layer": "rating_graph",
    "feature_parameters": "rating_graph",
    "Pattern": "sparse",
    "padded_batch": "padded",
    "gru": "recurrent",
    "linear_recurrence": "recurrent",
    "linear_recurrence_of_rectangle": "recurrent",
    "rows": "tables",
    "rows_or_mean": "tables",
}


def __getattr__(name: str) -> Any:
    if name not in HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{HOME[name]}", __name__), name)
