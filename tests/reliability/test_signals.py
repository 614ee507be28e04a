"""A short form of the trials of signals."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest
from benchmarks.reliability import signals

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")


@linux
def test_random_moments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "COMMANDS", {"compare": signals.COMMANDS["compare"]})
    out = signals.run(2, 1, tmp_path, lambda done, of: None)
    assert out.failures == []
    assert out.tried == 2


@pytest.mark.parametrize(
    ("code", "text", "err", "found"),
    [
        (None, "", "", "hangs"),
        (1, "", "Traceback (most recent call last):\nKeyboardInterrupt", "traceback"),
        (0, "", "Exception ignored in: <function f>", "traceback"),
        (1, "", "corank: stopped", "exit code 1"),
        (130, "", "", "no word"),
        (130, "ndcg@10 ...", "corank: stopped", "missing without a word: best.corank, results.json, report.html"),
        (130, "ndcg@10 ...", "missing: best.corank, report.html\ncorank: stopped", "a word: results.json"),
        (-2, "", "", ""),
        (130, "", "corank: stopped", ""),
    ],
)
def test_what_counts_as_a_failure(tmp_path: Path, code: int | None, text: str, err: str, found: str) -> None:
    failure = signals._failure("compare", signal.SIGINT, code, text, err, tmp_path)
    assert found in failure
    assert bool(found) == bool(failure)
