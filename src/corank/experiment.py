"""An experiment: some models, one dataset, one split, one protocol; said in Python or in a few lines of TOML.

Validation chooses hyper-parameters, the test part is touched once a row. Nothing here names a model: the rows are
whatever is asked for.
"""

from __future__ import annotations

import dataclasses
import inspect
import logging
import math
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import leaderboard
from . import split as splits
from .data import Dataset
from .errors import CorankError, suggest
from .evaluate import Report, evaluate
from .model import Model, available, find
from .params import check
from .split import Split

if TYPE_CHECKING:
    import polars as pl

logger = logging.getLogger("corank")

SPLITS = ("leave_last_out", "holdout", "time_cut", "fixed_per_user", "strong_generalization")
METRICS = ("ndcg@10", "recall@10", "mrr@10", "coverage@10", "novelty@10")
Progress = Callable[[str, dict[str, Any]], bool | None]


@dataclass(frozen=True, eq=False)
class Row:
    """One line of a leaderboard: a fitted model and what it scored."""

    label: str
    model: Model
    report: Report
    trials: int = 0  # how many settings were tried on validation before this one was chosen

    @property
    def oracle(self) -> bool:
        """The row knows the truth (synthetic data): a ceiling, not a contender."""
        return not isinstance(self.model, Model) or self.model.name() not in available()


@dataclass(frozen=True, eq=False)
class Results:
    """What an experiment found, best row first."""

    split: Split
    rows: list[Row]
    metrics: tuple[str, ...]
    name: str = "experiment"
    seconds: float = 0.0
    failed: dict[str, str] = field(default_factory=dict)  # label -> why the row is missing

    @property
    def best(self) -> Row:
        """The best row that is a contender."""
        return next((row for row in self.rows if not row.oracle), self.rows[0])

    @cached_property
    def lines(self) -> list[leaderboard.Line]:
        """The rows compared with the best one; the tests run once."""
        return leaderboard.lines(self)

    def leaderboard(self) -> pl.DataFrame:
        """One row a model: metrics with intervals, p, effect, shares of users, seconds, hyper-parameters."""
        return leaderboard.frame(self)

    def as_dict(self) -> dict[str, Any]:
        """Everything but the per-user values, as plain values for JSON."""
        return leaderboard.as_dict(self)

    def __str__(self) -> str:
        return leaderboard.text(self)


