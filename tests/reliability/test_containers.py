"""Two variants of a container; all of them take minutes: `python -m benchmarks.reliability containers`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest
from benchmarks.reliability import containers

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or bool(containers.possible()), reason="mount namespaces need Linux and root"
)


@pytest.fixture
def folder():
    """A folder below none that other users cannot enter, as `tmp_path` is."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def test_kernels_of_an_image_run_under_any_user_and_within_limits(folder, monkeypatch):
    chosen = ("kernels that were compiled when", "cgroup v2: 600 MB")
    monkeypatch.setattr(containers, "VARIANTS", [v for v in containers.VARIANTS if v.name.startswith(chosen)])
    out = containers.containers(2, 0, folder, lambda done, of: None)
    assert out.failures == []
    assert out.tried == 2


def test_there_are_enough_variants():
    assert len(containers.VARIANTS) >= 8
