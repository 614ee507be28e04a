"""One function a command: it reads like what the command does."""

from __future__ import annotations

import argparse
import csv
import inspect
import itertools
import json
import shlex
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Dataset
from ..errors import CorankError, suggest
from .show import Steps, aims, lists, say

Args = argparse.Namespace
TABLE = ("user", "item", "value", "time", "separator", "duplicates")
EDGES = ("user_edges", "item_edges")


def demo(args: Args) -> None:
    """The main job on the embedded default data, with the oracle as the ceiling."""
    from ..datasets.synthetic import realistic
    from ..experiment.experiment import Experiment
    from ..models import available, find

    say("making data with a known truth (the `oracle` row is the best that any method could do)")
    made = realistic(seed=args.seed)
    say(str(made.data.describe()))
    experiment = Experiment(
        data=made.data,
        models=[made.oracle, *(name for name in available() if find(name).suits("implicit"))],
        seed=args.seed,
        name="demo on synthetic data",
    )
    best = _run(experiment, Path(args.out), f"corank demo --seed {args.seed}")
    user = made.data.users.ids[0]
    say(f"\nwhat the saved model shows user {user}  (corank recommend {args.out}/best.corank --user {user})")
    print(lists(best.recommend([user], k=5), _titles(best, None), "user"))


def compare(args: Args) -> None:
    """A leaderboard of models on the user's own data."""
    from ..experiment.experiment import Experiment

    command = "corank " + " ".join(shlex.quote(a) for a in sys.argv[1:])
    if args.file.endswith(".toml"):
        table = given(args, *TABLE, "positive")
        if table:
            raise CorankError(
                f"--{next(iter(table))} is for a table: in {args.file} say it as an option or in [columns]"
            )
        experiment = Experiment.from_toml(args.file)
        for key, value in given(args, *EDGES).items():
            setattr(experiment, key, value)
    else:
        experiment = Experiment(data=open_table(args), name=Path(args.file).name)
    options = _evaluation(args) | given(args, "tune", "seed", "task")
    if args.split:
        options["split"] = args.split
    if args.models is not None:
        options["models"] = _words(args.models, "--models")
    for key, value in options.items():
        setattr(experiment, key, value)
    _run(experiment, Path(args.out), command)


def fit(args: Args) -> None:
    """Learn one model from all rows and save it."""
    model = _asked_model(args)
    out = Path(args.out)
    for path in [out, *([Path(args.checkpoint)] if args.checkpoint else [])]:
        writable(path.parent, path, sources=_read(args))
    data = open_table(args)
    if any(given(args, *EDGES)) and model.graph == "unused":
        but = " but who is a user" if args.user_edges is not None else ""
        say(f"{args.model} looks at no graph, so the edges change nothing{but}")
    valid = None
    if getattr(model, "patience", None) is not None:
        from ..experiment.experiment import Experiment

        apart = Experiment(data=data).make_split().refit()
        data, valid = apart.train, apart.test
        say(f"patience: {len(valid):,} rows ({apart.name}) are not learned from, and say when to stop")
    with Steps(1) as steps:
        start = time.perf_counter()
        model.fit(data, valid=valid, on_epoch=lambda entry: steps(args.model, entry), checkpoint=args.checkpoint)
        stopped = steps.stop.asked
    model.save(out)
    last = model.history_[-1] if model.history_ else {}
    ended = f" after epoch {last['epoch']}, stopped early" if stopped and last else ""
    say(
        ", ".join([f"{args.model} learned in {time.perf_counter() - start:.1f} s{ended}", *aims(last)])
        + f"; saved to {out}"
    )
    say(f"try:  corank recommend {shlex.quote(str(out))} --user {shlex.quote(str(data.users.ids[0]))}")


def tune(args: Args) -> None:
    """Search hyper-parameters on validation and write the best as TOML."""
    from ..experiment.experiment import Experiment
    from ..experiment.tune import tune as search

    model = _asked_model(args)
    out = Path(args.out or f"{args.model}.toml")
    writable(out.parent, out, sources=_read(args))
    options = _evaluation(args)
    experiment = Experiment(data=open_table(args), split=args.split or "auto", **options, **given(args, "task"))
    experiment.check()
    metric = experiment.measured()[0]
    with Steps(1) as steps:
        found = search(
            model,
            experiment.make_split(),
            metric=metric,
            trials=args.trials,
            storage=args.storage or ".corank-tune",
            on_trial=lambda event: steps(args.model, event),
            fixed=[k.removeprefix("param_") for k in vars(args) if k.startswith("param_")],
            **experiment.how(),
        )
    found.write(out)
    say(f"{found.metric} {found.value:.5f} on validation, best of {found.trials} trials; written to {out}")
    print(out.read_text(), end="")
    flags = [(f"--{k.replace('_', '-')}", str(v)) for k, v in given(args, *TABLE, "positive", *EDGES).items()]
    words = [args.model, args.file, *itertools.chain(*flags), "--params", str(out), "-o", "m.corank"]
    say(f"use it:  corank fit {shlex.join(words)}")


