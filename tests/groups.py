"""Workers of a cluster in this process, without Ray, of which one can be lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from corank.cluster.group import Group, Here, Lost
from corank.cluster.session import fit
from corank.cluster.worker import Message

TOLERANCE = 1e-4  # of the largest number of an array: sums of float32 in another order, over some epochs


class Fragile(Here):
    """Workers of which one is lost the n-th time that something is asked of them; `losses` counts over all groups."""

    def __init__(self, size: int, name: str, params: dict[str, Any], losses: list[int]) -> None:
        super().__init__(size, 1, name, params)
        self.losses = losses

    def send(self, method: str, arguments: Sequence[Sequence[Any]]) -> list[Message]:
        if self.losses and self.losses[0] == 0:
            self.losses.pop(0)
            raise Lost("a test has killed it")
        if self.losses:
            self.losses[0] -= 1
        return super().send(method, arguments)


def fit_here(model: Any, data: Any, size: int, *, losses: list[int] | None = None, **options: Any) -> Any:
    """Fit on `size` workers in this process; losses : after how many further messages a worker is lost, each time."""
    left = list(losses or [])

    @contextmanager
    def groups(name: str, params: dict[str, Any]) -> Iterator[Group]:
        yield Fragile(size, name, params, left)

    with threadpool_limits(1):  # as on a cluster, where each worker has a thread
        fit(model, data, size, groups, **options)
    return model


def same_model(one: Any, other: Any) -> None:
    """Equal bit for bit, but for the time that it took."""
    assert set(one._learned()) == set(other._learned())
    for name, value in one._learned().items():
        found = getattr(other, name)
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, found, err_msg=name)
        elif name == "history_":
            assert [{**entry, "seconds": 0} for entry in value] == [{**entry, "seconds": 0} for entry in found]
        elif name != "fit_seconds_":
            assert value == found, name


def close(model: Any, alone: Any) -> None:
    """Equal up to the rounding of sums in another order."""
    assert set(model._learned()) == set(alone._learned())
    for name, value in alone._learned().items():
        found = getattr(model, name)
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            np.testing.assert_allclose(found, value, rtol=0, atol=TOLERANCE * max(1, np.abs(value).max()), err_msg=name)
        elif isinstance(value, np.ndarray):
            np.testing.assert_array_equal(found, value, err_msg=name)
        elif isinstance(value, float) and name != "fit_seconds_":
            assert found == pytest.approx(value, rel=1e-6), name
        elif name not in ("fit_seconds_", "history_"):
            assert found == value, name
    for mine, other in zip(model.history_, alone.history_, strict=True):
        assert mine["objective"] == pytest.approx(other["objective"], rel=1e-5)
