"""`corank fit` and `tune`: train one model, or search its hyper-parameters."""

from __future__ import annotations

import itertools
import shlex
import time
from pathlib import Path

from ..errors import Stopped
from .options import (
    EDGES,
    TABLE,
    Args,
    evaluation_options,
    files_read,
    given,
    model_of,
    open_table,
    params_given,
    writable,
)
from .show import WORTH_TELLING, Steps, epoch_values, say


def fit(args: Args) -> None:
    """Train one model on all rows and save it."""
    model = model_of(args)
    out = Path(args.out)
    for path in [out, *([Path(args.checkpoint)] if args.checkpoint else [])]:
        writable(path.parent, path, sources=files_read(args))
    data = open_table(args)
    if given(args, *EDGES) and model.graph == "unused":
        effect = "the edges add users and have no other effect" if args.user_edges else "the edges have no effect"
        say(f"{args.model} does not use a graph: {effect}")
    valid = None
    if model.params().get("patience") is not None:
        from ..experiment.experiment import Experiment

        held_out = Experiment(data=data).make_split().refit()
        data, valid = held_out.train, held_out.test
        say(f"patience: {len(valid):,} held-out validation rows ({held_out.name}) for early stopping")
    needed = model.estimate(data)
    if needed.seconds >= WORTH_TELLING:
        say(f"{args.model}: {needed} estimated")
    epochs = model.params().get("epochs")
    with Steps() as steps:
        start = time.perf_counter()
        try:
            model.fit(
                data,
                valid=valid,
                on_epoch=lambda entry: steps(args.model, {**entry, "epochs": epochs}),
                # An epoch is finished before a stop, so that its model can be saved; without epochs there is none.
                on_progress=lambda event: steps(args.model, event) or "epoch" in event,
                checkpoint=args.checkpoint,
            )
        except Stopped:
            raise KeyboardInterrupt from None
        stopped = steps.stop.asked
    model.save(out)
    last = model.history_[-1] if model.history_ else {}
    ended = f" after epoch {last['epoch']}, stopped early" if stopped and last else ""
    took = f"{args.model} fitted in {time.perf_counter() - start:.1f} s{ended}"
    say(", ".join([took, *epoch_values(last)]) + f"; saved to {out}")
    say(f"try:  corank recommend {shlex.quote(str(out))} --user {shlex.quote(str(data.users.ids[0]))}")


def tune(args: Args) -> None:
    """Search hyper-parameters on validation rows and write the best as TOML."""
    from ..experiment.experiment import Experiment
    from ..experiment.tune import tune as search

    model = model_of(args)
    out = Path(args.out or f"{args.model}.toml")
    writable(out.parent, out, sources=files_read(args))
    options = evaluation_options(args)
    experiment = Experiment(data=open_table(args), split=args.split or "auto", **options, **given(args, "task"))
    experiment.check()
    with Steps() as steps:
        found = search(
            model,
            experiment.make_split(),
            metric=experiment.metrics_used()[0],
            trials=args.trials,
            storage=args.storage or ".corank-tune",
            on_trial=lambda event: steps(args.model, event),
            fixed=params_given(args),
            **experiment.protocol_options(),
        )
    found.write(out)
    say(f"{found.metric} {found.value:.5f} on validation, best of {found.trials} trials; written to {out}")
    print(out.read_text(), end="")
    flags = [(f"--{k.replace('_', '-')}", str(v)) for k, v in given(args, *TABLE, "positive", *EDGES).items()]
    words = [args.model, args.file, *itertools.chain(*flags), "--params", str(out), "-o", "m.corank"]
    say(f"use it:  corank fit {shlex.join(words)}")
