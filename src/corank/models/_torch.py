"""`torch` and `F` for the files of models, imported at their first use; what all models that need torch share.

Listing the models must neither wait for torch nor need it, and a network should still read like any other torch code.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ..errors import CorankError, MissingExtra
from ..model import Model
from ..params import param
from ..system.memory import room_for

if TYPE_CHECKING:
    import torch as torch
    from torch.nn import functional as F  # noqa: N812
else:

    class _AtFirstUse:
        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> Any:
            return getattr(importlib.import_module(self._name), name)

    torch, F = _AtFirstUse("torch"), _AtFirstUse("torch.nn.functional")

__all__ = ["F", "TorchModel", "require_torch", "torch"]


def require_torch(model: Model) -> None:
    """Raise `MissingExtra` with the command that installs it, unless torch can be imported."""
    room_for("torch")
    try:
        importlib.import_module("torch")
    except ModuleNotFoundError as why:
        if why.name != "torch":
            raise
        raise MissingExtra(type(model).__name__, "nn") from None


@dataclass(kw_only=True, eq=False)
class TorchModel(Model):
    """A model whose tensors may be on another device than the CPU."""

    device: str = param(
        "auto",
        "where it is computed: auto (CUDA or MPS where there is one, else cpu), or the name of a device: cpu, cuda, "
        "cuda:1, mps; not part of the model file",
        machine=True,
    )

    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda", "mps")  # kinds that have all operations

    def _device(self) -> torch.device:
        """The device to compute on."""
        require_torch(self)
        from ..nn.devices import choose

        try:
            return choose(self.device, self.devices)
        except ValueError as why:
            raise CorankError(f"{type(self).__name__}(device={self.device!r}): {why}") from None
