"""What pages say about the machine: libraries, commit, processor, and the time of fits that were kept."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import corank as cr
from corank.report import machine, write_markdown


def test_pages_name_commit_processor_and_libraries(tmp_path: Path) -> None:
    data = cr.synthetic.realistic(users=60, items=60, rows=900, groups=3, friends=3).data
    results = cr.Experiment(data=data, models=["popularity"], metrics=["recall@5"]).run()
    write_markdown(results, tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text("utf-8")
    for row in ("| Processor |", "| Commit |", "| Versions | corank "):
        assert row in page
    for name in ("torch", "optuna"):  # where they are installed
        installed = importlib.util.find_spec(name) is not None
        assert (f", {name} " in page) == installed


def test_commit(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(machine, "SOURCE", tmp_path / "site-packages" / "corank")
    assert machine.commit().startswith("not recorded")  # a package in a folder of someone else's repository
    source = tmp_path / "src" / "corank"
    source.mkdir(parents=True)
    (source / "a.py").write_text("a = 1\n")
    for words in ("init -q", "add .", "-c user.name=a -c user.email=a@b commit -q -m first"):
        subprocess.run(["git", *words.split()], cwd=tmp_path, check=True)
    monkeypatch.setattr(machine, "SOURCE", source)
    clean = machine.commit()
    assert len(clean) == 12
    (source / "a.py").write_text("a = 2\n")
    assert machine.commit() == f"{clean} {machine.DIRTY}"


def test_fits_of_earlier_runs_count_with_their_time(tmp_path: Path) -> None:
    data = cr.synthetic.realistic(users=60, items=60, rows=900, groups=3, friends=3).data
    rows = ["popularity", {"name": "wmf", "dim": 4}]
    experiment = cr.Experiment(data=data, models=rows, metrics=["recall@5"], keep=True)
    first = experiment.run(storage=tmp_path / "kept")
    again = experiment.run(storage=tmp_path / "kept")
    assert [row.loaded for row in first.rows] == [0, 0]
    assert [row.loaded for row in again.rows] == [1, 1]
    for one, other in zip(first.rows, again.rows, strict=True):
        assert one.report.fit_seconds == other.report.fit_seconds
    write_markdown(again, tmp_path / "page.md")
    assert "in earlier runs: 2 of 2 fits were kept" in (tmp_path / "page.md").read_text("utf-8")
