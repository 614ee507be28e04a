"""Hyper-parameter search on the validation rows, with Optuna, over the ranges declared with the model's fields.

A search begins with the model as given and with settings that were best on other data. Trials below the median are
pruned after 1, 2, 4, 8, ... epochs; with a storage folder an interrupted search resumes.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..checkpoint import fingerprint
from ..data import Dataset
from ..data.split import Split
from ..errors import CorankError, MissingExtra, Stopped
from ..evaluation.evaluate import evaluate, rows_of_some_users
from ..evaluation.metrics import AnyMetric
from ..evaluation.metrics import metric as find_metric
from ..model import Model
from ..params import params_of
from ..system.atomic import write_text
from ..system.names import inside

OnTrial = Callable[[dict[str, Any]], bool | None]
RANDOM = 8  # trials before the search follows earlier ones; the starts are among them
ENDED = ("COMPLETE", "PRUNED")
FEW_USERS = 2_000  # enough validation users to see that a trial is hopeless


@dataclass(frozen=True)
class Tuned:
    """The best hyper-parameters found on the validation rows.

    tried : (hyper-parameters, value) of all trials in order; the value is None where the trial was pruned.
    """

    start: Model
    params: dict[str, Any]
    value: float
    metric: str
    tried: tuple[tuple[dict[str, Any], float | None], ...]

    @property
    def trials(self) -> int:
        """How many settings were tried, pruned ones included."""
        return len(self.tried)

    def after(self, trials: int) -> Tuned:
        """What the search had found after its first trials."""
        sign = 1.0 if find_metric(self.metric).higher_is_better else -1.0
        tried = self.tried[:trials]
        params, value = max(((p, v) for p, v in tried if v is not None), key=lambda one: sign * one[1])
        return Tuned(self.start, params, value, self.metric, tried)

    def model(self) -> Model:
        """An unfitted model with the best hyper-parameters."""
        return self.start._copy(**self.params)

    def write(self, path: str | Path) -> None:
        """Write the best hyper-parameters as TOML, for `corank fit --params` and for `[[model]]` tables."""
        lines = [
            f"# {self.metric} {self.value:.5f} on validation, best of {self.trials} trials",
            f"name = {json.dumps(self.start.name())}",
            *(f"{k} = {json.dumps(v)}" for k, v in self.params.items() if v is not None),
        ]
        write_text(path, "\n".join(lines) + "\n")


def tune(
    model: Model,
    split: Split,
    *,
    metric: AnyMetric = "ndcg@10",
    trials: int = 30,
    storage: str | Path | None = None,
    on_trial: OnTrial | None = None,
    on_progress: OnTrial | None = None,
    fixed: Collection[str] = (),
    **options: Any,
) -> Tuned:
    """Search the model's hyper-parameter ranges with `trials` trials on `split.valid`.

    Hyper-parameters of `model` that differ from their defaults are not searched, nor are those named in `fixed`.

    Parameters
    ----------
    storage : a folder for the state of the search; one that is found there is resumed.
    on_trial : called after each trial, pruned ones included; returning False stops the search and keeps the best.
    on_progress : called a few times per second within long trials, as that of `fit`, with `trial` and `of`; returning
        False abandons the trial and stops the search.
    options : protocol, negatives, popular, relevant, as in `evaluate`.
    """
    try:
        import optuna
    except ModuleNotFoundError:
        raise MissingExtra("tuning", "tune") from None
    if trials < 1:
        raise CorankError(f"trials={trials}: at least one trial is needed")
    if len(split.valid) == 0:
        raise CorankError(f"the split {split.name!r} has no validation rows: tuning needs them")
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    fixed = {*fixed, *model._pointless(split.train)}
    ranges = {
        name: entry
        for name, entry in params_of(type(model)).items()
        if entry[3].search is not None and name not in fixed and getattr(model, name) == entry[2]
    }
    sample = _some_users(split)
    if not ranges:
        value = _score(model.fit(split.train, valid=_watched(model, split)), split, metric, options)
        return Tuned(model, model.params(), value, find_metric(metric).name, ((model.params(), value),))

    def made(drawn: dict[str, Any]) -> Model:
        return model._copy(**drawn)._feasible(ranges)

    def objective(trial: Any) -> float:
        asked = trial.user_attrs.get("asked", ranges)
        candidate = made({n: _suggest(trial, n, *ranges[n]) for n in asked})

        def watch(entry: dict[str, Any]) -> bool | None:
            epoch = entry["epoch"]
            if epoch & (epoch - 1) or epoch == candidate.used_params().get("epochs"):
                return None  # 1, 2, 4, 8, ...; the last epoch is scored below
            trial.report(sign * _score(candidate, sample, metric, options), epoch)
            return False if trial.should_prune() else None

        def within(event: dict[str, Any]) -> bool | None:
            return on_progress is None or on_progress({**event, "trial": trial.number + 1, "of": trials})

        try:
            candidate.fit(split.train, valid=_watched(candidate, split), on_epoch=watch, on_progress=within)
        except Stopped:
            trial.study.stop()
            return math.nan  # a failed trial to optuna, neither completed nor pruned: a resumed search tries it again
        except CorankError as why:  # training diverged: a bad trial, not the end of the search
            logging.getLogger("corank").info("trial %d: %s", trial.number, why)
            raise optuna.TrialPruned from None
        if trial.should_prune():
            raise optuna.TrialPruned
        return sign * _score(candidate, split, metric, options)

    def report_trial(study: Any, trial: Any) -> None:
        best = sign * study.best_value if any(t.value is not None for t in study.trials) else None
        tried = {name: value for name, value in made(trial.params).params().items() if name in trial.params}
        event = {"event": "trial", "trial": trial.number + 1, "of": trials, "params": tried, "best": best}
        if on_trial is not None and trial.state.name in ENDED and on_trial(event) is False:
            study.stop()

    # The first trial is the model as given; what a range does not hold (None, "auto", 0 on a log scale) stays as it is.
    given = {
        n: getattr(model, n) for n, (kind, *_, rule) in ranges.items() if _suggestible(getattr(model, n), kind, rule)
    }
    sign = 1.0 if find_metric(metric).higher_is_better else -1.0
    study = optuna.create_study(
        study_name=_fingerprint(model, split, metric, options),
        storage=_storage(storage, model.name()),
        load_if_exists=True,
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=model.seed, multivariate=True, n_startup_trials=RANDOM),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=1),
    )
    if not study.trials:  # the model as given is the first trial: a search never ends below it
        starts = ({n: value for n, value in start.items() if n in ranges} for start in model.starts)
        for start in ({}, *filter(None, starts)):
            setting = given | start
            study.enqueue_trial(setting, user_attrs={"asked": list(setting)})
    if len(_ended(study)) < trials:
        study.optimize(objective, n_trials=trials - len(_ended(study)), callbacks=[report_trial])
    tried = tuple(
        (made(t.params).params(), sign * t.value if t.state.name == "COMPLETE" else None) for t in _ended(study)
    )
    finished = [(params, value) for params, value in tried if value is not None]
    if not finished and len(tried) < trials:
        raise Stopped(f"the search for {model.name()} was stopped before a trial had finished: nothing was found")
    if not finished:
        raise CorankError(f"none of {trials} trials of {model.name()} finished: see the log")
    best = max(finished, key=lambda one: sign * one[1])
    return Tuned(model, *best, find_metric(metric).name, tried)


def _ended(study: Any) -> list[Any]:
    """The completed and pruned trials: an interrupted one is tried again."""
    return [t for t in study.trials if t.state.name in ENDED]


def _score(model: Model, split: Split, metric: AnyMetric, options: dict[str, Any]) -> float:
    return float(evaluate(model, split, [metric], part="valid", bootstrap=0, **options)[metric])


def _watched(model: Model, split: Split) -> Dataset | None:
    """The rows that tell a model when to stop, if it does that by itself: it is fitted in the same way in the end."""
    return split.valid if model.stops_early else None


def _some_users(split: Split) -> Split:
    """The split with at most `FEW_USERS` validation users, the same ones in all trials."""
    return dataclasses.replace(split, valid=rows_of_some_users(split.valid, FEW_USERS))


def _suggestible(value: Any, kind: type, rule: Any) -> bool:
    if kind in (int, float):
        return value is not None and not (rule.log and value <= 0)
    return value in rule.search


def _suggest(trial: Any, name: str, kind: type, optional: bool, default: Any, rule: Any) -> Any:
    if kind is int:
        return trial.suggest_int(name, *rule.search, log=rule.log)
    if kind is float:
        return trial.suggest_float(name, *rule.search, log=rule.log)
    return trial.suggest_categorical(name, list(rule.search))


def _storage(folder: str | Path | None, name: str) -> Any:
    """An append-only journal file: a killed search loses at most the running trial."""
    if folder is None:
        return None
    from optuna.storages import JournalStorage

    from .journal import Journal

    path = inside(Path(folder), name, ".journal")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return JournalStorage(Journal(str(path)))
    except OSError as why:
        raise CorankError(f"cannot write the state of the search to {folder}: {why.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as why:
        raise CorankError(f"{path} is not the journal of a search ({why}): remove it to start anew") from None


def _fingerprint(model: Model, split: Split, metric: AnyMetric, options: dict[str, Any]) -> str:
    """The name of the study: equal only for the same model, data, metric and protocol, so that trials never mix."""
    text = json.dumps([model.name(), model.params(), split.name, metric, options], default=str, sort_keys=True)
    parts = [text, *(fingerprint(model, part) for part in (split.train, split.valid))]
    digest = hashlib.sha256("".join(parts).encode())
    return f"{model.name()}-{digest.hexdigest()[:16]}"
