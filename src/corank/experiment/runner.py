"""Running one entry of an experiment: tune, fit and evaluate, once per seed."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data import Dataset
from ..data.split import Split, thinned
from ..errors import NotWritten, Stopped
from ..evaluation.evaluate import evaluate, require_predictions
from ..evaluation.metrics import metrics_of
from ..evaluation.seeds import pooled, spread
from ..model import Model
from ..system.names import inside
from .entries import Entry
from .results import Row
from .stated import how_chosen, measured_under

if TYPE_CHECKING:
    from .experiment import Experiment

logger = logging.getLogger("corank")
Progress = Callable[[str, dict[str, Any]], bool | None]


class Watch:
    """Reports the events of one entry, and remembers whether the callback asked to stop."""

    def __init__(self, label: str, on_progress: Progress | None) -> None:
        self.label = label
        self.on_progress = on_progress
        self.stopped = False

    def __call__(self, **event: Any) -> bool:
        """Report an event; returns whether to stop."""
        self.stopped = self.stopped or (self.on_progress is not None and self.on_progress(self.label, event) is False)
        return self.stopped

    def within(self, event: dict[str, Any]) -> bool:
        """For `on_progress` of a fit: a row that is stopped is not finished, so it stops at once."""
        return not self(**event)

    def asked_to_stop(self) -> bool:
        return self.stopped

    def goes_on(self, entry: dict[str, Any]) -> bool:
        """For `on_epoch` and `on_trial`."""
        return not self(**{"event": "epoch", **entry})


def run_entry(
    experiment: Experiment, entry: Entry, parts: list[Split], watch: Watch, storage: Path | None
) -> Row | None:
    """Tune on the first split, then fit and test on each of them, one per seed; None if the callback asked to stop."""
    model, trials = entry.model, 0
    require_predictions(model, metrics_of(experiment.metrics_used()))
    if experiment.tune and not model.oracle:
        try:
            model, trials = _tuned(experiment, entry, parts[0], watch, storage)
        except Stopped:
            return None
    reports, loaded = [], 0
    for seed, split in zip(experiment.seeds or (experiment.seed,), parts, strict=True):
        if watch.asked_to_stop():
            return None
        if experiment.seeds:
            model = model._copy(seed=seed)
        # Of a given split all training rows are learned from in the end, except where early stopping needs some.
        whole = split.valid_from_train and not model.stops_early
        final = split.refit() if experiment.refit or whole else split
        train = rows_of(final.train, entry, seed)
        kept = storage / "learned" if experiment.keep and storage is not None else None
        try:
            model, from_disk = _fitted(model, train, final.valid, watch, kept)
            loaded += from_disk
        except Stopped:
            return None
        if watch.asked_to_stop():  # comparing a half-trained model would be unfair to it
            return None
        reports.append(evaluate(model, final, experiment.metrics_used(), seed=seed, **experiment.protocol_options()))
    deviation = {name: spread(reports, name) for name in reports[0].mean}
    return Row(
        entry.label,
        model,
        pooled(reports),
        trials,
        "" if model.oracle or len(model.params()) < 2 else how_chosen(entry.chosen, trials, entry.given),
        entry.published,
        measured_under(entry.published_under, model.order_matters) if entry.published else "",
        deviation,
        len(reports),
        loaded,
    )


def _tuned(experiment: Experiment, entry: Entry, split: Split, watch: Watch, storage: Path | None) -> tuple[Model, int]:
    """An unfitted model with the best hyper-parameters on the validation rows, and the number of trials."""
    from .tune import tune

    found = tune(
        entry.model,
        dataclasses.replace(split, train=rows_of(split.train, entry, experiment.seed)),
        metric=experiment.metrics_used()[0],
        trials=experiment.tune,
        storage=None if storage is None else inside(storage, experiment.name),
        on_trial=watch.goes_on,
        on_progress=watch.within,
        **experiment.protocol_options(),
    )
    return found.model(), found.trials


def rows_of(train: Dataset, entry: Entry, seed: int) -> Dataset:
    """The training rows of one entry."""
    return train if entry.at_most is None else thinned(train, entry.at_most, seed)


def _fitted(model: Model, train: Dataset, valid: Dataset, watch: Watch, folder: Path | None) -> tuple[Model, bool]:
    """The model after fit, and whether it was loaded.

    With a folder, a model fitted there earlier is loaded, and an interrupted fit resumes.

    Validation rows are used for early stopping, and not otherwise.
    """
    watched = valid if model.stops_early and len(valid) else None
    heard: dict[str, Any] = {
        "on_epoch": lambda entry: watch.goes_on({**entry, "epochs": model.used_params().get("epochs")}),
        "on_progress": watch.within,
    }
    if folder is None:
        return model.fit(train, valid=watched, **heard), False
    from ..checkpoint import fingerprint
    from ..models import load

    asked = [fingerprint(model, part)[:12] for part in (train, valid)]
    file = folder / "-".join([model.name(), *asked, str(model.params().get("epochs", 0))])
    done = file.with_suffix(".corank")
    if done.exists():
        return load(done), True
    model.fit(train, valid=watched, **heard, checkpoint=file.with_suffix(".checkpoint"))
    if not watch.asked_to_stop():
        try:
            model.save(done)
        except NotWritten as why:  # the next run has to fit it again, and this one goes on
            logger.warning("%s is not kept: %s", model.name(), why)
    return model, False
