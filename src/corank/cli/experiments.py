"""`corank demo`, `compare` and `reproduce`: experiments, with a leaderboard, a report and the best model."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..data.split import Split
from ..errors import CorankError, NotWritten
from .keeping import keep
from .options import EDGES, PARTS, TABLE, Args, comma_separated, evaluation_options, given, open_divided, writable
from .show import Steps, ranking_text, say, titles_of
from .stopping import Stop

FINISHING = "finishing the report first"


def demo(args: Args) -> None:
    """All models on synthetic data, with the oracle as upper bound."""
    from ..models import available, find
    from .warm import warming

    models = [name for name in available() if find(name).suits("implicit")]
    with warming(models):
        _demo(args, models)


def _demo(args: Args, models: list[str]) -> None:
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
    best = _run_and_report(experiment, Path(args.out), f"corank demo --seed {args.seed}")
    user = made.data.users.ids[0]
    say(f"\nrecommendations for user {user}  (corank recommend {args.out}/best.corank --user {user})")
    print(ranking_text(best.recommend([user], k=5), titles_of(best), "user"))


def compare_models(args: Args) -> None:
    """A leaderboard of models on a table or an experiment file."""
    from ..experiment.experiment import Experiment

    command = "corank " + " ".join(shlex.quote(a) for a in sys.argv[1:])
    if args.file.endswith(".toml"):
        table = given(args, *TABLE, *PARTS, "positive")
        if table:
            raise CorankError(
                f"--{next(iter(table))} is for a table: in {args.file} write it as an option or in [columns]"
            )
        experiment = Experiment.from_toml(args.file)
        for key, value in given(args, *EDGES).items():
            setattr(experiment, key, value)
    else:
        experiment = Experiment(data=open_divided(args), name=Path(args.file).name)
    options = evaluation_options(args) | given(args, "tune", "seed", "task")
    if args.split and not isinstance(experiment.data, Split):
        options["split"] = args.split
    if args.models is not None:
        options["models"] = comma_separated(args.models, "--models")
    for key, value in (options | {"estimate": True}).items():
        setattr(experiment, key, value)
    _run_and_report(experiment, Path(args.out), command)


def reproduce(args: Args) -> None:
    """Run an experiment file and write its result page."""
    from ..experiment.experiment import Experiment

    path = Path(args.name)
    if not path.exists():
        path = Path("experiments") / f"{args.name}.toml"
    if not path.exists():
        known = sorted(p.stem for p in Path("experiments").glob("*.toml"))
        raise CorankError(
            f"there is no experiment {args.name!r} here; known: {', '.join(known) or 'none in experiments/'}"
        )
    from ..report import write_markdown

    experiment = Experiment.from_toml(path)
    page, command = Path(args.out) / f"{path.stem}.md", f"corank reproduce {path.stem}"
    if experiment.curves:
        from ..experiment import curves

        with Stop() as stop, Steps(stop) as steps:
            setting, found = curves.run(experiment, steps)
            stop.message = FINISHING
            keep("page", page, lambda place: curves.write(experiment, setting, found, place, command))
    else:
        with Stop() as stop:
            results = _run(experiment, Path(".corank-tune"), stop)
            stop.message = FINISHING
            _print_and_keep(
                results,
                {"page": (page, lambda to: write_markdown(results, to, command=command, title=experiment.title))},
            )
    say(f"page written to {page}")
    stop.raise_if_asked()


def _run_and_report(experiment: Any, out: Path, command: str) -> Any:
    """Run, print the leaderboard, save the best model, write the report; returns the model."""
    from ..atomic import write_text
    from ..report import write_html

    model, report, table = out / "best.corank", out / "report.html", out / "results.json"
    writable(out, model, report, table)
    with Stop() as stop:
        results = _run(experiment, out / "tune", stop)
        stop.message = FINISHING
        _print_and_keep(
            results,
            {
                "best model": (model, results.best.model.save),
                "results": (table, lambda to: write_text(to, json.dumps(results.as_dict(), indent=1))),
                "report": (report, lambda to: write_html(results, to, command=command)),
            },
        )
    say(f"\nreport      {report}\nbest model  {model} ({results.best.label})")
    if results.not_run:
        again = "; the same command resumes the search" if experiment.tune else ""
        say(f"stopped before {', '.join(results.not_run)}{again}")
    stop.raise_if_asked()
    return results.best.model


def _print_and_keep(results: Any, files: dict[str, tuple[Path, Callable[[Path], object]]]) -> None:
    """Print the leaderboard and write each file; one that fails does not cost the others.

    files : {what it is: (path, function that writes it)}
    """
    problems = []
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
            del waiting[what]
    except KeyboardInterrupt:
        missing = ", ".join(f"{what} ({path})" for what, path in waiting.items())
        say(f"corank: stopped before all was written; missing: {missing}")
        raise
    if problems:
        raise NotWritten(". ".join(problems))


def _run(experiment: Any, storage: Path, stop: Stop) -> Any:
    with Steps(stop) as steps:
        try:
            return experiment.run(steps, storage=storage if experiment.tune or experiment.keep else None)
        except CorankError:
            stop.raise_if_asked()  # stopped before any row was finished: not an error of the user
            raise
