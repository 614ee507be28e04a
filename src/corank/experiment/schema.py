"""The schema of an experiment: what each option, each split, each column and each row of a file may be.

The fields of `Experiment` declare their kinds with `option`; the tables in a file are declared here. Everything that
reads an experiment, the checks before the first fit and the page `docs/experiments.md` included, goes by this.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..data import DUPLICATES
from ..data.held_out_users import cold_users, strong_generalization
from ..data.split import TIES, Split, fixed_per_user, holdout, leave_last_out, time_cut
from ..data.values import VALUES
from ..errors import show, suggest
from ..evaluation.metrics import metric
from ..model import Model
from ..models import available, find, others_have
from ..params import check, mistake, params_of
from ..system.names import LONGEST, clean
from .kinds import (
    FILE,
    SEED,
    SWITCH,
    TEXT,
    Kind,
    Mistakes,
    either,
    kind,
    list_of,
    number,
    one_of,
    raised,
    readable,
    share,
    table_mistakes,
    table_of,
    whole,
)
from .stated import CHOSEN, UNDER


@dataclass(frozen=True)
class Option:
    """What is known of an option of an experiment beside its type and default."""

    doc: str
    kind: Kind
    python: tuple[type, ...] = ()  # what may be given in Python, and not in a file


def option(doc: str, kind: Kind, default: Any = dataclasses.MISSING, python: tuple[type, ...] = ()) -> Any:
    """A field of `Experiment`."""
    metadata = {"option": Option(doc, kind, python)}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=dict, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def options(experiment: type | object) -> dict[str, tuple[Option, Any]]:
    """Name -> (what is known of it, default; MISSING where it must be given) of the options of an experiment."""
    fields = dataclasses.fields(experiment)  # type: ignore[arg-type]
    return {f.name: (f.metadata["option"], f.default) for f in fields if "option" in f.metadata}


def mistakes(experiment: object) -> Iterator[tuple[str, str]]:
    """(option, what is wrong with it) for each option, looked at alone."""
    for name, (known, default) in options(experiment).items():
        value = getattr(experiment, name)
        if value is not default and not isinstance(value, known.python):
            yield from ((name, sentence) for sentence in known.kind.mistakes(name, value))


# ---- splits ----------------------------------------------------------------------------------------------------------

SPLITS: dict[str, dict[str, Kind]] = {
    "leave_last_out": {"ties": one_of(*TIES)},
    "holdout": {"test": share(), "valid": share(zero=True), "by": one_of("row", "user"), "seed": SEED},
    "time_cut": {"test": share(), "valid": share(zero=True), "ties": one_of(*TIES)},
    "fixed_per_user": {"train": whole(1), "test": whole(1), "at_least": whole(1), "valid": whole(0), "seed": SEED},
    "strong_generalization": {"users": number(0, 0.5), "target": share(), "min_rows": whole(2), "seed": SEED},
    "cold_users": {"users": number(0, 0.5), "seed": SEED},
}
SPLIT_FUNCTIONS: dict[str, Callable[..., Split]] = {
    made.__name__: made
    for made in (leave_last_out, holdout, time_cut, fixed_per_user, strong_generalization, cold_users)
}
# The split that suits the data, and the one that it comes with.
OWN_SPLITS: dict[str, dict[str, Kind]] = {"auto": {"ties": one_of(*TIES)}, "published": {}}


def split_mistakes(key: str, value: Any) -> Mistakes:
    """What is wrong with a split: a name, or a table {name = ..., seed = ...}."""
    if not isinstance(value, str | Mapping):
        yield f"{key} = {show(value)}: it must be {_SPLIT_WORDS}, such as {key} = {{name = 'holdout', test = 0.2}}"
        return
    given = {"name": value} if isinstance(value, str) else dict(value)
    name = given.pop("name", None)
    if name is None and given:
        yield f"{key}: {show(next(iter(given)))} needs a name beside it{suggest('', SPLITS)}"
    elif isinstance(name, str) and name in OWN_SPLITS:
        unknown = [option for option in given if option not in OWN_SPLITS[name]]
        if unknown:
            yield f"{key} {name} has no option {show(unknown[0])}: choose a split{suggest('', SPLITS)}"
        else:
            yield from table_mistakes(f"{key} {name}", given, OWN_SPLITS[name])
    elif not isinstance(name, str) or name not in SPLITS:
        yield f"there is no {key} {show(name)}{suggest(str(name), [*SPLITS, *OWN_SPLITS])}"
    else:
        yield from table_mistakes(f"{key} {name}", given, SPLITS[name])
        for missing in required(SPLIT_FUNCTIONS[name]) - given.keys() - {"data"}:
            yield f"{key} {name}: {missing} must be given, e.g. {missing} = 50"


def required(function: Callable[..., Any]) -> set[str]:
    """The parameters of a function that have no default."""
    return {name for name, p in inspect.signature(function).parameters.items() if p.default is p.empty}


_SPLIT_WORDS = "the name of a split, or a table with a name"
SPLIT = Kind(_SPLIT_WORDS, split_mistakes)


# ---- data ------------------------------------------------------------------------------------------------------------

_COLUMN = kind("the name of a column", lambda v: isinstance(v, str))
COLUMNS: dict[str, Kind] = {
    "user": _COLUMN,
    "item": _COLUMN,
    "value": _COLUMN,
    "time": _COLUMN,
    "separator": kind("a text of one character, or '::'", lambda v: isinstance(v, str) and (len(v) == 1 or v == "::")),
    "header": SWITCH,
    "layout": one_of("rows", "lists"),
    "duplicates": one_of(*DUPLICATES),
    "values": one_of(*VALUES),
}


def _generator_mistakes(key: str, value: Any) -> Mistakes:
    from ..datasets.synthetic import KINDS

    given = dict(value)
    name = given.pop("synthetic", None)
    if not isinstance(name, str) or name not in KINDS:
        yield f"{key}: synthetic = {show(name)} names no generator{suggest(str(name), KINDS)}"
        return
    hints = typing.get_type_hints(KINDS[name])
    kinds = {n: whole(0) if hints[n] is int else number() for n in inspect.signature(KINDS[name]).parameters}
    yield from table_mistakes(f"{key} {name}", given, kinds)


def _source_mistakes(key: str, value: Any) -> Mistakes:
    from ..datasets.loading import require_source

    wrong = list(FILE.mistakes(key, value))
    yield from wrong or raised(require_source, value)


SOURCE = Kind("a file, or the name of a dataset", _source_mistakes)
GENERATED = Kind("a table that generates it, such as {synthetic = 'simulation', users = 500}", _generator_mistakes)
DATA = either(SOURCE, GENERATED, lambda v: isinstance(v, Mapping))


# ---- rows ------------------------------------------------------------------------------------------------------------


def _metric_mistakes(key: str, value: Any) -> Mistakes:
    for sentence in raised(metric, value):
        yield f"{key}: {sentence}"


METRICS = list_of(Kind("a metric", _metric_mistakes), "metrics", "['ndcg@10', 'recall@10']")


def _published_mistakes(key: str, value: Any) -> Mistakes:
    if not isinstance(value, Mapping):
        yield f"{key} = {show(value)}: it must be a table of figures, such as published = {{'ndcg@10' = 0.41}}"
        return
    for name, figure in value.items():
        yield from _metric_mistakes(key, name if isinstance(name, str) else None)
        yield from number().mistakes(f"{key}.{name}", figure)


# Every sign is allowed, for it is never the name of a file, and printed without control characters.
LABEL = kind("a text that is not empty", lambda v: isinstance(v, str) and bool(v.strip()))
# The keys of a [[model]] table beside the hyper-parameters of its model.
ROW: dict[str, tuple[Kind, str]] = {
    "name": (one_of(*available()), "the model; the only key that must be given"),
    "label": (LABEL, "what the row is called; the name of the model when absent"),
    "published": (
        Kind("a table: metric = figure", _published_mistakes),
        "figures that others report, shown beside ours",
    ),
    "published_under": (
        UNDER,
        "what those were measured under; its keys override those of `published_under` of the file",
    ),
    "chosen": (CHOSEN, "how the hyper-parameters of this row were chosen; in place of `chosen` of the file"),
    "at_most": (whole(1), "training rows kept per user, drawn at random; all when absent"),
}


def row_mistakes(key: str, asked: Any) -> Mistakes:
    """What is wrong with a row: a model, the name of one, or a table with a name."""
    if isinstance(asked, Model):
        yield from raised(check, asked)
        return
    if not isinstance(asked, str | Mapping):
        yield f"{key}: {show(asked)} is no row: give a model, its name, or a table with a name"
        return
    if isinstance(asked, Mapping) and "name" not in asked:
        yield f"{key}: name is missing in {show(dict(asked))}: name the model, e.g. name = 'wmf'"
        return
    table = {"name": asked} if isinstance(asked, str) else dict(asked)
    name = table.pop("name")
    if not isinstance(name, str) or name not in available():
        yield f"{key}: there is no model {show(name)}{suggest(str(name), available())}"
        name = None
    for own, (of, _) in ROW.items():
        if own in table:
            yield from of.mistakes(f"{key}, {own}", table.pop(own))
    if name is not None:
        yield from (f"{key}: {sentence}" for sentence in param_mistakes(name, table))


def param_mistakes(name: str, params: Mapping[str, Any]) -> Mistakes:
    """What is wrong with hyper-parameters of the model of that name."""
    cls = find(name)
    known = params_of(cls)
    for key, value in params.items():
        if key not in known:
            yield f"{name} has no hyper-parameter {show(key)}{others_have(str(key))}{suggest(str(key), known)}"
        elif sentence := mistake(cls, key, value, *known[key]):
            yield sentence


def _rows_mistakes(key: str, value: Any) -> Mistakes:
    if isinstance(value, str) or not isinstance(value, list | tuple):
        yield f"{key} = {show(value)}: each row is a table of its own, [[model]] with a name; in Python, give a list"
        return
    for place, asked in enumerate(value, 1):
        name = asked.get("name") if isinstance(asked, Mapping) else asked
        yield from row_mistakes(f"model {place} ({clean(name)})" if isinstance(name, str) else f"model {place}", asked)


ROWS = Kind("[[model]] tables, one per row", _rows_mistakes)


# ---- others ----------------------------------------------------------------------------------------------------------


def _gain_mistakes(key: str, value: Any) -> Mistakes:
    if not isinstance(value, str):
        yield (
            f"{key} = {show(value)}: gain is that of NDCG, 'binary' or 'exponential'; two rows that count as 0 % and "
            "100 % are given with between"
        )
    else:
        yield from one_of("", "binary", "exponential").mistakes(key, value)


def _seeds_mistakes(key: str, value: Any) -> Mistakes:
    wrong = list(list_of(SEED, "whole numbers of 0 or more", "[1, 2, 3]").mistakes(key, value))
    yield from wrong
    if not wrong and len(set(value)) < len(value):
        yield f"{key} = {show(value)}: a seed is in it twice, and the same run would count twice: leave one out"


GAIN = Kind("'binary' or 'exponential'", _gain_mistakes)
SEEDS = Kind("a list of whole numbers", _seeds_mistakes)
LABELS = list_of(TEXT, "two labels", "['MF', 'GRMF, G']")
# It is a heading, and the name of a folder of tuning studies.
NAME = kind(
    f"a name of 1 to {LONGEST} characters, without / and \\ and control characters, and not '.' or '..'",
    lambda v: (
        readable(v) and 0 < len(v.strip()) <= len(v) <= LONGEST and not set(v) & set("/\\") and v.strip(" .") != ""
    ),
)
EDGES = kind("the name of a file with one row per edge", lambda v: not list(FILE.mistakes("", v)))
COLUMN_TABLE = table_of(COLUMNS, "a table of columns", "{user = 'who', item = 'what'}")
