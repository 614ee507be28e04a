"""Training that goes on where it was: after each epoch the state of a fit is written, and the next fit starts from it.

The file has the form of a model file (see `store`) and holds the learned arrays, what the training carries beside them,
the random stream and the history. A fit that was killed and one that was not end with the same numbers.
"""

from __future__ import annotations

import hashlib
import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .data import Dataset
from .errors import CorankError, ModelFileError
from .store import read_file, write_file

if TYPE_CHECKING:
    from .model import Model

CARRIED = "carried."


class Checkpoint:
    """The file of one fit; made by `Model.fit(checkpoint=...)`."""

    def __init__(self, path: str | Path, model: Model, data: Dataset, valid: Dataset | None = None) -> None:
        self.path = Path(path)
        self.model = model
        self.question = fingerprint(model, data)
        if valid is not None and getattr(model, "patience", None) is not None:  # these rows decide when to stop
            self.question += fingerprint(model, valid)
        self.took = self.saved = 0.0

    def restore(self, rng: np.random.Generator) -> int:
        """Put everything back, in place; returns the number of epochs that are done."""
        if not self.path.exists():
            return 0
        try:
            meta, arrays = read_file(self.path)
        except ModelFileError as why:
            raise ModelFileError(f"the checkpoint {self.path} cannot be used ({why}): give another file") from None
        state = meta["state"]
        if "question" not in state:
            raise ModelFileError(f"{self.path} is a model, not a checkpoint: give another file")
        if state["question"] != self.question:
            raise CorankError(
                f"{self.path} is the checkpoint of another fit (other data or hyper-parameters): "
                "remove it to start anew, or give another file"
            )
        model = self.model
        asked = int(model.params()["epochs"])
        if state["epoch"] > asked:
            raise CorankError(
                f"{self.path} has {state['epoch']} epochs already, and epochs={asked} asks for fewer: "
                "raise epochs, or give another file"
            )
        for name, array in arrays.items():
            old = model._carried[name.removeprefix(CARRIED)] if name.startswith(CARRIED) else getattr(model, name, None)
            if isinstance(old, np.ndarray) and old.shape == array.shape:
                old[...] = array  # in place: training may hold on to its arrays
            else:
                setattr(model, name, array)
        rng.bit_generator.state = state["random"]
        model.history_[:] = state["history"]
        model._started -= state["history"][-1]["seconds"]
        logging.getLogger("corank.checkpoint").info("%s: going on after epoch %d", self.path, state["epoch"])
        return int(state["epoch"])

    def save(self, epoch: int, rng: np.random.Generator) -> None:
        """Write the state after an epoch, unless the last writing was so recent that it would slow training down."""
        now = time.perf_counter()
        if now - self.saved < 10 * self.took:
            return
        model = self.model
        learned = {k: v for k, v in model._learned().items() if isinstance(v, np.ndarray) and not k.startswith("seen_")}
        arrays = learned | {f"{CARRIED}{k}": v for k, v in model._carried.items()}
        state: dict[str, Any] = {
            "question": self.question,
            "epoch": epoch,
            "random": rng.bit_generator.state,
            "history": model.history_,
        }
        write_file(self.path, arrays, {"model": model.name(), "params": model.params(), "state": state})
        self.saved = time.perf_counter()
        self.took = self.saved - now

    def done(self) -> None:
        """The model is saved: nothing is left to go on with."""
        self.path.unlink(missing_ok=True)


def fingerprint(model: Model, data: Dataset) -> str:
    """The same only for the same fit; `epochs` may grow, so that one that was stopped can be prolonged."""
    params = {k: v for k, v in model.params().items() if k != "epochs"}
    digest = hashlib.sha256(repr([model.name(), params, len(data.users), len(data.items)]).encode())
    graphs = [array for graph in (data.user_graph, data.item_graph) if graph is not None for array in graph[:3]]
    for array in (data.user, data.item, data.value, data.time, *graphs):
        digest.update(b"none" if array is None else np.ascontiguousarray(array).tobytes())
    for name, labels in sorted(data.user_labels.items()):
        digest.update(repr([name, np.asarray(labels).tolist()]).encode())
    return digest.hexdigest()