def evaluate(args: Args) -> None:
    """Measure a saved model on rows it has not seen."""
    from ..data.split import Split
    from ..evaluation.evaluate import evaluate as measure
    from ..experiment.experiment import METRICS
    from ..models import load

    how = args.protocol or "full"
    if how not in METRICS:
        raise CorankError(f"there is no protocol {how!r}{suggest(how, METRICS)}")

    model = load(args.model)
    test = open_table(args)
    user, item = model.users_.codes(test.users.ids)[test.user], model.items_.codes(test.items.ids)[test.item]
    known = (user >= 0) & (item >= 0)
    if not known.any():
        raise CorankError(
            f"none of the {len(test):,} rows of {args.file} has a user and an item that {args.model} knows"
        )
    if not known.all():
        unknown = np.count_nonzero(~known)
        say(f"{unknown:,} of {len(test):,} rows have a user or item that the model does not know: left out")
    again = _seen(model, user[known], item[known])
    if again:
        say(f"{again:,} rows were in the data that the model learned from: figures on them flatter it")
    owner = np.repeat(np.arange(len(model.users_)), np.diff(model.seen_indptr_)).astype(np.int32)
    ones = np.ones(owner.size, np.float32)
    train = Dataset(model.users_, model.items_, owner, model.seen_index_, ones)
    rows = Dataset(model.users_, model.items_, user[known], item[known], test.value[known])
    options = _evaluation(args) | given(args, "seed")
    metrics = options.pop("metrics", METRICS[how])
    split = Split(train, rows.take(np.zeros(len(rows), np.bool_)), rows, f"rows of {Path(args.file).name}")
    print(measure(model, split, metrics, **options))


def recommend(args: Args) -> None:
    """The best items for users, or for a history."""
    from ..atomic import replacing
    from ..models import load

    if sum([args.user is not None, args.history is not None, args.all]) != 1:
        raise CorankError("say for whom: --user ID, --history ID,ID,... or --all (one of them)")
    model = load(args.model)
    options: dict[str, Any] = {"k": args.k, "exclude_seen": not args.seen}
    if args.candidates is not None:
        options["items"] = [model.items_.parse(w) for w in _words(args.candidates, "--candidates")]
    if args.history is not None:
        history = [model.items_.parse(w) for w in _words(args.history, "--history")]
        ranking = model.recommend(histories={"this history": history}, **options)
    else:
        users = None if args.all else [model.users_.parse(w) for w in args.user]
        ranking = model.recommend(users, **options)
    if args.out:
        out = Path(args.out)
        writable(out.parent)
        with replacing(out) as part:
            ranking.to_frame().write_csv(part)
        say(f"{len(ranking):,} lists written to {out}")
    else:
        print(lists(ranking, _titles(model, args.titles), "user" if args.history is None else ""))


def similar(args: Args) -> None:
    """The items nearest to an item."""
    from ..models import load

    model = load(args.model)
    ranking = model.similar_items([model.items_.parse(w) for w in args.item], k=args.k)
    print(lists(ranking, _titles(model, args.titles), "item"))


def models(args: Args) -> None:
    """The models there are; with a name, its hyper-parameters."""
    from ..models import available, find
    from ..params import params_of

    if args.name is None:
        for name in available():
            print(f"{name:<14} {_first_sentence(sys.modules[find(name).__module__].__doc__)}")
        say("\ncorank models NAME lists the hyper-parameters")
        return
    cls = find(args.name)
    print(inspect.getdoc(cls))
    print()
    for name, (_, _, default, rule) in params_of(cls).items():
        choices = f"; one of {', '.join(map(str, rule.choices))}" if rule.choices else ""
        search = f"; searched {rule.search[0]} to {rule.search[-1]}" if rule.search and not rule.choices else ""
        print(f"  {name:<12} {rule.doc} (default {default}{choices}{search})")


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

        with Steps(len(experiment.rows_asked())) as steps:
            split, found = curves.run(experiment, steps)
        curves.write(experiment, split, found, page, command)
        say(f"page written to {page}")
        return
    results = _results(experiment, Path(".corank-tune"))
    print(results)
    write_markdown(results, page, command=command)
    say(f"page written to {page}")


