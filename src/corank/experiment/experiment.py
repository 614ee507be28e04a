"""An experiment: some models, one dataset, one split, one protocol; defined in Python or in a few lines of TOML.

Hyper-parameters are chosen on validation rows; the test rows are used once per model. Nothing here names a model.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Dataset
from ..data.given import with_validation
from ..data.split import Split
from ..data.values import words
from ..errors import CorankError, reason, show, suggest
from ..evaluation.metrics import AnyMetric, Metric, metrics_of
from ..model import Model
from ..system.names import clean
from .entries import Entry, make_entry, models_for, read_toml
from .kinds import SEED, SWITCH, TEXT, number, one_of, whole
from .options import METRICS, TASKS, check_options
from .plan import Plan, make_plan
from .results import Results, Row
from .runner import Progress, Watch, run_entry
from .schema import (
    COLUMN_TABLE,
    DATA,
    EDGES,
    GAIN,
    LABELS,
    NAME,
    ROWS,
    SEEDS,
    SOURCE,
    SPLIT,
    option,
    options,
)
from .schema import METRICS as METRIC_LIST
from .source import DRAW_USERS, cut, opened, overlap, same_rows
from .stated import CHOSEN, REMARKS, UNDER

logger = logging.getLogger("corank")
FINAL_FIT = "the final fit uses the validation rows too, as they are given training rows, unless it stops early on them"


@dataclass(kw_only=True)
class Experiment:
    """Which of these models ranks best for these users?"""

    data: Dataset | Split | str | Path | Mapping[str, Any] = option(
        "the rows: a file (a relative path is looked for beside the TOML file first), the name of a dataset, or a "
        "table that generates them",
        DATA,
        python=(Dataset, Split),
    )
    models: Sequence[str | Mapping[str, Any] | Model] = option(
        "the rows of the leaderboard; in a file, one `[[model]]` table each. All models of the task when absent",
        ROWS,
        (),
    )
    split: str | Mapping[str, Any] = option(
        "how the rows are divided; `auto`: the split that the data comes with, else the one that suits it",
        SPLIT,
        "auto",
    )
    test: Dataset | str | Path | None = option(
        "test rows of a given split, whose training rows are `data`", SOURCE, None, (Dataset,)
    )
    valid: Dataset | str | Path | None = option(
        "its validation rows; cut from the training rows when absent", SOURCE, None, (Dataset,)
    )
    task: str = option("decides the default models, protocol and split", one_of(*TASKS), "implicit")
    metrics: Sequence[AnyMetric] = option(
        "metrics to compute; rows are sorted by the first. By the protocol when absent", METRIC_LIST, ()
    )
    protocol: str = option("what test items are ranked against; by the task when absent", one_of("", *METRICS), "")
    negatives: int = option("number of negatives per user, protocol `sampled`", whole(1), 100)
    popular: bool = option("draw negatives by popularity, protocol `sampled`", SWITCH, False)
    relevant: float | None = option("test rows below this value are not relevant", number(), None)
    gain: str = option("gain of NDCG; by the protocol and the kind of the values when absent", GAIN, "")
    positive: float | None = option("rows below this value are dropped from the data", number(), None)
    tune: int = option("tuning trials per model, on the validation rows", whole(0), 0)
    refit: bool = option("add the validation rows to the training rows for the final fit", SWITCH, False)
    seed: int = option("random seed of splits, negatives and models", SEED, 0)
    seeds: Sequence[int] = option("run once per seed, splits included, and report the mean", SEEDS, ())
    keep: bool = option("keep fitted models and checkpoints, so that an interrupted run resumes", SWITCH, False)
    estimate: bool = option("estimate seconds and memory first, also where models are named", SWITCH, False)
    curves: bool = option("evaluate after each epoch: quality against training time", SWITCH, False)
    between: Sequence[str] = option(
        "labels of two rows, which count as 0 % and 100 % in a column of its own", LABELS, ()
    )
    name: str = option("its name in reports; that of the file when absent", NAME, "experiment")
    title: str = option("title of its page in the documentation", TEXT, "")
    chosen: Mapping[str, Any] = option("how the hyper-parameters in the file were chosen, see below", CHOSEN, {})
    published_under: Mapping[str, Any] = option("what the published figures were measured under, see below", UNDER, {})
    remarks: Sequence[str] = option("what a reader of the results must know besides", REMARKS, ())
    columns: Mapping[str, Any] = option("how the files are read, see below", COLUMN_TABLE, {})
    user_edges: str | Path | None = option("a file with one row per edge: the user graph", EDGES, None)
    item_edges: str | Path | None = option("the same for the items", EDGES, None)
    _opened: tuple[str, Dataset | Split] | None = field(default=None, init=False, repr=False, compare=False)

    @classmethod
    def from_toml(cls, path: str | Path, **changes: Any) -> Experiment:
        """Read an experiment: each `[[model]]` table is a row; files are looked for beside the TOML file first.

        The whole file is checked against the schema before anything is opened; an error lists up to ten mistakes.

        changes : options that take the place of those in the file.
        """
        path = Path(path)
        table = read_toml(path)
        known = set(options(cls)) - {"models"} | {"model"}
        wrong = [
            (k, f"{show(k)} is not an option of an experiment{suggest(k, known)}") for k in table if k not in known
        ]
        table = {key: value for key, value in table.items() if key in known}
        if "data" not in table and "data" not in changes:
            wrong.append(("data", "data is missing: name the data, e.g. data = 'ml-1m' or data = 'ratings.csv'"))
            table["data"] = {"synthetic": "realistic"}  # for the other checks
        for key in ("data", "test", "valid", "user_edges", "item_edges"):
            table[key] = _beside(path, table[key]) if key in table else None
        given = {key: value for key, value in table.items() if value is not None}
        given = {"models": given.pop("model", []), "name": clean(path.stem), **given, **changes}
        made = cls(**given)
        check_options(made, str(path), wrong)
        return made

    def run(self, on_progress: Progress | None = None, storage: Path | None = None) -> Results:
        """Fit and evaluate every entry.

        Parameters
        ----------
        on_progress : called with (label, event), where event["event"] is 'estimating', 'plan' (once, with the estimates
            of all rows), 'start', 'trial', 'progress', 'epoch', 'done' or 'failed'; the run stops after the event for
            which it returns False.
        storage : a folder for the state of tuning (and of training, with `keep`): an interrupted run resumes from it,
            and experiments that fit the same model to the same rows share the result.
        """
        start = time.perf_counter()
        self.check()
        entries = self.entries()
        metrics = metrics_of(self.metrics_used())
        parts = [self.make_split(seed) for seed in self.seeds or (self.seed,)]
        self._opened = None  # the file may have changed by the next run
        one_split = all(same_rows(part.test, parts[0].test) for part in parts)
        self._check_splits(parts, one_split)
        plan = make_plan(self, entries, parts, on_progress) if self.estimate or not self.models else Plan()
        entries = [] if plan.stopped else [entry for entry in entries if entry.label not in plan.left_out]
        done: list[Row] = []
        failed: dict[str, str] = {}
        for place, entry in enumerate(entries, 1):
            watch = Watch(entry.label, on_progress)
            if watch(event="start", row=place, of=len(entries)):
                break
            try:
                row = run_entry(self, entry, parts, watch, storage)
            except Exception as why:
                # An entry that cannot be run (no timestamps, too little memory, a defect) must not cost the others.
                failed[entry.label] = reason(why)
                unexpected = None if isinstance(why, CorankError) else why
                logger.warning("%s: %s", entry.label, failed[entry.label], exc_info=unexpected)
                watch(event="failed", why=failed[entry.label])
                continue
            if row is None:
                break
            done.append(row)
            if watch(event="done", report=row.report):
                break
        metrics = _sort(done, metrics, failed)
        left = tuple(e.label for e in entries if e.label not in failed and e.label not in {row.label for row in done})
        names, seconds = tuple(m.name for m in metrics), time.perf_counter() - start
        return Results(
            parts[0],
            done,
            names,
            self.name,
            seconds,
            failed,
            left,
            between=tuple(self.between),
            one_split=one_split,
            left_out=plan.left_out,
            remarks=tuple(self.remarks),
            # Generated data has other rows for each seed.
            overlap=overlap(parts) if self.tune and not isinstance(self.data, Mapping) else 0.0,
        )

    def check(self) -> None:
        """Raise one error with all mistakes that can be found without opening the data."""
        check_options(self)

    def entries(self) -> list[Entry]:
        """The rows to run, checked before anything is fitted; all models of the task where none are named."""
        stated = {"chosen": self.chosen, "published_under": self.published_under}
        found = [make_entry(asked, self.task, self.seed, **stated) for asked in self.models or self._models_of_task()]
        if twice := [label for label, count in Counter(entry.label for entry in found).items() if count > 1]:
            raise CorankError(f"two rows are called {show(twice[0])}: give each a label of its own")
        return found

    def metrics_used(self) -> tuple[AnyMetric, ...]:
        """`metrics`, or the default ones of the protocol."""
        return tuple(self.metrics) or METRICS[self.protocol or TASKS[self.task]]

    def protocol_options(self) -> dict[str, Any]:
        """The protocol and its options, as `evaluate` takes them."""
        return {
            "protocol": self.protocol or TASKS[self.task],
            "negatives": self.negatives,
            "popular": self.popular,
            "relevant": self.relevant,
            "gain": self.gain or None,
        }

    def make_split(self, seed: int | None = None) -> Split:
        """The split to train and test on; with `seed` in place of the experiment's own."""
        seed = self.seed if seed is None else seed
        data = self._rows(seed)
        ordered = self.task == "sequential"
        if isinstance(data, Split):
            if not isinstance(self.data, Split | Mapping):  # one that comes with the data may have no validation rows
                data = with_validation(data, ordered=ordered, seed=seed)
            return dataclasses.replace(data, notes=(*data.notes, FINAL_FIT)) if data.valid_from_train else data
        rated = self.protocol_options()["protocol"] == "rated"
        return cut(data, self.split, rated=rated, ordered=ordered, seed=seed)

    def _models_of_task(self) -> list[str]:
        rows = self._rows(next(iter(self.seeds), self.seed))
        return models_for(self.task, rows.train if isinstance(rows, Split) else rows)

    def _rows(self, seed: int) -> Dataset | Split:
        """The data before it is split; a file is read once, synthetic data is generated once per seed."""
        if isinstance(self.data, Split):
            return self.data
        names = ("columns", "positive", "user_edges", "item_edges", "split", "test", "valid")
        options: dict[str, Any] = {name: getattr(self, name) for name in names}
        options["ordered"] = self.task == "sequential"
        own = id(self.data) if isinstance(self.data, Dataset) else self.data
        key = repr((own, options, seed if isinstance(own, Mapping) else None))
        if self._opened is None or self._opened[0] != key:
            self._opened = None
            self._opened = key, opened(self.data, **options, seed=seed)
        return self._opened[1]

    def _check_splits(self, parts: Sequence[Split], one_split: bool) -> None:
        name = self.split["name"] if isinstance(self.split, Mapping) and "name" in self.split else self.split
        if not one_split and name in DRAW_USERS:  # a report holds the users who are tested in all runs
            raise CorankError(
                f"split '{name}' draws other test users for each of {len(parts)} seeds, and a mean needs the same: "
                f"give it a seed of its own, split = {{name = '{name}', seed = {self.seeds[0]}}}"
            )
        if self.task == "explicit" and np.ptp(parts[0].train.value) == 0:
            raise CorankError(
                "task 'explicit' is about the order of ratings, and all rows here have one value: name the column of "
                "the ratings, or use task 'implicit'"
            )
        if self.task == "explicit" and parts[0].train.values == "counts":
            logger.warning(
                "the values are %s, and task 'explicit' treats them as ratings: use task 'implicit', or say that they "
                "are ratings on a scale (values = 'ratings')",
                words(parts[0].all_rows()),
            )


