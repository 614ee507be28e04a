"""A short form of the trials of threads that share models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.reliability import threads

from corank.models.wmf import WMF


@pytest.fixture(autouse=True)
def two_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "MODELS", {name: threads.MODELS[name] for name in ("wmf", "item_knn")})


def test_equal_to_one_thread(tmp_path: Path) -> None:
    out = threads.run(1, 0, tmp_path, lambda done, of: None)
    assert out.failures == []
    assert out.tried > 50


def test_a_shared_buffer_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared: dict[int, Any] = {}
    score = WMF._score

    def careless(self: WMF, users: Any) -> Any:
        buffer = shared.setdefault(len(users), np.empty((len(users), len(self.items_)), np.float32))
        buffer[...] = score(self, users)
        return buffer

    monkeypatch.setattr(WMF, "_score", careless)
    monkeypatch.setattr(threads, "MODELS", {"wmf": threads.MODELS["wmf"]})
    assert threads.run(2, 0, tmp_path, lambda done, of: None).failures
