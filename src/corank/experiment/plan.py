"""Before an experiment runs: the estimate of each row, and the rows that are left out because of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..cost import Size
from ..data import Dataset
from ..data.split import Split
from ..errors import CorankError
from ..estimate import Estimate, in_words
from ..system.memory import free_bytes, no_room
from .entries import Entry, replaced
from .runner import Progress, Watch

if TYPE_CHECKING:
    from .experiment import Experiment

LONG = 600.0  # seconds up to which no row is left out for its time
FEWEST = 3  # rows of which none is left out for its time


@dataclass(frozen=True)
class Plan:
    """What an experiment is expected to take."""

    estimates: dict[str, Estimate] = field(default_factory=dict)  # by label, all fits of a row together
    left_out: dict[str, str] = field(default_factory=dict)  # label -> why
    stopped: bool = False  # the callback asked to stop

    @property
    def seconds(self) -> float:
        """Of all rows that will run."""
        return sum(e.seconds for label, e in self.estimates.items() if label not in self.left_out)

    @property
    def memory(self) -> int:
        """Bytes of the largest fit that will run."""
        return max((e.memory for label, e in self.estimates.items() if label not in self.left_out), default=0)


def make_plan(
    experiment: Experiment, entries: Sequence[Entry], parts: Sequence[Split], on_progress: Progress | None
) -> Plan:
    """Estimate every row; where no models are named, leave out what does not fit or takes longer than all others.

    What has a form for large catalogues was left to it when the rows were chosen, and is told here.
    """
    train, tested = parts[0].train, np.unique(parts[0].test.user).size
    found: dict[str, Estimate] = {}
    for number, entry in enumerate(entries, 1):
        watch = Watch(entry.label, on_progress)
        if watch(event="estimating", row=number, of=len(entries)):
            return Plan(found, stopped=True)
        fits = len(parts) + (0 if entry.model.oracle else experiment.tune)
        try:
            found[entry.label] = entry.model.estimate(train, users=tested).times(fits)
        except (CorankError, NotImplementedError):  # a row that cannot be fitted is reported when its turn comes
            continue
    left_out: dict[str, str] = {}
    if not experiment.models:
        left_out = replaced(experiment.task, train) | leave_out(found, _no_room(entries, found, train))
    plan = Plan(found, left_out)
    Watch("", on_progress)(event="plan", plan=plan)
    return plan


def _no_room(entries: Sequence[Entry], found: Mapping[str, Estimate], train: Dataset) -> dict[str, str]:
    """Why the rows that need more than the free memory cannot run."""
    free, size = free_bytes(), Size.of(train)
    return {
        e.label: no_room(found[e.label].memory, free, "the fit", e.model._smaller(size, free))
        for e in entries
        if e.label in found and free is not None and found[e.label].memory > free
    }


def leave_out(estimates: Mapping[str, Estimate], no_room: Mapping[str, str]) -> dict[str, str]:
    """Rows that do not fit, then those that would take longer than all others together: label -> why."""
    out = dict(no_room)
    while True:
        rest = {label: e.seconds for label, e in estimates.items() if label not in out}
        longest = max(rest, key=lambda label: rest[label], default="")
        others = sum(rest.values()) - rest.get(longest, 0.0)
        if len(rest) <= FEWEST or rest[longest] <= max(LONG, others):
            return out
        out[longest] = (
            f"estimated at {in_words(rest[longest])}, longer than all others together ({in_words(others)}): "
            f"name it to run it all the same (--models {longest})"
        )
