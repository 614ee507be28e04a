"""The requested rows of an experiment: models from names, tables and TOML files, checked before any fit."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ..data import Dataset
from ..errors import CorankError, several, shorten
from ..model import Model
from ..models import available, find
from ..params import check, params_of
from .schema import param_mistakes, row_mistakes

NOTHING: Mapping[str, Any] = MappingProxyType({})
LARGEST = 1 << 20  # bytes of a TOML file: what is larger is no experiment


class Entry(NamedTuple):
    """One row of the leaderboard before it is run."""

    label: str
    model: Model
    published: Mapping[str, float]  # metric -> the value that others report
    at_most: int | None = None  # training rows kept per user; all when absent
    chosen: Mapping[str, Any] = NOTHING  # how its hyper-parameters were chosen, as stated
    published_under: Mapping[str, Any] = NOTHING  # what the published figures were measured under
    given: bool = False  # whether hyper-parameters are given


def make_entry(
    asked: str | Mapping[str, Any] | Model,
    task: str,
    seed: int,
    chosen: Mapping[str, Any] = NOTHING,
    published_under: Mapping[str, Any] = NOTHING,
) -> Entry:
    """An entry from a model, the name of one, or a table {name = ..., label = ..., dim = ...}.

    chosen, published_under : what the experiment states for rows that do not state it themselves.
    """
    if wrong := list(row_mistakes("row", asked)):
        raise several(wrong)
    if isinstance(asked, Model):
        known = params_of(type(asked))
        given = any(value != known[name][2] for name, value in asked.params().items() if name != "seed")
        label = getattr(asked, "label", type(asked).name())
        return Entry(label, asked, {}, chosen=chosen if given else NOTHING, given=given)
    table: dict[str, Any] = {"name": asked} if isinstance(asked, str) else dict(asked)
    name = table.pop("name")
    label, published, at_most = table.pop("label", name), table.pop("published", {}), table.pop("at_most", None)
    under = {**published_under, **table.pop("published_under", {})}
    own = table.pop("chosen", None)
    model = make_model(name, {"seed": seed, **find(name).task_params.get(task, {}), **table})
    given = bool(table.keys() & model.params().keys() - {"seed"})
    stated = own if own is not None else chosen if given else NOTHING
    return Entry(label, model, published, at_most, stated, under, given)


def models_for(task: str, train: Dataset) -> list[str]:
    """The models that take part in a task by default; those that need a graph only where the data has one."""
    has_graph = train.user_graph is not None or train.item_graph is not None
    fit = [n for n in available() if find(n).suits(task) and (has_graph or find(n).graph != "needed")]
    return [_for_catalogue(name, len(train.items)) for name in fit]


def replaced(task: str, train: Dataset) -> dict[str, str]:
    """The models of a task that `models_for` leaves to their form for large catalogues: name -> a sentence."""
    items = len(train.items)
    return {
        name: f"above {find(name).large_form[0]:,} items ({items:,} here) {_for_catalogue(name, items)} is "
        f"compared in its place: name it to run it all the same (--models {name})"
        for name in available()
        if find(name).suits(task) and _for_catalogue(name, items) != name
    }


def _for_catalogue(name: str, items: int) -> str:
    """The model, or the one that takes its place where the catalogue is large."""
    most, other = find(name).large_form
    return other if other and items > most else name


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
            raise CorankError(f"there is no file {path}: check the path")
        if not path.is_file():  # a device or a pipe may never end
            raise CorankError(f"{path} cannot be read as TOML: it is no file")
        if path.stat().st_size > LARGEST:
            raise CorankError(f"{path} cannot be read as TOML: it has more than {LARGEST:,} bytes")
        return tomllib.loads(path.read_text("utf-8-sig"))
    except CorankError:
        raise
    except RecursionError:
        raise CorankError(f"{path} cannot be read as TOML: it is nested too deeply") from None
    except tomllib.TOMLDecodeError as why:
        raise CorankError(f"{path} cannot be read as TOML: {shorten(str(why), 200)}; repair that place") from None
    except (OSError, ValueError) as why:  # other encodings, a NUL in the name ...
        raise CorankError(f"{path} cannot be read as TOML: {shorten(str(why), 200)}") from None
