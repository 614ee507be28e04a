"""`corank fit` and `tune`: train one model, or search its hyper-parameters."""

from __future__ import annotations

import itertools
import shlex
import time
from functools import partial
from pathlib import Path
from typing import Any

from ..data import Dataset
from ..data.given import with_validation
from ..data.split import Split
from ..data.values import words
from ..errors import Stopped
from .keeping import keep
from .on_disk import rows_on_disk
from .options import (
    EDGES,
    PARTS,
    TABLE,
    Args,
    cluster_of,
    evaluation_options,
    files_read,
    given,
    model_of,
    open_divided,
    open_source,
    params_given,
    parts_of,
    split_asked,
    writable,
)
from .show import WORTH_TELLING, Steps, epoch_values, say
from .stopping import Stop


def fit(args: Args) -> None:
    """Train one model on all rows, or on the training rows of a given split, and save it."""
    model = model_of(args)
    out, cluster = Path(args.out), cluster_of(args)
    for path in [out, *([Path(args.checkpoint)] if args.checkpoint and cluster is None else [])]:
        writable(path.parent, path, sources=files_read(args))
    if cluster is not None and (parts := parts_of(args)) is not None:
        _train(args, model, out, parts, cluster=cluster)
        _advise(out, model.users_.ids[0])
        return
    if cluster is not None:
        _fit_and_save(args, model, out, None, cluster)
        return
    with rows_on_disk(args, model) as rows:
        _fit_and_save(args, model, out, rows)


def _fit_and_save(args: Args, model: Any, out: Path, rows: Dataset | None, cluster: Any = None) -> None:
    """rows : where they have been read into files."""
    data, valid, split = _rows_to_fit(args, model) if rows is None else (rows, None, None)
    if given(args, *EDGES) and model.graph == "unused":
        effect = "the edges add users and have no other effect" if args.user_edges else "the edges have no effect"
        say(f"{args.model} does not use a graph: {effect}")
    if data.values == "counts" and (model.needs_ratings or model.predicts_ratings):
        say(f"{args.model} treats values as ratings, and these are {words(data)}: for counts use wmf, item_knn or ease")
    if cluster is None and (needed := model.estimate(data)).seconds >= WORTH_TELLING:
        say(f"{args.model}: {needed} estimated")
    _train(args, model, out, data, valid=valid, cluster=cluster)
    if split is not None and args.test:
        from ..evaluation.evaluate import evaluate
        from ..experiment.options import METRICS

        print(evaluate(model, split, METRICS["full"]))
    elif split is not None:
        say(f"evaluate it on the test rows:  corank evaluate {shlex.join([str(out), args.file])}")
    _advise(out, data.users.ids[data.user[0]])


def _advise(out: Path, user: Any) -> None:
    say(f"try:  corank recommend {shlex.quote(str(out))} --user {shlex.quote(str(user))}")


def _train(args: Args, model: Any, out: Path, data: Any, *, valid: Dataset | None = None, cluster: Any = None) -> None:
    """Fit the model, save it, and say what it took."""
    with Stop() as stop, Steps(stop) as steps:
        start = time.perf_counter()
        try:
            model.fit(
                data,
                valid=valid,
                on_epoch=lambda entry: steps(args.model, {**entry, "epochs": model.used_params().get("epochs")}),
                # An epoch is finished before a stop, so that its model can be saved; without epochs there is none.
                on_progress=lambda event: steps(args.model, event) or "epoch" in event,
                checkpoint=args.checkpoint,
                cluster=cluster,
            )
        except Stopped:
            stop.raise_if_asked()
            raise
        keep("model", out, partial(_save, model, out))
    last = model.history_[-1] if model.history_ else {}
    ended = f" after epoch {last['epoch']}, stopped early" if stop.asked and last else ""
    took = f"{args.model} fitted in {time.perf_counter() - start:.1f} s{ended}"
    say(", ".join([took, *epoch_values(last)]) + f"; saved to {out}")
    stop.raise_if_asked()


def _save(model: Any, out: Path, place: Path) -> None:
    """Save the model; its checkpoint stays until it is where it was asked for."""
    if place != out:
        model._finished = None
    model.save(place)


def _rows_to_fit(args: Args, model: Any) -> tuple[Dataset, Dataset | None, Split | None]:
    """The rows to fit on, those for early stopping if the model does that, and the split whose test rows are left."""
    stops = model.params().get("patience") is not None  # where it is only usual, no rows are held out for it
    if args.valid and not args.test:  # two parts: what is not learned from is for early stopping
        args.test, args.valid = args.valid, None
        split = open_source(args)
        assert isinstance(split, Split)  # test rows are given
        args.test = None
        if not model.stops_early:
            say(f"{args.model} does not stop early (it has no patience), so the validation rows are not used")
        return split.train, split.test if model.stops_early else None, None
    data = open_source(args)
    if isinstance(data, Split) and args.all_rows:
        say(f"fitted on all rows: {data.name} is not used")
        data = data.all_rows()
    if isinstance(data, Split):
        if not stops:
            return data.train.join(data.valid), None, data
        chosen = with_validation(data)
        say(f"patience: {len(chosen.valid):,} validation rows ({chosen.name}) for early stopping")
        return chosen.train, chosen.valid, data
    if not stops:
        return data, None, None
    from ..experiment.experiment import Experiment

    held_out = Experiment(data=data).make_split().refit()
    say(f"patience: {len(held_out.test):,} held-out validation rows ({held_out.name}) for early stopping")
    return held_out.train, held_out.test, None


def tune(args: Args) -> None:
    """Search hyper-parameters on validation rows and write the best as TOML."""
    from ..experiment.experiment import Experiment
    from ..experiment.tune import tune as search

    model = model_of(args)
    out = Path(args.out or f"{args.model}.toml")
    writable(out.parent, out, sources=files_read(args))
    options = evaluation_options(args)
    data = open_divided(args)
    split = "auto" if isinstance(data, Split) else split_asked(args)
    experiment = Experiment(data=data, split=split, **options, **given(args, "task"))
    experiment.check()
    with Stop() as stop, Steps(stop) as steps:
        try:
            found = search(
                model,
                experiment.make_split(),
                metric=experiment.metrics_used()[0],
                trials=args.trials,
                storage=args.storage or ".corank-tune",
                on_trial=partial(steps, args.model),
                on_progress=partial(steps, args.model),
                fixed=params_given(args),
                **experiment.protocol_options(),
            )
        except Stopped:
            stop.raise_if_asked()
            raise
        keep("best trial", out, found.write)
    say(f"{found.metric} {found.value:.5f} on validation, best of {found.trials} trials; written to {out}")
    print(out.read_text(), end="")
    flags = [(f"--{k.replace('_', '-')}", str(v)) for k, v in given(args, *TABLE, "positive", *EDGES, *PARTS).items()]
    words = [args.model, args.file, *itertools.chain(*flags), "--params", str(out), "-o", "m.corank"]
    say(f"use it:  corank fit {shlex.join(words)}")
    stop.raise_if_asked()
