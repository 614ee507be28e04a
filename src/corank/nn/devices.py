"""Devices: where the tensors of a model are, and how arrays get there.

No network creates a tensor without saying where: arrays of indices and masks go `beside` the tensors that they meet. On
a CPU nothing is copied.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

KINDS = ("cpu", "cuda", "mps")
CPU = torch.device("cpu")


def choose(name: str, allowed: Sequence[str] = KINDS) -> torch.device:
    """The device of this name; "auto" is the first of CUDA, MPS and CPU that is here and allowed.

    A name of another kind, or of a device that is not here, raises ValueError with the rule and the remedy.
    """
    if name == "auto":
        return torch.device(next((kind for kind in ("cuda", "mps") if kind in allowed and available(kind)), "cpu"))
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError("this is no name of a device; use 'auto', 'cpu', 'cuda', 'cuda:1' or 'mps'") from None
    if device.type not in allowed:
        raise ValueError(f"it runs on {' or '.join(allowed)} only; choose one of them, or 'auto'")
    if not available(device.type):
        raise ValueError(f"torch finds no {device.type} device on this machine; use 'auto' or 'cpu'")
    count = torch.cuda.device_count() if device.type == "cuda" else 1
    if (device.index or 0) >= count:
        raise ValueError(f"{device.type} devices are numbered from 0 to {count - 1} on this machine; use one of these")
    return device


def available(kind: str) -> bool:
    """Whether there is a device of this kind that torch can use."""
    if kind == "cuda":
        return torch.cuda.is_available()
    return torch.backends.mps.is_available() if kind == "mps" else kind == "cpu"


def send(array: NDArray[Any] | Tensor, device: torch.device) -> Tensor:
    """An array as a tensor on a device: on a CPU it shares its memory with the array; CUDA gets it by pinned memory."""
    if isinstance(array, Tensor):  # of a padded batch
        return array.to(device)
    tensor = torch.from_numpy(array)
    if device.type == "cuda":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def beside(x: Tensor, array: NDArray[Any] | Tensor) -> Tensor:
    """An array as a tensor on the device of x."""
    return send(array, x.device)


def full_precision(x: Tensor) -> contextlib.AbstractContextManager[Any]:
    """A context in which nothing is computed in half precision on the device of x, where errors would add up."""
    mixed = x.device.type in KINDS and torch.is_autocast_enabled(x.device.type)
    return torch.autocast(x.device.type, enabled=False) if mixed else contextlib.nullcontext()
