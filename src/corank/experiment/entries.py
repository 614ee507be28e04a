"""The requested rows of an experiment: models from names, tables and TOML files, checked before any fit."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..data import Dataset
from ..errors import CorankError, suggest
from ..model import Model
from ..models import available, find
from ..params import check


class Entry(NamedTuple):
    """One row of the leaderboard before it is run."""

    label: str
    model: Model
    published: Mapping[str, float]  # metric -> the value that others report
    at_most: int | None = None  # training rows kept per user; all when absent


def make_entry(asked: str | Mapping[str, Any] | Model, task: str, seed: int) -> Entry:
    """An entry from a model, the name of one, or a table {name = ..., label = ..., dim = ...}."""
    if isinstance(asked, Model):
        check(asked)
        return Entry(getattr(asked, "label", type(asked).name()), asked, {})
    if not isinstance(asked, str | Mapping) or (isinstance(asked, Mapping) and "name" not in asked):
        raise CorankError(f"{asked!r} is no row: give a model, its name, or a table with a name")
    table: dict[str, Any] = {"name": asked} if isinstance(asked, str) else dict(asked)
    name = str(table.pop("name"))
    label, published = str(table.pop("label", name)), dict(table.pop("published", {}))
    at_most = table.pop("at_most", None)
    if at_most is not None and (type(at_most) is not int or at_most < 1):
        raise CorankError(f"at_most = {at_most!r}: the number of training rows per user is a whole number above 0")
    of_task = find(name).task_params.get(task, {})
    return Entry(label, make_model(name, {"seed": seed, **of_task, **table}), published, at_most)


def models_for(task: str, train: Dataset) -> list[str]:
    """The models that take part in a task by default; those that need a graph only where the data has one."""
    has_graph = train.user_graph is not None or train.item_graph is not None
    return [n for n in available() if find(n).suits(task) and (has_graph or find(n).graph != "needed")]


def make_model(name: str, params: Mapping[str, Any]) -> Model:
    """The model of that name with these hyper-parameters, checked."""
    cls = find(name)
    known = [f.name for f in dataclasses.fields(cls)]
    for key in params:
        if key not in known:
            raise CorankError(f"{name} has no hyper-parameter {key!r}{suggest(key, known)}")
    model = cls(**params)
    check(model)
    return model


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file as a dict; an error names what is wrong with it."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise CorankError(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as why:
        raise CorankError(f"{path} cannot be read as TOML: {why}") from None
