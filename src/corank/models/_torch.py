"""`torch` and `F` for the files of models, imported at their first use; what to install when torch is missing.

Listing the models must neither wait for torch nor need it, and a network should still read like any other torch code.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ..errors import MissingExtra
from ..system.memory import room_for

if TYPE_CHECKING:
    import torch as torch
    from torch.nn import functional as F  # noqa: N812

    from ..model import Model
else:

    class _AtFirstUse:
        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> Any:
            return getattr(importlib.import_module(self._name), name)

    torch, F = _AtFirstUse("torch"), _AtFirstUse("torch.nn.functional")

__all__ = ["F", "require_torch", "torch"]


def require_torch(model: Model) -> None:
    """Raise `MissingExtra` with the command that installs it, unless torch can be imported."""
    room_for("torch")
    try:
        importlib.import_module("torch")
    except ModuleNotFoundError as why:
        if why.name != "torch":
            raise
        raise MissingExtra(type(model).__name__, "nn") from None
