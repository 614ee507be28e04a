"""`corank demo` and `compare`: experiments, with a leaderboard, a report and the best model."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..data.split import Split
from ..errors import UNEXPECTED, CorankError, NotWritten, reason
from ..system.names import clean
from .keeping import keep
from .options import (
    EDGES,
    PARTS,
    TABLE,
    Args,
    comma_separated,
    evaluation_options,
    given,
    open_divided,
    split_asked,
    writable,
)
from .show import Steps, ranking_text, say, titles_of
from .stopping import Stop

FINISHING = "finishing the report first"


def demo(args: Args) -> int:
    """All models on synthetic data, with the oracle as upper bound."""
    from ..models import available, find
    from .warm import warming

    models = [name for name in available() if find(name).suits("implicit")]
    with warming(models):
        return _demo(args, models)


def _demo(args: Args, models: list[str]) -> int:
    from ..datasets.synthetic import realistic
    from ..experiment.experiment import Experiment

    say("generating data with a known ground truth (the `oracle` row is the best that any method could do)")
    made = realistic(seed=args.seed)
    say(str(made.data.describe()))
    experiment = Experiment(
        data=made.data,
        models=[made.oracle, *models],
        seed=args.seed,
        name="demo on synthetic data",
    )
    best, code = _run_and_report(experiment, Path(args.out), f"corank demo --seed {args.seed}")
    user = made.data.users.ids[0]
    say(f"\nrecommendations for user {user}  (corank recommend {args.out}/best.corank --user {user})")
    print(ranking_text(best.recommend([user], k=5), titles_of(best), "user"))
    return code


def compare_models(args: Args) -> int:
    """A leaderboard of models on a table or an experiment file."""
    from ..experiment.experiment import Experiment

    command = "corank " + " ".join(shlex.quote(a) for a in sys.argv[1:])
    options = evaluation_options(args) | given(args, "tune", "seed", "task") | {"estimate": True}
    if args.models is not None:
        options["models"] = comma_separated(args.models, "--models")
    if args.file.endswith(".toml"):
        table = given(args, *TABLE, *PARTS, "positive")
        if table:
            raise CorankError(
                f"--{next(iter(table))} is for a table: in {args.file} write it as an option or in [columns]"
            )
        if args.ties and not args.split:
            raise CorankError(
                f"--ties needs --split beside it, or in {args.file} split = {{name = 'leave_last_out', ties = "
                f"'{args.ties}'}}"
            )
        if args.split:
            options["split"] = split_asked(args)
        experiment = Experiment.from_toml(args.file, **options, **given(args, *EDGES))
        if experiment.curves:
            say("curves = true has no effect here: `corank reproduce` draws quality against training time")
            experiment.curves = False
    else:
        data = open_divided(args)
        if not isinstance(data, Split):
            options["split"] = split_asked(args)
        experiment = Experiment(data=data, name=clean(Path(args.file).name), **options)
        experiment.check()
    if args.plan:
        print(planned(experiment))
        return 0
    return _run_and_report(experiment, Path(args.out), command)[1]


def planned(experiment: Any) -> str:
    """What an experiment will do, with its data opened and divided, and nothing fitted."""
    from ..evaluation.metrics import metrics_of
    from ..evaluation.protocol import as_protocol
    from ..report.formatting import plain

    entries = experiment.entries()
    seeds = experiment.seeds or (experiment.seed,)
    split = experiment.make_split(seeds[0])
    parts = ", ".join(f"{len(getattr(split, n)):,} {n}" for n in ("train", "valid", "test"))
    protocol = as_protocol(items=len(split.train.items), values=split.test.values, **experiment.protocol_options())
    lines = [
        f"{experiment.name}: {split.name}; {parts} rows, {len(split.users):,} test users",
        f"protocol: {protocol}",
        f"metrics: {', '.join(m.name for m in metrics_of(experiment.metrics_used()))}",
        f"seeds: {', '.join(map(str, seeds))}" + (f"; {experiment.tune} trials per row" if experiment.tune else ""),
    ]
    width = max(len(entry.label) for entry in entries)
    lines += [f"  {entry.label:<{width}}  {entry.model!r}" for entry in entries]
    return "\n".join([*map(plain, lines), "checked: nothing was fitted"])


def _run_and_report(experiment: Any, out: Path, command: str) -> tuple[Any, int]:
    """Run, print the leaderboard, write results, best model and report; returns the best model and the exit code.

    What cannot be made costs nothing else: it is named, and the exit code is 1, as for a row that failed.
    """
    from ..report import write_html
    from ..report.formatting import plain
    from ..system.atomic import write_text

    model, report, table = out / "best.corank", out / "report.html", out / "results.json"
    writable(out, model, report, table)
    with Stop() as stop:
        results = run_experiment(experiment, out / "tune", stop)
        stop.message = FINISHING
        missing = print_and_keep(
            results,
            {
                "best model": (model, results.best.model.save),
                "results": (table, lambda to: write_text(to, json.dumps(results.as_dict(), indent=1))),
                "report": (report, lambda to: write_html(results, to, command=command)),
            },
        )
    say(f"\nreport      {report}\nbest model  {model} ({plain(results.best.label)})")
    for sentence in missing:
        say(f"corank: {sentence}")
    if results.not_run:
        again = "; the same command resumes the search" if experiment.tune else ""
        say(f"stopped before {', '.join(results.not_run)}{again}")
    stop.raise_if_asked()
    return results.best.model, int(bool(missing) or failed(experiment, results.failed))


def failed(experiment: Any, reasons: Mapping[str, str]) -> bool:
    """Whether a row failed that was asked for; of all models of a task, some may not suit the data."""
    return any(experiment.models or why.startswith(UNEXPECTED) for why in reasons.values())


def print_and_keep(results: Any, files: dict[str, tuple[Path, Callable[[Path], object]]]) -> list[str]:
    """Print the leaderboard and write each file; one that fails does not cost the others.

    Returns a sentence for each file that could not be made; one that could not be written is an error, at the end.

    files : {what it is: (path, function that writes it)}
    """
    problems, missing = [], []
    waiting = {what: path for what, (path, _) in files.items()}
    try:
        try:
            print(results, flush=True)
        except OSError as why:
            problems.append(f"the leaderboard cannot be printed: {why.strerror}")
        for what, (path, write) in files.items():
            try:
                keep(what, path, write)
            except NotWritten as why:
                problems.append(str(why))
            except Exception as why:
                missing.append(f"{path} is missing: {reason(why)}")
            del waiting[what]
    except KeyboardInterrupt:
        left = ", ".join(f"{what} ({path})" for what, path in waiting.items())
        say(f"corank: stopped before all was written; missing: {left}")
        raise
    if problems:
        raise NotWritten(". ".join([*problems, *missing]))
    return missing


def run_experiment(experiment: Any, storage: Path, stop: Stop) -> Any:
    with Steps(stop) as steps:
        try:
            return experiment.run(steps, storage=storage if experiment.tune or experiment.keep else None)
        except CorankError:
            stop.raise_if_asked()  # stopped before any row was finished: not an error of the user
            raise
