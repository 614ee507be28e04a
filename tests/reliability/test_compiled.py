"""A short form of compiled against cached kernels."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.reliability import compiled


def test_a_process_that_loads_learns_the_same_bits(tmp_path: Path) -> None:
    out = compiled.compiled_or_loaded(1, 0, tmp_path, lambda done, of: None, models=["als"])
    assert (out.tried, out.failures) == (1, [])


def test_another_bit_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = iter([{"als": {"defaults": {"user_factors_": digest}}} for digest in "aab"])
    monkeypatch.setattr(compiled, "learned", lambda cache, threads, models: next(found))
    out = compiled.compiled_or_loaded(1, 0, tmp_path, lambda done, of: None)
    assert out.failures == ["als: other bits in defaults user_factors_ (loaded, 1 thread)"]
