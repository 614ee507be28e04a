"""A short form of the trials of full disks."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.reliability import disks


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = ("model", "lists, Parquet")
    monkeypatch.setattr(disks, "OUTPUTS", {kind: disks.OUTPUTS[kind] for kind in kinds})


def test_moments(few: None, tmp_path: Path) -> None:
    out = disks.run(4, 0, tmp_path, lambda done, of: None)
    assert out.failures == []
    assert out.tried == 4


FULL = "cannot write /x/m.corank: No space left on device"


@pytest.mark.parametrize(
    ("code", "err", "old", "found"),
    [
        (None, "", True, "hangs"),
        (1, "safetensors.SafetensorError: full", True, "no sentence"),
        (2, "corank: cannot write /x/m.corank: None", True, "no sentence"),
        (2, "corank: cannot write /x/m.corank: Permission denied", True, "another reason"),
        (2, f"corank: {FULL}", True, "not kept"),
        (2, f"corank: {FULL}; the model is kept in /no/such/m.corank", True, "is said to be kept and is not"),
        (2, f"corank: {FULL}; the model is kept in /no/such/m.corank", False, "the old m.corank is gone"),
    ],
)
def test_what_counts_as_a_failure(tmp_path: Path, code: int | None, err: str, old: bool, found: str) -> None:
    (tmp_path / "m.corank").write_bytes(disks.OLD if old else b"half")
    assert found in disks._failure("model", tmp_path, ["m.corank"], code, err, limit=False)
