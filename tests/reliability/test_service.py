"""A short form of the trials of the service; its other parts are tested in tests/serve."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the service needs corank[serve]")

from benchmarks.reliability import service, service_feedback


@pytest.mark.slow
@pytest.mark.parametrize("part", service.PARTS + service_feedback.PARTS, ids=lambda part: part.name)
def test_each_part(part, tmp_path: Path) -> None:
    trials = {"described": 60, "crowd": 1_200, "rude": 60, "garbage": 15, "workers": 5}.get(part.run.__name__, 1)
    if part.run is service_feedback.gone:
        from benchmarks.postgres import binaries

        if binaries() is None:
            pytest.skip("PostgreSQL is not here: install it (Debian: apt-get install postgresql)")
        pytest.importorskip("psycopg")
    out = part.run(trials, 1, tmp_path, lambda done, of: None)
    assert out.failures == []
    assert out.tried > 0


def test_damage_is_damage() -> None:
    whole, draw = bytes(range(256)) * 20, random.Random(0)
    made = [service._damaged(whole, draw) for _ in range(50)]
    assert sum(one == whole for one in made) < 25
    assert any(len(one) < len(whole) for one in made)
