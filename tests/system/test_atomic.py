"""Files are whole or not there, and what a killed save left does not stay."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import corank as cr
from corank.errors import CorankError, NotWritten
from corank.system import atomic
from corank.system.atomic import PART, STALE, replacing, sweep, system_error, write_text

SAVING = (
    "import sys, time\n"
    "from corank.system.atomic import replacing\n"
    "with replacing(sys.argv[1]) as part:\n"
    "    part.write_text('half')\n"
    "    print(part, flush=True)\n"
    "    time.sleep(60)\n"
)


def being_written(path: Path) -> tuple[subprocess.Popen[str], Path]:
    """A process that is saving to `path`, and its part."""
    process = subprocess.Popen([sys.executable, "-c", SAVING, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def left_by_a_killed_save(path: Path) -> Path:
    process, part = being_written(path)
    process.kill()
    process.wait()
    assert part.read_text() == "half"
    return part


def test_a_failure_leaves_the_old_file_and_no_part(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(ZeroDivisionError), replacing(path) as part:
        part.write_text("half" * (1 // 0))
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_the_next_save_sweeps_up_after_killed_ones(tmp_path: Path) -> None:
    left = [left_by_a_killed_save(tmp_path / "m[1].corank"), tmp_path / ".other.json.corank-abcdefgh.part"]
    left[1].write_text("half")
    process, part = being_written(tmp_path / "m[1].corank")
    left.append(left_by_a_killed_save(tmp_path / "m[1].corank"))
    strange = tmp_path / ".somebody.else.part"
    strange.write_text("")
    write_text(tmp_path / "m[1].corank", "whole")
    assert not any(path.exists() for path in left)
    assert part.exists()  # its process is alive
    assert strange.exists()
    process.kill()
    process.wait()
    sweep(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == [".somebody.else.part", "m[1].corank"]


def test_loading_sweeps_too(tmp_path: Path) -> None:
    cr.Popularity().fit(cr.from_arrays(user=[0, 1], item=[0, 1])).save(tmp_path / "m.corank")
    left = left_by_a_killed_save(tmp_path / "m.corank")
    cr.load(tmp_path / "m.corank")
    assert not left.exists()


def test_a_part_that_is_seen_before_it_is_locked_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make, made = atomic.tempfile.mkstemp, []

    def seen(**options: Any) -> tuple[int, str]:
        handle, name = make(**options)
        made.append(name)
        if len(made) == 1:
            sweep(tmp_path)
            assert not Path(name).exists()
        return handle, name

    monkeypatch.setattr(atomic.tempfile, "mkstemp", seen)
    write_text(tmp_path / "a", "whole")
    assert len(made) == 2
    assert (tmp_path / "a").read_text() == "whole"


def test_without_locks_age_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = left_by_a_killed_save(tmp_path / "a")
    young = old.with_name(".b.corank-abcdefgh.part")
    young.write_text("half")
    os.utime(old, (time.time() - STALE - 60,) * 2)
    monkeypatch.setattr(atomic, "fcntl", None)
    write_text(tmp_path / "c", "whole")
    assert not old.exists()
    assert young.exists()


def test_a_long_name(tmp_path: Path) -> None:
    path = tmp_path / ("ü" * 120 + ".corank")  # 247 bytes of 255
    with replacing(path) as part:
        assert PART.fullmatch(part.name)
        part.write_text("x")
    assert path.read_text() == "x"


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(CorankError, match="is a folder"):
        write_text(tmp_path, "")


@pytest.mark.parametrize(
    ("why", "number"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), errno.ENOSPC),
        (RuntimeError("I/O error: No space left on device (os error 28)"), errno.ENOSPC),  # safetensors, polars
        (OSError("[Errno 27] File too large"), errno.EFBIG),  # polars, of a file that Python opened
    ],
)
def test_the_system_error_in_the_words_of_libraries(tmp_path: Path, why: Exception, number: int) -> None:
    found = system_error(why)
    assert found is not None
    assert found.errno == number
    write_text(tmp_path / "a", "old")
    sentence = rf"cannot write .*a: {os.strerror(number)}; (make room|raise the limit)"
    with pytest.raises(NotWritten, match=sentence), replacing(tmp_path / "a"):
        raise why
    assert (tmp_path / "a").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_other_errors_are_passed_on(tmp_path: Path) -> None:
    assert system_error(ValueError("no")) is None
    assert system_error(CorankError("(os error 28)")) is None
    unnumbered = OSError("it was odd")
    assert system_error(unnumbered) is unnumbered
    with pytest.raises(NotWritten, match="it was odd; choose a folder"), replacing(tmp_path / "a"):
        raise unnumbered
