"""The options of an experiment: defaults per task and protocol, and the checks that need no data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data import Dataset
from ..data.split import Split
from ..errors import CorankError, suggest
from ..evaluation.protocol import as_protocol
from ..reading.edge_tables import edge_file
from .source import COLUMNS

if TYPE_CHECKING:
    from .experiment import Experiment

# Protocol -> metrics where none are given; rows are sorted by the first one.
METRICS = {
    "full": ("ndcg@10", "recall@10", "mrr@10", "coverage@10", "novelty@10"),
    "sampled": ("ndcg@10", "recall@10", "mrr@10"),
    "rated": ("ndcg@10", "pairwise_error"),
}
# Task -> protocol where none is given. implicit: which items will a user take next? explicit: in which order does a
# user rate items? sequential: as implicit, for models that read a history in order.
TASKS = {"implicit": "full", "explicit": "rated", "sequential": "full"}


def check_options(experiment: Experiment) -> None:
    """Raise one sentence for the first mistake that can be found without opening the data."""
    for names, kind, what in (
        (("tune", "negatives", "seed"), int, "a whole number of 0 or more"),
        (("refit", "popular", "curves", "keep", "estimate"), bool, "true or false"),
        (("name", "protocol", "task"), str, "a text"),
    ):
        for name in names:
            value: Any = getattr(experiment, name)
            if type(value) is not kind or (isinstance(value, int) and value < 0):
                raise CorankError(f"{name} = {value!r}: {name} must be {what}")
    for seed in experiment.seeds:
        if type(seed) is not int or seed < 0:
            raise CorankError(f"seeds has {seed!r}: a seed is a whole number of 0 or more")
    for name in ("relevant", "positive"):
        value = getattr(experiment, name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise CorankError(f"{name} = {value!r}: {name} must be a number")
    if not isinstance(experiment.gain, str):
        raise CorankError(
            f"gain = {experiment.gain!r}: gain is that of NDCG, 'binary' or 'exponential'; two rows that count as 0 % "
            "and 100 % are given with between"
        )
    _check_protocol(experiment)
    if not isinstance(experiment.columns, Mapping):
        raise CorankError(f"columns = {experiment.columns!r}: give a table, such as columns = {{user = 'who'}}")
    for key, value in experiment.columns.items():
        if key not in COLUMNS:
            raise CorankError(f"columns has no {key!r}{suggest(str(key), COLUMNS)}")
        if not isinstance(value, str | bool):
            raise CorankError(f"columns: {key} = {value!r} must be the name of a column")
    if not isinstance(experiment.data, Dataset | Split | str | Path | Mapping):
        raise CorankError(f"data = {experiment.data!r}: give a Dataset, a Split, a file or the name of a dataset")
    for name in ("test", "valid"):
        value = getattr(experiment, name)
        if value is not None and not isinstance(value, Dataset | str | Path):
            raise CorankError(f"{name} = {value!r}: give a Dataset or a file with the {name} rows")
    given = experiment.test is not None or experiment.valid is not None
    if isinstance(experiment.data, Split) and (given or experiment.split != "auto"):
        raise CorankError("data is a Split already: leave out split, test and valid, or give the rows as a Dataset")
    _check_edges(experiment)


def _check_protocol(experiment: Experiment) -> None:
    if experiment.task not in TASKS:
        raise CorankError(f"there is no task {experiment.task!r}{suggest(str(experiment.task), TASKS)}")
    options = experiment.protocol_options()
    kind = options.pop("protocol")
    if kind not in METRICS:
        raise CorankError(f"there is no protocol {experiment.protocol!r}{suggest(experiment.protocol, METRICS)}")
    if kind != "sampled" and (experiment.negatives != 100 or experiment.popular):
        raise CorankError(f"negatives and popular belong to protocol 'sampled', and this one is {kind!r}")
    as_protocol(kind, 1, "none", seed=experiment.seed, **options)


def _check_edges(experiment: Experiment) -> None:
    """Files of edges must exist, and need data that has no graph or split yet."""
    for name in ("user_edges", "item_edges"):
        path = getattr(experiment, name)
        if path is None:
            continue
        if not isinstance(path, str | Path):
            raise CorankError(f"{name} = {path!r}: give the name of a file with one row per edge")
        edge_file(path, experiment.data)
        if isinstance(experiment.data, Split | Mapping):
            raise CorankError(
                f"{name} needs a table, a named dataset or a Dataset, and this data is generated or split already: "
                "give it the graph first"
            )
