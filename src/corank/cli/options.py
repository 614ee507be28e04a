"""What commands have in common: the table they read, the options of models and evaluation, and where they may write."""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..data import Dataset
from ..data.split import Split
from ..data.values import words
from ..errors import CorankError
from .show import say

Args = argparse.Namespace
TABLE = ("user", "item", "value", "time", "separator", "layout", "duplicates", "values")
PARTS = ("test", "valid")
EDGES = ("user_edges", "item_edges")


def given(args: Args, *names: str) -> dict[str, Any]:
    """Those of the named options that are on the command line."""
    return {n: getattr(args, n) for n in names if getattr(args, n, None) is not None}


def open_table(args: Args) -> Dataset:
    """The table of a command, with its graphs where there are any."""
    from ..experiment.source import open_rows
    from ..reading.edge_tables import edge_file

    edges = given(args, *EDGES)
    for path in edges.values():
        edge_file(path, args.file)
    data = open_rows(args.file, **given(args, *TABLE, "positive"))
    return data.with_graph(edges.get("user_edges"), edges.get("item_edges"))


def split_asked(args: Args) -> str | dict[str, str]:
    """The split on the command line ('auto' where none is named), with its rule for equal timestamps."""
    name, ties = getattr(args, "split", None) or "auto", getattr(args, "ties", None)
    return name if ties is None else {"name": name, "ties": ties}


def open_divided(args: Args) -> Dataset | Split:
    """The table of a command that needs validation rows; those of a given split may be cut from its training rows."""
    from ..data.given import with_validation

    data = open_source(args)
    if isinstance(data, Dataset):
        return data
    return with_validation(data, ordered=args.task == "sequential", seed=getattr(args, "seed", None) or 0)


def open_source(args: Args) -> Dataset | Split:
    """The table of a command; a split where one is given (--test) or comes with the data, and no other is asked for."""
    from ..experiment.source import opened
    from ..reading.edge_tables import edge_file

    edges = {name: getattr(args, name, None) for name in EDGES}
    for path in given(args, *EDGES).values():
        edge_file(path, args.file)
    data = opened(
        args.file,
        columns=given(args, *TABLE),
        positive=args.positive,
        split=split_asked(args),
        ordered=getattr(args, "task", None) == "sequential",
        seed=getattr(args, "seed", None) or 0,
        **edges,
        **{name: getattr(args, name, None) for name in PARTS},
    )
    if isinstance(data, Dataset):
        counts = f"{len(data):,} rows, {len(data.users):,} users, {len(data.items):,} items"
        say(f"{args.file}: {counts}, {words(data)}")
    else:
        sizes = [f"{len(part):,} {name}" for name, part in _parts(data).items()]
        say(
            f"{data.name}: {', '.join(sizes)} rows, {len(data.train.users):,} users, {len(data.train.items):,} items"
            f", {words(data.train)}"
        )
    return data


def _parts(split: Split) -> dict[str, Dataset]:
    named = {"training": split.train, "validation": split.valid, "test": split.test}
    return {name: part for name, part in named.items() if len(part)}


def cluster_of(args: Args) -> Any:
    """The Ray cluster of a command, None if it runs on this machine alone."""
    if args.ray is None:
        if args.workers is not None:
            raise CorankError(
                "--workers is the number of workers of a cluster: say which with --ray auto, or --ray local"
            )
        return None
    from ..cluster.ray_cluster import Ray

    return Ray(workers=args.workers, address=None if args.ray == "local" else args.ray)


def parts_of(args: Args) -> Any:
    """The files of a folder or URL, which workers read; None where FILE is anything else, which is read here."""
    from ..cluster.parts import find_parts, is_url

    if not (is_url(args.file) or Path(args.file).expanduser().is_dir()):
        return None
    if extra := given(args, *PARTS, *EDGES, "layout"):
        raise CorankError(
            f"--{next(iter(extra)).replace('_', '-')} is not possible where workers read the files of {args.file}: "
            "leave it out, or give a single file"
        )
    parts = find_parts(args.file, **given(args, *TABLE, "positive"))
    size = sum(parts.sizes) / 1e6
    say(f"{args.file}: {len(parts.paths):,} file{'s' * (len(parts.paths) > 1)}, {size:,.1f} MB, read by the workers")
    return parts


def files_read(args: Args) -> list[str]:
    """The files that a command reads, which it must not overwrite."""
    return [args.file, *given(args, *EDGES, *PARTS).values()]


def model_of(args: Args) -> Any:
    """The model with its hyper-parameters: from a TOML file, overridden by flags."""
    from ..experiment.entries import make_model, read_toml

    params = read_toml(Path(args.params)) if getattr(args, "params", None) else {}
    written_for = params.pop("name", args.model)
    if written_for != args.model:
        raise CorankError(
            f"{args.params} is for {written_for}, not for {args.model}: give another file, or fit {written_for}"
        )
    flags = {name: getattr(args, f"param_{name}") for name in params_given(args)}
    return make_model(args.model, {**params, **flags})


def params_given(args: Args) -> list[str]:
    """The hyper-parameters that have a flag on the command line."""
    return [name.removeprefix("param_") for name in vars(args) if name.startswith("param_")]


def evaluation_options(args: Args) -> dict[str, Any]:
    """The options of the evaluation that are on the command line."""
    options = given(args, "protocol", "negatives", "relevant", "gain")
    if args.popular:
        options["popular"] = True
    if args.metrics is not None:
        from ..evaluation.metrics import metric

        options["metrics"] = tuple(comma_separated(args.metrics, "--metrics"))
        for name in options["metrics"]:
            metric(name)  # a typo is found before hours of work, not after
    return options


def comma_separated(text: str, flag: str) -> list[str]:
    """The names in a list; a name in quotes may hold a comma itself, as in CSV."""
    words = [w.strip() for w in next(csv.reader([text], skipinitialspace=True), []) if w.strip()]
    if not words:
        raise CorankError(f"{flag} {text!r} names nothing: give names separated by commas")
    return words


def writable(folder: Path, *targets: Path, sources: Sequence[str | Path] = ()) -> None:
    """Raise before the work, not after it, if results cannot be written or would overwrite what is read."""
    if folder.exists() and not folder.is_dir():
        raise CorankError(f"{folder} is a file, and results are written to a folder: choose another with -o")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as why:
        raise CorankError(f"cannot write to {folder}: {why.strerror}; choose another folder with -o") from None
    for target in targets:
        for source in sources:
            if target.exists() and Path(source).exists() and target.samefile(source):
                raise CorankError(f"{target} is an input file and would be overwritten: choose another output file")
        if target.is_dir():
            raise CorankError(f"{target} is a folder, and a file of that name is to be written: choose another with -o")
