"""A short form of the trials of kill -9."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from benchmarks.reliability import kills

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")


def test_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kills, "FITS", {"wmf": kills.FITS["wmf"]})
    out = kills.training(4, 0, tmp_path, lambda done, of: None)
    assert out.failures == []
    assert out.tried == 4
    assert int(out.notes[0].split()[0]) > 0  # some were killed


def test_saving(tmp_path: Path) -> None:
    out = kills.saving(15, 0, tmp_path, lambda done, of: None)
    assert out.failures == []
    assert out.tried == 15


def test_a_broken_save_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trials can fail: a save that writes to its target at once is caught."""
    broken = tmp_path / "sitecustomize.py"
    broken.write_text(
        "import contextlib, pathlib, corank.system.atomic as atomic\n"
        "atomic.replacing = contextlib.contextmanager(lambda path: iter([pathlib.Path(path)]))\n"
    )
    before = kills.ENVIRONMENT["PYTHONPATH"]
    monkeypatch.setitem(kills.ENVIRONMENT, "PYTHONPATH", os.pathsep.join([str(tmp_path), before]))
    monkeypatch.setattr(kills, "SAVES", ("text",))
    assert kills.saving(15, 0, tmp_path, lambda done, of: None).failures
