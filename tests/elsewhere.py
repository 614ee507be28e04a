"""A second device for machines that have none: tensors that compute on the CPU and refuse to meet CPU tensors.

`with elsewhere() as device:` a network can be run on `device` as on a GPU, forward and backward, with real numbers.
What a GPU refuses fails here too: an operation on a tensor of this device and one of the CPU (numbers of no dimensions
are allowed), `numpy()` without `cpu()`. Its tensors say that they are on torch's device "meta".
"""

from __future__ import annotations

import contextlib

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

aten = torch.ops.aten
CPU, THERE = torch.device("cpu"), torch.device("meta")


class There(torch.Tensor):
    """A tensor of the second device; `inner` holds its numbers."""

    @staticmethod
    def __new__(cls, inner):
        places = {"layout": inner.layout}
        if inner.layout == torch.strided:
            places = {"strides": inner.stride(), "storage_offset": inner.storage_offset()}
        return torch.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype, device=THERE, **places)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return run(func, args, kwargs or {})


class Dispatch(TorchDispatchMode):
    """Sees what makes a tensor from nothing, or moves one."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return run(func, args, kwargs or {})


def run(func, args, kwargs):
    tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)]
    there = [x for x in tensors if isinstance(x, There)]
    here = [x for x in tensors if not isinstance(x, There) and x.dim() > 0]
    moves = func in (aten._to_copy.default, aten.copy_.default)
    if there and here and not moves:
        raise RuntimeError(f"{func} gets tensors of two devices: {[tuple(x.shape) for x in tensors]}")
    asked = kwargs.get("device")
    if asked is not None:
        kwargs = {**kwargs, "device": CPU}
    kwargs.pop("pin_memory", None) if func is aten._to_copy.default else None
    inner = tree_map(lambda x: x.inner if isinstance(x, There) else x, (args, kwargs))
    out = func(*inner[0], **inner[1])
    if func is aten.copy_.default:
        return args[0]
    if (torch.device(asked) == CPU) if asked is not None else not there:
        return out
    known = {id(x.inner): x for x in there}  # what was changed in place stays the same tensor

    def wrapped(x):
        if not isinstance(x, torch.Tensor):
            return x
        return known[id(x)] if id(x) in known else There(x.resolve_conj().resolve_neg())

    return tree_map(wrapped, out)


@contextlib.contextmanager
def elsewhere():
    """A context in which the device that is yielded exists."""
    with Dispatch():
        yield THERE
