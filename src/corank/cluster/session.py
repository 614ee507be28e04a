"""A fit on a cluster as the driver sees it: it starts workers, counts epochs, and starts anew where one is lost."""

from __future__ import annotations

import dataclasses
import json
import logging
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..checkpoint import fingerprint
from ..data import Array, Dataset, Vocab, row_ends
from ..data.split import require_dataset
from ..errors import CorankError
from ..params import check as check_params
from ..training import OnEpoch, check_fit, diverged
from .group import Group, Lost, call
from .method import find
from .parts import Parts, find_parts
from .shard import divided
from .store import Folder

if TYPE_CHECKING:
    from ..model import Model

logger = logging.getLogger("corank")
LOSSES = 10  # of workers in a row, without an epoch between them, after which the fit gives up
Groups = Callable[[str, dict[str, Any]], AbstractContextManager[Group]]


class Session:
    """One fit of a model on `workers` workers, which `groups` starts (and ends)."""

    def __init__(
        self,
        model: Model,
        data: Dataset | Parts,
        workers: int,
        groups: Groups,
        *,
        valid: Dataset | None = None,
        on_epoch: OnEpoch | None = None,
        checkpoint: str | Path | None = None,
    ) -> None:
        self.model, self.data, self.valid, self.on_epoch = model, data, valid, on_epoch
        self.workers, self.groups = workers, groups
        self.epochs = int(model.used_params().get("epochs", 0))
        self.folder = None
        if checkpoint is not None and self.epochs:
            self.folder = Folder(checkpoint, _question(model, data), workers, self.epochs)
        self.history: list[dict[str, Any]] = []
        self.stopped = False

    def run(self) -> None:
        """Fit the model; whatever is killed meanwhile, it ends as if nothing had been."""
        self.started = time.perf_counter()
        losses = 0
        while True:
            done = len(self.history)
            try:
                with self.groups(self.model.name(), self.model.params()) as group:
                    self._fit(group)
                return
            except Lost as why:
                losses = losses + 1 if len(self.history) == done else 1
                if why.memory and losses > 1:
                    raise CorankError(
                        f"a worker ran out of memory ({why}): use more machines or workers on them, or a smaller dim"
                    ) from None
                if losses > LOSSES:
                    raise CorankError(f"workers were lost {losses} times without an epoch between: {why}") from None
                logger.warning("a worker was lost (%s): starting again %s", why, self._from())

    def _from(self) -> str:
        return f"after epoch {len(self.history)}" if self.folder and self.history else "from the start"

    def _fit(self, group: Group) -> None:
        model, known = self.model, {}
        if isinstance(self.data, Parts):
            found = call(group, "load", [self.data] * group.size)
        else:
            found = []
            call(group, "take", divided(self.data, group.size))
        self.history = [] if self.folder is None else self.folder.done()
        if self.folder is not None:
            self._check_shared(group)
            if self.history:
                folder, epoch = str(self.folder.path), len(self.history)
                call(group, "restore", [folder] * group.size, [epoch] * group.size)
                logger.info("%s: resuming after epoch %d", folder, epoch)
        if isinstance(self.data, Dataset):
            model._begin(self.data, self.data.csr())
        else:
            known = _begun(model, found)
        self._train(group)
        call(group, "finish")
        self._collect(group, known)

    def _train(self, group: Group) -> None:
        before = self.history[-1]["seconds"] if self.history else 0.0
        started = time.perf_counter() - before
        self.model.history_ = self.history
        while len(self.history) < self.epochs and not self.stopped:
            number = len(self.history) + 1
            values = call(group, "epoch", [number] * group.size)[0]
            bad = [name for name, value in values.items() if not np.isfinite(value)]
            if bad:
                raise CorankError(diverged(self.model, f"{bad[0]} is {values[bad[0]]} after epoch {number}"))
            entry: dict[str, Any] = {"epoch": number, "seconds": time.perf_counter() - started, **values}
            if self.valid is not None:
                from ..evaluation.evaluate import validation_ndcg

                self._collect(group, {})
                entry["ndcg@10"] = validation_ndcg(self.model, self.valid)
            if self.folder is not None:
                call(group, "keep", [str(self.folder.path)] * group.size)
                self.folder.complete([*self.history, entry])
            self.history.append(entry)
            logger.info("%s %s", type(self.model).__name__, entry)
            self.stopped = self.on_epoch is not None and self.on_epoch(entry) is False

    def _collect(self, group: Group, known: dict[str, Any]) -> None:
        """Put together what the workers have learned."""
        model = self.model
        learned = call(group, "learned")
        _, shared, plain = learned[0]
        own = {name: np.concatenate([part[name] for part, _, _ in learned]) for name in learned[0][0]}
        for name, value in {**known, **plain, **shared, **own}.items():
            if isinstance(value, np.ndarray):
                value = np.array(value)  # arrays that come from another process are read-only
                if value.dtype.kind == "f" and not np.isfinite(value).all():
                    raise CorankError(diverged(model, f"training ended with NaN or infinity in {name.rstrip('_')}"))
            setattr(model, name, value)
        model.fit_seconds_ = time.perf_counter() - self.started

    def _check_shared(self, group: Group) -> None:
        """Raise an error if a worker does not see the folder of the checkpoint."""
        assert self.folder is not None
        file, text = self.folder.path / f"seen-{uuid.uuid4().hex}", uuid.uuid4().hex
        try:
            file.write_text(text, "utf-8")
            blind = [node for node in call(group, "sees", [str(file)] * group.size, [text] * group.size) if node]
        except OSError as why:
            raise CorankError(f"cannot write to {self.folder.path}: {why.strerror}; give another folder") from None
        finally:
            file.unlink(missing_ok=True)
        if blind:
            raise CorankError(
                f"the checkpoint folder {self.folder.path} is not there on {blind[0]}: give a folder that all machines "
                "share"
            )


