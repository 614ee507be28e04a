"""`make pages`: pages whose code has changed since they were written, in a repository of the test's own."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import pytest

from layers import modules

HOME = Path(__file__).parents[1] / "docs" / "stale.py"
spec = importlib.util.spec_from_file_location("stale", HOME)
assert spec is not None
assert spec.loader is not None
stale = importlib.util.module_from_spec(spec)
spec.loader.exec_module(stale)


def test_what_a_page_depends_on():
    known = modules()
    found = {path.name for path in stale.sources(HOME.parents[1] / "experiments" / "sse-mf.toml", known)}
    assert {"sse-mf.toml", "mf.py", "evaluate.py", "metrics.py", "runner.py"} <= found
    assert not {"sasrec.py", "ease.py", "parser.py", "markdown.py"} & found
    found = {path.name for path in stale.sources(HOME.parents[1] / "experiments" / "sse-pt-window.toml", known)}
    assert {"sse_pt.py", "sasrec.py", "_sequence.py"} <= found  # what a model extends counts


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with one page, its experiment and its model."""
    model = tmp_path / "mf.py"
    model.write_text("lr = 1\n")
    (tmp_path / "other.py").write_text("x = 1\n")
    for folder in ("docs/results", "experiments"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "experiments" / "page.toml").write_text("[[model]]\nname = 'mf'\n")
    monkeypatch.setattr(stale, "ROOT", tmp_path)
    monkeypatch.setattr(stale, "sources", lambda experiment, known: {experiment, model})
    commit(tmp_path)
    return tmp_path


def commit(folder, words="a commit"):
    for command in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", words],
    ):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return stale.git("rev-parse", "--short=12", "HEAD")


def write(folder, line):
    (folder / "docs" / "results" / "page.md").write_text(f"# A page\n\n{line}\n")


def test_pages_are_listed_with_what_changed(repository):
    first = stale.git("rev-parse", "--short=12", "HEAD")
    write(repository, f"| Commit | {first} |")
    assert not list(stale.stale())
    (repository / "other.py").write_text("x = 2\n")
    commit(repository)
    assert not list(stale.stale())
    (repository / "mf.py").write_text("lr = 2\n")  # not committed yet: it counts all the same
    assert list(stale.stale()) == [("page", "", ["mf.py"])]
    write(repository, f"corank 0.1; commit {first}; a processor.")  # pages with curves
    assert list(stale.stale()) == [("page", "", ["mf.py"])]
    (repository / "mf.py").write_text("lr = 1\n")
    write(repository, f"| Commit | {first} with uncommitted changes |")
    assert list(stale.stale()) == [("page", "it was written with uncommitted changes", [])]


def test_pages_without_a_commit(repository, capsys):
    write(repository, "| Written | 2037-01-01 10:00 UTC |")
    assert not list(stale.stale())
    write(repository, "Made by hand.")
    assert list(stale.stale()) == [("page", "neither a commit nor a date is recorded on it", [])]
    write(repository, "| Commit | 0123456789ab |")
    assert list(stale.stale()) == [("page", "its commit 0123456789ab is not in this repository", [])]
    assert stale.main() == 0
    assert "1 pages are older than their code" in capsys.readouterr().out
