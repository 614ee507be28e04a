"""`corank reproduce`: pages by name, in an installed package too, and pages that are run again."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from corank.cli import main, reproduce

ROOT = Path(__file__).parents[1]
TOML = """data = { synthetic = 'realistic', users = 60, items = 60, rows = 900, groups = 3, friends = 3 }
metrics = ['ndcg@5', 'recall@5']
keep = true
[[model]]
name = 'wmf'
dim = 4
chosen = { by = 'defaults' }
[[model]]
name = 'popularity'
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(TOML)
    Path("other.md").write_text("## Leaderboard\n\n|  | RMSE |\n|---|---|\n| mf | 0.5 |\n")


def test_a_page_that_is_run_again(capsys):
    assert main(["reproduce", "small.toml", "-o", "pages"]) == 0
    capsys.readouterr()
    assert main(["reproduce", "small.toml", "-o", "pages", "--check"]) == 0
    said = capsys.readouterr().out
    assert "figures compared, none moved; times are not compared" in said
    page = Path("pages/small.md")
    figure = page.read_text().split("| popularity | ")[1][:6]
    changed = page.read_text().replace(f"| popularity | {figure}", "| popularity | 0.9999", 1)
    Path("other.md").write_text(changed)
    before = page.read_bytes()
    assert main(["reproduce", "small.toml", "-o", "pages", "--check", "--page", "other.md"]) == 1
    said = capsys.readouterr().out
    assert "popularity: NDCG@5 0.9999" in said
    assert f"-> {figure}" in said
    assert "other.md" in said
    assert page.read_bytes() == before
    assert Path("other.md").read_text() == changed


def test_a_check_fits_anew(monkeypatch):
    """Fits that a run kept are not what a check is about."""
    assert main(["reproduce", "small.toml", "-o", "pages"]) == 0
    kept = sorted(Path(".corank-tune").rglob("*.corank"))
    assert kept
    for path in kept:
        path.write_bytes(b"broken")  # loading it would fail
    assert main(["reproduce", "small.toml", "-o", "pages", "--check"]) == 0


def test_curves_are_checked_too(capsys):
    Path("small.toml").write_text(
        TOML.replace("keep = true", "curves = true").split("[[model]]\nname = 'popularity'")[0]
    )
    assert main(["reproduce", "small.toml", "-o", "pages"]) == 0
    assert main(["reproduce", "small.toml", "-o", "pages", "--check"]) == 0
    assert "none moved" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("reproduce small --check -o nowhere", "there is no page nowhere/small.md to compare with: name one"),
        ("reproduce small.toml --check --plan", "give one of them"),
        ("reproduce small.toml --page small.md", "give --check too"),
        ("reproduce small.toml --check --page small.toml", "small.toml is no result page"),
        ("reproduce small.toml --check --page other.md", "other.md has no figures of small"),
        ("reproduce small.toml --check --page .", "cannot be read as a page"),
        ("reproduce sequences-beauty-ful", "did you mean 'sequences-beauty-full'"),
    ],
)
def test_mistakes(capsys, words, expected):
    assert main(words.split()) == 2
    assert expected in capsys.readouterr().err


def test_experiments_of_an_installed_package(tmp_path, monkeypatch):
    include = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    source, place = next(iter(include["force-include"].items()))
    assert list((ROOT / source).glob("*.toml"))
    assert reproduce.PACKAGE.parent / place == reproduce.SHIPPED
    shipped = tmp_path / "site-packages" / "corank" / "experiments"
    shipped.mkdir(parents=True)
    (shipped / "tiny.toml").write_text(TOML)
    monkeypatch.setattr(reproduce, "SHIPPED", shipped)
    monkeypatch.setattr(reproduce, "CHECKOUT", shipped)
    assert reproduce.experiment_file("tiny") == shipped / "tiny.toml"
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "tiny.toml").write_text(TOML)
    assert reproduce.experiment_file("tiny") == Path("experiments/tiny.toml")  # those here come first