def checked(model: Model, data: Any, valid: Dataset | None, workers: int | None) -> Dataset | Parts:
    """What to learn from; raises for arguments with which there is nothing to start a cluster for."""
    find(model.name()).check(model)
    if isinstance(data, str | Path):
        data = find_parts(data)
    if isinstance(data, Parts):
        check_params(model)
        if valid is not None:
            raise CorankError("valid= needs a dataset to learn from, not files: read the files, or leave valid out")
        return data
    require_dataset(data, "fit")
    check_fit(model, data, valid)
    if data.comparisons is not None:
        raise CorankError("comparisons cannot be learned from on a cluster: fit on one machine")
    if workers is not None and workers > len(data.users):
        raise CorankError(f"workers={workers} and the data has {len(data.users):,} users: use fewer workers")
    assert isinstance(data, Dataset)
    return data


def fit(
    model: Model,
    data: Dataset | Parts,
    workers: int,
    groups: Groups,
    *,
    valid: Dataset | None = None,
    on_epoch: OnEpoch | None = None,
    checkpoint: str | Path | None = None,
) -> None:
    """Discard the previous fit, and train; see `Model.fit`."""
    with _all_or_nothing(model):
        session = Session(model, data, workers, groups, valid=valid, on_epoch=on_epoch, checkpoint=checkpoint)
        session.run()
    model._finished = None if session.stopped else session.folder  # type: ignore[assignment]


@contextmanager
def _all_or_nothing(model: Model) -> Iterator[None]:
    """Discard the previous fit, and an incomplete one."""
    _forget(model)
    try:
        yield
    except BaseException:
        _forget(model)
        raise


def _forget(model: Model) -> None:
    for name in model._learned():
        delattr(model, name)


def _question(model: Model, data: Dataset | Parts) -> str:
    """Equal only for the same fit; `epochs` may grow."""
    if isinstance(data, Dataset):
        return fingerprint(model, data)
    params = {name: value for name, value in model.params().items() if name != "epochs"}
    return json.dumps([model.name(), params, dataclasses.asdict(data)], default=str, sort_keys=True)


def _begun(model: Model, found: list[dict[str, Any]]) -> dict[str, Any]:
    """What a model keeps of the data, from what the workers have read: vocabularies, and the items of each user."""
    from ..data.labels import NO_LABELS

    together: dict[str, Array] = {
        name: np.concatenate([part[name] for part in found])
        for name in found[0]
        if name not in ("users", "items", "seen_indptr_")
    }
    lengths = [np.diff(part["seen_indptr_"]) for part in found]
    known = {
        "users_": Vocab(np.concatenate([part["users"] for part in found])),
        "items_": Vocab(np.array(found[0]["items"])),
        "seen_indptr_": row_ends(np.concatenate(lengths)),
        **together,
        "titles_": [],
        "labels_": NO_LABELS,
    }
    for name, value in known.items():
        setattr(model, name, value)
    return known
