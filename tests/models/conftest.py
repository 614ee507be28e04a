"""What the contract tests share: every model of the folder, and data whose right answer is known."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corank as cr
from board import board_for


def pytest_generate_tests(metafunc):
    """A test that asks for `cls` runs once for each file in `models/`: a new model is covered by being there."""
    if "cls" in metafunc.fixturenames:
        names = cr.available()
        metafunc.parametrize("cls", [cr.find(name) for name in names], ids=names, scope="session")


EPOCHS = 4  # of the models whose fits are repeated most


def short(cls: type[cr.Model], **params: Any) -> cr.Model:
    """A model with its defaults but for its epochs: most promises of the contract do not depend on their number."""
    return cls(**({"epochs": EPOCHS} if hasattr(cls, "epochs") else {}), **params)


@functools.cache
def fitted(make: Callable[[type[cr.Model]], cr.Model], cls: type[cr.Model]) -> cr.Model:
    return make(cls).fit(board_for(cls.predicts_ratings or cls.needs_ratings))


@pytest.fixture
def board(cls) -> cr.Dataset:
    return board_for(cls.predicts_ratings or cls.needs_ratings)


@pytest.fixture
def new(cls) -> Callable[..., cr.Model]:
    """Makes an unfitted model whose fit is short, with further hyper-parameters."""
    return functools.partial(short, cls)


@pytest.fixture
def model(cls) -> cr.Model:
    """The model after a short fit on the board; shared, so a test must not change it."""
    return fitted(short, cls)


@pytest.fixture
def trained(cls) -> cr.Model:
    """The model after a fit with its defaults on the board; shared, so a test must not change it."""
    return fitted(type.__call__, cls)


@pytest.fixture(scope="session")
def movielens(shared_data) -> cr.Dataset:
    """MovieLens 100K, where it is at hand."""
    user, item, value, time = np.loadtxt(shared_data / "ml-100k" / "u.data", dtype=np.int64).T
    return cr.from_arrays(user=user, item=item, value=value, time=time)


@pytest.fixture(autouse=True)
def same_threads():
    """A test may set the number of threads; the next one starts from the default."""
    yield
    cr.set_threads(None)
