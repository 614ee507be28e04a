"""Files are whole or not there, and what a killed save left does not stay for ever."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from corank.atomic import STALE, replacing, write_text
from corank.errors import CorankError


def left_by_a_killed_save(path: Path, age: float) -> Path:
    """What stays of a save that was killed `age` seconds ago."""
    code = (
        "import os, sys\n"
        "from corank.atomic import replacing\n"
        "with replacing(sys.argv[1]) as part:\n"
        "    print(part, flush=True)\n"
        "    os._exit(9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    part = Path(killed.stdout.strip())
    os.utime(part, (time.time() - age,) * 2)
    return part


def test_a_failure_leaves_the_old_file_and_no_part(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(ZeroDivisionError), replacing(path) as part:
        part.write_text("half" * (1 // 0))
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_the_next_save_sweeps_up_after_killed_ones(tmp_path: Path) -> None:
    path = tmp_path / "m[1].corank"  # a name that means something to glob
    old, young = (left_by_a_killed_save(path, age) for age in (STALE + 60, STALE - 60))
    other = left_by_a_killed_save(tmp_path / "m[1].corank.json", STALE + 60)
    write_text(path, "whole")
    assert not old.exists()
    assert young.exists()  # may still be written to
    assert other.exists()


def test_a_failed_save_sweeps_nothing(tmp_path: Path) -> None:
    old = left_by_a_killed_save(tmp_path / "a", STALE + 60)
    with pytest.raises(ZeroDivisionError), replacing(tmp_path / "a"):
        raise ZeroDivisionError
    assert old.exists()
    with pytest.raises(CorankError, match="is a folder"):
        write_text(tmp_path, "")
