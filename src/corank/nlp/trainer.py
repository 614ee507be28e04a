"""SSE for the `Trainer` of transformers."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from .switch import Handle, apply_sse


class SSECallback(TrainerCallback):  # type: ignore[misc]
    """Stochastic shared embeddings while a `Trainer` trains: on when training begins, off when it ends.

    Trainer(..., callbacks=[SSECallback(p=0.01)]). The options are those of `apply_sse`; the tokenizer is that of the
    trainer (`processing_class`) unless one is given. If training is interrupted, SSE stays on (in training mode) until
    it begins again or `remove()`.
    """

    def __init__(self, p: float = 0.01, **options: Any) -> None:
        self.options = {"p": p, **options}
        self.handle: Handle | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.remove()
        tokenizer = kwargs.get("processing_class")
        if not hasattr(getattr(tokenizer, "tokenizer", tokenizer), "all_special_ids"):
            tokenizer = None  # an image or feature processor
        options = {"tokenizer": tokenizer} if "reserved" not in self.options else {}
        self.handle = apply_sse(kwargs["model"], **{**options, **self.options})

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.remove()

    def remove(self) -> None:
        """Switch SSE off; does nothing where it is off."""
        if self.handle is not None:
            self.handle.remove()
            self.handle = None
