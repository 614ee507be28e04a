"""The command line where standard streams are closed."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest

import corank as cr


@pytest.mark.skipif(os.name != "posix", reason="streams are closed by a shell")
@pytest.mark.parametrize("streams", ["<&- >&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_lead_nowhere(tmp_path, streams):
    (tmp_path / "r.csv").write_text("user,item\n" + "".join(f"{n % 7},{n % 5}\n" for n in range(35)))
    words = [sys.executable, "-m", "corank", "fit", "popularity", "r.csv", "-o", "m.corank"]
    assert subprocess.run(["sh", "-c", f"{shlex.join(words)} {streams}"], cwd=tmp_path).returncode == 0
    assert cr.load(tmp_path / "m.corank").recommend([1])
