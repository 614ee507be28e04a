"""A few of the trials of `benchmarks/reliability/toml_files.py`."""

from __future__ import annotations

from benchmarks.reliability import toml_files


def test_damaged_experiment_files(tmp_path, monkeypatch):
    monkeypatch.setattr(toml_files, "EVERY", 20)
    monkeypatch.setattr(toml_files, "SECONDS", 0.5)
    out = toml_files.run(15, 7, tmp_path, lambda done, of: None)
    assert out.tried == 15
    assert not out.failures


def test_a_run_that_breaks_or_writes_elsewhere_is_a_failure(tmp_path, monkeypatch):
    def broken(file, out):
        (tmp_path / "escaped").write_text("x")
        return "ran", ""

    monkeypatch.setattr(toml_files, "in_process", broken)
    monkeypatch.setattr(toml_files, "by_command", lambda file, out: ("refused", ""))
    out = toml_files.run(3, 0, tmp_path, lambda done, of: None)
    assert len(out.failures) == 3  # an untouched file was refused, and two wrote outside of their folder
