"""A torch model as an ONNX network, checked against the scores of the model with onnxruntime."""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..answering.inference import require_fitted
from ..errors import CorankError, MissingExtra
from ..models._torch import TorchModel
from ..system.atomic import replacing

if TYPE_CHECKING:
    from ..model import Model

NEEDED = ("torch", "onnx", "onnxscript", "onnxruntime")
LARGEST = 1_900_000_000  # bytes of weights: one ONNX file holds less than 2 GB
TOLERANCE = 1e-4  # of the largest score


@dataclass(frozen=True)
class OnnxCheck:
    """The inputs and outputs of a network, and how far onnxruntime is from the model: relative to the largest score."""

    inputs: dict[str, tuple[int | str, ...]]
    items: int
    users: int
    difference: float

    def __str__(self) -> str:
        shapes = ", ".join(f"{name} ({', '.join(map(str, shape))})" for name, shape in self.inputs.items())
        return (
            f"{shapes} to scores (batch, {self.items}); equal to the model for {self.users} users within "
            f"{self.difference:.0e} of the largest score"
        )


def export_onnx(model: Model, path: str | Path) -> OnnxCheck:
    """Write the network of a torch model as one ONNX file, and compare its scores with the model's in onnxruntime.

    Sequence models read int64 `items` (batch, max_len), codes of the most recent items, oldest first and padded at the
    right with any number, and `length` (batch,), how many of them there are; those with a vector per user read `user`
    (batch,), too, -1 for unseen users. `gcmc` and `graph_ae` read `user` alone, for training users. The output
    `scores` (batch, items) says nothing of seen items. The metadata of the file holds `item_ids` (the id of each
    code, as JSON), `user_ids` where users are an input, `model` and `max_len`.
    """
    require_fitted(model)
    if isinstance(model, TorchModel):
        torch, onnxruntime = _needed()
    module, inputs, scores, users = model._exported()  # a model without a network says so
    module.eval()
    size = sum(one.nbytes for one in module.buffers())
    if size > LARGEST:
        raise CorankError(
            f"{model.name()} has {size / 1e9:.1f} GB of weights, and an ONNX file holds less than 2 GB: choose a "
            "smaller dim, or export vectors"
        )
    batch = torch.export.Dim("batch", min=1)
    with _quiet():
        program = torch.onnx.export(
            module,
            kwargs={name: torch.from_numpy(value) for name, value in inputs.items()},
            input_names=list(inputs),
            output_names=["scores"],
            dynamic_shapes={name: {0: batch} for name in inputs},
            dynamo=True,
            verbose=False,
        )
    metadata = {"model": model.name(), "item_ids": json.dumps(model.items_.ids.tolist())}
    if users:
        metadata["user_ids"] = json.dumps(model.users_.ids.tolist())
    if hasattr(model, "max_len"):
        metadata["max_len"] = str(model.max_len)
    program.model.metadata_props.update(metadata)
    with replacing(path) as target:
        program.save(str(target), external_data=False)
        session = onnxruntime.InferenceSession(str(target), providers=["CPUExecutionProvider"])
        # One at a time and together: the batch must be free.
        found = session.run(None, inputs)[0]
        one = session.run(None, {name: value[-1:] for name, value in inputs.items()})[0]
        largest = max(float(np.abs(scores).max()), 1e-6)
        difference = max(float(np.abs(found - scores).max()), float(np.abs(one - scores[-1:]).max())) / largest
        if not difference <= TOLERANCE:
            raise CorankError(
                f"the ONNX network of {model.name()} differs from the model by {difference:.0e} of the largest score, "
                f"more than {TOLERANCE:.0e}: nothing was written; please report this"
            )
    shapes = {name: ("batch", *value.shape[1:]) for name, value in inputs.items()}
    return OnnxCheck(shapes, scores.shape[1], len(scores), difference)


def _needed() -> tuple[Any, Any]:
    """torch and onnxruntime, where everything is there."""
    found = {}
    for name in NEEDED:
        try:
            found[name] = importlib.import_module(name)
        except ModuleNotFoundError as why:
            if why.name != name:
                raise
            raise MissingExtra("ONNX", "nn,export" if name == "torch" else "export") from None
    return found["torch"], found["onnxruntime"]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the remarks of the exporter about libraries that are not here."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
