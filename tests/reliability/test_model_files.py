"""A short form of `python -m benchmarks.reliability`: crafted model files and checkpoints, changed bytes."""

from __future__ import annotations

import pytest
from benchmarks.reliability import model_files, mutations

SHARE = 0.005


@pytest.mark.parametrize(
    "part",
    [part for part in [*model_files.PARTS, *mutations.PARTS] if "bounds" not in part.name],
    ids=lambda part: part.name,
)
def test_nothing_breaks_it(part, tmp_path):
    out = part.outcome(round(SHARE * part.trials), 1, tmp_path, lambda done, of: None)
    assert out.tried == round(SHARE * part.trials)
    assert not out.failures


def test_a_trial_that_kills_or_fails_its_process_is_counted(tmp_path):
    """The fuzzer itself can fail: without the checks a crafted file gets through."""
    from benchmarks.reliability._workers import in_workers

    code = "import os, sys; print('0: fine|', flush=True); os.kill(os.getpid(), 11)"
    out = in_workers(["-c", code], 2, lambda done, of: None)
    assert out.tried == 2
    assert len(out.failures) == 1
    assert "signal 11" in out.failures[0]
