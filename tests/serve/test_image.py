"""The Dockerfile and the compose file say what docs/serving.md promises, and start the service with options it has."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from corank.cli.parser import parse
from corank.cli.serve import settings_of

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "Dockerfile").read_text("utf-8")
LINES = re.sub(r"\\\n\s*", "", TEXT).splitlines()
STEPS = [line.split(maxsplit=1) for line in LINES if line and not line.startswith("#")]


def steps(word: str) -> list[str]:
    last = max(at for at, (name, _) in enumerate(STEPS) if name == "FROM")  # the stage that is run
    return [rest for name, rest in STEPS[last:] if name == word]


def test_the_image_is_not_run_by_root_and_tells_its_health():
    assert int(steps("USER")[-1]) > 1000
    program = json.loads(steps("HEALTHCHECK")[0].split("CMD ")[1])
    assert "/health/ready" in program[-1]
    compile(program[-1], "health check", "exec")
    assert not re.search(r"token|secret|password", "\n".join(steps("ENV") + steps("ARG")), re.IGNORECASE)


def test_the_image_starts_the_service():
    assert json.loads(steps("ENTRYPOINT")[0]) == ["corank", "serve"]
    settings_of(parse(["serve", *json.loads(steps("CMD")[0])])).check()


def test_the_context_has_what_the_build_needs():
    """Everything else is left out: data, tokens, the history of the repository."""
    rules = (ROOT / ".dockerignore").read_text("utf-8").split("\n")
    assert rules[1] == "*"
    kept = {rule[1:] for rule in rules if rule.startswith("!")}
    assert {"src", "experiments", "pyproject.toml", "constraints.txt", "README.md"} <= kept
    assert all((ROOT / name).exists() for name in kept)
    assert not kept & {".", ".git", "out", "models", "token", ".env"}


def test_the_compose_file():
    yaml = pytest.importorskip("yaml", reason="compose.yaml is read with PyYAML")
    made = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
    service, database = made["services"]["corank"], made["services"]["db"]
    settings = settings_of(parse(["serve", *service["command"]]))
    settings.check()
    assert settings.store.startswith("postgresql://corank@db/")
    assert settings.token_file == f"/run/secrets/{service['secrets'][0]}"
    assert set(service["secrets"]) == set(made["secrets"])
    assert service["read_only"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert service["depends_on"]["db"]["condition"] == "service_healthy"
    assert database["healthcheck"]["test"][0] == "CMD-SHELL"
    assert "DB_PASSWORD" in service["environment"]["PGPASSWORD"]
    assert {volume.split(":")[0] for volume in database["volumes"]} <= set(made["volumes"])


@pytest.mark.slow
def test_kernels_of_an_image_are_compiled(tmp_path):
    """What the build runs asks every model all that the service asks."""
    done = subprocess.run([sys.executable, ROOT / "docker" / "warm.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
