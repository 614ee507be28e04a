"""Checkpoints of a fit on a cluster: a folder that all nodes see, with a file per worker and epoch.

A worker writes its part of an epoch; once all parts are there, the driver names the epoch in `checkpoint.json`, which
is replaced in one step. So whatever is killed, the file names an epoch that is complete.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Array
from ..errors import CorankError, ModelFileError
from ..model_file import read_file, write_file
from ..stored import History, is_number
from ..system.atomic import replacing
from .steps import Place

HEAD = "checkpoint.json"
VERSION = 1


class Folder:
    """The checkpoint of one fit, as the driver sees it."""

    def __init__(self, path: str | Path, question: str, workers: int, epochs: int) -> None:
        self.path = Path(path)
        self.question = hashlib.sha256(question.encode()).hexdigest()
        self.workers, self.epochs = workers, epochs
        if self.path.exists() and not self.path.is_dir():
            raise CorankError(f"{self.path} is a file, and the checkpoint of a cluster is a folder: give another")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as why:
            raise CorankError(f"cannot write to {self.path}: {why.strerror}; give another folder") from None

    def done(self) -> list[dict[str, Any]]:
        """The history of the epochs that are complete, [] where there are none; raises if they are of another fit."""
        head = self.path / HEAD
        if not head.exists():
            return []
        try:
            meta = json.loads(head.read_text("utf-8"))
            version, history = meta["version"], meta["history"]
            History().check("history", history)
            if meta["question"] == self.question and meta["workers"] != self.workers:
                raise CorankError(
                    f"{self.path} is the checkpoint of {meta['workers']} workers, and {self.workers} add up in another "
                    f"order: use workers={meta['workers']}, or remove it to start anew"
                )
            if version != VERSION or meta["question"] != self.question:
                raise CorankError(
                    f"{self.path} is the checkpoint of another fit (other data or hyper-parameters, or another version "
                    "of corank): remove it to start anew, or give another folder"
                )
            if not is_number(meta["epoch"], whole=True) or meta["epoch"] != len(history):
                raise ValueError("its epochs and its history differ")
        except CorankError:
            raise
        except (ValueError, KeyError, TypeError) as why:
            raise ModelFileError(f"{self.path} is not a whole checkpoint ({why}): remove it to start anew") from None
        if len(history) > self.epochs:
            raise CorankError(
                f"{self.path} has {len(history)} epochs already, and epochs={self.epochs} asks for fewer: raise "
                "epochs, or give another folder"
            )
        return list(history)

    def complete(self, history: list[dict[str, Any]]) -> None:
        """All parts of the last epoch are written: name it, and remove those of the others."""
        head = {"version": VERSION, "question": self.question, "workers": self.workers, "epoch": len(history)}
        with replacing(self.path / HEAD) as part:
            part.write_text(json.dumps({**head, "history": history}), "utf-8")
        self._remove_parts(but=len(history))

    def remove(self) -> None:
        """The model is saved: nothing is left to resume."""
        with contextlib.suppress(OSError):
            (self.path / HEAD).unlink(missing_ok=True)
        self._remove_parts()
        for folder in (*self.path.glob("worker-*"), self.path):
            with contextlib.suppress(OSError):  # not empty: somebody else's files stay
                folder.rmdir()

    def _remove_parts(self, but: int = 0) -> None:
        for path in self.path.glob("worker-*/epoch-*.part"):
            if path.stem != f"epoch-{but}":
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)


def _part(folder: Path, place: Place, epoch: int) -> Path:
    # A folder per worker: what is left of a killed write is removed by the next one into the same folder.
    return folder / f"worker-{place.rank + 1}-of-{place.size}" / f"epoch-{epoch}.part"


def write_part(
    folder: Path, place: Place, name: str, params: dict[str, Any], epoch: int, arrays: dict[str, Array]
) -> None:
    """Write what a worker needs to continue after an epoch."""
    write_file(_part(folder, place, epoch), arrays, {"model": name, "params": params, "state": {"epoch": epoch}})


def read_part(folder: Path, place: Place, epoch: int, arrays: dict[str, Array]) -> None:
    """Read it again, into the same arrays."""
    path = _part(folder, place, epoch)
    _, stored = read_file(path)
    shapes = {name: (array.shape, array.dtype) for name, array in arrays.items()}
    if shapes != {name: (array.shape, array.dtype) for name, array in stored.items()}:
        raise ModelFileError(f"{path} holds other arrays than this fit: remove its folder to start anew")
    for name, array in stored.items():
        if not np.isfinite(array).all():
            raise ModelFileError(f"{path} holds NaN or infinity: remove its folder to start anew")
        arrays[name][...] = array
