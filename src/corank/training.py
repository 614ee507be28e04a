"""One training session: what `Model.fit` does around a model's own `_fit`.

A `Training` is created per fit and discarded afterwards. It manages the random generator, the epochs, reporting, early
stopping with the best epoch, and the checkpoint, so that no model has to implement them.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .checkpoint import Checkpoint
from .cost import Size
from .data import Array, Dataset
from .data.split import require_dataset
from .errors import CorankError, Stopped
from .params import check as check_params
from .stored import check_arrays
from .system.memory import free_bytes, no_room, one_sentence, room_for

if TYPE_CHECKING:
    from .model import Model

logger = logging.getLogger("corank")
OnEpoch = Callable[[dict[str, Any]], bool | None]
Rule = Callable[[Array], bool]
OFTEN = 0.25  # seconds between two calls of `on_progress`
LONGER = 3  # times the usual number of epochs, where it is left open and validation rows tell when to stop


class Cluster(Protocol):
    """Machines that train a model in place of this one; see `Model.fit`."""

    def fit(
        self,
        model: Model,
        data: Any,
        valid: Dataset | None,
        on_epoch: OnEpoch | None,
        on_progress: OnEpoch | None,
        checkpoint: str | Path | None,
    ) -> None:
        """Fit the model."""


def fit(
    model: Model,
    data: Dataset,
    valid: Dataset | None,
    on_epoch: OnEpoch | None,
    on_progress: OnEpoch | None,
    path: str | Path | None,
) -> None:
    """Check the arguments, discard the previous fit, train, and check the learned arrays."""
    check_fit(model, data, valid)
    room_for("numba")
    _forget(model)
    size = Size.of(data)
    what = f"{type(model).__name__} of {size.users:,} users and {size.items:,} items"
    with one_sentence(what, lambda: model._smaller(size, free_bytes())):
        rows = data.csr()  # loads the kernels, which take addresses too, before the free memory is read
        free = free_bytes()
        if free is not None and (need := model.settled(data, rows)._memory(size)) > free:
            raise CorankError(no_room(need, free, what, model._smaller(size, free)))
        model._begin(data, rows)
        if valid is not None and len(valid) and model.stops_early and model.epochs_left_open:
            model.epochs_ *= LONGER  # type: ignore[attr-defined]  # it is stored where it is left open
        training = Training(model, data, valid, on_epoch, on_progress, path)
        try:
            model._fit(data, rows, training)
            model.fit_seconds_ = clock() - training.started
            for name, value in model._learned().items():
                if isinstance(value, np.ndarray) and value.dtype.kind == "f" and not _finite(value):
                    raise CorankError(diverged(model, f"training ended with NaN or infinity in {name.rstrip('_')}"))
        except BaseException:
            _forget(model)  # a partially trained model must not be used
            raise
    # A finished fit needs no checkpoint once it is saved; one that was stopped can resume from it.
    model._finished = None if training.stopped else training.checkpoint


class Training:
    """One fit: the random generator, epochs, reports, early stopping and checkpoint.

    Attributes
    ----------
    rng : the only source of random numbers, seeded with the model's `seed`.
    valid : rows to validate on after each epoch, or None.
    """

    def __init__(
        self,
        model: Model,
        data: Dataset,
        valid: Dataset | None = None,
        on_epoch: OnEpoch | None = None,
        on_progress: OnEpoch | None = None,
        path: str | Path | None = None,
    ) -> None:
        self.rng = np.random.default_rng(model.seed)
        self.valid = valid if valid is not None and len(valid) else None
        self._sample: Dataset | None = None  # of these rows, on which each epoch is scored
        self.checkpoint = None if path is None else Checkpoint(path, model, data, valid)
        self.started, self.stopped = clock(), False
        self._model, self._on_epoch, self._on_progress = model, on_epoch, on_progress
        self._epoch, self._told = 0, time.perf_counter()
        self._watched, self._sign = "ndcg@10", 1

    def watch(self, entry: str, *, higher_is_better: bool) -> None:
        """Name the entry of `history_` that early stopping (`patience`) monitors; NDCG@10 unless this is called."""
        self._watched, self._sign = entry, 1 if higher_is_better else -1

    def _patience(self) -> int | None:
        """Epochs without a better validation value before training stops; None if it runs all of them."""
        model = self._model
        if self.valid is None or not model.stops_early:
            return None
        given: int | None = getattr(model, "patience", None)
        return max(model.least_patience, model.used_params()["epochs"] // (6 * LONGER)) if given is None else given

    @property
    def observed(self) -> bool:
        """Whether validation or `on_epoch` uses the model after each epoch, so that it must be able to score."""
        return self.valid is not None or self._on_epoch is not None

    def epochs(self, rules: Mapping[str, Rule] | None = None, /, **state: Array) -> Iterator[int]:
        """Yield the remaining epochs; `report` must be called once in each.

        With a checkpoint, the learned arrays, `state` and the random generator are restored first. With `patience`, the
        loop ends after that many epochs without a better validation value, and the arrays of the best epoch are
        restored.

        Parameters
        ----------
        state : arrays that training updates in place and that are not learned attributes, such as Adam's moments.
        rules : whether a restored array of `state` is valid, by its name; arrays of whole numbers need one.
        """
        model, watched = self._model, self._watched
        names = [name for name, value in model._learned().items() if isinstance(value, np.ndarray)]
        learned = [name for name in names if not name.startswith("seen_")]
        patience = self._patience()
        best = {} if patience is None else {name: getattr(model, name).copy() for name in learned}

        def arrays() -> dict[str, Array]:
            # Looked up anew each time: some models replace their arrays instead of changing them in place.
            return {name: getattr(model, name) for name in learned}

        def check(found: dict[str, Array]) -> None:
            check_arrays(model, {name: found[name] for name in learned})
            check_arrays(model, {name: found[f"best.{name}"] for name in best})
            for name, array in arrays().items():  # codes follow from the data: training does not change them
                if array.dtype.kind != "f" and not np.array_equal(array, found[name]):
                    raise ValueError(f"{name} is not that of this data")
            for name, array in state.items():
                rule = (rules or {}).get(name, _finite)
                if not rule(found[f"state.{name}"]):
                    raise ValueError(f"{name} is not what training can continue from")
                if rule is _finite and array.dtype.kind != "f":
                    raise RuntimeError(f"training.epochs({name}=...): whole numbers need a rule, see `stored.permutes`")

        extra = {f"state.{k}": v for k, v in state.items()} | {f"best.{k}": v for k, v in best.items()}
        if self.checkpoint is not None:
            self._epoch = self.checkpoint.restore(arrays() | extra, self.rng, model.history_, check)
            if model.history_:
                self.started -= model.history_[-1]["seconds"]
        last = int(model.used_params()["epochs"])
        while self._epoch < last and not self.stopped:
            self._epoch += 1
            yield self._epoch
            if len(model.history_) != self._epoch:
                raise RuntimeError(f"{type(model).__name__}._fit must call training.report() once per epoch")
            leader = _leader([self._sign * entry[watched] for entry in model.history_ if watched in entry])
            if leader == self._epoch:
                for name, copy in best.items():
                    copy[...] = getattr(model, name)
            if self.checkpoint is not None:
                self.checkpoint.save(self._epoch, arrays() | extra, self.rng, model.history_, now=self.stopped)
            if patience is not None and leader and self._epoch - leader >= patience:
                break
        if any(watched in entry for entry in model.history_):
            for name, copy in best.items():
                getattr(model, name)[...] = copy

    def report(self, **values: float) -> None:
        """Record an epoch; where validation or `on_epoch` uses the model (`observed`), it must be able to score now."""
        model, epoch = self._model, self._epoch
        if len(model.history_) != epoch - 1:
            raise RuntimeError("training.report() belongs inside `for epoch in training.epochs()`, once per epoch")
        bad = [name for name, value in values.items() if not math.isfinite(value)]
        if bad:
            raise CorankError(diverged(model, f"{bad[0]} is {values[bad[0]]} after epoch {epoch}"))
        entry: dict[str, Any] = {"epoch": epoch, "seconds": clock() - self.started, **values}
        if self.valid is not None:
            from .evaluation.evaluate import validation_ndcg, validation_sample

            if self._sample is None:
                self._sample = validation_sample(self.valid)
            entry["ndcg@10"] = validation_ndcg(model, self._sample)
        model.history_.append(entry)
        logger.info("%s %s", type(model).__name__, entry)
        self.stopped = self._on_epoch is not None and self._on_epoch(entry) is False

    def progress(self, done: float, of: float, what: str = "") -> None:
        """Tell `on_progress` that a part of this epoch is done, or of the whole fit in a model without epochs.

        Cheap enough to be called after every batch or block. Where the callback returns False, the fit is abandoned.
        """
        now = time.perf_counter()
        if self._on_progress is None or now - self._told < OFTEN:
            return
        self._told = now
        share = done / of
        event: dict[str, Any] = {"event": "progress", "what": what}
        if self._epoch:
            epochs = int(self._model.used_params()["epochs"])
            share = (self._epoch - 1 + share) / epochs
            event |= {"epoch": self._epoch, "epochs": epochs}
        seconds = clock() - self.started
        known = share >= 0.01 or (share and seconds > 60)  # the first moments say little about the rest
        event |= {"share": share, "seconds": seconds, "left": seconds * (1 - share) / share if known else math.inf}
        if self._on_progress(event) is False:
            raise Stopped(f"the fit of {self._model.name()} was stopped after {share:.0%}: nothing was learned")

    def check_scores(self, users: Array) -> None:
        """Raise if the scores of these user codes are not finite: finite weights can still be too large."""
        with np.errstate(all="ignore"):
            finite = np.isfinite(self._model._score(np.asarray(users, np.int32))).all()
        if not finite:
            raise CorankError(diverged(self._model, "after training the scores are NaN or infinity"))


def check_fit(model: Model, data: Any, valid: Any, *, warn: bool = True) -> None:
    """Raise an error for the first invalid argument: hyper-parameters, data or validation rows."""
    check_params(model)
    require_dataset(data, "fit")
    if valid is not None:
        require_dataset(valid, "valid=")
    if len(data) == 0:
        raise CorankError("there are no rows to learn from: give a dataset with at least one")
    if valid is not None and (valid.users != data.users or valid.items != data.items):
        raise CorankError("valid has other users or items than the training data: give parts of one split")
    if data.comparisons is not None and not model.takes_comparisons:
        raise CorankError(
            f"{model.name()} does not learn from comparisons, which also contain items that were not preferred: "
            "use primal_cr or collrank"
        )
    if valid is None and getattr(model, "patience", None) is not None:  # asked for, not only usual
        raise CorankError(
            f"patience={model.params()['patience']} needs validation rows to watch: give fit(valid=...), or leave "
            "patience out"
        )
    if warn and model.predicts_ratings and np.ptp(data.value) == 0:
        logger.warning(
            "%s: all ratings are %g, so no item is preferred to another; without ratings use wmf, ease or bpr",
            model.name(),
            data.value[0],
        )


def diverged(model: Model, what: str) -> str:
    """An error message that suggests which of the model's own hyper-parameters to change."""
    values = model.params()
    remedies = [f"lower lr (now {values['lr']:g})"] if "lr" in values else []
    if "reg" in values:
        remedies.append("raise reg" + (f" (now {values['reg']:g})" if values["reg"] is not None else ""))
    return f"{what}: {' or '.join(remedies) or 'look for extreme values in the data'}"


def _leader(values: list[float]) -> int:
    """1-based index of the first largest value; 0 if there are no values."""
    return int(np.argmax(np.nan_to_num(values, nan=-np.inf))) + 1 if values else 0


def _finite(array: Array) -> bool:
    return array.size == 0 or bool(np.isfinite([array.min(), array.max()]).all())


def _forget(model: Model) -> None:
    for name in model._learned():
        delattr(model, name)


def clock() -> float:
    """Time in seconds without kernel compilation, which happens once per machine and is not part of the fit time."""
    from .kernels.threads import compile_seconds

    return time.perf_counter() - compile_seconds()
