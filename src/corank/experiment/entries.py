"""The requested rows of an experiment: models from names, tables and TOML files, checked before any fit."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..data import Dataset
from ..errors import CorankError, several, shorten
from ..model import Model
from ..models import available, find
from ..params import check
from .schema import param_mistakes, row_mistakes

LARGEST = 1 << 20  # bytes of a TOML file: what is larger is no experiment


class Entry(NamedTuple):
    """One row of the leaderboard before it is run."""

    label: str
    model: Model
    published: Mapping[str, float]  # metric -> the value that others report
    at_most: int | None = None  # training rows kept per user; all when absent


def make_entry(asked: str | Mapping[str, Any] | Model, task: str, seed: int) -> Entry:
    """An entry from a model, the name of one, or a table {name = ..., label = ..., dim = ...}."""
    if wrong := list(row_mistakes("row", asked)):
        raise several(wrong)
    if isinstance(asked, Model):
        return Entry(getattr(asked, "label", type(asked).name()), asked, {})
    table: dict[str, Any] = {"name": asked} if isinstance(asked, str) else dict(asked)
    name = table.pop("name")
    label, published, at_most = table.pop("label", name), table.pop("published", {}), table.pop("at_most", None)
    of_task = find(name).task_params.get(task, {})
    return Entry(label, make_model(name, {"seed": seed, **of_task, **table}), published, at_most)


def models_for(task: str, train: Dataset) -> list[str]:
    """The models that take part in a task by default; those that need a graph only where the data has one."""
    has_graph = train.user_graph is not None or train.item_graph is not None
    return [n for n in available() if find(n).suits(task) and (has_graph or find(n).graph != "needed")]


def make_model(name: str, params: Mapping[str, Any]) -> Model:
    """The model of that name with these hyper-parameters, checked."""
    if wrong := list(param_mistakes(name, params)):
        raise several(wrong)
    model = find(name)(**params)
    check(model)
    return model


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file as a dict; an error names what is wrong with it."""
    try:
        if not path.exists():
            raise CorankError(f"there is no file {path}")
        if not path.is_file():  # a device or a pipe may never end
            raise CorankError(f"{path} cannot be read as TOML: it is no file")
        if path.stat().st_size > LARGEST:
            raise CorankError(f"{path} cannot be read as TOML: it has more than {LARGEST:,} bytes")
        return tomllib.loads(path.read_text("utf-8-sig"))
    except CorankError:
        raise
    except RecursionError:
        raise CorankError(f"{path} cannot be read as TOML: it is nested too deeply") from None
    except (OSError, ValueError) as why:  # broken TOML, other encodings, a NUL in the name ...
        raise CorankError(f"{path} cannot be read as TOML: {shorten(str(why), 200)}") from None
