"""Shared fixtures: where the real data is, and small datasets whose right answer is known."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

if "PYTEST_XDIST_WORKER" in os.environ:  # one process per core: a team of BLAS threads in each would only wait
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")

import numpy as np
import pytest
from hypothesis import settings

import corank as cr

# The folders of tests/ can be imported, and transformers takes one of them for the library of the same name.
sys.modules.setdefault("datasets", None)  # type: ignore[arg-type]

# The first example of a test may compile a kernel.
settings.register_profile("corank", deadline=None)
settings.load_profile("corank")


def _data_root() -> Path:
    return Path(os.environ.get("CORANK_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on real data are slow: `make test` leaves them to `make test-slow`."""
    for item in items:
        if "shared_data" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with the public datasets; tests that need it are skipped where it is missing."""
    root = _data_root()
    if not root.is_dir():
        pytest.skip("real datasets are not here: set CORANK_DATA to a folder that has them")
    return root


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """SIGINT has its usual effect, here and in new processes: shells make what runs in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def checkerboard() -> cr.Dataset:
    """Even users like even items, odd users odd ones; each user misses exactly one item of the own colour.

    24 users x 16 items: the right top-1 of user u is the missing item, which is known by construction.
    """
    user, item = [], []
    for u in range(24):
        own = [i for i in range(16) if i % 2 == u % 2]
        missing = own[(u // 2) % len(own)]
        for i in own:
            if i != missing:
                user.append(u)
                item.append(i)
    return cr.from_arrays(user=np.array(user), item=np.array(item))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty root of one's own, whatever the machine has."""
    monkeypatch.setenv("CORANK_DATA", str(tmp_path))
    return tmp_path
