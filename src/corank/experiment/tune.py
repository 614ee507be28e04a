"""Search for hyper-parameters on the validation part, with Optuna: the ranges stand beside the fields of the model.

Trials that fall behind are pruned after any epoch; with a storage folder a stopped search goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..atomic import write_text
from ..checkpoint import fingerprint
from ..data.split import Split
from ..errors import CorankError, MissingExtra
from ..evaluation.evaluate import evaluate
from ..evaluation.metrics import AnyMetric
from ..evaluation.metrics import metric as find_metric
from ..model import Model
from ..params import params_of

OnTrial = Callable[[dict[str, Any]], bool | None]


@dataclass(frozen=True)
class Tuned:
    """The best setting found on validation."""

    start: Model
    params: dict[str, Any]
    value: float
    metric: str
    trials: int

    def model(self) -> Model:
        """A fresh model with the best setting."""
        return type(self.start)(**self.params)

    def write(self, path: str | Path) -> None:
        """The best setting as TOML, for `corank fit --params` and for `[[model]]` tables."""
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
    fixed: Collection[str] = (),
    **options: Any,
) -> Tuned:
    """Try `trials` settings of the model's search ranges on `split.valid`.

    A value of `model` that is not the default stays, as do the hyper-parameters named in `fixed`.
    on_trial : called after each trial (and pruned ones); returning False stops the search and keeps what was found.
    options : protocol, negatives, popular, relevant, as in `evaluate`.
    """
    try:
        import optuna
    except ModuleNotFoundError:
        raise MissingExtra("tuning", "tune") from None
    if trials < 1:
        raise CorankError(f"trials={trials}: at least one setting must be tried")
    if len(split.valid) == 0:
        raise CorankError(f"the split {split.name!r} has no validation rows: tuning needs them")
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    ranges = {
        name: entry
        for name, entry in params_of(type(model)).items()
        if entry[3].search is not None and name not in fixed and getattr(model, name) == entry[2]
    }
    if not ranges:
        value = _score(model.fit(split.train), split, metric, options)
        return Tuned(model, model.params(), value, find_metric(metric).name, 1)

    def objective(trial: Any) -> float:
        asked = given if trial.user_attrs.get("given") else ranges
        candidate = type(model)(**{**model.params(), **{n: _suggest(trial, n, *ranges[n]) for n in asked}})

        def watch(entry: dict[str, Any]) -> bool | None:
            if entry["epoch"] == candidate.params().get("epochs"):
                return None  # the last epoch is scored below
            trial.report(sign * _score(candidate, split, metric, options), entry["epoch"])
            return False if trial.should_prune() else None

        try:
            candidate.fit(split.train, on_epoch=watch)
        except CorankError as why:  # a setting that diverges is a bad setting, not the end of the search
            logging.getLogger("corank").info("trial %d: %s", trial.number, why)
            raise optuna.TrialPruned from None
        if trial.should_prune():
            raise optuna.TrialPruned
        return sign * _score(candidate, split, metric, options)

    def told(study: Any, trial: Any) -> None:
        best = sign * study.best_value if any(t.value is not None for t in study.trials) else None
        event = {"event": "trial", "trial": trial.number + 1, "of": trials, "params": trial.params, "best": best}
        if on_trial is not None and on_trial(event) is False:
            study.stop()

    # In the trial of the given setting, None (left to the data) stays so, and so does 0 where a search goes by ratios.
    given = {n: getattr(model, n) for n in ranges if getattr(model, n) is not None}
    given = {n: value for n, value in given.items() if not (ranges[n][-1].log and value <= 0)}
    sign = 1.0 if find_metric(metric).higher_is_better else -1.0
    study = optuna.create_study(
        study_name=_fingerprint(model, split, metric, options),
        storage=_storage(storage, model.name()),
        load_if_exists=True,
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=model.seed, multivariate=True),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=2),
    )
    if not study.trials:  # the setting that was given takes part: a search never ends below it
        study.enqueue_trial(given, user_attrs={"given": True})
    if _ended(study) < trials:
        study.optimize(objective, n_trials=trials - _ended(study), callbacks=[told])
    try:
        best = study.best_trial
    except ValueError:
        raise CorankError(f"none of {trials} trials of {model.name()} could be finished: see the log") from None
    assert best.value is not None  # a best trial has finished
    return Tuned(model, {**model.params(), **best.params}, sign * best.value, find_metric(metric).name, _ended(study))


def _ended(study: Any) -> int:
    """Trials that came to an end by themselves: one that was interrupted is tried again."""
    return sum(t.state.name in ("COMPLETE", "PRUNED") for t in study.trials)


def _score(model: Model, split: Split, metric: AnyMetric, options: dict[str, Any]) -> float:
    return float(evaluate(model, split, [metric], part="valid", bootstrap=0, **options)[metric])


def _suggest(trial: Any, name: str, kind: type, optional: bool, default: Any, rule: Any) -> Any:
    if kind is int:
        return trial.suggest_int(name, *rule.search, log=rule.log)
    if kind is float:
        return trial.suggest_float(name, *rule.search, log=rule.log)
    return trial.suggest_categorical(name, list(rule.search))


def _storage(folder: str | Path | None, name: str) -> Any:
    """A journal file an append at a time: a killed search loses at most the trial it was in."""
    if folder is None:
        return None
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        return JournalStorage(JournalFileBackend(str(Path(folder) / f"{name}.journal")))
    except OSError as why:
        raise CorankError(f"cannot keep the search in {folder}: {why.strerror}") from None


def _fingerprint(model: Model, split: Split, metric: AnyMetric, options: dict[str, Any]) -> str:
    """The same name only for the same question: trials of other data must not be mixed in."""
    text = json.dumps([model.name(), model.params(), split.name, metric, options], default=str, sort_keys=True)
    asked = [text, *(fingerprint(model, part) for part in (split.train, split.valid))]
    digest = hashlib.sha256("".join(asked).encode())
    return f"{model.name()}-{digest.hexdigest()[:16]}"
