"""How a model is trained on shards: `find("wmf")` is the class in `wmf_shard.py`."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any, ClassVar

import numpy as np

from ..data import Array
from ..errors import CorankError
from .shard import Shard
from .steps import Steps

ENDING = "_shard"


class Method:
    """The training of one model on one worker; a subclass names its learned arrays and says what an epoch does.

    The model of a worker has the vectors of its own users, and those of all items. After each epoch, `arrays` is all
    that the next one depends on, beside the shard.
    """

    shared: ClassVar[tuple[str, ...]] = ()  # learned attributes that are the same on all workers
    own: ClassVar[tuple[str, ...]] = ()  # learned attributes with a row per user, of which each worker has some

    def __init__(self, model: Any, shard: Shard) -> None:
        self.model, self.shard, self.place = model, shard, shard.place

    @staticmethod
    def check(model: Any) -> None:
        """Raise an error for settings that a cluster does not have."""

    def start(self) -> Steps[None]:
        """Sort the rows, choose what depends on all data, and initialise the learned arrays."""
        raise NotImplementedError

    def epoch(self) -> Steps[dict[str, float]]:
        """One epoch; returns what is reported of it, the same on all workers."""
        raise NotImplementedError

    def finish(self) -> Steps[None]:
        """What comes after the last epoch."""
        yield from ()

    def arrays(self) -> dict[str, Array]:
        """By name, what the next epoch depends on: the learned arrays of this worker's users, and the shared ones."""
        return {name: getattr(self.model, name) for name in (*self.own, *self.shared)}

    def plain(self) -> dict[str, Any]:
        """Learned numbers and words, the same on all workers."""
        known = {*self.own, *self.shared}
        learned = {name: value for name, value in self.model._learned().items() if name not in known}
        return {name: value for name, value in learned.items() if not isinstance(value, np.ndarray)}


def available() -> list[str]:
    """The names of the models that can be trained on a cluster."""
    package = importlib.import_module(__package__)
    files = (module.name for module in pkgutil.iter_modules(package.__path__))
    return sorted(name.removesuffix(ENDING) for name in files if name.endswith(ENDING))


def find(name: str) -> type[Method]:
    """How the model of this name is trained on shards."""
    if name not in available():
        raise CorankError(
            f"{name} cannot be trained on a cluster, where there are {', '.join(available())}: leave the cluster out, "
            "or choose one of these"
        )
    module = importlib.import_module(f".{name}{ENDING}", __package__)
    return next(
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Method) and value.__module__ == module.__name__
    )
