"""What is generated from the sources is up to date, and the generator notices when it is not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))

import generate  # noqa: E402

import corank as cr  # noqa: E402


@pytest.fixture(scope="module")
def contents() -> dict[Path, str]:
    return generate.contents()


@pytest.mark.parametrize("name", [*generate.PLACES, *generate.FILES])
def test_generated_files_match_the_sources(name: str, contents: dict[Path, str]) -> None:
    path = ROOT / name
    made = contents[path]
    assert path.exists(), f"{name} is missing: run `make generate`"
    assert path.read_text("utf-8") == made, f"{name} does not match the sources: run `make generate`"


def test_a_stale_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old = tmp_path / "page.md"
    old.write_text("# Page\n\n<!-- generated: models -->\nold\n<!-- end -->\n\nprose\n")
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    monkeypatch.setattr(generate, "PLACES", {"page.md": {"models": lambda: "new"}})
    monkeypatch.setattr(generate, "FILES", {})
    assert generate.main(["--check"]) == 1
    assert capsys.readouterr().err == "page.md does not match the sources: run `make generate`\n"
    assert generate.main([]) == 0
    assert old.read_text() == "# Page\n\n<!-- generated: models -->\nnew\n<!-- end -->\n\nprose\n"
    assert generate.main(["--check"]) == 0


def test_a_page_without_the_place_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "page.md").write_text("# Page\n")
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    monkeypatch.setattr(generate, "PLACES", {"page.md": {"models": lambda: "new"}})
    monkeypatch.setattr(generate, "FILES", {})
    with pytest.raises(SystemExit, match="has no place `generated: models`"):
        generate.contents()


def test_a_model_without_a_page_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "DOCS", tmp_path)
    with pytest.raises(SystemExit, match=r"als\.md is missing: every model has a page"):
        generate.contents()


def test_every_result_has_a_title() -> None:
    """An entry of the navigation is a title, not the name of a file."""
    for path in (ROOT / "docs" / "results").glob("*.md"):
        assert generate.result_title(path.name) != path.stem, f"experiments/{path.stem}.toml needs a title"
        assert generate.heading(path) == generate.result_title(path.name), f"{path.name}: heading and title differ"


def test_what_a_model_learns_from() -> None:
    said = {name: generate.learns_from(cr.find(name)) for name in cr.available()}
    assert said["ease"] == "interactions"
    assert said["sql_rank"] == "interactions or ratings"
    assert said["primal_cr"] == "ratings or comparisons"
    assert said["grmf"] == "ratings and a graph"
    assert said["gcmc"] == "ratings, optionally a graph"
    assert said["sasrec"] == "interactions in time order"


def test_which_models_need_torch() -> None:
    known = generate.modules()
    needs = {name for name in cr.available() if generate.extra(name, known)}
    assert {"sasrec", "sse_pt", "gcmc", "graph_ae"} <= needs
    assert not needs & {"wmf", "bpr", "mf", "grmf", "popularity"}


@pytest.mark.slow
def test_editors_know_the_public_names(tmp_path: Path) -> None:
    """mypy sees through the lazily resolved names by the stub."""
    pytest.importorskip("mypy")
    code = tmp_path / "use.py"
    lines = [
        "import corank as cr",
        "model = cr.WMF(dim=3)",
        "reveal_type(model)",
        "cr.WMF(dimm=3)",
        "cr.Wmf",
        "cr.EASE(regg=1)",
    ]
    code.write_text("\n".join([*lines, "reveal_type(cr.evaluate)", "reveal_type(cr.features.node2vec)"]) + "\n")
    heavy = ", ".join(f"mypy-{name}.*" for name in ("torch", "scipy", "polars", "matplotlib", "optuna", "numba"))
    config = tmp_path / "mypy.ini"  # without the libraries whose types take a minute to read
    config.write_text(
        f"[mypy]\nignore_missing_imports = True\nfollow_imports = silent\n[{heavy}]\nfollow_imports = skip\n"
    )
    command = [sys.executable, "-m", "mypy", "--config-file", str(config)]
    ran = subprocess.run(
        [*command, "--cache-dir", str(tmp_path / "cache"), str(code)],
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert 'Revealed type is "corank.models.wmf.WMF"' in ran.stdout, ran.stdout
    assert 'Unexpected keyword argument "dimm"' in ran.stdout
    assert 'Module has no attribute "Wmf"' in ran.stdout
    assert 'Unexpected keyword argument "regg" for "EASE"' in ran.stdout
    assert ran.stdout.count("Revealed type is") == 3
    assert 'Revealed type is "Any"' not in ran.stdout
    assert "Found 3 errors" in ran.stdout, ran.stdout