def _run(experiment: Any, out: Path, command: str) -> Any:
    """Run, print the leaderboard, write the report, save the best model; returns it."""
    from ..atomic import write_text
    from ..report import write_html

    writable(out, out / "best.corank", out / "report.html", out / "results.json")
    results = _results(experiment, out / "tune")
    print(results)
    results.best.model.save(out / "best.corank")
    write_html(results, out / "report.html", command=command)
    write_text(out / "results.json", json.dumps(results.as_dict(), indent=1))
    say(f"\nreport      {out / 'report.html'}\nbest model  {out / 'best.corank'} ({results.best.label})")
    if results.not_run:
        again = "; the same command goes on where the search was" if experiment.tune else ""
        say(f"stopped before {', '.join(results.not_run)}{again}")
        raise KeyboardInterrupt
    return results.best.model


def _results(experiment: Any, storage: Path) -> Any:
    experiment.check()
    with Steps(len(experiment.rows_asked())) as steps:
        try:
            return experiment.run(steps, storage=storage if experiment.tune or experiment.keep else None)
        except CorankError:
            if steps.stop.asked:  # nothing was finished, and nobody made a mistake
                raise KeyboardInterrupt from None
            raise


def open_table(args: Args, quiet: bool = False) -> Dataset:
    """The table a command names, with its graphs where there are any, saying how it was read."""
    from ..datasets import open_any
    from ..reading.edge_tables import edge_file

    edges = given(args, *EDGES)
    for path in edges.values():
        edge_file(path, args.file)
    options = given(args, *TABLE)
    data = open_any(args.file, **options)
    if args.positive is not None:
        data = data.take(data.value >= args.positive).compact()
        if len(data) == 0:
            raise CorankError(f"no row has a value of {args.positive:g} or more: lower --positive")
    if not quiet:
        say(f"{args.file}: {len(data):,} rows, {len(data.users):,} users, {len(data.items):,} items")
    return data.with_graph(edges.get("user_edges"), edges.get("item_edges"))


def _asked_model(args: Args) -> Any:
    """The model with its flags; a TOML file of parameters comes first, flags win."""
    from ..experiment.experiment import make_model, read_toml

    params = read_toml(Path(args.params)) if getattr(args, "params", None) else {}
    written_for = params.pop("name", args.model)
    if written_for != args.model:
        raise CorankError(f"{args.params} is for {written_for}, not for {args.model}")
    flags = {k.removeprefix("param_"): v for k, v in vars(args).items() if k.startswith("param_")}
    return make_model(args.model, {**params, **flags})


def _evaluation(args: Args) -> dict[str, Any]:
    options = given(args, "protocol", "negatives", "relevant")
    if args.popular:
        options["popular"] = True
    if args.metrics is not None:
        from ..evaluation.metrics import metric

        options["metrics"] = tuple(_words(args.metrics, "--metrics"))
        for name in options["metrics"]:
            metric(name)  # a typo is found before hours of work, not after
    return options


def given(args: Args, *names: str) -> dict[str, Any]:
    return {n: getattr(args, n) for n in names if getattr(args, n, None) is not None}


def _words(text: str, flag: str) -> list[str]:
    """Names separated by commas; in quotes a name may have a comma itself, as in CSV."""
    words = [w.strip() for w in next(csv.reader([text], skipinitialspace=True), []) if w.strip()]
    if not words:
        raise CorankError(f"{flag} {text!r} names nothing: give names separated by commas")
    return words


def _read(args: Args) -> list[str]:
    """The files that a command reads, which it must not write over."""
    return [args.file, *given(args, *EDGES).values()]


def writable(folder: Path, *targets: Path, sources: Sequence[str | Path] = ()) -> None:
    """Find out before the work, not after it, that the results cannot be written, or would be over what is read."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as why:
        raise CorankError(f"cannot write to {folder}: {why.strerror}; choose another folder with -o") from None
    for target in targets:
        for source in sources:
            if target.exists() and Path(source).exists() and target.samefile(source):
                raise CorankError(
                    f"{target} is the file that is read, and would be lost: choose another one to write to"
                )
        if target.is_dir():
            raise CorankError(f"{target} is a folder, and a file of that name is to be written: choose another with -o")


def _seen(model: Any, users: Any, items: Any) -> int:
    """How many of these pairs the model learned from."""
    width = len(model.items_)
    owner = np.repeat(np.arange(len(model.users_)), np.diff(model.seen_indptr_))
    return int(np.isin(users.astype(np.int64) * width + items, owner * width + model.seen_index_).sum())


def _titles(model: Any, path: str | None) -> dict[Any, str]:
    if path is None:
        return dict(zip(model.items_.ids.tolist(), model.titles_, strict=True)) if model.titles_ else {}
    from ..reading.tables import read_titles

    ids, titles = read_titles(path)
    return {model.items_.parse(str(i)): t for i, t in zip(ids, titles, strict=True)}


def _first_sentence(text: str | None) -> str:
    return (text or "").strip().split("\n\n")[0].replace("\n", " ")