def _beside(path: Path, name: Any) -> Any:
    """The file of that name in the folder of an experiment, if there is one; else the name."""
    try:
        beside = path.parent / name
        return beside if name and beside.exists() else name
    except (TypeError, ValueError, OSError):  # no name of a file: the schema says so
        return name


def _sort(rows: list[Row], metrics: tuple[Metric, ...], failed: Mapping[str, str]) -> tuple[Metric, ...]:
    """Sort finished rows by the first metric, best first; an error where there is nothing to sort.

    A metric that is defined for no user cannot decide: the next one does. Returns the metrics, the deciding one first.
    """
    if not rows:
        reasons = "; ".join(f"{k}: {v}" for k, v in failed.items())
        raise CorankError(reasons or "stopped before any row was finished")
    defined = [m for m in metrics if not all(math.isnan(row.report[m.name]) for row in rows)]
    if not defined:
        named = " and ".join(m.name for m in metrics)
        raise CorankError(f"{named}: defined for no user here, so no row is best: choose another metric")
    first = defined[0]
    if first is not metrics[0]:
        logger.warning("%s is defined for no user here: rows are sorted by %s", metrics[0].name, first.name)
    sign = -1 if first.higher_is_better else 1
    # A metric that is defined for no user is NaN, and such a row is last.
    rows.sort(key=lambda row: (math.isnan(row.report[first.name]), sign * row.report[first.name]))
    return first, *(m for m in metrics if m is not first)
