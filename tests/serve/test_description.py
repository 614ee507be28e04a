"""Requests made from the description of the interface: no answer is 5xx, and none differs from the description."""

from __future__ import annotations

import pytest
from benchmarks.reliability.service import made_up, sent, without_token
from hypothesis import HealthCheck, Phase, given, settings

schemathesis = pytest.importorskip("schemathesis")

from schemathesis.config import SchemathesisConfig  # noqa: E402

# What a description cannot say (which ids there are, that a rating has a value) is refused with 422.
RULES = {"checks": {"positive_data_acceptance": {"expected-statuses": ["2xx", "400", "403", "404", "409", "422"]}}}


def test_made_up_requests(start):
    running = start("a", "b")
    described = without_token(running.ok("/openapi.json"))
    schema = schemathesis.openapi.from_dict(described, config=SchemathesisConfig.from_dict(RULES))
    statuses: list[int] = []

    @settings(
        max_examples=250,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(made_up(schema))
    def ask(case):
        answer = sent(running.client, case)
        if answer is not None:
            statuses.append(answer.status_code)
            case.validate_response(answer)

    ask()
    assert {200, 422} <= set(statuses)
    assert max(statuses) < 500
