"""Resumable training: after an epoch the state of a fit is written, and the next fit of the same model continues it.

The file has the form of a model file (see `model_file`) and holds the arrays that `Training` names, the random stream
and the history. A fit that was killed and resumed ends with the same numbers as one that was not.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .data import Array, Dataset
from .errors import CorankError, ModelFileError, NotWritten
from .model_file import read_file, write_file
from .stored import History, is_number

if TYPE_CHECKING:
    from .model import Model

VERSION = 2  # of the arrays in a checkpoint
AGAIN = 1.0  # seconds after a failed write before the next attempt, at least

logger = logging.getLogger("corank.checkpoint")


class Checkpoint:
    """The file of one fit; created by `Training`."""

    def __init__(self, path: str | Path, model: Model, data: Dataset, valid: Dataset | None = None) -> None:
        self.path = Path(path)
        self.name, self.params = model.name(), model.params()
        self.epochs = model.used_params().get("epochs", 0)
        self.fingerprint = fingerprint(model, data)
        if valid is not None and model.stops_early:  # these rows decide when to stop
            self.fingerprint += fingerprint(model, valid)
        self.took, self.saved = 0.0, -math.inf
        self.failing = False  # whether the last write failed

    def restore(
        self,
        arrays: dict[str, Array],
        rng: np.random.Generator,
        history: list[dict[str, Any]],
        check: Callable[[dict[str, Array]], None],
    ) -> int:
        """Put everything back, in place; returns the number of epochs that are done.

        check : raises ValueError for arrays that training cannot continue from.
        """
        if not self.path.exists():
            return 0
        try:
            meta, stored = read_file(self.path)
        except ModelFileError as why:
            raise ModelFileError(f"the checkpoint {self.path} cannot be used ({why}): give another file") from None
        state = meta.get("state")
        if not isinstance(state, dict) or "question" not in state:
            raise ModelFileError(f"{self.path} is a model, not a checkpoint: give another file")
        if state.get("version", 1) != VERSION:
            raise ModelFileError(
                f"{self.path} is a checkpoint of another version of corank: finish it with that version, or remove it "
                "to start anew"
            )
        if state["question"] != self.fingerprint:
            raise CorankError(
                f"{self.path} is the checkpoint of another fit (other data or hyper-parameters): "
                "remove it to start anew, or give another file"
            )
        epoch, asked = state.get("epoch"), int(self.epochs)
        if isinstance(epoch, int) and epoch > asked:
            raise CorankError(
                f"{self.path} has {epoch} epochs already, and epochs={asked} asks for fewer: "
                "raise epochs, or give another file"
            )
        shapes = {name: (array.shape, array.dtype) for name, array in arrays.items()}
        if shapes != {name: (array.shape, array.dtype) for name, array in stored.items()}:
            raise ModelFileError(f"{self.path} holds other arrays than this fit: remove it to start anew")
        try:
            History().check("history", state.get("history"))
            if not is_number(epoch, whole=True) or epoch != len(state["history"]):
                raise ValueError(f"{len(state['history'])} epochs are reported and {epoch} are said to be done")
            check(stored)
            rng.bit_generator.state = state["random"]
        except (KeyError, TypeError, ValueError, OverflowError) as why:
            raise ModelFileError(f"{self.path} is not a whole checkpoint ({why}): remove it to start anew") from None
        for name, array in stored.items():
            arrays[name][...] = array  # in place: training may hold on to its arrays
        history[:] = state["history"]
        logger.info("%s: resuming after epoch %d", self.path, epoch)
        return int(epoch)

    def save(
        self,
        epoch: int,
        arrays: dict[str, Array],
        rng: np.random.Generator,
        history: list[dict[str, Any]],
        *,
        now: bool = False,
    ) -> None:
        """Write the state after an epoch, unless writing so soon after the last time would slow training down.

        Training goes on where that fails, as on a full disk, and an epoch later it is tried again.
        """
        start = time.perf_counter()
        if not now and start - self.saved < 10 * self.took:
            return
        state = {
            "version": VERSION,
            "question": self.fingerprint,
            "epoch": epoch,
            "random": rng.bit_generator.state,
            "history": history,
        }
        try:
            write_file(self.path, arrays, {"model": self.name, "params": self.params, "state": state})
        except NotWritten as why:
            if not self.failing:
                kept = "the one before is kept" if self.path.exists() else "there is none so far"
                logger.warning("no checkpoint after epoch %d (%s): training goes on, and %s", epoch, why, kept)
            self.failing, self.took = True, max(time.perf_counter() - start, AGAIN / 10)
        else:
            if self.failing:
                logger.warning("%s: written again, after epoch %d", self.path, epoch)
            self.failing, self.took = False, time.perf_counter() - start
        self.saved = time.perf_counter()

    def remove(self) -> None:
        """The model is saved: nothing is left to resume."""
        with contextlib.suppress(OSError):  # a checkpoint that stays does no harm
            self.path.unlink(missing_ok=True)


def fingerprint(model: Model, data: Dataset) -> str:
    """Equal only for the same fit; `epochs` may grow, so that one that was stopped can be prolonged."""
    params = {k: v for k, v in model.params().items() if k != "epochs"}
    digest = hashlib.sha256(repr([model.name(), params, len(data.users), len(data.items)]).encode())
    graphs = [array for graph in (data.user_graph, data.item_graph) if graph is not None for array in graph[:3]]
    for array in (data.user, data.item, data.value, data.time, *graphs):
        digest.update(b"none" if array is None else np.ascontiguousarray(array).tobytes())
    for name, labels in sorted(data.user_labels.items()):
        digest.update(repr([name, np.asarray(labels).tolist()]).encode())
    return digest.hexdigest()
