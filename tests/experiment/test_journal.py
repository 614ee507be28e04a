"""The journal of a search survives kills and full disks."""

from __future__ import annotations

import logging
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import corank as cr
from corank.experiment.journal import Journal
from corank.experiment.tune import tune


@pytest.fixture(scope="module")
def split() -> cr.Split:
    return cr.holdout(cr.synthetic.realistic(users=80, items=50, rows=1_000, groups=3, seed=5).data)


def test_half_a_line_is_cut_off(tmp_path: Path, split: cr.Split) -> None:
    first = tune(cr.WMF(dim=4, epochs=1), split, trials=3, storage=tmp_path)
    (file,) = tmp_path.glob("*.journal")
    whole = file.read_bytes()
    file.write_bytes(whole + b'{"op_code": 4, "worker')  # killed while it wrote
    second = tune(cr.WMF(dim=4, epochs=1), split, trials=5, storage=tmp_path)
    assert second.trials == 5
    assert second.value >= first.value
    assert file.read_bytes().startswith(whole)
    assert [p.name for p in tmp_path.iterdir()] == [file.name]  # no lock stays


def test_a_full_disk_does_not_end_the_search(tmp_path: Path, split: cr.Split, caplog: pytest.LogCaptureFixture) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000, limits[1]))
    try:
        with caplog.at_level(logging.WARNING, "corank"):
            found = tune(cr.WMF(dim=4, epochs=1), split, trials=6, storage=tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert found.trials == 6
    assert [r.getMessage() for r in caplog.records if "goes on in memory" in r.getMessage()]
    assert found.params == tune(cr.WMF(dim=4, epochs=1), split, trials=6).params
    assert tune(cr.WMF(dim=4, epochs=1), split, trials=6, storage=tmp_path).trials == 6  # from what was written


def test_a_lock_does_not_outlive_its_process(tmp_path: Path) -> None:
    code = (
        "import os, sys\n"
        "from corank.experiment.journal import Journal\n"
        "Journal(sys.argv[1])._lock.acquire()\n"
        "os._exit(9)\n"
    )
    path = tmp_path / "a.journal"
    subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    journal = Journal(str(path))
    journal.append_logs([{"a": 1}])
    assert list(journal.read_logs(0)) == [{"a": 1}]
    assert os.listdir(tmp_path) == ["a.journal"]


def test_a_file_that_is_no_journal(tmp_path: Path, split: cr.Split) -> None:
    (tmp_path / "wmf.journal").write_text("not\na journal\n")
    with pytest.raises(cr.CorankError, match="not the journal of a search"):
        tune(cr.WMF(dim=4, epochs=1), split, trials=1, storage=tmp_path)
