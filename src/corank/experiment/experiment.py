"""An experiment: some models, one dataset, one split, one protocol; said in Python or in a few lines of TOML.

Validation chooses hyper-parameters, the test part is touched once a row. Nothing here names a model: the rows are
whatever is asked for.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..data import Dataset
from ..data import split as splits
from ..data.split import Split
from ..errors import CorankError, suggest
from ..evaluation.evaluate import evaluate
from ..evaluation.metrics import AnyMetric, metrics_of
from ..evaluation.protocol import as_protocol
from ..evaluation.seeds import pooled, spread
from ..model import Model
from ..models import available, find
from ..params import check
from ..reading.edge_tables import edge_file
from .results import Results, Row
from .source import COLUMNS, DRAW_USERS, cut, opened, same_rows

logger = logging.getLogger("corank")

# What is measured when nothing is said; the first one decides.
METRICS = {
    "full": ("ndcg@10", "recall@10", "mrr@10", "coverage@10", "novelty@10"),
    "sampled": ("ndcg@10", "recall@10", "mrr@10"),
    "rated": ("ndcg@10", "pairwise_error"),
}
# implicit: who takes what next? explicit: in which order does a user rate the items? sequential: as implicit, with the
# models that read a history in its order.
TASKS = {"implicit": "full", "explicit": "rated", "sequential": "full"}
Progress = Callable[[str, dict[str, Any]], bool | None]


@dataclass(kw_only=True)
class Experiment:
    """The question: which of these models ranks best for these users?"""

    data: Dataset | Split | str | Path | Mapping[str, Any]  # a table makes it: {synthetic = "simulation", ...}
    models: Sequence[str | Mapping[str, Any] | Model] = ()  # names, tables {name = ..., dim = ...} or models
    split: str | Mapping[str, Any] = "auto"  # a name of parts.SPLITS, or a table {name = ..., seed = ...}
    task: str = "implicit"  # or explicit, sequential: chooses models, protocol and split where nothing else is said
    metrics: Sequence[AnyMetric] = ()  # names or functions, the first one decides; by the protocol when empty
    protocol: str = ""  # full, sampled or rated; by the task when empty
    negatives: int = 100  # of the protocol 'sampled'
    popular: bool = False  # draw them by popularity
    relevant: float | None = None  # test rows below this value do not count as relevant
    positive: float | None = None  # rows below this value are left out of the data
    tune: int = 0  # settings to try on validation for each model
    refit: bool = False  # give the validation rows back to training for the final fit
    seed: int = 0
    seeds: Sequence[int] = ()  # run everything once for each, splits included; the report is their mean
    keep: bool = False  # long training: what is learned is kept in the storage, and a stopped run goes on from there
    curves: bool = False  # measure after each epoch, for quality against time
    gain: Sequence[str] = ()  # labels of two rows: how far is each row on the way from the first to the second?
    name: str = "experiment"
    title: str = ""  # of its page in the documentation
    columns: Mapping[str, Any] = field(default_factory=dict)  # user, item, value, time, separator of a file
    user_edges: str | Path | None = None  # a file with a row an edge: the graph of the users, see Dataset.with_graph
    item_edges: str | Path | None = None
    _kept: tuple[str, Dataset | Split] | None = field(default=None, init=False, repr=False, compare=False)

    @classmethod
    def from_toml(cls, path: str | Path) -> Experiment:
        """Read an experiment; `[[model]]` tables are the rows, relative files of data and edges are looked for beside
        the TOML file.
        """
        path = Path(path)
        table = read_toml(path)
        known = {f.name for f in dataclasses.fields(cls) if f.init} - {"models"} | {"model"}
        for key in table:
            if key not in known:
                raise CorankError(f"{path}: {key!r} is not an option of an experiment{suggest(key, known)}")
        models = table.pop("model", [])
        if not isinstance(models, list) or not all(isinstance(m, dict) and "name" in m for m in models):
            raise CorankError(f"{path}: each row is a table of its own, [[model]] with a name")
        if "data" not in table:
            raise CorankError(f"{path}: say what data to use, e.g. data = 'ml-1m' or data = 'ratings.csv'")
        for key in ("data", "user_edges", "item_edges"):
            if isinstance(table.get(key), str) and (beside := path.parent / table[key]).exists():
                table[key] = beside
        return cls(models=models, name=table.pop("name", path.stem), **table)

    def run(self, on_progress: Progress | None = None, storage: Path | None = None) -> Results:
        """Fit and evaluate every row. `on_progress(label, event)` hears of each step; returning False stops after it.

        storage : a folder where tuning (with `keep`, training too) is kept: a stopped run goes on where it was, and
        experiments that learn the same from the same rows do so once.
        """
        start = time.perf_counter()
        self.check()
        asked = self.rows_asked()
        if self.gain and (len(self.gain) != 2 or not {row.label for row in asked}.issuperset(self.gain)):
            raise CorankError(f"gain = {self.gain!r}: give the labels of two rows, such as gain = ['MF', 'GRMF, G']")
        metrics = metrics_of(self.measured())
        parts = [self.make_split(seed) for seed in self.seeds or (self.seed,)]
        self._kept = None  # a file may be another one at the next run
        one_split = all(same_rows(part.test, parts[0].test) for part in parts)
        drawn = self.split["name"] if isinstance(self.split, Mapping) and "name" in self.split else self.split
        if not one_split and drawn in DRAW_USERS:  # the report is about the users whom all runs test
            raise CorankError(
                f"split '{drawn}' draws other test users for each of {len(parts)} seeds, and a mean needs the same: "
                f"give it a seed of its own, split = {{name = '{drawn}', seed = {self.seeds[0]}}}"
            )
        if self.task == "explicit" and np.ptp(parts[0].train.value) == 0:
            raise CorankError(
                "task 'explicit' is about the order of ratings, and all rows here have one value: name the column of "
                "the ratings, or use task 'implicit'"
            )
        done: list[Row] = []
        failed: dict[str, str] = {}
        for row in asked:
            watch = _Watch(row.label, on_progress)
            if watch(event="start"):
                break
            try:
                found = self._run_row(row, parts, watch, storage)
            except CorankError as why:
                # One row that cannot be had (no timestamps, too many items) must not cost the others.
                failed[row.label] = str(why)
                logger.warning("%s: %s", row.label, why)
                watch(event="failed", why=str(why))
                continue
            if found is None:
                break
            done.append(found)
            if watch(event="done", report=found.report):
                break
        if not done:
            reasons = "; ".join(f"{k}: {v}" for k, v in failed.items())
            raise CorankError(reasons or "stopped before any row was finished")
        if all(math.isnan(row.report[metrics[0].name]) for row in done):
            raise CorankError(
                f"{metrics[0].name} is defined for no user here, so no row is best: choose another metric"
            )
        left = tuple(r.label for r in asked if r.label not in failed and r.label not in {row.label for row in done})
        sign = -1 if metrics[0].higher_is_better else 1
        # A metric that is defined for no user is NaN, and such a row is last.
        done.sort(key=lambda row: (math.isnan(row.report[metrics[0].name]), sign * row.report[metrics[0].name]))
        names, seconds = tuple(m.name for m in metrics), time.perf_counter() - start
        return Results(parts[0], done, names, self.name, seconds, failed, left, tuple(self.gain), one_split)

    def _run_row(self, row: _Asked, parts: list[Split], watch: _Watch, storage: Path | None) -> Row | None:
        """Tune on the first split, then fit and test on each; None when somebody asked to stop."""
        from .tune import tune

        model, trials, options = row.model, 0, self.how()
        if self.tune and not model.oracle:
            part = parts[0]
            if row.at_most is not None:
                part = dataclasses.replace(part, train=splits.thinned(part.train, row.at_most, self.seed))
            found = tune(
                model,
                part,
                metric=self.measured()[0],
                trials=self.tune,
                storage=None if storage is None else storage / self.name,
                on_trial=watch.goes_on,
                **options,
            )
            model, trials = found.model(), found.trials
        reports = []
        for seed, split in zip(self.seeds or (self.seed,), parts, strict=True):
            if watch.asked_to_stop():
                return None
            final = split.refit() if self.refit else split
            if self.seeds:
                model = type(model)(**{**model.params(), "seed": seed})
            train = final.train if row.at_most is None else splits.thinned(final.train, row.at_most, seed)
            kept = storage / "learned" if self.keep and storage is not None else None
            model = self._learned(model, train, final.valid, watch, kept)
            if watch.asked_to_stop():  # a half-trained row would be compared unfairly
                return None
            reports.append(evaluate(model, final, self.measured(), seed=seed, **options))
        deviation = {name: spread(reports, name) for name in reports[0].mean}
        return Row(row.label, model, pooled(reports), trials, row.published, deviation, len(reports))

    def _learned(self, model: Model, train: Dataset, valid: Dataset, watch: _Watch, folder: Path | None) -> Model:
        """The model after fit. In a folder, one that was learned before is taken and one that was stopped goes on.

        Validation rows stop the training of a model with `patience`, and are not looked at otherwise.
        """
        stops = valid if getattr(model, "patience", None) is not None and len(valid) else None
        if folder is None:
            return model.fit(train, valid=stops, on_epoch=watch.goes_on)
        from ..checkpoint import fingerprint
        from ..models import load

        asked = [fingerprint(model, part)[:12] for part in (train, valid)]
        file = folder / "-".join([model.name(), *asked, str(model.params().get("epochs", 0))])
        done = file.with_suffix(".corank")
        if done.exists():
            return load(done)
        folder.mkdir(parents=True, exist_ok=True)
        model.fit(train, valid=stops, on_epoch=watch.goes_on, checkpoint=file.with_suffix(".checkpoint"))
        if not watch.asked_to_stop():
            model.save(done)
        return model

    def measured(self) -> tuple[AnyMetric, ...]:
        """The metrics asked for, or those of the protocol."""
        return tuple(self.metrics) or METRICS[self._how()]

    def rows_asked(self) -> list[_Asked]:
        """The rows, checked before anything is fitted; all models of the task when none are named."""
        if isinstance(self.models, str):
            raise CorankError(f"models={self.models!r}: give a list, such as [{self.models!r}]")
        return [self._asked(m) for m in self.models or self._usual()]

    def _usual(self) -> list[str]:
        """All models of the task; those of graphs where the data has one, which must be opened to see."""
        rows = self._rows(next(iter(self.seeds), self.seed))
        train = rows.train if isinstance(rows, Split) else rows
        graph = not (train.user_graph is None and train.item_graph is None)
        return [n for n in available() if find(n).suits(self.task) and (graph or find(n).graph != "needed")]

    def _how(self) -> str:
        return self.protocol or TASKS[self.task]

    def check(self) -> None:
        """Every mistake that can be found without data is found first, in one sentence."""
        for names, kind, what in (
            (("tune", "negatives", "seed"), int, "a whole number of 0 or more"),
            (("refit", "popular", "curves", "keep"), bool, "true or false"),
            (("name", "protocol", "task"), str, "a text"),
        ):
            for name in names:
                value: Any = getattr(self, name)
                if type(value) is not kind or (isinstance(value, int) and value < 0):
                    raise CorankError(f"{name} = {value!r}: {name} must be {what}")
        for seed in self.seeds:
            if type(seed) is not int or seed < 0:
                raise CorankError(f"seeds has {seed!r}: a seed is a whole number of 0 or more")
        for name in ("relevant", "positive"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise CorankError(f"{name} = {value!r}: {name} must be a number")
        if self.task not in TASKS:
            raise CorankError(f"there is no task {self.task!r}{suggest(str(self.task), TASKS)}")
        if self._how() not in METRICS:
            raise CorankError(f"there is no protocol {self.protocol!r}{suggest(self.protocol, METRICS)}")
        if self._how() != "sampled" and (self.negatives != 100 or self.popular):
            raise CorankError(f"negatives and popular belong to protocol 'sampled', and this one is {self._how()!r}")
        if not isinstance(self.columns, Mapping):
            raise CorankError(f"columns = {self.columns!r}: give a table, such as columns = {{user = 'who'}}")
        for key, value in self.columns.items():
            if key not in COLUMNS:
                raise CorankError(f"columns has no {key!r}{suggest(str(key), COLUMNS)}")
            if not isinstance(value, str | bool):
                raise CorankError(f"columns: {key} = {value!r} must be the name of a column")
        if not isinstance(self.data, Dataset | Split | str | Path | Mapping):
            raise CorankError(f"data = {self.data!r}: give a Dataset, a Split, a file or the name of a dataset")
        self._check_edges()
        protocol = self.how()
        as_protocol(protocol.pop("protocol"), 1, seed=self.seed, **protocol)

    def _check_edges(self) -> None:
        """Files of edges are there, and go with data that has no graph or split of its own."""
        for name in ("user_edges", "item_edges"):
            path = getattr(self, name)
            if path is None:
                continue
            if not isinstance(path, str | Path):
                raise CorankError(f"{name} = {path!r}: give the name of a file with a row an edge")
            edge_file(path, self.data)
            if isinstance(self.data, Split | Mapping) or self.split == "published":
                raise CorankError(
                    f"{name} goes with a table, a named dataset or a Dataset, and this data is made or split already: "
                    "give it the graph first"
                )

    def _rows(self, seed: int) -> Dataset | Split:
        """The data before it is cut; read once, and made once a seed."""
        if isinstance(self.data, Split):
            return self.data
        names = ("columns", "positive", "user_edges", "item_edges", "split")
        options: dict[str, Any] = {name: getattr(self, name) for name in names}
        own = id(self.data) if isinstance(self.data, Dataset) else self.data
        key = repr((own, options, seed if isinstance(own, Mapping) else None))
        if self._kept is None or self._kept[0] != key:
            self._kept = None
            self._kept = key, opened(self.data, **options, seed=seed)
        return self._kept[1]

    def make_split(self, seed: int | None = None) -> Split:
        """The parts this experiment learns and tests on; `seed` instead of the experiment's own."""
        seed = self.seed if seed is None else seed
        data = self._rows(seed)
        return data if isinstance(data, Split) else cut(data, self.split, rated=self._how() == "rated", seed=seed)

    def how(self) -> dict[str, Any]:
        """The options of `evaluate`."""
        return {
            "protocol": self._how(),
            "negatives": self.negatives,
            "popular": self.popular,
            "relevant": self.relevant,
        }

    def _asked(self, asked: str | Mapping[str, Any] | Model) -> _Asked:
        """A row as it was asked for; every mistake is found before anything is fitted."""
        if isinstance(asked, Model):
            check(asked)
            return _Asked(getattr(asked, "label", type(asked).name()), asked, {})
        if not isinstance(asked, str | Mapping) or (isinstance(asked, Mapping) and "name" not in asked):
            raise CorankError(f"{asked!r} is no row: give a model, its name, or a table with a name")
        table: dict[str, Any] = {"name": asked} if isinstance(asked, str) else dict(asked)
        name = str(table.pop("name"))
        label, published = str(table.pop("label", name)), dict(table.pop("published", {}))
        at_most = table.pop("at_most", None)
        if at_most is not None and (type(at_most) is not int or at_most < 1):
            raise CorankError(f"at_most = {at_most!r}: how many training rows of each user is a whole number above 0")
        asked_for = find(name).task_params.get(self.task, {})
        return _Asked(label, make_model(name, {"seed": self.seed, **asked_for, **table}), published, at_most)