@dataclass(kw_only=True)
class Experiment:
    """The question: which of these models ranks best for these users?"""

    data: Dataset | Split | str | Path
    models: Sequence[
        str | Mapping[str, Any] | Model
    ] = ()  # names, tables {name = ..., dim = ...} or models; all when empty
    split: str | Mapping[str, Any] = "auto"  # a name of SPLITS, or a table {name = ..., seed = ...}
    metrics: Sequence[str] = METRICS  # the first one decides
    protocol: str = "full"
    negatives: int = 100  # of the protocol 'sampled'
    popular: bool = False  # draw them by popularity
    relevant: float | None = None  # test rows below this value do not count as relevant
    positive: float | None = None  # rows below this value are left out of the data
    tune: int = 0  # settings to try on validation for each model
    refit: bool = False  # give the validation rows back to training for the final fit
    seed: int = 0
    name: str = "experiment"
    columns: Mapping[str, Any] = field(default_factory=dict)  # user, item, value, time, separator of a file

    @classmethod
    def from_toml(cls, path: str | Path) -> Experiment:
        """Read an experiment; `[[model]]` tables are the rows, a relative data file is looked for beside the TOML
        file.
        """
        path = Path(path)
        table = read_toml(path)
        known = {f.name for f in dataclasses.fields(cls)} - {"models"} | {"model"}
        for key in table:
            if key not in known:
                raise CorankError(f"{path}: {key!r} is not an option of an experiment{suggest(key, known)}")
        models = table.pop("model", [])
        if not isinstance(models, list) or not all(isinstance(m, dict) and "name" in m for m in models):
            raise CorankError(f"{path}: each row is a table of its own, [[model]] with a name")
        if "data" not in table:
            raise CorankError(f"{path}: say what data to use, e.g. data = 'ml-1m' or data = 'ratings.csv'")
        beside = path.parent / str(table["data"])
        if beside.exists():
            table["data"] = beside
        return cls(models=models, name=table.pop("name", path.stem), **table)

    def run(self, on_progress: Progress | None = None, storage: Path | None = None) -> Results:
        """Fit and evaluate every row. `on_progress(label, event)` hears of each step; returning False stops after it.

        storage : a folder where tuning is kept, so that a stopped run goes on where it was.
        """
        from .tune import tune

        start = time.perf_counter()
        tell: Progress = on_progress or (lambda label, event: None)
        rows_asked = [self._model(m) for m in (self.models or available())]
        split = self.make_split()
        options = self._protocol()
        done: list[Row] = []
        failed: dict[str, str] = {}
        for label, model in rows_asked:
            if tell(label, {"event": "start"}) is False:
                break

            stopped = False

            def heard(entry: dict[str, Any], label: str = label) -> bool | None:
                nonlocal stopped
                stopped = tell(label, {"event": "epoch", **entry}) is False
                return not stopped

            try:
                trials = 0
                if self.tune and type(model).__module__.startswith(f"{__package__}.models."):
                    tuned = tune(
                        model,
                        split,
                        metric=self.metrics[0],
                        trials=self.tune,
                        storage=storage,
                        on_trial=heard,
                        **options,
                    )
                    model, trials = tuned.model(), tuned.trials
                final = split.refit() if self.refit else split
                if not stopped:
                    model.fit(final.train, on_epoch=heard)
                if stopped:  # a half-trained row would be compared unfairly
                    break
                report = evaluate(model, final, self.metrics, seed=self.seed, **options)
            except CorankError as why:
                # One row that cannot be had (no timestamps, too many items) must not cost the others.
                failed[label] = str(why)
                logger.warning("%s: %s", label, why)
                tell(label, {"event": "failed", "why": str(why)})
                continue
            done.append(Row(label, model, report, trials))
            if tell(label, {"event": "done", "report": report}) is False:
                break
        if not done:
            raise CorankError("; ".join(f"{k}: {v}" for k, v in failed.items()) or "no row was finished")
        from .metrics import metrics_of

        metrics = metrics_of(self.metrics)
        sign = -1 if metrics[0].higher_is_better else 1
        # A metric that is defined for no user is NaN, and such a row is last.
        done.sort(key=lambda row: (math.isnan(row.report[metrics[0].name]), sign * row.report[metrics[0].name]))
        return Results(split, done, tuple(m.name for m in metrics), self.name, time.perf_counter() - start, failed)

    def make_split(self) -> Split:
        """The parts this experiment learns and tests on."""
        if isinstance(self.data, Split):
            return self.data
        if isinstance(self.data, Dataset):
            data = self.data
        else:
            from .datasets import open_any

            data = open_any(self.data, **dict(self.columns))
        if self.positive is not None:
            data = data.take(data.value >= self.positive).compact()
            if len(data) == 0:
                raise CorankError(f"no row has a value of {self.positive:g} or more: lower `positive`")
        options = {"name": self.split} if isinstance(self.split, str) else dict(self.split)
        name = options.pop("name", "auto")
        if name == "auto":
            # Time decides when there is one; without it the last row means nothing.
            name, options = ("leave_last_out", {}) if data.time is not None else ("holdout", {"by": "user", **options})
        if name not in SPLITS:
            raise CorankError(f"there is no split {name!r}{suggest(str(name), SPLITS)}")
        cut = getattr(splits, name)
        if "seed" in inspect.signature(cut).parameters:
            options = {"seed": self.seed, **options}
        try:
            return cut(data, **options)  # type: ignore[no-any-return]
        except TypeError as why:
            raise CorankError(f"split {name}: {str(why).replace(name + '() ', '')}") from None

    def _protocol(self) -> dict[str, Any]:
        return {
            "protocol": self.protocol,
            "negatives": self.negatives,
            "popular": self.popular,
            "relevant": self.relevant,
        }

    def _model(self, asked: str | Mapping[str, Any] | Model) -> tuple[str, Model]:
        """(label, model) of a row; every mistake is found before anything is fitted."""
        if isinstance(asked, Model):
            check(asked)
            return getattr(asked, "label", type(asked).name()), asked
        table = {"name": asked} if isinstance(asked, str) else dict(asked)
        name = str(table.pop("name"))
        label = str(table.pop("label", name))
        return label, make_model(name, {"seed": self.seed, **table})


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