class _Asked(NamedTuple):
    label: str
    model: Model
    published: Mapping[str, float]
    at_most: int | None = None  # training rows of each user


class _Watch:
    """Tells of the steps of one row and remembers whether anyone asked to stop."""

    def __init__(self, label: str, tell: Progress | None) -> None:
        self.label = label
        self.tell = tell
        self.stopped = False

    def __call__(self, **event: Any) -> bool:
        self.stopped = self.stopped or (self.tell is not None and self.tell(self.label, event) is False)
        return self.stopped

    def asked_to_stop(self) -> bool:
        return self.stopped

    def goes_on(self, entry: dict[str, Any]) -> bool:
        """For `on_epoch` and `on_trial`."""
        return not self(**{"event": "epoch", **entry})


def make_model(name: str, params: Mapping[str, Any]) -> Model:
    """The model of that name with these hyper-parameters, checked."""
    cls = find(name)
    known = [f.name for f in dataclasses.fields(cls)]
    for key in params:
        if key not in known:
            raise CorankError(f"{name} has no hyper-parameter {key!r}{suggest(key, known)}")
    model = cls(**params)
    check(model)
    return model


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file as a dict; what is wrong with it in one sentence."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise CorankError(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as why:
        raise CorankError(f"{path} cannot be read as TOML: {why}") from None
